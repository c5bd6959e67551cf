//! `unisono logs`: one run enters, what its hosts and ranks wrote leaves.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::Args;
use unisono_local::RunDirectory;

use crate::Context;
use crate::error::Error;
use crate::exit::Exit;

/// Print what a run wrote, one rank or host after the other.
#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// The run, by its id, the beginning of it, or the job's name; the newest when left out.
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// Only what this rank wrote.
    #[arg(long, value_name = "N", conflicts_with = "host")]
    rank: Option<u32>,
    /// Only what this host's own command wrote.
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Go on until the run ends.
    #[arg(long, short)]
    follow: bool,
}

/// How often a log that is followed is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

pub(crate) fn run(args: &LogsArgs, context: &mut Context) -> Result<Exit, Error> {
    let (directory, _) = context.find_run(args.run.as_deref())?;
    let mut logs: Vec<Log> = Vec::new();
    loop {
        // Looked at before reading, so that nothing written before the end is missed.
        let goes_on = args.follow && directory.is_running();
        add_new(&mut logs, &directory, args)?;
        for log in &mut logs {
            log.copy(context)?;
        }
        if !goes_on {
            break;
        }
        thread::sleep(LOOK_AGAIN);
    }
    if logs.is_empty() && (args.rank.is_some() || args.host.is_some()) {
        return Err(Error::usage(
            "nothing was written there",
            "`unisono status` shows the run's hosts and ranks",
        ));
    }
    Ok(Exit::Fine)
}

struct Log {
    path: PathBuf,
    file: File,
}

impl Log {
    fn copy(&mut self, context: &mut Context) -> io::Result<()> {
        let mut bytes = Vec::new();
        self.file.read_to_end(&mut bytes)?;
        context.console.bytes(&bytes, false)
    }
}

fn add_new(logs: &mut Vec<Log>, directory: &RunDirectory, args: &LogsArgs) -> io::Result<()> {
    let wanted = match (args.rank, &args.host) {
        (Some(rank), _) => Some(format!("rank-{rank}")),
        (None, Some(host)) => Some(host.clone()),
        (None, None) => None,
    };
    let mut paths: Vec<PathBuf> = std::fs::read_dir(directory.path().join("output"))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            wanted
                .as_ref()
                .is_none_or(|name| path.file_name().is_some_and(|it| it == name.as_str()))
        })
        .filter(|path| !logs.iter().any(|log| log.path == *path))
        .collect();
    paths.sort();
    for path in paths {
        logs.push(Log { file: File::open(&path)?, path });
    }
    Ok(())
}
