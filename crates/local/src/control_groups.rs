//! Where this machine lets us make control groups, of version 1 or 2; and what a host's limits become there.

use std::fs;
use std::path::{Path, PathBuf};

use unisono_plan::Limits;

use crate::host::{ControlGroup, limits};

/// How the names of our control groups begin.
const PREFIX: &str = "unisono-";

/// The time over which processor time is counted, in microseconds: the kernel's own default.
const PERIOD: u64 = 100_000;

/// The shortest share of that time that the kernel takes.
const SHORTEST: u64 = 1_000;

/// Places for control groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControlGroups {
    places: Vec<Place>,
}

/// A folder in which control groups can be made, and what they can limit.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    folder: PathBuf,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Version 1: processors.
    Cpu,
    /// Version 1: memory.
    Memory,
    /// Version 2: both.
    Unified,
}

impl ControlGroups {
    /// Looks for places that can be used, and removes what killed runs have left there.
    pub fn find() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let mut places = candidates(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo"));
        places.retain(Place::is_usable);
        Self { places }
    }

    /// The groups that keep a host within its limits; none when this machine cannot.
    pub(crate) fn of_host(&self, name: &str, wanted: Limits) -> Option<Vec<ControlGroup>> {
        let groups: Vec<ControlGroup> =
            self.places.iter().filter_map(|place| place.group(name, wanted)).collect();
        let settings = || groups.iter().flat_map(|group| &group.settings);
        let has = |part: &str| settings().any(|(file, _)| file.starts_with(part));
        let kept = (wanted.cpu_millis.is_none() || has("cpu."))
            && (wanted.memory_bytes.is_none() || has("memory."));
        kept.then_some(groups)
    }

    /// Whether these limits can be kept here.
    pub fn can_keep(&self, wanted: Limits) -> bool {
        self.of_host("", wanted).is_some()
    }
}

impl Place {
    /// What the limits become here; none when there is nothing to limit.
    fn group(&self, name: &str, wanted: Limits) -> Option<ControlGroup> {
        let quota = wanted.cpu_millis.map(|it| (it * PERIOD / 1000).max(SHORTEST));
        let mut settings: Vec<(&str, String)> = Vec::new();
        if self.kind == Kind::Cpu {
            settings.extend(quota.map(|quota| ("cpu.cfs_quota_us", quota.to_string())));
        }
        if self.kind == Kind::Memory {
            let bytes = wanted.memory_bytes.map(|it| it.to_string());
            settings.extend(bytes.map(|it| ("memory.limit_in_bytes", it)));
        }
        if self.kind == Kind::Unified {
            settings.extend(quota.map(|quota| ("cpu.max", format!("{quota} {PERIOD}"))));
            settings.extend(wanted.memory_bytes.map(|it| ("memory.max", it.to_string())));
        }
        let counter = match self.kind {
            Kind::Cpu => None,
            Kind::Memory => Some("memory.oom_control".to_owned()),
            Kind::Unified => Some("memory.events".to_owned()),
        };
        (!settings.is_empty()).then(|| ControlGroup {
            folder: self.folder.join(format!("{PREFIX}{name}")),
            settings: settings.into_iter().map(|(file, value)| (file.to_owned(), value)).collect(),
            counter,
        })
    }

    /// Tries it: permissions alone do not tell.
    fn is_usable(&self) -> bool {
        limits::sweep(&self.folder, PREFIX);
        if self.kind == Kind::Unified {
            // Refused where processes live in the folder itself, or where it was done before: the trial tells.
            let _enabled = fs::write(self.folder.join("cgroup.subtree_control"), "+cpu +memory");
        }
        let trial = self.folder.join(format!("{PREFIX}trial-{}", std::process::id()));
        if fs::create_dir(&trial).is_err() {
            return false;
        }
        let has = |file: &str| trial.join(file).exists();
        let usable = match self.kind {
            Kind::Cpu => has("cpu.cfs_quota_us"),
            Kind::Memory => has("memory.limit_in_bytes"),
            Kind::Unified => has("cpu.max") && has("memory.max"),
        };
        fs::remove_dir(&trial).is_ok() && usable
    }
}

