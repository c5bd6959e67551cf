//! Images: how long a job waits for one that cannot be had.
//!
//! A registry may be away for a while and a name may be mended by somebody who pushes the image, so the job waits, as the
//! kubelet does. But nobody reads the status of a job that nobody expects anything of, and its other hosts hold what
//! others could use: after a while the job fails. No retry follows, because it would wait for the same image.

use super::loss::was_released;
use crate::step::sight::Sight;
use crate::{Cause, Ended, Facts, Host, Member, NoImage, Plan, SeenState, Stage, Status, Time};

/// The exit code of a job that could not be run.
const COULD_NOT_RUN: i32 = 125;

/// When the job stops waiting for this image; never where nothing limits it. One that can never be had is not waited for.
pub(crate) fn due(facts: &Facts, waiting: &NoImage) -> Option<Time> {
    if waiting.is_hopeless {
        return Some(waiting.since);
    }
    Some(waiting.since.after(facts.image_patience?))
}

/// When the job next stops waiting for an image.
pub(crate) fn next_due(plan: &Plan, status: &Status, sight: &Sight<'_>) -> Option<Time> {
    waiting(plan, status, sight).filter_map(|(_, it)| due(&plan.facts, it)).min()
}

/// The member whose image has been waited for long enough, with how that ended.
pub(crate) fn given_up(
    plan: &Plan,
    status: &Status,
    sight: &Sight<'_>,
    now: Time,
) -> Option<(Member, Ended)> {
    let is_over = |it: &NoImage| due(&plan.facts, it).is_some_and(|due| now >= due);
    let (host, waiting) = waiting(plan, status, sight).find(|(_, it)| is_over(it))?;
    let epoch = sight.current.get(&host.member)?.incarnation.epoch;
    let pod = plan.pod_name(host, epoch);
    let mut told = format!("image {} of pod {pod} is not to be had", waiting.image);
    if let Some(said) = &waiting.said {
        told = format!("{told}: {said}");
    }
    let ended = Ended {
        started: None,
        at: now,
        code: COULD_NOT_RUN,
        cause: Cause::CannotStart,
        rank: None,
        last_lines: vec![told],
    };
    Some((host.member, ended))
}

/// Hosts that the job's commands wait for and that wait for an image. One that joins a running job keeps nobody waiting.
fn waiting<'plan, 'seen>(
    plan: &'plan Plan,
    status: &Status,
    sight: &Sight<'seen>,
) -> impl Iterator<Item = (&'plan Host, &'seen NoImage)> {
    let is_awaited = |host: &&Host| match status.stage {
        Stage::Starting => true,
        Stage::Running => status.running_since.is_none() && was_released(status, host.member),
        Stage::New | Stage::Suspended | Stage::Queued | Stage::Ended(_) => false,
    };
    plan.hosts.iter().filter(is_awaited).filter_map(|host| match sight.state(host)? {
        SeenState::NoImage(waiting) => Some((host, waiting)),
        _ => None,
    })
}

