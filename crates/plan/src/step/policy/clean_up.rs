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
