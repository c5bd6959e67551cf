//! `unisono stop`: one run enters; the job in it is asked to end, as by Ctrl-C.

use clap::Args;
use rustix::process::{Pid, Signal, kill_process};

use crate::Context;
use crate::error::Error;
use crate::exit::Exit;

/// Stop a run of this machine, as Ctrl-C in its terminal does.
#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// The run, by its id, the beginning of it, or the job's name; the newest when left out.
    #[arg(value_name = "RUN")]
    run: Option<String>,
}

pub(crate) fn run(args: &StopArgs, context: &mut Context) -> Result<Exit, Error> {
    let (directory, record) = context.find_run(args.run.as_deref())?;
    if !directory.is_running() {
        return Err(Error::usage(
            format!("{} has ended", record.id),
            "`unisono list` shows what runs",
        ));
    }
    // The lock is held, so the number is still that of the process that holds it.
    let process = i32::try_from(record.process).ok().and_then(Pid::from_raw);
    let sent =
        process.map_or(Err(rustix::io::Errno::SRCH), |process| kill_process(process, Signal::INT));
    sent.map_err(|error| Error::run(format!("cannot stop {}", record.id), error))?;
    context.console.talk(&format!("{} is stopping\n", record.id));
    Ok(Exit::Fine)
}
