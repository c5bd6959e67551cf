//! The directory of one run: what is known about it, kept so that other terminals and later days can read it.
//!
//! ```text
//! RUNS/ring-20261115-212309-7f3a/
//!   run.json       who runs what, since when
//!   plan.json      what was planned
//!   place.json     whether it waits in line or was let in
//!   why.json       what it waits for
//!   status.json    where the job is in its life; replaced as a whole
//!   events.jsonl   what happened, one line each
//!   lock           held by the running `unisono`; free means it has ended or crashed
//!   hosts/NAME/    what the host sees as /opt/unisono/job: its host table and the launch proof
//!   output/NAME    what the host's own command wrote; output/rank-N what rank N wrote
//! ```

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use unisono_plan::line::Ticket;

/// The directory of one run.
#[derive(Clone, Debug)]
pub struct RunDirectory {
    path: PathBuf,
}

/// What a run is, fixed when it begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Its id, the name of its directory.
    pub id: String,
    /// The job's name.
    pub job: String,
    /// The dialect it was written in.
    pub dialect: String,
    /// The file, as it was given; `-` for standard input, empty for none.
    pub file: String,
    /// Azure's experiment.
    pub experiment: Option<String>,
    /// Hosts in all.
    pub hosts: usize,
    /// Ranks in all, when known.
    pub ranks: Option<u32>,
    /// The process that runs it.
    pub process: u32,
    /// When it began, in milliseconds since 1970.
    pub began: u64,
    /// What it wants of this machine.
    #[serde(default)]
    pub ticket: Option<Ticket>,
    /// Seconds after its end when the job's own file wants it removed.
    #[serde(default)]
    pub ttl_seconds: Option<u64>,
    /// Whether its directory stays until somebody removes it.
    #[serde(default)]
    pub keep: bool,
}

/// Held while a run goes on.
#[derive(Debug)]
pub struct RunLock {
    _file: File,
}

impl RunDirectory {
    /// Makes the folder of all runs, for its owner's eyes only, unless it is there.
    ///
    /// # Errors
    ///
    /// When it cannot be made.
    pub fn make_folder(runs: &Path) -> io::Result<()> {
        fs::DirBuilder::new().mode(0o700).recursive(true).create(runs)
    }

    /// Makes the directory of a new run, for its owner's eyes only.
    ///
    /// # Errors
    ///
    /// When it cannot be made, or is already there.
    pub fn create(runs: &Path, record: &RunRecord) -> io::Result<(Self, RunLock)> {
        Self::make_folder(runs)?;
        let mut private = fs::DirBuilder::new();
        private.mode(0o700);
        let path = runs.join(&record.id);
        private.create(&path)?;
        for folder in ["hosts", "output", "stage"] {
            private.create(path.join(folder))?;
        }
        let directory = Self { path };
        // Locked before it has its name: whoever asks whether the run goes on locks it for a moment, too.
        let unnamed = directory.path.join(".lock.next");
        let lock = File::create_new(&unnamed)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        fs::rename(unnamed, directory.path.join("lock"))?;
        directory.replace("run.json", record)?;
        Ok((directory, RunLock { _file: lock }))
    }

