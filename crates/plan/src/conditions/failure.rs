//! What failed first, for people who see only the job: the failure enters, a sentence with its likely cause and last line leaves.

use unisono_job::{Group, Image};

use super::Happening;
use crate::complaints::{Unrunnable, unrunnable};
use crate::{Cause, EngineKind, Failure, Plan, Status};

/// The exit code of what a signal 9 ended.
const KILLED: i32 = 137;

/// The failure as a sentence, with what is likely behind it.
pub(super) fn sentence(plan: &Plan, failure: &Failure) -> String {
    let told = failure.sentence();
    match cause(plan, failure) {
        Some(cause) => format!("{told}: {cause}"),
        None => told,
    }
}

/// A warning about what failed first, where that is news. It is also told of tries that others follow.
pub(super) fn happening(plan: &Plan, prior: &Status, status: &Status) -> Option<Happening> {
    let failure = status.first_failure.as_ref()?;
    if prior.first_failure.as_ref() == Some(failure) {
        return None;
    }
    let mut message = sentence(plan, failure);
    let last = failure.ended.last_lines.iter().rev().map(|line| line.trim());
    if let Some(line) = last.filter(|line| !line.is_empty()).find(|line| !message.contains(line)) {
        message = format!("{message}; it said: {line}");
    }
    Some(Happening { is_warning: true, reason: "FirstFailure".to_owned(), message })
}

fn cause(plan: &Plan, failure: &Failure) -> Option<String> {
    let ended = &failure.ended;
    if plan.facts.engine != EngineKind::Kubernetes {
        return None;
    }
    let place = plan.hosts.iter().find(|host| host.name == failure.place());
    let group = place.or_else(|| plan.host(failure.member)).map(|host| plan.group_of(host))?;
    match (ended.cause, ended.rank.as_ref().and_then(|it| it.code).unwrap_or(ended.code)) {
        (Cause::Exited, 126 | 127) => {
            let Unrunnable { program, is_there, .. } = unrunnable(&ended.last_lines)?;
            let image = image(group)?;
            Some(match is_there || ended.code == 126 {
                true => format!("`{program}` cannot be executed in image {image}"),
                false => format!("there is no `{program}` in image {image}"),
            })
        }
        (Cause::Exited, KILLED) => {
            let limit = group.resources.limits.get("memory")?;
            Some(format!("perhaps for want of memory, its limit is {}", limit.as_str()))
        }
        (Cause::OutOfMemory, _) => {
            let limit = group.resources.limits.get("memory")?;
            Some(format!("its limit is {}", limit.as_str()))
        }
        (Cause::CannotStart | Cause::Evicted, _) => {
            ended.last_lines.first().map(|line| line.trim().to_owned())
        }
        _ => None,
    }
}

fn image(group: &Group) -> Option<&str> {
    match group.image.as_ref()? {
        Image::Container(name) | Image::AzureEnvironment(name) => Some(name),
    }
}

#[cfg(test)]
mod tests {
    use unisono_job::Quantity;

    use super::*;
    use crate::sample::{LAUNCHER, WORKER, ended, plan};
    use crate::{Ended, FailedRank, Member};

    fn told(member: Member, ended: Ended) -> String {
        let plan = plan(EngineKind::Kubernetes, |job| {
            job.groups[0].image = Some(Image::Container("lab/x:1".to_owned()));
            let memory = Quantity::parse("512Mi").expect("it is a quantity");
            job.groups[1].resources.limits.insert("memory".to_owned(), memory);
        });
        let host = plan.host(member).expect("it is planned").name.clone();
        let failure = Failure { epoch: 0, host, member, ended };
        let status = Status { first_failure: Some(failure), ..Status::default() };
        happening(&plan, &Status::default(), &status).expect("it is news").message
    }

    fn with_lines(ended: Ended, lines: &[&str]) -> Ended {
        Ended { last_lines: lines.iter().map(|&it| it.to_owned()).collect(), ..ended }
    }

    #[test]
    fn a_program_that_the_image_lacks_is_named() {
        let said = told(LAUNCHER, with_lines(ended(1, 127), &["sh: 1: mpirun: not found"]));
        assert_eq!(
            said,
            "sample-run-0 ended with exit code 127: a program was not found: there is no `mpirun` in image lab/x:1; \
             it said: sh: 1: mpirun: not found"
        );
        let said = told(LAUNCHER, with_lines(ended(1, 126), &["sh: 1: ./x: Permission denied"]));
        assert!(said.contains("`./x` cannot be executed in image lab/x:1"), "{said}");
    }

    #[test]
    fn a_rank_that_was_killed_under_a_limit_may_have_needed_more() {
        let host = Some("sample-work-1".to_owned());
        let rank = Some(FailedRank { rank: 3, host, code: Some(KILLED) });
        let said = told(LAUNCHER, Ended { rank, ..ended(1, 137) });
        assert_eq!(
            said,
            "rank 3 on sample-work-1 was ended by signal 9 (SIGKILL): perhaps for want of memory, its limit is 512Mi"
        );
        let said = told(WORKER, Ended { cause: Cause::OutOfMemory, ..ended(1, 137) });
        assert_eq!(said, "sample-work-0 ran out of memory: its limit is 512Mi");
    }

    #[test]
    fn what_was_told_is_not_told_again() {
        let plan = plan(EngineKind::Kubernetes, |_| {});
        let host = "sample-run-0".to_owned();
        let failure = Failure { epoch: 0, host, member: LAUNCHER, ended: ended(1, 3) };
        let status = Status { first_failure: Some(failure), ..Status::default() };
        assert_eq!(happening(&plan, &status, &status), None);
    }
}
