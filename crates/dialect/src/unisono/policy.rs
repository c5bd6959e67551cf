//! `spec.policies` into the rules of a job's life.

use unisono_job::{Gang, Group, Note, Policies, Retry, RetryCount};

use super::group::number;
use super::{Reader, choice, text, words};
use crate::codes;
use crate::kubernetes::quantities;
use crate::tree::Node;

impl Reader<'_> {
    pub(super) fn policies(&mut self, node: Option<&Node>, groups: &[Group]) -> Policies {
        let Some(node) = node else { return Policies::default() };
        let defaults = Policies::default();
        for (key, field) in [
            ("deadline", "deadlineSeconds"),
            ("clean_up", "cleanUp"),
            ("ttl", "ttlSecondsAfterFinished"),
            ("suspend", "suspend"),
            ("gang", "gang"),
        ] {
            self.remember(format!("policies.{key}"), node.at(&[field]));
        }
        Policies {
            retry: self.retry(node).unwrap_or(defaults.retry),
            gang_restarts: number(node.at(&["gangRestarts"])).unwrap_or(defaults.gang_restarts),
            deadline_seconds: number(node.at(&["deadlineSeconds"])),
            clean_up: choice(node.at(&["cleanUp"]), &words::CLEAN_UP).unwrap_or(defaults.clean_up),
            ttl_seconds: number(node.at(&["ttlSecondsAfterFinished"])),
            suspend: node.at(&["suspend"]).and_then(Node::boolean).unwrap_or(defaults.suspend),
            managed_by: node.at(&["managedBy"]).and_then(text),
            launcher_start: choice(node.at(&["launcherStart"]), &words::LAUNCHER_START)
                .unwrap_or(defaults.launcher_start),
            gang: self.gang(node.at(&["gang"]), groups),
        }
    }

    fn retry(&mut self, node: &Node) -> Option<Retry> {
        let backoff = node.at(&["backoffLimit"]);
        let classes = node.at(&["retryCount"]);
        self.remember("policies.retry", backoff.or(classes));
        if let (Some(_), Some(classes)) = (backoff, classes) {
            let note = Note::new(&codes::INVALID, "`retryCount` stands beside `backoffLimit`")
                .hint("they are two ways to count retries: keep one of them");
            self.tell(note, classes);
        }
        if let Some(limit) = number(backoff) {
            return Some(Retry::Backoff { limit });
        }
        match number::<i64>(classes)? {
            -2 => Some(Retry::ByClass(RetryCount::Always)),
            -1 => Some(Retry::ByClass(RetryCount::UntilSuccess)),
            count => u32::try_from(count).ok().map(|it| Retry::ByClass(RetryCount::Limited(it))),
        }
    }

    fn gang(&mut self, node: Option<&Node>, groups: &[Group]) -> Gang {
        let Some(node) = node else { return Gang::default() };
        let min_members = number(node.at(&["minMembers"]));
        let members: u64 = groups.iter().map(|group| u64::from(group.replicas)).sum();
        if let (Some(place), Some(least)) = (node.at(&["minMembers"]), min_members)
            && u64::from(least) > members
        {
            let message =
                format!("the gang of {least} never fits: the job has {members} members in all");
            let note = Note::new(&codes::INVALID, message)
                .hint(format!("write at most {members}, or leave `minMembers` out"));
            self.tell(note, place);
        }
        Gang {
            min_members,
            queue: node.at(&["queue"]).and_then(text),
            priority_class: node.at(&["priorityClass"]).and_then(text),
            min_resources: quantities(node.at(&["minResources"])),
            schedule_timeout_seconds: number(node.at(&["scheduleTimeoutSeconds"])),
        }
    }
}
