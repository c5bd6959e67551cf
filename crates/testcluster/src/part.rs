//! One program of a cluster: how it is started, whether it still runs, and what it said last.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};

use crate::namespaces::{HOME, Walls};
use crate::wait;

/// How many lines of a log tell why a part failed.
const LAST_LINES: usize = 25;

/// How long anything may take to start, on a machine that has much else to do.
const PATIENCE: Duration = Duration::from_secs(90);

/// A running part. Its end is not its owner's business: it ends with the cluster.
#[derive(Debug)]
pub(crate) struct Part {
    name: String,
    child: Child,
    logs: Vec<PathBuf>,
}

impl Part {
    /// Starts a program of the cluster with its output in `/mnt/log/NAME.log`.
    pub(crate) fn start(
        walls: Walls,
        name: &str,
        program: &Path,
        arguments: &[String],
    ) -> anyhow::Result<Self> {
        let mut command = walls.command(program);
        command.args(arguments);
        Self::spawn(walls, name, command, Vec::new())
    }

    /// Starts a prepared command as a part; `more_logs` are written by what it starts in turn.
    pub(crate) fn spawn(
        walls: Walls,
        name: &str,
        mut command: std::process::Command,
        mut more_logs: Vec<PathBuf>,
    ) -> anyhow::Result<Self> {
        let log = walls.path(log_of(name));
        let output = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .with_context(|| format!("open the log of {name}"))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone().context("share a log")?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("start {name}"))?;
        more_logs.push(log);
        Ok(Self { name: name.to_owned(), child, logs: more_logs })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Fails, with the part's last words, if it has ended.
    pub(crate) fn must_run(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait().context("look after a part")? {
            None => Ok(()),
            Some(status) => {
                bail!("{} ended ({status}); its last lines:\n{}", self.name, self.last_lines())
            }
        }
    }

    /// Waits for a part whose end was caused on purpose.
    pub(crate) fn wait(mut self) -> anyhow::Result<()> {
        self.child.wait().context("wait for a part to end")?;
        Ok(())
    }

    /// What the part said last.
    pub(crate) fn last_lines(&self) -> String {
        self.logs
            .iter()
            .map(|log| format!("--- {}\n{}", log_name(log), tail(log)))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// Waits for something that parts bring about; when one of them ends, or time does, says what they
/// said last.
pub(crate) fn wait<T>(
    parts: &mut [Part],
    what: &str,
    mut look: impl FnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<T> {
    let outcome = wait::until(PATIENCE, what, || {
        parts.iter_mut().try_for_each(Part::must_run)?;
        look()
    });
    outcome.or_else(|fault| {
        // A part that ended has told its own last lines; else it may be any.
        parts.iter_mut().try_for_each(Part::must_run)?;
        let said: Vec<String> = parts.iter().map(Part::last_lines).collect();
        Err(fault.context(format!("the parts' last lines:\n{}", said.join("\n"))))
    })
}

/// Where a part's output is, as the cluster's processes see it.
pub(crate) fn log_of(name: &str) -> PathBuf {
    Path::new(HOME).join("log").join(format!("{name}.log"))
}

fn log_name(log: &Path) -> String {
    let name = log.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn tail(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}
