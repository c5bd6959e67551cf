//! `unisono logs`: one run enters, what its hosts and ranks wrote leaves.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::Args;
use unisono_local::RunDirectory;

use super::place::{EngineArgs, Found, find};
use crate::Context;
use crate::error::Error;
use crate::exit::Exit;

/// Print what a run wrote, one rank or host after the other.
#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// The run, by its id, the beginning of it, or the job's name; the newest when left out.
    #[arg(value_name = "RUN")]
    run: Option<String>,
    #[command(flatten)]
    place: EngineArgs,
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
    match find(args.run.as_deref(), args.place, context)? {
        Found::Here(directory, _) => here(args, &directory, context),
        #[cfg(feature = "kubernetes")]
        Found::InCluster(session, job) => in_cluster(args, &session, &job, context),
    }
}

/// What hosts of a cluster wrote. A rank's lines are those that the launcher tagged with its number.
#[cfg(feature = "kubernetes")]
fn in_cluster(
    args: &LogsArgs,
    session: &crate::cluster::Session,
    job: &crate::cluster::ClusterJob,
    context: &mut Context,
) -> Result<Exit, Error> {
    if args.follow && !job.status.is_terminal() {
        if args.rank.is_some() || args.host.is_some() {
            return Err(Error::usage(
                "a job of a cluster can only be followed as a whole",
                "leave out --rank and --host, or --follow",
            ));
        }
        let output = super::RunOutput::Text;
        return super::submit::follow::follow(session, job, output, false, context);
    }
    let logs = session.run(|cluster| cluster.logs(job, args.host.as_deref()))?;
    let mut untagger = unisono_local::LogUntagger::default();
    let mut pieces = Vec::new();
    for log in &logs {
        let lines = log.bytes.split_inclusive(|byte| *byte == b'\n');
        pieces.extend(lines.flat_map(|line| untagger.take(&log.host, line)));
    }
    pieces.extend(untagger.rest().into_iter().map(|(_, piece)| piece));
    if args.rank.is_some() && pieces.iter().all(|piece| piece.rank.is_none()) {
        return Err(no_ranks(job));
    }
    pieces.retain(|piece| args.rank.is_none() || piece.rank == args.rank);
    for piece in &pieces {
        context.console.bytes(&piece.bytes, false)?;
    }
    context.console.flush()?;
    if pieces.is_empty() && (args.rank.is_some() || args.host.is_some()) {
        return Err(nothing_written());
    }
    Ok(Exit::Fine)
}

/// Nothing that was written says which rank wrote it.
#[cfg(feature = "kubernetes")]
fn no_ranks(job: &crate::cluster::ClusterJob) -> Error {
    use unisono_k8s::marks::TAG_OUTPUT;
    let annotations = job.object.as_json().pointer("/metadata/annotations");
    if annotations.is_some_and(|it| it[TAG_OUTPUT] == "true") {
        return nothing_written();
    }
    let name = job.object.name();
    Error::usage(
        format!("nothing says which rank of {name} wrote what: it was submitted without --follow"),
        format!(
            "`unisono logs {name} --engine kubernetes` shows all of it; `unisono submit --follow`, or the annotation {TAG_OUTPUT}: \"true\", asks for ranks"
        ),
    )
}

fn here(args: &LogsArgs, directory: &RunDirectory, context: &mut Context) -> Result<Exit, Error> {
    let mut logs: Vec<Log> = Vec::new();
    loop {
        // Looked at before reading, so that nothing written before the end is missed.
        let goes_on = args.follow && directory.is_running();
        add_new(&mut logs, directory, args)?;
        for log in &mut logs {
            log.copy(context)?;
        }
        // Whoever follows waits for it.
        context.console.flush()?;
        if !goes_on {
            break;
        }
        thread::sleep(LOOK_AGAIN);
    }
    if logs.is_empty() && (args.rank.is_some() || args.host.is_some()) {
        return Err(nothing_written());
    }
    Ok(Exit::Fine)
}

fn nothing_written() -> Error {
    Error::usage("nothing was written there", "`unisono status` shows the run's hosts and ranks")
}

struct Log {
    path: PathBuf,
    file: File,
}

impl Log {
    fn copy(&mut self, context: &mut Context) -> io::Result<()> {
        let mut piece = vec![0; 64 * 1024];
        loop {
            match self.file.read(&mut piece)? {
                0 => return Ok(()),
                length => context.console.bytes(&piece[..length], false)?,
            }
        }
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
