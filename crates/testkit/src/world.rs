//! A fake engine: hosts that come up, run, end and vanish by a script, seen late, twice or not at all, with a process
//! that can die after any write. It watches over itself: what must never happen is taken down as a violation.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use unisono_engine::{Engine, Recorded};
use unisono_plan::{
    Cause, Ended, EngineKind, Incarnation, Member, Next, NoImage, Observed, Plan, Room, Seen,
    SeenState, Status, Time, Want, Wanted,
};

use crate::random::Random;

/// How late a view may be, in milliseconds. Less than the patience a plan for a cluster has with members it cannot see.
const LATEST_VIEW: u64 = 2_000;

/// How often things go wrong: one chance in that many, 0 for never.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// A view that is late.
    pub late_view: u64,
    /// Something seen twice.
    pub seen_twice: u64,
    /// An act that fails without effect.
    pub lost_act: u64,
    /// Death of the process after a write.
    pub death: u64,
    /// Whether hosts of the last group never get their image.
    pub no_image: bool,
    /// Death right before exactly this write.
    pub death_before_write: Option<usize>,
    /// Death right after exactly this write.
    pub death_after_write: Option<usize>,
}

/// How one launch of a command goes.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Milliseconds until it ends by itself.
    pub lasts: u64,
    /// Its exit code.
    pub code: i32,
}

/// Why an act failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It had no effect.
    #[error("the act was lost")]
    Lost,
    /// The process died.
    #[error("the process died")]
    Died,
    /// Somebody deleted the job.
    #[error("the job is gone")]
    Gone,
}

/// A world with one job in it.
#[derive(Clone, Debug)]
pub struct World {
    /// The time.
    pub now: Time,
    /// The status that is written down.
    pub stored: Status,
    /// Writes so far.
    pub writes: usize,
    /// What must never happen and did.
    pub violations: Vec<String>,
    /// Whether there is room for the job.
    pub room: Room,
    /// Whether somebody asked to stop it.
    pub stop_requested: bool,
    /// Whether the job was removed.
    pub removed: bool,
    /// Whether somebody deleted the job: nothing can be written to it, and what belongs to it goes by itself.
    pub deleted: bool,
    /// What was last seen.
    pub last_view: Observed,
    /// Whether the last view was late.
    pub view_was_late: bool,
    /// How things go wrong.
    pub faults: Faults,
    /// How launches of commands go, one after the other; the last one goes on for ever.
    pub script: Vec<Run>,
    random: Random,
    version: u64,
    version_read: u64,
    members: BTreeMap<Incarnation, Thing>,
    views: VecDeque<(Time, Vec<Seen>)>,
    launches: BTreeMap<Member, usize>,
    begun: BTreeSet<Incarnation>,
}

/// A command that was let go: it begins when all these are up.
#[derive(Clone, Debug)]
struct Released {
    waits_for: Vec<Incarnation>,
}

#[derive(Clone, Debug)]
struct Thing {
    runs_command: bool,
    launches: bool,
    placed_at: Time,
    up_at: Time,
    released: Option<Released>,
    began: Option<Time>,
    ends_at: Option<(Time, i32)>,
    ended: Option<Ended>,
    gone_at: Option<Time>,
    asked_to_stop: bool,
    no_image: bool,
}

impl World {
    /// An empty world.
    pub fn new(seed: u64, script: Vec<Run>, faults: Faults) -> Self {
        Self {
            now: Time(1_000_000),
            stored: Status::default(),
            writes: 0,
            violations: Vec::new(),
            room: Room::Given,
            stop_requested: false,
            removed: false,
            deleted: false,
            last_view: Observed::default(),
            view_was_late: false,
            faults,
            script,
            random: Random::new(seed),
            version: 0,
            version_read: 0,
            members: BTreeMap::new(),
            views: VecDeque::new(),
            launches: BTreeMap::new(),
            begun: BTreeSet::new(),
        }
    }

    /// Reads the status as a process that just started does.
    pub fn read(&mut self) -> Status {
        self.version_read = self.version;
        self.stored.clone()
    }

    /// Everything that exists.
    pub fn seen(&self) -> Vec<Seen> {
        self.members.iter().map(|(incarnation, thing)| thing.seen(*incarnation, self.now)).collect()
    }

