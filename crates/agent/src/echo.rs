//! Passes a command's output on and remembers its end: the command's streams enter, our own streams and the last lines leave.
//!
//! The only threads of the agent, in a process that forks no more once they run.

use std::io::{self, PipeReader, Read, Write};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// How much of the output is remembered.
const REMEMBERED: usize = 8 << 10;

/// What is read at once: as much as a pipe holds.
const AT_ONCE: usize = 64 << 10;

/// The output of a command that is about to run.
pub(crate) struct Echo {
    output: PipeReader,
    errors: PipeReader,
}

/// The output of a command that runs.
pub(crate) struct Echoing {
    threads: Vec<JoinHandle<()>>,
    end: Arc<Mutex<Vec<u8>>>,
}

impl Echo {
    /// Has the command write to us instead of to our own streams.
    pub(crate) fn of(command: &mut Command) -> io::Result<Self> {
        let (output, written) = io::pipe()?;
        let (errors, complained) = io::pipe()?;
        command.stdout(written).stderr(complained);
        Ok(Self { output, errors })
    }

    /// Begins to pass on. Signals must be blocked by now: they are for the thread that calls this.
    pub(crate) fn begin(self) -> Echoing {
        let end = Arc::new(Mutex::new(Vec::new()));
        let Self { output, errors } = self;
        let (one, other) = (Arc::clone(&end), Arc::clone(&end));
        let threads = vec![
            std::thread::spawn(move || pass_on(output, io::stdout(), &one)),
            std::thread::spawn(move || pass_on(errors, io::stderr(), &other)),
        ];
        Echoing { threads, end }
    }
}

impl Echoing {
    /// The last lines, once nobody writes any more.
    pub(crate) fn last_lines(self) -> Vec<String> {
        for thread in self.threads {
            // It can only have failed to write to our own streams, which nobody reads then.
            drop(thread.join());
        }
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = end.get(end.len().saturating_sub(REMEMBERED)..).unwrap_or_default();
        let text = String::from_utf8_lossy(kept);
        let mut lines: Vec<String> = text
            .lines()
            .map(|line| line.trim_end().to_owned())
            .filter(|line| line.chars().any(|it| !"-=*_ \t".contains(it)))
            .collect();
        // The first one is the rest of a line.
        if end.len() > REMEMBERED && lines.len() > 1 {
            lines.remove(0);
        }
        lines
    }
}

fn pass_on(mut from: PipeReader, mut to: impl Write, end: &Mutex<Vec<u8>>) {
    let mut buffer = vec![0; AT_ONCE];
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let Some(bytes) = buffer.get(..read) else { return };
        remember(end, bytes);
        // When nobody reads us any more the command is to learn it, too: our end of its pipe closes.
        if to.write_all(bytes).and_then(|()| to.flush()).is_err() {
            return;
        }
    }
}

fn remember(end: &Mutex<Vec<u8>>, bytes: &[u8]) {
    let mut end = end.lock().unwrap_or_else(PoisonError::into_inner);
    end.extend_from_slice(bytes.get(bytes.len().saturating_sub(2 * REMEMBERED)..).unwrap_or(bytes));
    if end.len() > 4 * REMEMBERED {
        let surplus = end.len() - 2 * REMEMBERED;
        end.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_much_output_is_remembered_in_whole_lines() {
        let end = Mutex::new(Vec::new());
        for at in 0..10_000 {
            remember(&end, format!("line {at}\n-----\n").as_bytes());
        }
        assert!(end.lock().unwrap().len() <= 4 * REMEMBERED);
        let lines = Echoing { threads: Vec::new(), end: Arc::new(end) }.last_lines();
        assert_eq!(lines.last().map(String::as_str), Some("line 9999"));
        assert!(lines.iter().all(|line| line.starts_with("line ")), "{lines:?}");
    }

    #[test]
    fn both_streams_of_a_command_are_heard() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo to its output; echo to its errors >&2"]);
        let echo = Echo::of(&mut command).unwrap();
        let mut child = command.spawn().unwrap();
        drop(command);
        let echoing = echo.begin();
        child.wait().unwrap();
        let mut lines = echoing.last_lines();
        lines.sort();
        assert_eq!(lines, ["to its errors", "to its output"]);
    }
}
