//! Follows a job of a cluster: its lines and its end are told, and its exit code is ours.

use std::io::{self, IsTerminal as _};

use crate::Context;
use crate::cluster::{Applied, Choice, ClusterJob, Followed, Session, Told};
use crate::commands::RunOutput;
use crate::error::Error;
use crate::exit::Exit;
use crate::report::FollowReport;

/// Follows the job that an object is.
pub(super) fn job(
    session: &Session,
    applied: &Applied,
    output: RunOutput,
    raw: bool,
    context: &mut Context,
) -> Result<Exit, Error> {
    let job = session.run(|cluster| cluster.job_of(applied))?;
    follow(session, &job, output, raw, context)
}

/// Follows a job to its end.
pub(crate) fn follow(
    session: &Session,
    job: &ClusterJob,
    output: RunOutput,
    raw: bool,
    context: &mut Context,
) -> Result<Exit, Error> {
    let mut report = FollowReport::new(job, output, raw);
    let console = &mut context.console;
    console.follow_begins(&report)?;
    let followed = session.run(|cluster| {
        cluster.follow(job, |told| match told {
            Told::Interrupted => console.ask_what_now(&report, is_interactive()),
            told => {
                console.follow_goes_on(&mut report, &told);
                Choice::GoOn
            }
        })
    });
    match followed? {
        Followed::Ended(job) => {
            console.follow_ends(&mut report, &job)?;
            let code = job.status.end().map_or(125, |end| end.code);
            Ok(Exit::Job(u8::try_from(code).unwrap_or(u8::MAX)))
        }
        Followed::Left => {
            console.come_back(&report);
            // As after any Ctrl-C.
            Ok(Exit::Job(130))
        }
        Followed::Removed => Err(Error::Run {
            message: format!("{} was removed before it ended", report.name()),
            hint: None,
            source: None,
        }),
    }
}

/// Whether somebody is there to be asked.
fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}