    /// The directory of a run that may be there.
    pub(crate) const fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Every run in a folder of runs, the newest last.
    ///
    /// # Errors
    ///
    /// When the folder cannot be listed. Directories that are no runs are passed over.
    pub fn all(runs: &Path) -> io::Result<Vec<(Self, RunRecord)>> {
        let entries = match fs::read_dir(runs) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let mut found: Vec<(Self, RunRecord)> = entries
            .filter_map(|entry| {
                let directory = Self { path: entry.ok()?.path() };
                let record = directory.read("run.json")?;
                Some((directory, record))
            })
            .collect();
        found.sort_by(|left, right| (left.1.began, &left.1.id).cmp(&(right.1.began, &right.1.id)));
        Ok(found)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the `unisono` that runs it is alive.
    pub fn is_running(&self) -> bool {
        let Ok(lock) = File::open(self.path.join("lock")) else {
            return false;
        };
        flock(&lock, FlockOperation::NonBlockingLockShared).is_err()
    }

    /// Replaces a file as a whole: a reader sees the old one or the new one.
    ///
    /// # Errors
    ///
    /// When the disk is full, or the directory is gone.
    pub fn replace(&self, name: &str, value: &impl Serialize) -> io::Result<()> {
        let next = self.path.join(format!(".{name}.next"));
        let mut text = serde_json::to_vec_pretty(value)?;
        text.push(b'\n');
        fs::write(&next, text)?;
        fs::rename(next, self.path.join(name))
    }

    /// Reads a file that [`Self::replace`] wrote; absent when it is not there or not readable.
    pub fn read<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_slice(&fs::read(self.path.join(name)).ok()?).ok()
    }

    /// Adds a line to a file.
    ///
    /// # Errors
    ///
    /// When the disk is full, or the directory is gone.
    pub fn append(&self, name: &str, value: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        let mut file = File::options().append(true).create(true).open(self.path.join(name))?;
        file.write_all(&line)
    }

    /// Removes it with everything in it.
    ///
    /// # Errors
    ///
    /// When something in it cannot be removed.
    pub fn remove(&self) -> io::Result<()> {
        fs::remove_dir_all(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use super::*;

    fn record(id: &str, began: u64) -> RunRecord {
        RunRecord {
            id: id.to_owned(),
            job: "ring".to_owned(),
            dialect: "kubeflow/v1".to_owned(),
            file: "ring.yaml".to_owned(),
            experiment: None,
            hosts: 3,
            ranks: Some(6),
            process: 1,
            began,
            ticket: None,
            ttl_seconds: None,
            keep: false,
        }
    }

    #[test]
    fn runs_are_listed_by_age_and_known_to_run_by_their_lock() {
        let runs = tempfile::tempdir().expect("a folder");
        let (newer, _newer_lock) =
            RunDirectory::create(runs.path(), &record("a", 2)).expect("make it");
        let (older, older_lock) =
            RunDirectory::create(runs.path(), &record("b", 1)).expect("make it");
        drop(older_lock);
        fs::create_dir(runs.path().join("not-a-run")).expect("make it");
        let all = RunDirectory::all(runs.path()).expect("list them");
        let ids: Vec<&str> = all.iter().map(|(_, record)| record.id.as_str()).collect();
        assert_eq!(ids, ["b", "a"]);
        assert!(newer.is_running() && !older.is_running());
    }

    #[test]
    fn whoever_asks_whether_a_run_goes_on_does_not_keep_it_from_beginning() {
        let runs = tempfile::tempdir().expect("a folder");
        let (over, next) = (AtomicBool::new(false), AtomicU64::new(0));
        let ask = || {
            while !over.load(Ordering::Relaxed) {
                let id = next.load(Ordering::Relaxed).to_string();
                RunDirectory::at(runs.path().join(id)).is_running();
            }
        };
        let begin = |number: u64| {
            next.store(number, Ordering::Relaxed);
            RunDirectory::create(runs.path(), &record(&number.to_string(), number)).is_ok()
        };
        std::thread::scope(|scope| {
            (0..2).for_each(|_| drop(scope.spawn(ask)));
            let have_begun = (0..300).all(begin);
            over.store(true, Ordering::Relaxed);
            assert!(have_begun, "a run could not begin");
        });
    }

    #[test]
    fn two_runs_never_share_a_directory() {
        let runs = tempfile::tempdir().expect("a folder");
        let first = RunDirectory::create(runs.path(), &record("a", 1));
        assert!(first.is_ok() && RunDirectory::create(runs.path(), &record("a", 1)).is_err());
    }

    #[test]
    fn no_runs_is_an_empty_list() {
        assert!(
            RunDirectory::all(Path::new("/no/such/folder")).expect("nothing to list").is_empty()
        );
    }
}
