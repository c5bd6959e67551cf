//! Shares this machine's GPUs out among the hosts of a job. Pure, but for [`present`].

use std::collections::BTreeMap;
use std::path::Path;

use unisono_job::Note;
use unisono_plan::{Host, Member, Plan};

use crate::notes::{GPUS_SHARED, NO_GPUS};

/// Which GPUs each host may use. A host that is not listed is left as it is.
pub type GpuShares = BTreeMap<Member, Vec<u32>>;

/// The GPUs that have a device in this folder, which is `/dev` on a real machine.
pub fn present(devices: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir(devices).into_iter().flatten().flatten();
    let number = |name: &str| name.strip_prefix("nvidia")?.parse().ok();
    let mut found: Vec<u32> =
        entries.filter_map(|entry| number(entry.file_name().to_str()?)).collect();
    found.sort_unstable();
    found
}

/// Gives every host the GPUs it asks for, and each of its own as long as there are enough.
///
/// `asked` is the caller's number: no more are used, and a job that asks for none has so many spread over its hosts.
pub fn share_out(plan: &Plan, available: &[u32], asked: Option<u32>) -> (GpuShares, Vec<Note>) {
    let most = asked.map_or(available.len(), |it| available.len().min(it as usize));
    let available = &available[..most];
    let wishes = wishes(plan, asked);
    let wanted: u64 = wishes.iter().map(|(_, count)| count).sum();
    if wanted == 0 {
        return (GpuShares::new(), Vec::new());
    }
    if available.is_empty() {
        let message = format!("the job asks for {wanted} GPUs and gets none: it runs on the CPU");
        return (GpuShares::new(), vec![Note::new(&NO_GPUS, message)]);
    }
    let mut next = available.iter().copied().cycle();
    let mut shares = GpuShares::new();
    for (host, count) in &wishes {
        let count = usize::try_from(*count).unwrap_or(usize::MAX).min(available.len());
        shares.insert(host.member, next.by_ref().take(count).collect());
    }
    let enough = wanted <= available.len() as u64;
    let note = (!enough).then(|| {
        let message = format!(
            "the job asks for {wanted} GPUs and shares {} among its hosts",
            available.len()
        );
        Note::new(&GPUS_SHARED, message)
    });
    (shares, note.into_iter().collect())
}

/// How many each host wants: what the file says, else what the caller says, spread evenly over the hosts of ranks.
fn wishes(plan: &Plan, asked: Option<u32>) -> Vec<(&Host, u64)> {
    let stated: Vec<(&Host, u64)> =
        plan.hosts.iter().map(|host| (host, plan.group_of(host).resources.gpus())).collect();
    if stated.iter().any(|(_, count)| *count > 0) {
        return stated;
    }
    let hosts = plan.rank_hosts().count() as u64;
    let asked = u64::from(asked.unwrap_or(0));
    (0..)
        .zip(plan.rank_hosts())
        .map(|(at, host)| (host, asked / hosts.max(1) + u64::from(at < asked % hosts.max(1))))
        .collect()
}

#[cfg(test)]
mod tests {
    use unisono_job::{Dialect, Quantity};
    use unisono_plan::{Facts, lay_out};
    use unisono_testkit::jobs::kubeflow;

    use super::*;

    fn plan(gpus: u64) -> Plan {
        let mut job = kubeflow(Dialect::KubeflowV1, "x", 2, 1, &["mpirun", "./a"]);
        if gpus > 0 {
            let limits = &mut job.groups[1].resources.limits;
            limits.insert("nvidia.com/gpu".to_owned(), Quantity::of(gpus));
        }
        lay_out(&job, &Facts::default(), 1)
    }

    /// The shares of launcher and workers, and the codes of the notes.
    fn shared(
        gpus: u64,
        available: &[u32],
        asked: Option<u32>,
    ) -> (Vec<Vec<u32>>, Vec<&'static str>) {
        let (shares, notes) = share_out(&plan(gpus), available, asked);
        (shares.into_values().collect(), notes.iter().map(|note| note.code.name).collect())
    }

    #[test]
    fn each_host_has_its_own_while_there_are_enough() {
        let none: [&str; 0] = [];
        let (shares, notes) = shared(2, &[0, 1, 2, 3, 4], None);
        assert_eq!((shares, notes.as_slice()), (vec![vec![], vec![0, 1], vec![2, 3]], &none[..]));
    }

    #[test]
    fn too_few_are_shared_and_it_is_told() {
        let (shares, notes) = shared(2, &[3, 5, 7], None);
        assert_eq!((shares, notes), (vec![vec![], vec![3, 5], vec![7, 3]], vec!["gpus-shared"]));
        let (shares, notes) = shared(4, &[1], None);
        assert_eq!((shares, notes), (vec![vec![], vec![1], vec![1]], vec!["gpus-shared"]));
    }

    #[test]
    fn without_gpus_the_job_runs_on_the_cpu_and_it_is_told() {
        assert_eq!(shared(1, &[], None), (vec![], vec!["no-gpus"]));
        assert_eq!(shared(1, &[0, 1], Some(0)), (vec![], vec!["no-gpus"]));
        assert_eq!(shared(0, &[], None), (vec![], vec![]));
    }

    #[test]
    fn a_job_that_asks_for_none_is_left_alone_unless_the_caller_asks() {
        assert_eq!(shared(0, &[0, 1], None), (vec![], vec![]));
        assert_eq!(shared(0, &[0, 1, 2, 3], Some(3)), (vec![vec![0, 1], vec![2]], vec![]));
    }

    #[test]
    fn devices_are_counted_and_others_are_not() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["nvidia10", "nvidia0", "nvidiactl", "nvidia-uvm", "null", "nvidia2"] {
            std::fs::write(folder.path().join(name), "").expect("a file");
        }
        assert_eq!(present(folder.path()), [0, 2, 10]);
        assert_eq!(present(Path::new("/no/such/folder")), [0_u32; 0]);
    }
}