    /// Ends something that exists, as a platform does. Returns whether there was anything to end.
    pub fn strike(&mut self, nth: u64, cause: Cause) -> bool {
        let alive: Vec<Incarnation> = self
            .members
            .iter()
            .filter(|(_, thing)| thing.ended.is_none() && thing.gone_at.is_none())
            .map(|(incarnation, _)| *incarnation)
            .collect();
        if alive.is_empty() {
            return false;
        }
        let at = usize::try_from(nth).unwrap_or(0) % alive.len();
        let now = self.now;
        if cause == Cause::Deleted {
            self.members.remove(&alive[at]);
        } else if let Some(thing) = self.members.get_mut(&alive[at]) {
            thing.ended = Some(ended(thing.began, now, 137, cause));
        }
        true
    }

    /// When something happens by itself next.
    pub fn next_event(&self) -> Option<Time> {
        self.members.values().filter_map(|thing| thing.next_event(self.now)).min()
    }

    /// Lets time pass.
    pub fn pass_until(&mut self, time: Time) {
        while let Some(event) = self.next_event().filter(|event| *event <= time) {
            self.now = event;
            self.happen();
        }
        self.now = self.now.max(time);
        self.happen();
    }

    fn happen(&mut self) {
        let now = self.now;
        if self.deleted {
            self.collect();
        }
        self.members.retain(|_, thing| thing.gone_at.is_none_or(|at| at > now));
        let due: Vec<Incarnation> = self
            .members
            .iter()
            .filter(|(_, thing)| thing.may_begin(now) && self.finds_all(thing))
            .map(|(incarnation, _)| *incarnation)
            .collect();
        for incarnation in due {
            self.begin(incarnation);
        }
        for thing in self.members.values_mut() {
            if let Some((at, code)) = thing.ends_at
                && at <= now
                && thing.ended.is_none()
            {
                thing.ended = Some(ended(thing.began, at, code, Cause::Exited));
            }
        }
        self.views.push_back((now, self.seen()));
        while self.views.front().is_some_and(|(at, _)| at.0 + LATEST_VIEW < now.0) {
            self.views.pop_front();
        }
    }

    /// Removes what belongs to a job that is gone, as the platform does: by and by, what was made since included.
    fn collect(&mut self) {
        for thing in self.members.values_mut().filter(|thing| thing.gone_at.is_none()) {
            thing.gone_at = Some(Time(self.now.0 + 1 + self.random.below(800)));
        }
    }

    /// Whether every host that a command was told of is up, and the very one it was told of.
    fn finds_all(&self, thing: &Thing) -> bool {
        let is_up = |it: &Incarnation| {
            let host = self.members.get(it);
            host.is_some_and(|host| host.is_up(self.now) && host.ended.is_none())
        };
        thing.released.as_ref().is_some_and(|released| released.waits_for.iter().all(is_up))
    }

    fn begin(&mut self, incarnation: Incarnation) {
        if !self.begun.insert(incarnation) {
            self.violations.push(format!("{incarnation:?} began twice"));
        }
        // Members that joined later are of a later epoch than the launch they join.
        let launched = self.stored.launched_epoch;
        let older = self.members.iter().find(|(other, thing)| {
            other.epoch < launched && thing.runs_command && thing.is_running()
        });
        if let Some((older, _)) = older {
            self.violations.push(format!("{incarnation:?} began while {older:?} ran"));
        }
        let nth = self.launches.entry(incarnation.member).or_default();
        let run = self.script.get(*nth).or(self.script.last()).copied();
        *nth += 1;
        let run = run.unwrap_or(Run { lasts: 1_000, code: 0 });
        let now = self.now;
        if let Some(thing) = self.members.get_mut(&incarnation) {
            thing.began = Some(now);
            thing.ends_at = Some((Time(now.0 + run.lasts), run.code));
        }
    }

    /// Whether the process lives to do its next write. It dies before it once: the next process gets past it.
    fn lives_to_write(&mut self) -> Result<(), Fault> {
        let next = self.writes + 1;
        let dies = self.faults.death_before_write.take_if(|write| *write == next).is_some();
        if dies { Err(Fault::Died) } else { Ok(()) }
    }

    /// Counts a write, after which the process may die.
    fn written(&mut self) -> Result<(), Fault> {
        self.writes += 1;
        let dies = self.faults.death_after_write == Some(self.writes)
            || self.random.one_in(self.faults.death);
        if dies { Err(Fault::Died) } else { Ok(()) }
    }

    fn may_be_lost(&mut self) -> Result<(), Fault> {
        if self.random.one_in(self.faults.lost_act) { Err(Fault::Lost) } else { Ok(()) }
    }

