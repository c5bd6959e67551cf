//! `unisono stop`: one run enters; the job in it is asked to end, as by Ctrl-C.

use clap::Args;
use rustix::process::{Pid, Signal, kill_process};
use unisono_local::{RunDirectory, RunRecord};

use super::place::{EngineArgs, Found, find};
use crate::Context;
use crate::error::Error;
use crate::exit::Exit;

/// Stop a run of this machine, as Ctrl-C in its terminal does, or a job of a cluster, whose object and logs stay.
#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// The run, by its id, the beginning of it, or the job's name; the newest when left out.
    #[arg(value_name = "RUN")]
    run: Option<String>,
    #[command(flatten)]
    place: EngineArgs,
}

pub(crate) fn run(args: &StopArgs, context: &mut Context) -> Result<Exit, Error> {
    let name = match find(args.run.as_deref(), args.place, context)? {
        Found::Here(directory, record) => stop_here(&directory, &record)?,
        #[cfg(feature = "kubernetes")]
        Found::InCluster(session, job) => {
            let name = job.object.name().to_owned();
            if job.status.is_terminal() {
                return Err(has_ended(&name));
            }
            session.run(|cluster| cluster.stop(&job))?;
            name
        }
    };
    context.console.talk(&format!("{name} is stopping\n"));
    Ok(Exit::Fine)
}

fn stop_here(directory: &RunDirectory, record: &RunRecord) -> Result<String, Error> {
    if !directory.is_running() {
        return Err(has_ended(&record.id));
    }
    // The lock is held, so the number is still that of the process that holds it.
    let process = i32::try_from(record.process).ok().and_then(Pid::from_raw);
    let sent =
        process.map_or(Err(rustix::io::Errno::SRCH), |process| kill_process(process, Signal::INT));
    sent.map_err(|error| Error::run(format!("cannot stop {}", record.id), error))?;
    Ok(record.id.clone())
}

fn has_ended(name: &str) -> Error {
    Error::usage(format!("{name} has ended"), "`unisono list` shows what runs")
}
