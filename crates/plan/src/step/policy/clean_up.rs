//! Clean-up: which members stay when the job has ended.
//!
//! Commands that still run are stopped whatever the policy says, and what has ended keeps its log. The policy is about
//! hosts of ranks.

use unisono_job::{CleanUp, Dialect, System};

use super::suspend::grace;
use crate::step::sight::is_alive;
use crate::{EngineKind, Host, Plan, SeenState, Time, Wanted};

/// What a host is to be after the job ended; nothing: it is left alone.
pub(crate) fn wanted(
    plan: &Plan,
    host: &Host,
    state: &SeenState,
    completed: Time,
    now: Time,
) -> Option<Wanted> {
    let alive = is_alive(state);
    // kube-batch's pods end with their executor and stay as a finished Job's pods do.
    let only_stops = host.runs.runs_command() || plan.job.dialect.system() == System::KubeBatch;
    if only_stops {
        let until = completed.after(grace(plan.facts.engine));
        let wanted = if now < until { Wanted::Stopping { until } } else { Wanted::Absent };
        return alive.then_some(wanted);
    }
    match policy(plan) {
        CleanUp::None => None,
        CleanUp::Running => alive.then_some(Wanted::Absent),
        CleanUp::All => Some(Wanted::Absent),
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
    use crate::sample::{LAUNCHER, WORKER, ended, plan};
    use crate::{EngineKind, Member};

    fn after_the_end(clean_up: CleanUp, member: Member, state: &SeenState) -> Option<Wanted> {
        let plan = plan(EngineKind::Kubernetes, |job| job.policies.clean_up = clean_up);
        wanted(&plan, plan.host(member).unwrap(), state, Time(0), Time(1))
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
}
