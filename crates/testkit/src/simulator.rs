//! Runs a story to its end through the same [`tick()`] as every engine, and checks what must be true all the way.

use unisono_engine::{Event, Recorded, Ticked, now_or_never, tick};
use unisono_job::Job;
use unisono_plan::conditions::{Happening, happenings};
use unisono_plan::{Incarnation, Plan, Seen, SeenState, Status, Time, lay_out, lint, step};

use crate::scenario::{Disturbance, Scenario};
use crate::world::World;

/// More turns than any story takes.
const MOST_TURNS: usize = 20_000;

/// How a story ended.
#[derive(Clone, Debug)]
pub struct Story {
    /// The last status.
    pub status: Status,
    /// The last plan.
    pub plan: Plan,
    /// All that is left.
    pub seen: Vec<Seen>,
    /// What is left and has not ended.
    pub alive: Vec<Incarnation>,
    /// What happened.
    pub events: Vec<Event>,
    /// What was told about it, as its own system tells it.
    pub told: Vec<Happening>,
    /// Every status that was written.
    pub written: Vec<Status>,
    /// Writes it took.
    pub writes: usize,
    /// Turns it took.
    pub turns: usize,
    /// Whether the job removed itself, or somebody else did.
    pub removed: bool,
}

/// Runs a story to its end.
///
/// # Errors
///
/// When something happens that must not, or the story never ends: a sentence that says what.
pub fn run(scenario: &Scenario) -> Result<Story, String> {
    Simulator::new(scenario).run()
}

struct Simulator<'scenario> {
    scenario: &'scenario Scenario,
    world: World,
    job: Job,
    plan: Plan,
    pending: Vec<(Time, Disturbance)>,
    events: Vec<Event>,
    told: Vec<Happening>,
    written: Vec<Status>,
    wake_at: Option<Time>,
    turns: usize,
}

impl<'scenario> Simulator<'scenario> {
    fn new(scenario: &'scenario Scenario) -> Self {
        let world = World::new(scenario.seed, scenario.script.clone(), scenario.faults);
        let begin = world.now;
        let after = |milliseconds: u64| Time(begin.0 + milliseconds);
        let mut pending: Vec<(Time, Disturbance)> =
            scenario.disturbances.iter().map(|(at, what)| (after(*at), *what)).collect();
        pending.reverse();
        Self {
            scenario,
            world,
            job: scenario.job.clone(),
            plan: lay_out(&scenario.job, &scenario.facts, 1),
            pending,
            events: Vec::new(),
            told: Vec::new(),
            written: Vec::new(),
            wake_at: None,
            turns: 0,
        }
    }

    fn run(mut self) -> Result<Story, String> {
        loop {
            self.turns += 1;
            if self.turns > MOST_TURNS {
                return Err(format!(
                    "no end after {MOST_TURNS} turns: {:?}",
                    self.world.stored.stage
                ));
            }
            self.disturb();
            let again_soon = self.turn()?;
            if self.world.deleted {
                return self.collected();
            }
            if let Some(violation) = self.world.violations.first() {
                return Err(violation.clone());
            }
            if self.world.removed {
                return Ok(self.told());
            }
            match self.next_moment(again_soon) {
                Some(time) => self.world.pass_until(time),
                None if self.is_settled()? => return self.checked_end(),
                None => {}
            }
        }
    }

    /// One turn; whether another one should follow soon because this one was disturbed.
    fn turn(&mut self) -> Result<bool, String> {
        let prior = self.world.read();
        let (now, writes) = (self.world.now, self.world.writes);
        let outcome = now_or_never(tick(&mut self.world, &self.plan, &prior, now));
        let ticked = match outcome {
            Some(Ok(ticked)) => ticked,
            Some(Err(_)) => return Ok(true),
            None => return Err("the fake engine waited".to_owned()),
        };
        self.check(&ticked)?;
        self.wake_at = ticked.next.wake_at;
        self.events.extend(ticked.events);
        if ticked.recorded == Recorded::Written {
            self.told.extend(happenings(&self.plan, &prior, &ticked.next.status));
            self.written.push(ticked.next.status);
        }
        // Whatever was written is news to look at.
        let news = self.world.writes > writes;
        Ok(news || self.world.view_was_late || ticked.recorded == Recorded::Outdated)
    }