impl NoImage {
    /// Why its host is not up, and until when that is waited for.
    pub(crate) fn reason(&self, facts: &Facts) -> String {
        let mut told = format!("the image of {} cannot be pulled", self.container);
        if let Some(said) = &self.said {
            told = format!("{told}: {said}");
        }
        match due(facts, self) {
            Some(due) => format!("{told}; the job gives up at {due}"),
            None => told,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use unisono_job::Retry;

    use super::*;
    use crate::sample::{LAUNCHER, OTHER_WORKER, WORKER, plan, seen};
    use crate::{EndReason, EngineKind, Next, Observed, Verdict, Why, step};

    const MINUTE: u64 = 60_000;

    fn no_image(since: u64) -> SeenState {
        SeenState::NoImage(NoImage {
            container: "main".to_owned(),
            image: "lab/x:1".to_owned(),
            said: Some("no such image".to_owned()),
            since: Time(since),
            is_hopeless: false,
        })
    }

    fn patient(minutes: Option<u64>) -> Plan {
        let mut plan = plan(EngineKind::Kubernetes, |job| {
            job.policies.retry = Retry::Backoff { limit: 6 };
        });
        plan.facts.image_patience = minutes.map(|it| Duration::from_secs(it * 60));
        plan
    }

    fn starting() -> Status {
        let generation = 1;
        Status { stage: Stage::Starting, generation, created: Some(Time(0)), ..Status::default() }
    }

    fn imageless(since: u64) -> Observed {
        seen(&[(LAUNCHER, SeenState::Up), (WORKER, SeenState::Up), (OTHER_WORKER, no_image(since))])
    }

    fn at(plan: &Plan, minutes: u64) -> Next {
        step(plan, &starting(), &imageless(MINUTE), Time(minutes * MINUTE))
    }

    #[test]
    fn a_job_waits_for_an_image_says_until_when_and_looks_again_then() {
        let next = at(&patient(Some(30)), 30);
        assert_eq!(next.status.stage, Stage::Starting);
        assert_eq!(next.wake_at, Some(Time(31 * MINUTE)));
        let [why @ Why::Stuck { .. }] = next.why.as_slice() else { panic!("{:?}", next.why) };
        let told = "sample-work-1 is not up: the image of main cannot be pulled: no such image; \
            the job gives up at 1970-01-01T00:31:00Z";
        assert_eq!(why.to_string(), told);
    }

    #[test]
    fn it_fails_when_the_image_does_not_come_whatever_retries_are_left() {
        let status = at(&patient(Some(30)), 31).status;
        let end = status.end().expect("it has ended");
        assert_eq!((end.verdict, end.reason), (Verdict::Failed, EndReason::ImageUnavailable));
        assert_eq!((end.code, end.by), (COULD_NOT_RUN, Some(OTHER_WORKER)));
        assert_eq!((status.attempt, status.counted_failures), (0, 0), "nothing is tried again");
        assert_eq!(status.completed, Some(Time(31 * MINUTE)));
        let failed = status.conditions.iter().find(|it| it.kind == "Failed").expect("it is told");
        assert_eq!(failed.reason, "ImageUnavailable");
        let told = "sample-work-1 could not start: image lab/x:1 of pod sample-work-1 is not to be had: \
            no such image; an image could not be had: check its name and its pull secrets, then submit again";
        assert_eq!(failed.message, told);
    }

    #[test]
    fn without_a_limit_it_waits_for_ever() {
        let next = at(&patient(None), 1_000_000);
        assert_eq!((next.status.stage, next.wake_at), (Stage::Starting, None));
        assert!(!next.why[0].to_string().contains("gives up"), "{:?}", next.why);
    }

    #[test]
    fn an_image_that_can_never_be_had_is_not_waited_for() {
        let mut observed = imageless(MINUTE);
        if let SeenState::NoImage(waiting) = &mut observed.seen[2].state {
            waiting.is_hopeless = true;
        }
        let status = step(&patient(None), &starting(), &observed, Time(MINUTE)).status;
        let end = status.end().expect("it has ended");
        assert_eq!((end.reason, end.code), (EndReason::ImageUnavailable, COULD_NOT_RUN));
    }

    #[test]
    fn a_command_that_was_let_go_before_its_hosts_were_up_waits_no_longer() {
        let plan = patient(Some(30));
        let prior = Status { stage: Stage::Running, released: vec![1, 2], ..starting() };
        let ends = |prior: &Status, minutes| {
            let next = step(&plan, prior, &imageless(0), Time(minutes * MINUTE));
            (next.status.is_terminal(), next.wake_at)
        };
        assert_eq!(ends(&prior, 29), (false, Some(Time(30 * MINUTE))));
        assert!(ends(&prior, 30).0);
        // A worker that joins a running job is no reason to end it.
        let running = Status { released: vec![1, 1], ..prior };
        assert_eq!(ends(&running, 31), (false, None));
    }
}