    fn view(&mut self) -> Observed {
        self.view_was_late = self.random.one_in(self.faults.late_view) && !self.views.is_empty();
        let mut seen = if self.view_was_late {
            let at = usize::try_from(self.random.below(self.views.len() as u64)).unwrap_or(0);
            self.views[at].1.clone()
        } else {
            self.seen()
        };
        if !seen.is_empty() && self.random.one_in(self.faults.seen_twice) {
            seen.push(self.random.pick(&seen.clone()).clone());
        }
        self.random.shuffle(&mut seen);
        Observed {
            seen,
            room: self.room.clone(),
            stop_requested: self.stop_requested,
            ..Observed::default()
        }
    }

    fn create(&mut self, plan: &Plan, want: &Want, member: Member) -> Result<(), Fault> {
        let incarnation = Incarnation { member, epoch: want.epoch };
        let Some(host) = plan.host(member) else {
            self.violations.push(format!("{member} is wanted and not planned"));
            return Ok(());
        };
        self.may_be_lost()?;
        self.lives_to_write()?;
        if self.stored.epoch < want.epoch || self.stored.is_terminal() {
            self.violations.push(format!("{incarnation:?} was made and no status knows of it"));
        }
        let up_at = Time(self.now.0 + self.random.below(1_500));
        // On a cluster the address of a host is known before the host is up.
        let placed_at = match plan.facts.engine {
            EngineKind::Kubernetes => {
                Time(self.now.0 + self.random.below(up_at.0 - self.now.0 + 1))
            }
            EngineKind::Local => up_at,
        };
        let is_last_group = member.group as usize + 1 == plan.job.groups.len();
        let thing = Thing {
            runs_command: host.runs.runs_command(),
            launches: host.runs.launches(),
            placed_at,
            up_at,
            released: None,
            began: None,
            ends_at: None,
            ended: None,
            gone_at: None,
            asked_to_stop: false,
            no_image: self.faults.no_image && is_last_group,
        };
        self.members.insert(incarnation, thing);
        self.written()
    }

    fn remove(&mut self, incarnation: Incarnation) -> Result<(), Fault> {
        let gone_at = Time(self.now.0 + self.random.below(800));
        if self.members.get(&incarnation).is_none_or(|thing| thing.gone_at.is_some()) {
            return Ok(());
        }
        self.lives_to_write()?;
        if let Some(thing) = self.members.get_mut(&incarnation) {
            thing.gone_at = Some(gone_at);
        }
        self.may_be_lost()?;
        self.written()
    }

    /// The incarnation that holds a member's place. A launch that ended has a name of its own and holds none.
    fn in_place(&self, member: Member) -> Option<Incarnation> {
        let of_member = self.members.iter().filter(|(it, _)| it.member == member);
        of_member
            .filter(|(_, thing)| !(thing.launches && thing.ended.is_some()))
            .map(|(incarnation, _)| *incarnation)
            .next_back()
    }

    fn make(
        &mut self,
        plan: &Plan,
        want: &Want,
        member: Member,
        wanted: Wanted,
    ) -> Result<(), Fault> {
        let place = self.in_place(member);
        let newest = self.members.keys().rfind(|it| it.member == member).copied();
        match (wanted, place) {
            (Wanted::Absent, Some(place)) => self.remove(place),
            (Wanted::Absent | Wanted::Running | Wanted::Stopping { .. }, None) => Ok(()),
            (Wanted::Stopping { .. }, Some(place)) => self.stop(place),
            (Wanted::Held, None) => {
                let over = newest.is_some_and(|it| it.epoch >= valid_from(&self.stored, plan, it));
                if over { Ok(()) } else { self.create(plan, want, member) }
            }
            (Wanted::Held, Some(_)) => Ok(()),
            (Wanted::Running, Some(place)) => self.release(place),
        }
    }

    fn stop(&mut self, incarnation: Incarnation) -> Result<(), Fault> {
        let at = Time(self.now.0 + self.random.below(3_000));
        let is_over = |thing: &Thing| thing.asked_to_stop || thing.ended.is_some();
        if self.members.get(&incarnation).is_none_or(is_over) {
            return Ok(());
        }
        self.lives_to_write()?;
        if let Some(thing) = self.members.get_mut(&incarnation) {
            thing.asked_to_stop = true;
            thing.ends_at = Some((at, 143));
        }
        self.written()
    }

    fn release(&mut self, incarnation: Incarnation) -> Result<(), Fault> {
        if self.members.get(&incarnation).is_none_or(|thing| thing.released.is_some()) {
            return Ok(());
        }
        self.lives_to_write()?;
        let is_host = |(it, thing): &(&Incarnation, &Thing)| {
            it.member != incarnation.member && !thing.runs_command && thing.ended.is_none()
        };
        let hosts = self.members.iter().filter(is_host).map(|(it, _)| *it);
        let waits_for = hosts.collect();
        if let Some(thing) = self.members.get_mut(&incarnation) {
            thing.released = Some(Released { waits_for });
        }
        self.happen();
        self.written()
    }
}