    /// A second look at the same view wants and writes nothing new, and every wait has a reason.
    fn check(&self, ticked: &Ticked) -> Result<(), String> {
        let next = &ticked.next;
        let again = step(&self.plan, &next.status, &self.world.last_view, self.world.now);
        if again.status != next.status {
            return Err(format!("a second look changes {:?} to {:?}", next.status, again.status));
        }
        if again.want != next.want {
            return Err(format!("a second look wants {:?} after {:?}", again.want, next.want));
        }
        if next.why.is_empty() {
            return Err(format!("no reason to wait in {:?}", next.status.stage));
        }
        Ok(())
    }

    fn next_moment(&self, again_soon: bool) -> Option<Time> {
        let now = self.world.now;
        let soon = again_soon.then(|| Time(now.0 + 200));
        let disturbance = self.pending.last().map(|(at, _)| *at);
        let moments = [soon, disturbance, self.wake_at, self.world.next_event()];
        moments.into_iter().flatten().filter(|time| *time > now).min()
    }

    fn disturb(&mut self) {
        while let Some((_, what)) = self.pending.pop_if(|(at, _)| *at <= self.world.now) {
            match what {
                Disturbance::Suspend => self.change(|job| job.policies.suspend = true),
                Disturbance::Resume => self.change(|job| job.policies.suspend = false),
                Disturbance::Scale(count) => self.change(|job| {
                    if let Some(last) = job.groups.last_mut() {
                        last.replicas = count;
                    }
                }),
                Disturbance::Stop => self.world.stop_requested = true,
                Disturbance::Delete => self.world.deleted = true,
                Disturbance::Strike { nth, cause } => {
                    self.world.strike(nth, cause);
                }
            }
        }
    }

    /// The end of a job that somebody deleted, after one more turn of a process that did not know. Its status is gone with it.
    fn collected(mut self) -> Result<Story, String> {
        self.world.pass_until(self.world.now);
        while let Some(next) = self.world.next_event() {
            self.world.pass_until(next);
        }
        self.world.removed = true;
        self.world.stored = Status::default();
        match self.world.seen().first() {
            Some(left) => Err(format!("{left:?} is left of a job that was deleted")),
            None => Ok(self.told()),
        }
    }

    fn change(&mut self, change: impl FnOnce(&mut Job)) {
        let before = self.job.clone();
        change(&mut self.job);
        if self.job != before {
            let generation = self.plan.generation + 1;
            self.plan = lay_out(&self.job, &self.scenario.facts, generation);
        }
    }

    /// Whether an undisturbed look finds nothing left to do.
    fn is_settled(&mut self) -> Result<bool, String> {
        let faults = std::mem::take(&mut self.world.faults);
        let writes = self.world.writes;
        self.turn()?;
        self.world.faults = faults;
        Ok(self.world.writes == writes && self.next_moment(false).is_none())
    }

    fn checked_end(self) -> Result<Story, String> {
        let faults = lint(&self.plan);
        if let Some(fault) = faults.first() {
            return Err(format!("the plan is not sound: {fault}"));
        }
        if !self.world.stored.is_terminal() {
            return Err(format!("nothing more happens in {:?}", self.world.stored.stage));
        }
        Ok(self.told())
    }

    fn told(self) -> Story {
        let seen = self.world.seen();
        let alive = seen
            .iter()
            .filter(|seen| !matches!(seen.state, SeenState::Ended(_)))
            .map(|seen| seen.incarnation);
        Story {
            alive: alive.collect(),
            seen,
            status: self.world.stored.clone(),
            plan: self.plan,
            events: self.events,
            told: self.told,
            written: self.written,
            writes: self.world.writes,
            turns: self.turns,
            removed: self.world.removed,
        }
    }
}
