//! Decides: from a plan, the status so far and what is seen to what is wanted, the new status, and why the job waits.
//!
//! [`step()`] is total and pure. It keeps nothing: what must survive comes in as the prior status. Whoever calls it writes
//! the new status before it does what is wanted, so that nothing exists of a try that no status knows.

pub mod observed;
pub mod policy;
mod sight;
pub mod status;
mod transition;
pub mod want;
mod wanted;
pub mod why;

use sight::Sight;

use crate::{Observed, Plan, Status, Time, Want, Why, conditions};

/// The most transitions one step can make: a job that is new, begins, fails and begins again makes five.
const MOST_TRANSITIONS: usize = 32;

/// Who may be named as a job's manager and still mean this program.
const OUR_NAMES: [&str; 2] = ["kubeflow.org/mpi-operator", "unisono.dev/operator"];

/// What follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Next {
    /// What is wanted of the engine.
    pub want: Want,
    /// The new status, to be written before anything is done.
    pub status: Status,
    /// When to look again even if nothing happens.
    pub wake_at: Option<Time>,
    /// Why the job waits; never empty.
    pub why: Vec<Why>,
}

/// Decides what follows.
pub fn step(plan: &Plan, prior: &Status, observed: &Observed, now: Time) -> Next {
    if let Some(manager) = managed_elsewhere(plan) {
        return Next {
            want: Want::default(),
            status: prior.clone(),
            wake_at: None,
            why: vec![Why::ManagedElsewhere { manager }],
        };
    }
    let mut status = prior.clone();
    for _ in 0..MOST_TRANSITIONS {
        let sight = Sight::of(plan, &status, observed);
        match transition::next(plan, &status, observed, &sight, now) {
            Some(following) => status = following,
            None => break,
        }
    }
    let sight = Sight::of(plan, &status, observed);
    status.groups = wanted::counts(plan, &status, &sight);
    if !prior.is_terminal() && observed.odd_spread.is_some() {
        status.odd_spread.clone_from(&observed.odd_spread);
    }
    let unplaced = wanted::unplaced(&status, observed, &sight);
    conditions::update(plan, prior, &mut status, unplaced, now);
    let why = wanted::whys(plan, &status, observed, &sight, now);
    Next {
        want: wanted::want(plan, &status, &sight, now),
        wake_at: wanted::wake_at(plan, &status, &sight, now),
        status,
        why,
    }
}

fn managed_elsewhere(plan: &Plan) -> Option<String> {
    let manager = plan.job.policies.managed_by.as_ref()?;
    (!OUR_NAMES.contains(&manager.as_str())).then(|| manager.clone())
}
