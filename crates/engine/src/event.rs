//! What happened: the difference between two statuses.

use serde::Serialize;
use unisono_plan::{Plan, Stage, Status, Time, Verdict};

/// Something that happened to a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// When.
    pub at: Time,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum What {
    /// The job was seen for the first time.
    Created,
    /// It waits for room.
    Queued,
    /// It was suspended.
    Suspended,
    /// It was resumed.
    Resumed,
    /// Its hosts are being made.
    Starting {
        /// How many attempts went before.
        attempt: u32,
        /// The epoch of what is made.
        epoch: u32,
    },
    /// Members of a group came up or went.
    Hosts {
        /// The group.
        group: String,
        /// How many are up.
        up: u32,
        /// How many there should be.
        of: u32,
    },
    /// Every host is up and commands may begin.
    Released,
    /// A command began.
    Running,
    /// A command ended.
    CommandEnded {
        /// On which host.
        host: String,
        /// With which code.
        code: i32,
    },
    /// Something failed first.
    Failed {
        /// On which host.
        host: String,
        /// Which rank, when that is known.
        rank: Option<u32>,
        /// With which code.
        code: i32,
        /// What happened, as a sentence.
        message: String,
        /// The last lines it wrote.
        last_lines: Vec<String>,
    },
    /// Everything starts again because members were lost.
    GangRestart {
        /// How often so far.
        count: u32,
    },
    /// The job ended.
    Ended {
        /// Well or not.
        verdict: Verdict,
        /// Its exit code.
        code: i32,
    },
}

/// What happened between two statuses, in the order in which it did. Nothing when they are the same.
pub fn events(plan: &Plan, prior: &Status, status: &Status, now: Time) -> Vec<Event> {
    let mut happened = Vec::new();
    if prior.created.is_none() && status.created.is_some() {
        happened.push(What::Created);
    }
    if prior.stage == Stage::Suspended && status.stage != Stage::Suspended && !status.is_terminal()
    {
        happened.push(What::Resumed);
    }
    happened.extend(commands(plan, prior, status));
    if let Some(failure) = &status.first_failure
        && prior.first_failure.as_ref() != Some(failure)
    {
        happened.push(What::Failed {
            host: failure.place().to_owned(),
            rank: failure.ended.rank.as_ref().map(|rank| rank.rank),
            code: failure.ended.code,
            message: failure.sentence(),
            last_lines: failure.ended.last_lines.clone(),
        });
    }
    if status.gang_restarts > prior.gang_restarts {
        happened.push(What::GangRestart { count: status.gang_restarts });
    }
    happened.extend(hosts(plan, prior, status));
    happened.extend(stage(prior, status));
    happened.into_iter().map(|what| Event { at: now, what }).collect()
}

fn stage(prior: &Status, status: &Status) -> Vec<What> {
    let moved = prior.stage != status.stage || prior.launched_epoch != status.launched_epoch;
    let began = prior.running_since.is_none() && status.running_since.is_some();
    let mut happened = Vec::new();
    if moved {
        happened.extend(match &status.stage {
            Stage::New | Stage::Ended(_) => None,
            Stage::Suspended => Some(What::Suspended),
            Stage::Queued => Some(What::Queued),
            Stage::Starting => {
                Some(What::Starting { attempt: status.attempt, epoch: status.epoch })
            }
            Stage::Running => Some(What::Released),
        });
    }
    happened.extend(began.then_some(What::Running));
    if let (Some(end), None) = (status.end(), prior.end()) {
        happened.push(What::Ended { verdict: end.verdict, code: end.code });
    }
    happened
}

fn commands(plan: &Plan, prior: &Status, status: &Status) -> Vec<What> {
    let new = status.ended.iter().filter(|(member, _)| !prior.ended.contains_key(member));
    new.map(|(member, ended)| What::CommandEnded {
        host: plan.host(*member).map(|host| host.name.clone()).unwrap_or_default(),
        code: ended.code,
    })
    .collect()
}

fn hosts(plan: &Plan, prior: &Status, status: &Status) -> Vec<What> {
    let up = |status: &Status, at: usize| status.groups.get(at).map_or(0, |counts| counts.active);
    let groups = plan.job.groups.iter().enumerate();
    groups
        .filter(|(at, _)| up(prior, *at) != up(status, *at))
        .map(|(at, group)| What::Hosts {
            group: group.name.clone(),
            up: up(status, at),
            of: group.replicas,
        })
        .collect()
}
