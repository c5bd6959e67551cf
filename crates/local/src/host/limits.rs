//! Limits on a host's processors and memory: control groups, made by its keeper and removed when the host has ended.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// How long the kernel may take to let go of processes that have ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// The control groups of one host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// One for each hierarchy.
    pub groups: Vec<ControlGroup>,
    /// Where the number of killed processes is kept once the groups are gone.
    pub kills: PathBuf,
}

/// One control group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlGroup {
    /// Its folder.
    pub folder: PathBuf,
    /// What is written into which of its files.
    pub settings: Vec<(String, String)>,
    /// The file that tells how many processes were killed for want of memory.
    pub counter: Option<String>,
}

/// Limits that are in force for as long as this is held.
#[derive(Debug)]
pub(super) struct Bounded<'spec> {
    bounds: &'spec Bounds,
    kills: fs::File,
}

impl<'spec> Bounded<'spec> {
    /// Makes the groups.
    pub(super) fn make(bounds: &'spec Bounds) -> io::Result<Self> {
        // Opened now: process 1 changes the root of its keeper, too, and there this path leads nowhere.
        let kills = fs::OpenOptions::new().write(true).open(&bounds.kills)?;
        let bounded = Self { bounds, kills };
        for group in &bounds.groups {
            fs::create_dir(&group.folder)?;
            for (file, value) in &group.settings {
                fs::write(group.folder.join(file), value)?;
            }
        }
        Ok(bounded)
    }
}

/// Keeps the number of killed processes, and removes the groups.
impl Drop for Bounded<'_> {
    fn drop(&mut self) {
        let kills = self.bounds.groups.iter().filter_map(kills).max().unwrap_or(0);
        // Without it the end is told without its cause.
        let _kept = self.kills.write_all(kills.to_string().as_bytes());
        let end = Instant::now() + PATIENCE;
        for group in &self.bounds.groups {
            while fs::remove_dir(&group.folder)
                .is_err_and(|it| it.kind() == io::ErrorKind::ResourceBusy)
                && Instant::now() < end
            {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

/// Puts the calling process into the groups; what it starts from now on is there, too.
pub(super) fn enter(bounds: &Bounds) -> io::Result<()> {
    // 0 means the writer itself, whatever its number is in its own namespace.
    bounds.groups.iter().try_for_each(|group| fs::write(group.folder.join("cgroup.procs"), "0"))
}

/// How many processes of a host were killed for want of memory, whether it lives or has ended.
pub(crate) fn killed(bounds: &Bounds) -> u64 {
    let live = bounds.groups.iter().filter_map(kills).max();
    let kept = || fs::read_to_string(&bounds.kills).ok()?.trim().parse().ok();
    live.or_else(kept).unwrap_or(0)
}

fn kills(group: &ControlGroup) -> Option<u64> {
    let text = fs::read_to_string(group.folder.join(group.counter.as_ref()?)).ok()?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

/// Removes groups of hosts whose keepers were killed: empty ones that are older than any host takes to start.
pub(crate) fn sweep(parent: &Path, prefix: &str) {
    const OLD: Duration = Duration::from_secs(60);
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries.filter(|it| it.file_name().to_string_lossy().starts_with(prefix)) {
        let age =
            entry.metadata().and_then(|it| it.modified()).ok().and_then(|it| it.elapsed().ok());
        if age.is_some_and(|age| age > OLD) {
            // The kernel refuses when somebody lives in it.
            let _removed = fs::remove_dir(entry.path());
        }
    }
}