/// Where groups might be made: below our own group in version 1; beside it in version 2, where a group with processes has no
/// limited groups below it.
fn candidates(own_groups: &str, mounts: &str) -> Vec<Place> {
    mounts.lines().filter_map(|line| candidate(own_groups, line)).collect()
}

fn candidate(own_groups: &str, mount: &str) -> Option<Place> {
    let (before, after) = mount.split_once(" - ")?;
    let mut fields = before.split(' ').skip(3);
    let (root, point) = (fields.next()?, Path::new(fields.next()?));
    let mut fields = after.split(' ');
    let (kind, options) = (fields.next()?, fields.nth(1)?);
    let controls = |name: &str| options.split(',').any(|option| option == name);
    let (controller, kind) = match kind {
        "cgroup" if controls("cpu") => ("cpu", Kind::Cpu),
        "cgroup" if controls("memory") => ("memory", Kind::Memory),
        "cgroup2" => ("", Kind::Unified),
        _ => return None,
    };
    let own = own_groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let names = fields.next()?;
        names.split(',').any(|name| name == controller).then_some(fields.next()?)
    })?;
    let below = Path::new(own).strip_prefix(root).unwrap_or(Path::new(""));
    let below = below.strip_prefix("/").unwrap_or(below);
    let below = if kind == Kind::Unified { below.parent().unwrap_or(below) } else { below };
    Some(Place { folder: point.join(below), kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: Limits = Limits { cpu_millis: Some(1500), memory_bytes: Some(1 << 20) };

    fn place(folder: &str, kind: Kind) -> Place {
        Place { folder: folder.into(), kind }
    }

    #[test]
    fn version_1_has_a_place_for_each_controller_below_our_own_group() {
        let own = "4:memory:/job/a\n2:cpu,cpuacct:/\n0::/\n";
        let mounts = "31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                      32 30 0:28 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n\
                      33 30 0:29 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
                      34 30 0:30 / /proc rw - proc proc rw\n";
        assert_eq!(
            candidates(own, mounts),
            [
                place("/sys/fs/cgroup/cpu,cpuacct/", Kind::Cpu),
                place("/sys/fs/cgroup/memory/job/a", Kind::Memory)
            ]
        );
    }

    #[test]
    fn version_2_has_one_beside_our_own_group_and_a_container_sees_its_part_only() {
        let mount = "31 30 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";
        let own = "0::/user.slice/user@1.service/app.slice/x.scope\n";
        assert_eq!(
            candidates(own, mount),
            [place("/sys/fs/cgroup/user.slice/user@1.service/app.slice", Kind::Unified)]
        );
        assert_eq!(candidates("0::/\n", mount), [place("/sys/fs/cgroup/", Kind::Unified)]);
        let container =
            "32 30 0:28 /docker/1f /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        assert_eq!(
            candidates("4:memory:/docker/1f\n", container),
            [place("/sys/fs/cgroup/memory/", Kind::Memory)]
        );
    }

    #[test]
    fn limits_are_written_in_the_words_of_each_version() {
        let groups = |kinds: &[Kind], limits| {
            let places = kinds.iter().map(|kind| place("/c", *kind)).collect();
            let groups = ControlGroups { places }.of_host("ring", limits)?;
            Some(groups.into_iter().flat_map(|it| it.settings).collect::<Vec<_>>())
        };
        let pair = |file: &str, value: &str| (file.to_owned(), value.to_owned());
        assert_eq!(
            groups(&[Kind::Unified], BOTH).unwrap(),
            [pair("cpu.max", "150000 100000"), pair("memory.max", "1048576")]
        );
        assert_eq!(
            groups(&[Kind::Cpu, Kind::Memory], BOTH).unwrap(),
            [pair("cpu.cfs_quota_us", "150000"), pair("memory.limit_in_bytes", "1048576")]
        );
        assert_eq!(groups(&[Kind::Cpu], BOTH), None, "half a promise is none");
        let cpu_only = Limits { memory_bytes: None, cpu_millis: Some(1) };
        assert_eq!(groups(&[Kind::Cpu], cpu_only).unwrap(), [pair("cpu.cfs_quota_us", "1000")]);
        assert!(!ControlGroups::default().can_keep(cpu_only));
    }
}
