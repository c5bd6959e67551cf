//! The sample documents that Unisono was asked to run, and the hosts, slots and ranks each must give.

use unisono_dialect::{Options, Reading, read};
use unisono_job::{Dialect, EndRule, Flavour, Job, LaunchRights, Runs, SlotsFrom};

fn reading(bytes: &[u8]) -> Reading {
    let mut readings = read(bytes, &Options::default());
    assert_eq!(readings.len(), 1);
    readings.remove(0)
}

/// Name, members and slots of every group.
fn sizes(job: &Job) -> Vec<(&str, u32, u32)> {
    job.groups.iter().map(|it| (it.name.as_str(), it.replicas, it.slots.count)).collect()
}

#[test]
fn azure_on_managed_hosts_is_four_hosts_of_four_slots_and_the_first_launches() {
    for bytes in
        [&include_bytes!("seeds/azureml-1.yaml")[..], include_bytes!("seeds/azureml-2.yaml")]
    {
        let reading = reading(bytes);
        assert_eq!((reading.dialect, &reading.notes[..]), (Some(Dialect::AzureMpiJob), &[][..]));
        let job = reading.job.expect("it is a job");
        assert_eq!(sizes(&job), [("node", 4, 4)]);
        assert_eq!(job.groups[0].slots.from, SlotsFrom::LaunchLine);
        assert_eq!(job.experiment.as_deref(), Some("pytorch-mnist-horovod"));
        assert_eq!(job.groups[0].code.as_ref().map(|it| it.path.as_str()), Some("./src"));
        let Runs::LaunchOnFirst(command) = &job.groups[0].runs else {
            panic!("{:?}", job.groups[0].runs)
        };
        assert_eq!(command.launch_line().and_then(|line| line.ranks), Some(16));
        assert_eq!(job.launch_rights, LaunchRights::Launcher);
    }
}

#[test]
fn azure_on_kubernetes_is_a_launcher_without_slots_and_four_workers_of_four() {
    let reading = reading(include_bytes!("seeds/azureml-3.yaml"));
    assert_eq!(reading.notes, []);
    let job = reading.job.expect("it is a job");
    assert_eq!(sizes(&job), [("launcher", 1, 0), ("worker", 4, 4)]);
    assert_eq!(job.groups[1].slots.from, SlotsFrom::Gpus);
    assert_eq!(job.mpi.flavour, Some(Flavour::OpenMpi));
    assert_eq!(job.groups[0].resources.limits["memory"].whole(), 2 << 30);
    assert_eq!((job.groups[0].end, job.groups[1].end), (EndRule::FIRST, EndRule::NEVER));
}
