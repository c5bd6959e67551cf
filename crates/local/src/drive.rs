//! The loop of a local run: tick, tell what happened, wait for the next happening; to the job's end, while its commands stop, and
//! until nothing of it is left.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use unisono_engine::{Event, now_or_never, tick};
use unisono_plan::{Plan, Status, Time, Why};

use crate::engine::Heard;
use crate::{EngineError, Happening, LocalEngine, Written};

/// How long to wait when nothing is due.
const LATER: Duration = Duration::from_secs(3600);

/// What a listener is told, in the order in which it happens.
#[derive(Debug)]
pub enum Told<'run> {
    /// Something happened to the job.
    Event(&'run Event),
    /// A host or a rank wrote a line.
    Wrote(&'run Written),
    /// What the job waits for, whenever that changes.
    Waiting(&'run [Why]),
    /// Nothing more is written for the moment.
    Quiet,
    /// A file of the run could not be written, and why. The job goes on.
    Unkept(&'run str),
}

/// Drives a job to its end and says how it ended. Afterwards nothing of the job is left.
///
/// # Errors
///
/// When a host cannot be started, or the run's files cannot be written. Everything is ended then, too.
pub fn drive(
    engine: &mut LocalEngine,
    plan: &Plan,
    happenings: &Receiver<Happening>,
    listener: &mut impl FnMut(Told<'_>),
) -> Result<Status, EngineError> {
    let outcome = to_its_end(engine, plan, happenings, listener);
    engine.kill_all();
    while !engine.is_empty() {
        match happenings.recv() {
            Ok(happening) => drop(take(engine, happening, listener)),
            Err(_) => break,
        }
    }
    listener(Told::Quiet);
    outcome
}

fn to_its_end(
    engine: &mut LocalEngine,
    plan: &Plan,
    happenings: &Receiver<Happening>,
    listener: &mut impl FnMut(Told<'_>),
) -> Result<Status, EngineError> {
    let mut status = Status::default();
    let mut why = Vec::new();
    loop {
        let now = engine.now();
        // The acts of this engine are done when they are asked for, so the tick never waits.
        let Some(ticked) = now_or_never(tick(engine, plan, &status, now)) else {
            return Ok(status);
        };
        let ticked = ticked?;
        if let Some(what) = engine.take_unkept() {
            listener(Told::Unkept(&what));
        }
        if !status.is_terminal() {
            // Afterwards only hosts go, as they must.
            ticked.events.iter().for_each(|event| listener(Told::Event(event)));
        }
        status = ticked.next.status;
        if status.is_terminal() && !engine.runs_commands() {
            return Ok(status);
        }
        if ticked.next.why != why {
            why = ticked.next.why;
            listener(Told::Waiting(&why));
        }
        if !engine.take_looks_again() {
            wait(engine, ticked.next.wake_at, now, happenings, listener);
        }
    }
}

/// Waits for something to happen, and takes all that has happened.
fn wait(
    engine: &mut LocalEngine,
    wake_at: Option<Time>,
    now: Time,
    happenings: &Receiver<Happening>,
    listener: &mut impl FnMut(Told<'_>),
) {
    let patience = wake_at.map_or(LATER, |at| at.since(now));
    let mut next = happenings.recv_timeout(patience).ok();
    // Output alone is no reason to decide anew: take it all, until it is quiet or something else has happened.
    while let Some(happening) = next {
        if take(engine, happening, listener) == Matters::ToTheJob {
            break;
        }
        next = happenings.try_recv().ok();
    }
    listener(Told::Quiet);
}

/// Whether something that happened can change what is decided.
#[derive(PartialEq, Eq)]
enum Matters {
    ToTheJob,
    ToTheUser,
}

fn take(
    engine: &mut LocalEngine,
    happening: Happening,
    listener: &mut impl FnMut(Told<'_>),
) -> Matters {
    match happening {
        Happening::Wrote(written) => match engine.note_line(&written) {
            Heard::HostIsUp => Matters::ToTheJob,
            Heard::Output => {
                listener(Told::Wrote(&written));
                Matters::ToTheUser
            }
        },
        Happening::HostEnded(incarnation, code, at) => {
            engine.note_end(incarnation, code, at);
            Matters::ToTheJob
        }
        Happening::LineMoved => Matters::ToTheJob,
        Happening::Interrupted => {
            if engine.stop_requested {
                engine.kill_all();
            }
            engine.stop_requested = true;
            Matters::ToTheJob
        }
    }
}
