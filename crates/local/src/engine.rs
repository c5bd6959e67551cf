//! The engine: starts, lets go, watches and ends the hosts of one job on this machine. It decides nothing.

mod held;
mod hosted;
mod inquest;
mod release;

use std::collections::BTreeMap;
use std::future::{Future, ready};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::mpsc::SyncSender;

use unisono_agent::keys::{JobKeys, KeyError};
use unisono_agent::table::{DEFAULT_PORT, TableError};
use unisono_engine::{Engine, Recorded};
use unisono_plan::bind::Addresses;
use unisono_plan::{
    Cause, Ended, Host, Incarnation, Member, Next, Observed, Plan, Seen, Time, Want, Wanted,
};

use self::hosted::{Ear, Hosted, in_memory, path_of};
use crate::door::Door;
use crate::furnish::{self, Machine, Shared, Start};
use crate::host::{self, Hub};
use crate::means::Network;
use crate::output::Written;
use crate::post_mortem::Case;
use crate::run_directory::RunDirectory;

/// What the agent writes first, once it can be reached.
const LISTENING: &[u8] = b"unisono-agent: listening on";

/// What a line of a host means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It is for the user.
    Output,
    /// The host can be reached from now on; the line is not for the user.
    HostIsUp,
}

/// What happens outside the loop that drives the engine.
#[derive(Debug)]
pub enum Happening {
    /// A host wrote something.
    Wrote(Written),
    /// A host ended: its keeper's exit code, and when.
    HostEnded(Incarnation, i32, Time),
    /// The user wants the job to stop.
    Interrupted,
    /// Somebody who was in the line before this run may have left it.
    LineMoved,
}

/// The hosts of one job.
#[derive(Debug)]
pub struct LocalEngine {
    machine: Machine,
    run: RunDirectory,
    shared: Shared,
    hub: Option<Hub>,
    hosts: BTreeMap<Incarnation, Hosted>,
    ear: Ear,
    /// Whether all ranks are of one command: nobody else may launch.
    launches_alone: bool,
    unkept: Option<String>,
    door: Option<Door>,
    looks_again: bool,
    /// Whether the user wants the job to stop.
    pub stop_requested: bool,
}

