//! A small plan for unit tests: a launcher `run` and two hosts of ranks `work`.

use std::collections::BTreeMap;

use unisono_job::{
    Command, Dialect, EndRule, Group, Job, JobName, LaunchRights, MpiChoice, MpiFrom, Origins,
    Policies, Resources, RestartPolicy, Runs, Slots,
};

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
    let mut job = Job {
        name: JobName::new("sample").expect("it is a name"),
        namespace: None,
        dialect: Dialect::Unisono,
        experiment: None,
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        mpi: MpiChoice { flavour: None, from: MpiFrom::Unknown },
        groups: vec![
            Group { end: EndRule::FIRST, ..group("run", 1, Slots::NONE, launch) },
            group("work", 2, Slots::stated(1), Runs::Ranks(None)),
        ],
        launch_rights: LaunchRights::Launcher,
        policies: Policies::default(),
        origins: Origins::default(),
    };
    change(&mut job);
    lay_out(&job, &Facts { engine, ..Facts::default() }, 1)
}

/// A command of its own instead of the launch line, on that many members.
pub(crate) fn own_commands(job: &mut Job, count: u32, end: EndRule) {
    let own = Runs::Own(Command::Words(vec!["task".to_owned()]));
    job.groups = vec![Group { end, ..group("task", count, Slots::stated(1), own) }];
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

fn group(name: &str, replicas: u32, slots: Slots, runs: Runs) -> Group {
    Group {
        name: name.to_owned(),
        replicas,
        slots,
        runs,
        image: None,
        resources: Resources::default(),
        env: Vec::new(),
        working_dir: None,
        code: None,
        ports: Vec::new(),
        shm_mib: None,
        end: EndRule::NEVER,
        restart: RestartPolicy::Never,
        extras: None,
    }
}
