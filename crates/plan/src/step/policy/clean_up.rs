//! Clean-up: which members stay when the job has ended.
//!
//! Commands that still run are stopped whatever the policy says, and what has ended keeps its log. The policy is about
//! hosts of ranks. On this machine they stay while commands stop: a launcher passes on to its ranks that it was asked to.

use unisono_job::{CleanUp, Dialect, System};

use super::suspend::grace;
use crate::step::sight::{Sight, is_alive};
use crate::{EngineKind, Host, Plan, SeenState, Time, Wanted};

/// What is left of a job that has ended.
pub(crate) struct Remains<'plan> {
    plan: &'plan Plan,
    /// Until when something that is asked to stop may take.
    until: Time,
    /// Whether hosts of ranks are still needed.
    launchers_stop: bool,
    now: Time,
}

impl<'plan> Remains<'plan> {
    /// What is left of a job that ended at that time.
    pub(crate) fn of(plan: &'plan Plan, sight: &Sight<'_>, completed: Time, now: Time) -> Self {
        let until = completed.after(grace(plan.facts.engine));
        let runs =
            |host: &Host| host.runs.runs_command() && sight.state(host).is_some_and(is_alive);
        let is_local = plan.facts.engine == EngineKind::Local;
        let launchers_stop = is_local && now < until && plan.hosts.iter().any(runs);
        Self { plan, until, launchers_stop, now }
    }

    /// What a host is to be; nothing: it is left alone.
    pub(crate) fn wanted(&self, host: &Host, state: &SeenState) -> Option<Wanted> {
        let alive = is_alive(state);
        if host.runs.runs_command() || self.stays_as_pod() {
            let until = self.until;
            let wanted = if self.now < until { Wanted::Stopping { until } } else { Wanted::Absent };
            return alive.then_some(wanted);
        }
        if self.launchers_stop {
            return None;
        }
        match policy(self.plan) {
            CleanUp::None => None,
            CleanUp::Running => alive.then_some(Wanted::Absent),
            CleanUp::All => Some(Wanted::Absent),
        }
    }

    /// kube-batch's pods end with their executor and stay as a finished Job's pods do.
    fn stays_as_pod(&self) -> bool {
        self.plan.facts.engine == EngineKind::Kubernetes
            && self.plan.job.dialect.system() == System::KubeBatch
    }
}

fn policy(plan: &Plan) -> CleanUp {
    let stated = plan.job.policies.clean_up;
    match (plan.job.dialect, stated) {
        // Hosts on this machine live no longer than their job.
        _ if plan.facts.engine == EngineKind::Local => CleanUp::All,
        // These versions knew no difference: their workers were one set, scaled to nothing.
        (Dialect::KubeflowV1alpha1 | Dialect::KubeflowV1alpha2, CleanUp::Running) => CleanUp::All,
        (_, stated) => stated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{LAUNCHER, WORKER, ended, plan, seen};
    use crate::{EngineKind, Member, Observed, Status};

    fn after_the_end(clean_up: CleanUp, member: Member, state: &SeenState) -> Option<Wanted> {
        let plan = plan(EngineKind::Kubernetes, |job| job.policies.clean_up = clean_up);
        let observed = Observed::default();
        let sight = Sight::of(&plan, &Status::default(), &observed);
        Remains::of(&plan, &sight, Time(0), Time(1)).wanted(plan.host(member).unwrap(), state)
    }

    #[test]
    fn hosts_of_ranks_go_as_the_policy_says() {
        let (up, over) = (SeenState::Up, SeenState::Ended(ended(0, 0)));
        let of = |clean_up| [&up, &over].map(|state| after_the_end(clean_up, WORKER, state));
        let gone = Some(Wanted::Absent);
        assert_eq!(of(CleanUp::None), [None, None]);
        assert_eq!(of(CleanUp::Running), [gone, None]);
        assert_eq!(of(CleanUp::All), [gone, gone]);
    }

    #[test]
    fn a_command_that_still_runs_is_stopped_whatever_the_policy_says() {
        let running = SeenState::Running { since: Time(0) };
        let until = Time(30_000);
        assert_eq!(
            after_the_end(CleanUp::None, LAUNCHER, &running),
            Some(Wanted::Stopping { until })
        );
        let over = SeenState::Ended(ended(0, 1));
        assert_eq!(after_the_end(CleanUp::All, LAUNCHER, &over), None);
    }
    #[test]
    fn on_this_machine_hosts_of_ranks_stay_while_their_launcher_stops() {
        let plan = plan(EngineKind::Local, |_| {});
        let of_worker = |launcher: SeenState, now: u64| {
            let observed = seen(&[(LAUNCHER, launcher), (WORKER, SeenState::Up)]);
            let sight = Sight::of(&plan, &Status::default(), &observed);
            let remains = Remains::of(&plan, &sight, Time(0), Time(now));
            remains.wanted(plan.host(WORKER).unwrap(), &SeenState::Up)
        };
        let (running, over) =
            (SeenState::Running { since: Time(0) }, SeenState::Ended(ended(1, 143)));
        assert_eq!(of_worker(running.clone(), 4999), None);
        assert_eq!(of_worker(running, 5000), Some(Wanted::Absent));
        assert_eq!(of_worker(over, 1), Some(Wanted::Absent));
    }
}
