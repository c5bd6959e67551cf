//! One turn of the loop: observe, decide, write down, do.

use unisono_plan::{Next, Plan, Status, Time, step};

use crate::{Engine, Event, Recorded, events};

/// What a tick came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticked {
    /// What was decided; its status is the prior of the next tick.
    pub next: Next,
    /// What happened since the prior status.
    pub events: Vec<Event>,
    /// Whether the decision was written down and done. When not, the status must be read again first.
    pub recorded: Recorded,
}

/// Takes one turn: decides, and carries it out.
///
/// # Errors
///
/// When the engine could not look, write or do. Nothing is lost: the next tick decides anew.
pub async fn tick<E: Engine>(
    engine: &mut E,
    plan: &Plan,
    prior: &Status,
    now: Time,
) -> Result<Ticked, E::Error> {
    let next = decide(engine, plan, prior, now).await?;
    carry_out(engine, plan, prior, next, now).await
}

/// The first half of a turn: looks, and decides. Nothing is written or done yet.
///
/// # Errors
///
/// When the engine could not look.
pub async fn decide<E: Engine>(
    engine: &mut E,
    plan: &Plan,
    prior: &Status,
    now: Time,
) -> Result<Next, E::Error> {
    let observed = engine.observe(plan).await?;
    Ok(step(plan, prior, &observed, now))
}

/// The second half of a turn: writes down what was decided just now, and does it.
///
/// The new status is written before anything is done, so that whatever exists belongs to a try that a status knows, even
/// when this process ends between any two acts. An unchanged status is not written.
///
/// # Errors
///
/// When the engine could not write or do. Nothing is lost: the next tick decides anew.
pub async fn carry_out<E: Engine>(
    engine: &mut E,
    plan: &Plan,
    prior: &Status,
    next: Next,
    now: Time,
) -> Result<Ticked, E::Error> {
    let recorded = if next.status == *prior && engine.has_told(&next.why) {
        Recorded::Written
    } else {
        engine.record(plan, &next).await?
    };
    if recorded == Recorded::Written {
        engine.apply(plan, &next.want).await?;
    }
    let events = events(plan, prior, &next.status, now);
    Ok(Ticked { next, events, recorded })
}
