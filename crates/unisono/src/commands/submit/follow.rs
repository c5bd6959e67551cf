//! Follows a job of a cluster: its lines and its end are told, and its exit code is ours.

use std::io::{self, IsTerminal as _};

use tokio::sync::oneshot;

use crate::Context;
use crate::cluster::{Choice, ClusterJob, Followed, Follower, Session, Told};
use crate::commands::RunOutput;
use crate::error::Error;
use crate::exit::Exit;
use crate::report::{Console, FollowReport};

/// Follows a job to its end.
pub(crate) fn follow(
    session: &Session,
    job: &ClusterJob,
    output: RunOutput,
    raw: bool,
    context: &mut Context,
) -> Result<Exit, Error> {
    let mut desk =
        Desk { console: &mut context.console, report: FollowReport::new(job, output, raw) };
    desk.console.follow_begins(&desk.report)?;
    let followed = session.run(|cluster| cluster.follow(job, &mut desk));
    let Desk { console, mut report } = desk;
    match followed? {
        Followed::Ended(job) => {
            console.follow_ends(&mut report, &job)?;
            let code = job.status.end().map_or(125, |end| end.code);
            Ok(Exit::Job(u8::try_from(code).unwrap_or(u8::MAX)))
        }
        Followed::Left(interrupt) => {
            console.come_back(&report);
            Ok(Exit::Job(interrupt.code()))
        }
        Followed::Removed { with_namespace } => Err(removed(report.name(), job, with_namespace)),
    }
}

/// Somebody removed the job, or all that is in its namespace.
fn removed(name: &str, job: &ClusterJob, with_namespace: bool) -> Error {
    let (namespace, hint) = match with_namespace {
        true => {
            let namespace = format!(", with its namespace {}", job.object.namespace());
            (namespace, "submit it to another namespace with --namespace")
        }
        false => (String::new(), "submit it again; `kubectl get events` may tell who removed it"),
    };
    let message = format!("{name} was removed before it ended{namespace}");
    Error::Run { message, hint: Some(hint.to_owned()), source: None }
}

/// Whoever sits in front of the program.
struct Desk<'console> {
    console: &'console mut Console,
    report: FollowReport,
}

impl Follower for Desk<'_> {
    fn told(&mut self, told: &Told<'_>) {
        self.console.follow_goes_on(&mut self.report, told);
    }

    fn asked(&mut self) -> Option<oneshot::Receiver<Choice>> {
        let is_somebody_there = io::stdin().is_terminal() && io::stderr().is_terminal();
        is_somebody_there.then(|| {
            self.console.ask_what_now(&self.report);
            answer()
        })
    }
}

/// The next line that is typed. It is read by a thread of its own, which nobody waits for: a terminal may stay silent for ever.
fn answer() -> oneshot::Receiver<Choice> {
    let (sender, receiver) = oneshot::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let choice = match io::stdin().read_line(&mut line) {
            Ok(_) if line.trim().eq_ignore_ascii_case("y") => Choice::Stop,
            Ok(_) if line.trim().eq_ignore_ascii_case("c") => Choice::GoOn,
            Ok(_) | Err(_) => Choice::Leave,
        };
        // Whoever has left by another Ctrl-C needs no answer.
        let _left = sender.send(choice);
    });
    receiver
}
