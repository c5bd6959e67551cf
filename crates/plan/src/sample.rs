//! A small plan for unit tests: a launcher `run` and two hosts of ranks `work`.

use unisono_job::{Command, Dialect, EndRule, Group, Job, JobName, Runs, Slots};

use crate::{
    Cause, Ended, EngineKind, Facts, Incarnation, Member, Observed, Plan, Seen, SeenState, Time,
    lay_out,
};

pub(crate) const LAUNCHER: Member = Member { group: 0, index: 0 };
pub(crate) const WORKER: Member = Member { group: 1, index: 0 };
pub(crate) const OTHER_WORKER: Member = Member { group: 1, index: 1 };

/// The plan, with the job changed before.
pub(crate) fn plan(engine: EngineKind, change: impl FnOnce(&mut Job)) -> Plan {
    let launch = Runs::Launch(Command::Words(vec!["mpirun".to_owned()]));
    let name = JobName::new("sample").expect("it is a name");
    let groups = vec![
        Group { end: EndRule::FIRST, ..Group::new("run", 1, Slots::NONE, launch) },
        Group::new("work", 2, Slots::stated(1), Runs::Ranks(None)),
    ];
    let mut job = Job::new(name, Dialect::Unisono, groups);
    change(&mut job);
    lay_out(&job, &Facts { engine, ..Facts::default() }, 1)
}

/// A command of its own instead of the launch line, on that many members.
pub(crate) fn own_commands(job: &mut Job, count: u32, end: EndRule) {
    let own = Runs::Own(Command::Words(vec!["task".to_owned()]));
    job.groups = vec![Group { end, ..Group::new("task", count, Slots::stated(1), own) }];
}

pub(crate) fn seen(states: &[(Member, SeenState)]) -> Observed {
    let seen = |(member, state): &(Member, SeenState)| Seen {
        incarnation: Incarnation { member: *member, epoch: 0 },
        state: state.clone(),
        address: None,
    };
    Observed { seen: states.iter().map(seen).collect(), ..Observed::default() }
}

pub(crate) fn ended(at: u64, code: i32) -> Ended {
    let (started, rank, last_lines) = (None, None, Vec::new());
    Ended { started, at: Time(at), code, cause: Cause::Exited, rank, last_lines }
}
