//! How a host's container starts: behind the agent, after a wait, or as its image wants.

use serde_json::{Value, json};
use unisono_job::{Dialect, System};
use unisono_plan::only_sshd::is_sshd;
use unisono_plan::{Argv, FileContent, Host, HostRuns, Plan, hostfile};

use super::template::{Template, list_in};
use super::{Rendering, answers, everybody_launches};
use crate::marks::{self, AGENT_FILES, HOME};

/// `ready` never gives up by itself: a slow start is no failure. Ten years, in seconds.
const FOR_EVER: &str = "315360000";

/// The file that says how the job ended.
pub(super) const END_FILE: &str = "end";

/// How a host's container starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// The agent answers; the template's command, where it has one that is not only an sshd, runs beside it.
    Serve { beside: bool },
    /// The agent answers until the job is over, and the pod ends as the job did.
    ServeToTheEnd,
    /// The command, when every host answers; `serves` while others may start ranks here too.
    Ready { serves: bool },
    /// The image's own entry point, after an init container has waited for every host.
    KeptAfterWait,
    /// The image's own entry point.
    Kept,
}

impl Start {
    pub(super) fn of(plan: &Plan, host: &Host) -> Self {
        let argv = &plan.program_of(host).argv;
        match (host.runs, argv) {
            (HostRuns::Ranks, Argv::ImageEntry(_)) => Self::Kept,
            (HostRuns::Ranks, _) if plan.reaches_by_ssh() => Self::Kept,
            (HostRuns::Ranks, Argv::Words(words)) => Self::Serve { beside: !is_sshd(words) },
            (HostRuns::Ranks, Argv::Nothing) if plan.job.dialect == Dialect::KubeBatch => {
                Self::ServeToTheEnd
            }
            (HostRuns::Ranks, Argv::Nothing) => Self::Serve { beside: false },
            (_, Argv::Words(_)) => Self::Ready { serves: answers(plan, host) },
            (_, Argv::ImageEntry(_) | Argv::Nothing) => Self::KeptAfterWait,
        }
    }

    /// Whether the host's agent answers launches.
    pub(super) const fn serves(self) -> bool {
        matches!(self, Self::Serve { .. } | Self::ServeToTheEnd | Self::Ready { serves: true })
    }

    /// Puts the agent in front of the template's own words, which stay as they are: the kubelet still expands them.
    pub(super) fn wrap(self, template: &mut Template, ready: Vec<String>) {
        let agent = format!("{HOME}/unisono-agent");
        let mut words = vec![agent.clone()];
        let mut keeps_own = true;
        match self {
            Self::Kept | Self::KeptAfterWait => return,
            Self::Serve { beside } => {
                words.push("serve".to_owned());
                words.extend(beside.then(|| "--".to_owned()));
                keeps_own = beside;
            }
            Self::ServeToTheEnd => {
                let file = format!("{AGENT_FILES}/{END_FILE}");
                words.extend(["serve", "--", &agent, "end-with", &file].map(str::to_owned));
                keeps_own = false;
            }
            Self::Ready { serves } => {
                if serves {
                    words.extend(["serve".to_owned(), "--".to_owned(), agent]);
                }
                words.extend(ready);
                words.extend(["--last-words".to_owned(), template.termination_message_path()]);
                words.push("--".to_owned());
            }
        }
        let container = template.container();
        let command = list_in(container, "command");
        if !keeps_own {
            command.clear();
        }
        command.splice(0..0, words.into_iter().map(Value::from));
        if !keeps_own {
            container.shift_remove("args");
        }
    }
}

/// `ready` with its options, without a command. The kubelet puts the pod's uid in.
pub(super) fn ready(rendering: &Rendering<'_>, host: &Host, epoch: u32) -> Vec<String> {
    let plan = rendering.plan;
    let epoch = epoch.to_string();
    let identity = rendering.table_identity("$(UNISONO_POD_UID)");
    let tags = plan.job.annotations.get(marks::TAG_OUTPUT).is_some_and(|it| it == "true");
    let launchers = if tags { format!("{HOME}/launchers:") } else { String::new() };
    let path = format!("{launchers}{HOME}/bin");
    let mut words: Vec<String> = ["ready", "--identity", identity, "--epoch", &epoch]
        .into_iter()
        .chain(["--name", &host.name, "--timeout", FOR_EVER])
        .map(str::to_owned)
        .collect();
    if plan.reaches_by_ssh() {
        return words;
    }
    words.extend(["--path".to_owned(), path]);
    if everybody_launches(plan) {
        // Commands are let go when every host is up. One that has ended since, as quick tasks do, is nobody to wait for.
        words.push("--once".to_owned());
    }
    if plan.job.dialect.system() == System::OpenPai {
        // Its users name hosts in launch lines, and Open MPI wants to find them in the host file.
        words.extend(["--by", "name"].map(str::to_owned));
    }
    for file in &plan.program_of(host).files {
        let option = match file.content {
            FileContent::Hostfile(hostfile::Form::Slots) => "--hostfile",
            FileContent::Hostfile(hostfile::Form::Colon) => "--hydra-hostfile",
            FileContent::Hostfile(hostfile::Form::Bare) => "--bare-hostfile",
            FileContent::DiscoverHosts { .. } | FileContent::Text(_) => continue,
        };
        words.extend([option.to_owned(), file.path.clone()]);
    }
    words
}

/// The variable by which `ready` knows its own pod.
pub(super) fn pod_uid() -> Value {
    json!({"name": "UNISONO_POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}})
}