/// Why the engine could not do what was wanted.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A host could not be started.
    #[error("start host {0}")]
    Start(String, #[source] io::Error),
    /// The host table could not be made.
    #[error("make the host table")]
    Table(#[from] TableError),
    /// Keys could not be made.
    #[error("make the job's keys")]
    Keys(#[from] KeyError),
    /// The job's private network could not be made.
    #[error("make the job's private network")]
    Network(#[source] io::Error),
    /// A file of the run could not be written.
    #[error("write {0}")]
    Write(PathBuf, #[source] io::Error),
}

impl LocalEngine {
    /// An engine without hosts.
    ///
    /// # Errors
    ///
    /// When keys cannot be made.
    pub fn new(
        plan: &Plan,
        machine: Machine,
        run: RunDirectory,
        addresses: Addresses,
        happenings: SyncSender<Happening>,
        clock: fn() -> Time,
    ) -> Result<Self, EngineError> {
        let launchers = || plan.hosts.iter().filter(|host| plan.may_launch(host.member));
        let launches_alone = launchers().nth(1).is_none();
        let keys = JobKeys::mint(
            launchers().map(|host| host.name.as_str()),
            plan.hosts.iter().map(|host| host.name.as_str()),
        )?;
        let (shared, hosts) = (Shared::new(plan, keys, addresses), BTreeMap::new());
        let hub = match machine.network {
            Network::Shared => None,
            Network::Private => Some(
                Hub::start(&machine.program, machine.isolation).map_err(EngineError::Network)?,
            ),
        };
        let ranks_of = launches_alone.then(|| run.clone());
        Ok(Self {
            machine,
            run,
            shared,
            hub,
            hosts,
            ear: Ear { happenings, clock, ranks_of },
            launches_alone,
            unkept: None,
            door: None,
            looks_again: false,
            stop_requested: false,
        })
    }

    /// Makes the job wait at this door until there is room for all of it.
    pub fn wait_at(&mut self, door: Door) {
        self.door = Some(door);
    }

    fn look(&mut self, plan: &Plan) -> Observed {
        // A suspended job wants no room yet.
        let door = self.door.as_mut().filter(|_| !plan.job.policies.suspend);
        let room = door.map(|door| door.ask(&self.ear.happenings)).unwrap_or_default();
        let seen = self.hosts.iter().map(|(incarnation, hosted)| Seen {
            incarnation: *incarnation,
            state: hosted.state(),
            address: Some(hosted.address.ip()),
        });
        let (seen, stop_requested) = (seen.collect(), self.stop_requested);
        Observed { seen, stop_requested, room, ..Observed::default() }
    }

    /// The time now.
    pub fn now(&self) -> Time {
        (self.ear.clock)()
    }

    fn make_so(&mut self, plan: &Plan, want: &Want) -> Result<(), EngineError> {
        for incarnation in &want.remove {
            let has_ended = self.hosts.get(incarnation).is_none_or(|hosted| hosted.ended.is_some());
            if has_ended {
                self.looks_again |= self.hosts.remove(incarnation).is_some();
            } else {
                // Its end is waited for: its address is not free before.
                self.kill(*incarnation);
            }
        }
        for (member, wanted) in &want.members {
            let current = self.current(*member);
            match wanted {
                Wanted::Absent => current.into_iter().for_each(|it| self.kill(it)),
                Wanted::Held if self.is_vacant(current, want.epoch) => {
                    let incarnation = Incarnation { member: *member, epoch: want.epoch };
                    self.start(plan, incarnation, want.attempt)?;
                }
                Wanted::Held => {}
                // Lets go of what is there, and starts nothing: a late look must not launch twice.
                Wanted::Running => {
                    if let Some(incarnation) = current {
                        self.release(plan, incarnation, want.attempt)?;
                    }
                }
                Wanted::Stopping { until } => {
                    current.into_iter().for_each(|incarnation| self.stop(incarnation, *until));
                }
            }
        }
        Ok(())
    }

    /// Remembers that a host ended. Its output was read to its end before.
    pub fn note_end(&mut self, incarnation: Incarnation, code: i32, at: Time) {
        let starved = if code == 0 { Vec::new() } else { self.starved() };
        let Some(hosted) = self.hosts.get_mut(&incarnation) else {
            return;
        };
        let could_not_start = code == host::COULD_NOT_START && hosted.released.is_none();
        let case = Case {
            code,
            host: &hosted.name,
            since: hosted.released,
            starved: &starved,
            launches_alone: self.launches_alone,
            tails: &hosted.tails,
            run: &self.run,
        };
        let told = case.examine();
        hosted.ended = Some(Ended {
            started: hosted.released,
            at,
            code: told.code,
            cause: if could_not_start { Cause::CannotStart } else { told.cause },
            rank: told.rank,
            last_lines: told.last_lines,
        });
    }

    /// Hosts of which the kernel killed processes because they used more memory than they may.
    fn starved(&self) -> Vec<String> {
        let starved = self.hosts.values().filter(|hosted| hosted.is_starved());
        starved.map(|hosted| hosted.name.clone()).collect()
    }

    /// Takes note of what a host wrote, and says what to make of it.
    pub fn note_line(&mut self, written: &Written) -> Heard {
        let Some(hosted) = self.hosts.get_mut(&written.incarnation) else {
            return Heard::Output;
        };
        if !hosted.up && written.is_error && written.bytes.starts_with(LISTENING) {
            hosted.up = true;
            return Heard::HostIsUp;
        }
        hosted.tails.note(written);
        Heard::Output
    }

    /// Whether something was removed since the last time: nothing else tells that it is gone.
    pub(crate) const fn take_looks_again(&mut self) -> bool {
        std::mem::replace(&mut self.looks_again, false)
    }

    /// Which file of the run could not be written since the last time, and why.
    pub(crate) fn take_unkept(&mut self) -> Option<String> {
        self.unkept.take()
    }

    /// Whether nothing of the job is left.
    pub fn is_empty(&self) -> bool {
        self.hosts.values().all(|hosted| hosted.ended.is_some())
    }

    /// Whether a command of the job still runs.
    pub(crate) fn runs_commands(&self) -> bool {
        self.hosts.values().any(Hosted::runs_command)
    }

    /// Ends everything at once.
    pub fn kill_all(&mut self) {
        for hosted in self.hosts.values().filter(|hosted| hosted.ended.is_none()) {
            hosted.kill();
        }
    }

    /// Whether a member's place is free: a launch that ended is kept for its log, and the next attempt takes its place.
    fn is_vacant(&self, current: Option<Incarnation>, epoch: u32) -> bool {
        let Some(incarnation) = current else {
            return true;
        };
        let has_ended = self.hosts.get(&incarnation).is_some_and(|hosted| hosted.ended.is_some());
        has_ended && incarnation.epoch < epoch
    }

    /// The youngest incarnation of a member.
    fn current(&self, member: Member) -> Option<Incarnation> {
        let of_member = Incarnation { member, epoch: 0 }..=Incarnation { member, epoch: u32::MAX };
        self.hosts.range(of_member).next_back().map(|(incarnation, _)| *incarnation)
    }

    fn start(
        &mut self,
        plan: &Plan,
        incarnation: Incarnation,
        attempt: u32,
    ) -> Result<(), EngineError> {
        let Some(host) = plan.host(incarnation.member) else {
            return Ok(());
        };
        let failed = |error| EngineError::Start(host.name.clone(), error);
        let hosted = self.spawn(plan, host, incarnation, attempt).map_err(failed)?;
        self.hosts.insert(incarnation, hosted);
        Ok(())
    }

    fn spawn(
        &self,
        plan: &Plan,
        host: &Host,
        incarnation: Incarnation,
        attempt: u32,
    ) -> io::Result<Hosted> {
        let address = SocketAddr::new(release::address_of(host, &self.shared), DEFAULT_PORT);
        let folder = self.host_folder(host);
        std::fs::create_dir_all(&folder)?;
        let kills = in_memory(b"")?;
        let start = Start {
            incarnation,
            attempt,
            address,
            folder: &folder,
            hub: self.hub.as_ref().map(Hub::id),
            kills: &path_of(&kills),
        };
        let furnished = furnish::host(plan, host, &self.machine, &self.shared, start);
        let stdin = if host.runs.launches() { self.machine.stdin() } else { Stdio::null() };
        let program = &self.machine.program;
        Hosted::start(program, furnished, incarnation, address, stdin, kills, &self.ear)
    }

    /// Lets a held command go: its host table is what it waits for.
    fn release(
        &mut self,
        plan: &Plan,
        incarnation: Incarnation,
        attempt: u32,
    ) -> Result<(), EngineError> {
        let now = (self.ear.clock)();
        let Some(host) = plan.host(incarnation.member) else {
            return Ok(());
        };
        let path = self.host_folder(host).join("table");
        let wanted = self
            .hosts
            .get(&incarnation)
            .is_some_and(|hosted| hosted.has_command && hosted.released.is_none());
        if !wanted {
            return Ok(());
        }
        if plan.may_launch(host.member) {
            let (run, epoch) = (self.run.path(), incarnation.epoch);
            let table = release::table(plan, &self.shared, run, attempt, epoch)?;
            release::write(&table, &path).map_err(|error| EngineError::Write(path, error))?;
        }
        if let Some(hosted) = self.hosts.get_mut(&incarnation) {
            hosted.released = Some(now);
        }
        Ok(())
    }

    fn host_folder(&self, host: &Host) -> PathBuf {
        self.run.path().join("hosts").join(&host.name)
    }

    /// Asks a host to stop; kills it when its time is over.
    fn stop(&mut self, incarnation: Incarnation, until: Time) {
        let now = (self.ear.clock)();
        let Some(hosted) = self.hosts.get_mut(&incarnation).filter(|hosted| hosted.ended.is_none())
        else {
            return;
        };
        if now >= until {
            hosted.kill();
        } else if !hosted.asked_to_stop {
            hosted.asked_to_stop = true;
            hosted.terminate();
        }
    }

    fn kill(&self, incarnation: Incarnation) {
        if let Some(hosted) = self.hosts.get(&incarnation).filter(|hosted| hosted.ended.is_none()) {
            hosted.kill();
        }
    }
}

/// Everything here blocks only for moments, so each act is done when its future is made.
impl Engine for LocalEngine {
    type Error = EngineError;

    fn observe(
        &mut self,
        plan: &Plan,
    ) -> impl Future<Output = Result<Observed, EngineError>> + Send {
        ready(Ok(self.look(plan)))
    }

    fn record(
        &mut self,
        _plan: &Plan,
        next: &Next,
    ) -> impl Future<Output = Result<Recorded, EngineError>> + Send {
        // Hosts end with this process, so nothing outlives a status that was not written: a full disk must not end the job.
        if let Err(error) = self.run.replace("status.json", &next.status) {
            self.unkept = Some(format!("status.json: {error}"));
        }
        ready(Ok(Recorded::Written))
    }

    fn apply(
        &mut self,
        plan: &Plan,
        want: &Want,
    ) -> impl Future<Output = Result<(), EngineError>> + Send {
        ready(self.make_so(plan, want))
    }
}