/// The epoch from which on an incarnation is not stale, so that one that has ended must not be made again.
fn valid_from(status: &Status, plan: &Plan, incarnation: Incarnation) -> u32 {
    let runs_command = plan.host(incarnation.member).is_some_and(|host| host.runs.runs_command());
    let launched = if runs_command { status.launched_epoch } else { 0 };
    let replaced = status.replaced.get(&incarnation.member).copied().unwrap_or(0);
    status.hosts_epoch.max(launched).max(replaced)
}

impl Thing {
    fn seen(&self, incarnation: Incarnation, now: Time) -> Seen {
        let state = match (&self.ended, self.began) {
            (Some(ended), _) => SeenState::Ended(ended.clone()),
            (None, Some(since)) => SeenState::Running { since },
            (None, None) if self.no_image && self.placed_at <= now => self.waits_for_image(),
            (None, None) if self.is_up(now) => SeenState::Up,
            (None, None) if self.placed_at <= now => SeenState::Placed("it boots".to_owned()),
            (None, None) => SeenState::Coming("it boots".to_owned()),
        };
        Seen { incarnation, state, address: Some([127, 0, 0, 1].into()) }
    }

    fn is_up(&self, now: Time) -> bool {
        self.up_at <= now && !self.no_image
    }

    fn waits_for_image(&self) -> SeenState {
        SeenState::NoImage(NoImage {
            container: "main".to_owned(),
            image: "none".to_owned(),
            said: None,
            since: self.placed_at,
            is_hopeless: false,
        })
    }

    fn may_begin(&self, now: Time) -> bool {
        self.runs_command
            && self.released.is_some()
            && self.is_up(now)
            && self.began.is_none()
            && self.ended.is_none()
            && self.gone_at.is_none()
    }

    fn is_running(&self) -> bool {
        self.began.is_some() && self.ended.is_none()
    }

    fn next_event(&self, now: Time) -> Option<Time> {
        let ends = self.ends_at.map(|(at, _)| at).filter(|_| self.ended.is_none());
        let alive = |at: Time| Some(at).filter(|_| self.ended.is_none());
        [alive(self.placed_at), alive(self.up_at), ends, self.gone_at]
            .into_iter()
            .flatten()
            .filter(|at| *at > now)
            .min()
    }
}

const fn ended(started: Option<Time>, at: Time, code: i32, cause: Cause) -> Ended {
    Ended { started, at, code, cause, rank: None, last_lines: Vec::new() }
}

impl Engine for World {
    type Error = Fault;

    async fn observe(&mut self, _plan: &Plan) -> Result<Observed, Fault> {
        self.may_be_lost()?;
        self.last_view = self.view();
        Ok(self.last_view.clone())
    }

    async fn record(&mut self, _plan: &Plan, next: &Next) -> Result<Recorded, Fault> {
        let status = &next.status;
        if self.deleted {
            return Err(Fault::Gone);
        }
        if self.version_read != self.version {
            return Ok(Recorded::Outdated);
        }
        self.may_be_lost()?;
        self.lives_to_write()?;
        let old = &self.stored;
        if old.is_terminal() && old.stage != status.stage {
            self.violations.push("a terminal status was left".to_owned());
        }
        if status.attempt < old.attempt || status.epoch < old.epoch {
            self.violations.push("an attempt or epoch shrank".to_owned());
        }
        match serde_json::to_string(status).and_then(|text| serde_json::from_str(&text)) {
            Ok(read_back) => self.stored = read_back,
            Err(fault) => self.violations.push(format!("a status cannot be kept: {fault}")),
        }
        if self.stored != *status {
            self.violations.push("a status is not the same after it was written".to_owned());
        }
        self.version += 1;
        self.version_read = self.version;
        self.written()?;
        Ok(Recorded::Written)
    }

    async fn apply(&mut self, plan: &Plan, want: &Want) -> Result<(), Fault> {
        if want.remove_job {
            self.lives_to_write()?;
            self.removed = true;
            self.members.clear();
            return self.written();
        }
        let mut removals = want.remove.clone();
        self.random.shuffle(&mut removals);
        for incarnation in removals {
            self.remove(incarnation)?;
        }
        let mut members: Vec<(Member, Wanted)> =
            want.members.iter().map(|(member, wanted)| (*member, *wanted)).collect();
        self.random.shuffle(&mut members);
        for (member, wanted) in members {
            self.make(plan, want, member, wanted)?;
        }
        Ok(())
    }
}
