//! The launch proof: which host was reached, which ranks ran there and how it ended. Events go in, JSON lines come out and are read back.
//!
//! Every `rsh` and the `ready` of one run append to the same file, one line per event, each line in one write. An engine reads
//! it while the job runs or afterwards, and compares the ranks per host with its plan.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::ranks::Rank;

/// The most that is read at a time: ten thousand ranks tell a quarter of it.
const LONGEST: u64 = 16 << 20;

/// One line of the proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// The host it is about.
    pub host: String,
    /// The process id of the `rsh` or `ready` that wrote it: it tells two launches on one host apart.
    pub launch: u32,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// What can happen to a launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The host proved its key.
    Reached {
        /// Where it answered.
        address: String,
    },
    /// The command runs there.
    Started {
        /// Its process id on that host.
        pid: u32,
    },
    /// The first byte of output came back.
    FirstByte,
    /// A rank runs there.
    Rank(Rank),
    /// That rank has ended.
    RankGone(Rank),
    /// That rank begins, and a witness waits for its end.
    Witnessed(Rank),
    /// How a rank ended, by its witness.
    RankEnded {
        /// Its number in the job.
        rank: u32,
        /// Its process id on its host.
        pid: i32,
        /// Its exit code, or 128 and its signal.
        code: i32,
    },
    /// The command ended by itself.
    Exited {
        /// With this code.
        code: u8,
    },
    /// The command died of a signal.
    Killed {
        /// Of this one.
        signal: u8,
    },
    /// The host refused, or could not be reached.
    Refused {
        /// Why.
        reason: String,
    },
    /// The connection or the host went away while the command ran. The job has failed, whatever mpirun says.
    Lost {
        /// How.
        reason: String,
    },
    /// The launching side went away or was told to stop, and took the command with it.
    Abandoned {
        /// Why.
        reason: String,
    },
}

/// Where one launch tells its story. Without a file it tells nobody.
#[derive(Debug, Clone)]
pub(crate) struct Proof {
    file: Option<PathBuf>,
    host: String,
}

impl Proof {
    pub(crate) fn new(file: Option<&Path>, host: &str) -> Self {
        Self { file: file.map(Path::to_owned), host: host.to_owned() }
    }

    /// Appends one line. A proof that cannot be written must not stop the job it is about, but it must be said.
    pub(crate) fn tell(&self, event: Event) {
        self.tell_at(now(), event);
    }

    /// The same of something that happened a moment ago.
    pub(crate) fn tell_at(&self, at: u64, event: Event) {
        let Some(file) = &self.file else {
            return;
        };
        let record = Record { at, host: self.host.clone(), launch: std::process::id(), event };
        if let Err(error) = append(file, &record) {
            crate::log::line(format_args!(
                "cannot write the launch proof {}: {error}",
                file.display()
            ));
        }
    }
}

/// Reads the records of a file from a byte offset on. Lines that are no records (a newer agent's) are passed over.
///
/// Commands can do to the file what they like, and whoever reads it may be somebody else: what is no plain file is not waited
/// for, links lead nowhere, and of a file without an end only so much is read.
///
/// # Errors
/// When there is no plain file, or it cannot be read.
pub fn read(file: &Path, from: u64) -> io::Result<Vec<Record>> {
    use std::io::{BufRead as _, Read as _, Seek as _};
    let mut file = open(fs::OpenOptions::new().read(true), file)?;
    file.seek(io::SeekFrom::Start(from))?;
    let mut records = Vec::new();
    for line in io::BufReader::new(file.take(LONGEST)).split(b'\n') {
        records.extend(serde_json::from_slice::<Record>(&line?));
    }
    Ok(records)
}

fn append(file: &Path, record: &Record) -> io::Result<()> {
    let mut line = serde_json::to_vec(record)?;
    line.push(b'\n');
    open(fs::OpenOptions::new().append(true).create(true), file)?.write_all(&line)
}

/// Opens a plain file, and nothing else.
fn open(options: &mut fs::OpenOptions, path: &Path) -> io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let file = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file")),
    }
}

/// Milliseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_read_back_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("proof");
        let proof = Proof::new(Some(&path), "worker-0");
        let rank = Rank { rank: 3, pid: 17, local_size: Some(2), world_size: None };
        let told = [
            Event::Reached { address: "10.0.0.1:7711".to_owned() },
            Event::Rank(rank),
            Event::Exited { code: 3 },
            Event::Lost { reason: "cut \"here\"\n".to_owned() },
        ];
        told.iter().cloned().for_each(|event| proof.tell(event));
        let records = read(&path, 0).unwrap();
        assert!(records.iter().all(|record| record.host == "worker-0" && record.at > 0));
        assert_eq!(records.into_iter().map(|record| record.event).collect::<Vec<_>>(), told);
    }

    #[test]
    fn pipes_links_and_folders_are_no_proofs_and_keep_nobody_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let [proof, pipe, link] = ["proof", "pipe", "link"].map(|name| folder.path().join(name));
        Proof::new(Some(&proof), "a").tell(Event::FirstByte);
        std::os::unix::fs::symlink(&proof, &link).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        for no_proof in [&pipe, &link, folder.path()] {
            assert!(read(no_proof, 0).is_err(), "{}", no_proof.display());
            Proof::new(Some(no_proof), "a").tell(Event::FirstByte);
        }
        assert_eq!(read(&proof, 0).unwrap().len(), 1);
    }

    #[test]
    fn of_a_file_without_an_end_only_so_much_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("proof");
        fs::File::create(&path).unwrap().set_len(LONGEST).unwrap();
        Proof::new(Some(&path), "a").tell(Event::FirstByte);
        assert_eq!(read(&path, 0).unwrap(), []);
        assert_eq!(read(&path, LONGEST).unwrap().len(), 1);
    }

    #[test]
    fn reading_can_begin_in_the_middle_and_skips_foreign_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("proof");
        let proof = Proof::new(Some(&path), "a");
        proof.tell(Event::FirstByte);
        let offset = fs::metadata(&path).unwrap().len();
        fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(b"{\"event\":\"later\"}\n")
            .unwrap();
        proof.tell(Event::Exited { code: 0 });
        let events: Vec<Event> =
            read(&path, offset).unwrap().into_iter().map(|record| record.event).collect();
        assert_eq!(events, [Event::Exited { code: 0 }]);
    }
}
