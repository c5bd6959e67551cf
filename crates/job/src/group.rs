//! A group: members of one kind, what they run, and what they need.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{Command, Quantity, RestartPolicy};

/// Members of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Group {
    /// The role: `launcher`, `worker`, or what an OpenPAI file calls it.
    pub name: String,
    /// How many members.
    pub replicas: u32,
    /// Rank slots on each member.
    pub slots: Slots,
    /// What the members run.
    pub runs: Runs,
    /// The image the file names. The local engine does not use it.
    pub image: Option<Image>,
    /// Limits and requests, per member.
    pub resources: Resources,
    /// Variables the file sets, in its order.
    pub env: Vec<EnvVar>,
    /// The working directory inside the host.
    pub working_dir: Option<String>,
    /// A folder that travels with the job and becomes the working directory.
    pub code: Option<CodeFolder>,
    /// Ports each member is promised.
    pub ports: Vec<PortRequest>,
    /// Size of `/dev/shm` in MiB, when the file states it.
    pub shm_mib: Option<u64>,
    /// Whether each member asks for the devices that its cluster has for RDMA, whatever those are called there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub rdma: bool,
    /// When this group ends the job.
    pub end: EndRule,
    /// The restart policy the file states for these members.
    pub restart: RestartPolicy,
    /// What only a Kubernetes engine can use.
    pub extras: Option<Extras>,
}

impl Group {
    /// A group with nothing but what every group has; it never ends the job.
    pub fn new(name: impl Into<String>, replicas: u32, slots: Slots, runs: Runs) -> Self {
        Self {
            name: name.into(),
            replicas,
            slots,
            runs,
            image: None,
            resources: Resources::default(),
            env: Vec::new(),
            working_dir: None,
            code: None,
            ports: Vec::new(),
            shm_mib: None,
            rdma: false,
            end: EndRule::NEVER,
            restart: RestartPolicy::Never,
            extras: None,
        }
    }
}

/// Rank slots on each member of a group, and how we know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Slots {
    /// How many ranks a member is meant to run. 0: it hosts none.
    pub count: u32,
    /// Which rule gave the count.
    pub from: SlotsFrom,
}

impl Slots {
    /// Slots the file states.
    pub const fn stated(count: u32) -> Self {
        Self { count, from: SlotsFrom::Stated }
    }

    /// A member that hosts no rank.
    pub const NONE: Self = Self { count: 0, from: SlotsFrom::Role };

    /// The rule for files that do not state slots: the GPU limit, else the ranks of the launch line spread evenly, else one.
    pub fn derived(gpus: u64, ranks: Option<u32>, hosts: u32) -> Self {
        if let Ok(count) = u32::try_from(gpus)
            && count > 0
        {
            return Self { count, from: SlotsFrom::Gpus };
        }
        match ranks {
            Some(ranks) if ranks > 0 && hosts > 0 => {
                Self { count: ranks.div_ceil(hosts), from: SlotsFrom::LaunchLine }
            }
            Some(_) | None => Self { count: 1, from: SlotsFrom::Default },
        }
    }
}

/// Which rule gave a slot count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlotsFrom {
    /// The file says so.
    Stated,
    /// One per GPU (or other processing unit) of the member.
    Gpus,
    /// The launch line's rank count, spread over the hosts.
    LaunchLine,
    /// The dialect's default.
    Default,
    /// The role hosts no ranks.
    Role,
}

/// What the members of a group run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Runs {
    /// Every member (there is one) runs the launch line, with the MPI variables set.
    Launch(Command),
    /// The first member runs the launch line; all of them host ranks.
    LaunchOnFirst(Command),
    /// Every member runs its own command, as OpenPAI's task roles do.
    Own(Command),
    /// The members only host ranks. A command, when there is one, runs beside them.
    Ranks(Option<Command>),
}

impl Runs {
    /// The launch line, where this group has it.
    pub const fn launch_line(&self) -> Option<&Command> {
        match self {
            Self::Launch(command) | Self::LaunchOnFirst(command) => Some(command),
            Self::Own(_) | Self::Ranks(_) => None,
        }
    }

    /// The command that stands in the file, whatever it is for.
    pub const fn command(&self) -> Option<&Command> {
        match self {
            Self::Launch(command) | Self::LaunchOnFirst(command) | Self::Own(command) => {
                Some(command)
            }
            Self::Ranks(command) => command.as_ref(),
        }
    }
}

/// The image of a group's members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Image {
    /// A container image reference.
    Container(String),
    /// An Azure ML environment, `azureml:NAME:VERSION` or `azureml:NAME@LABEL`; settings map it to an image.
    AzureEnvironment(String),
}

/// Limits and requests by resource name (`cpu`, `memory`, `nvidia.com/gpu`, …), per member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Resources {
    /// The most a member may use.
    pub limits: BTreeMap<String, Quantity>,
    /// What a member is promised.
    pub requests: BTreeMap<String, Quantity>,
}

impl Resources {
    /// GPUs of one member: the largest whole number among limits whose name ends in `gpu`.
    pub fn gpus(&self) -> u64 {
        self.limits
            .iter()
            .filter(|(name, _)| name.ends_with("/gpu") || *name == "gpu")
            .map(|(_, quantity)| quantity.whole())
            .max()
            .unwrap_or(0)
    }
}

/// A variable of the members' environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EnvVar {
    /// Its name.
    pub name: String,
    /// Its value; absent when only Kubernetes can tell it (`valueFrom`).
    pub value: Option<String>,
}

/// A folder of the user's that becomes the working directory on every host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CodeFolder {
    /// As the file has it: relative to the file, absolute, or a remote address.
    pub path: String,
}

/// Where the files of a [`CodeFolder`] are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeSource<'job> {
    /// In a folder, or at an address, that only the user's machine knows.
    Path(&'job str),
    /// In ConfigMaps `NAME-0`, `NAME-1`, …: the pieces of one archive.
    Pieces {
        /// What their names begin with.
        name: &'job str,
        /// How many.
        count: u32,
    },
    /// In a folder of a volume.
    Volume {
        /// The volume's claim.
        claim: &'job str,
        /// The folder in it; empty: all of it.
        folder: &'job str,
    },
}

impl CodeFolder {
    /// The most pieces that one archive has: four times what the largest needs. Every pod names each of them.
    pub const MOST_PIECES: u32 = 64;

    /// Code that is in ConfigMaps: written as `configmaps:NAME:COUNT`.
    pub fn pieces(name: &str, count: u32) -> Self {
        Self { path: format!("configmaps:{name}:{count}") }
    }

    /// Code that is in a volume: written as `claim:NAME/FOLDER`.
    pub fn volume(claim_and_folder: &str) -> Self {
        Self { path: format!("claim:{claim_and_folder}") }
    }

    /// Where the files are.
    pub fn source(&self) -> CodeSource<'_> {
        let pieces = self.path.strip_prefix("configmaps:").and_then(|rest| rest.split_once(':'));
        if let Some((name, count)) = pieces
            && let Ok(count) = count.parse()
        {
            return CodeSource::Pieces { name, count };
        }
        match self.path.strip_prefix("claim:") {
            Some(rest) => {
                let (claim, folder) = rest.split_once('/').unwrap_or((rest, ""));
                CodeSource::Volume { claim, folder }
            }
            None => CodeSource::Path(&self.path),
        }
    }
}

/// Ports promised to each member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PortRequest {
    /// The name under which the member finds them.
    pub label: String,
    /// The first port, when the file fixes it.
    pub begin_at: Option<u16>,
    /// How many.
    pub count: u16,
}

/// When a group ends the job. Counts are of members that run something of their own; absent means never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EndRule {
    /// This many failed members fail the job.
    pub min_failed: Option<u32>,
    /// This many succeeded members make the job succeed.
    pub min_succeeded: Option<u32>,
}

impl EndRule {
    /// The first end decides, either way: a launcher.
    pub const FIRST: Self = Self { min_failed: Some(1), min_succeeded: Some(1) };
    /// The group never ends the job by itself.
    pub const NEVER: Self = Self { min_failed: None, min_succeeded: None };
}

/// The parts of a pod template that the neutral model does not hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Extras {
    /// The whole template as JSON text, as written (or as the dialect's rules change it for this group); only the
    /// Kubernetes engine reads it.
    pub template: String,
    /// Paths inside the template that have no effect outside Kubernetes, in document order.
    pub kubernetes_only: Vec<String>,
    /// Which of the template's containers runs what the group runs.
    pub container: usize,
    /// Where the job's ssh keys are mounted, when the file states it.
    pub ssh_auth_path: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_come_from_gpus_before_the_launch_line_before_one() {
        assert_eq!(Slots::derived(4, Some(6), 3), Slots { count: 4, from: SlotsFrom::Gpus });
        assert_eq!(Slots::derived(0, Some(7), 3), Slots { count: 3, from: SlotsFrom::LaunchLine });
        assert_eq!(Slots::derived(0, None, 3), Slots { count: 1, from: SlotsFrom::Default });
        assert_eq!(Slots::derived(0, Some(4), 0), Slots { count: 1, from: SlotsFrom::Default });
    }

    #[test]
    fn code_is_found_where_it_was_put() {
        let source = |code: &CodeFolder| format!("{:?}", code.source());
        let pieces = CodeFolder::pieces("ring-code", 3);
        assert_eq!(pieces.source(), CodeSource::Pieces { name: "ring-code", count: 3 });
        let volume = CodeFolder::volume("data/src/ring");
        assert_eq!(volume.source(), CodeSource::Volume { claim: "data", folder: "src/ring" });
        for path in ["./src", "hdfs://x/y", "configmaps:odd"] {
            let code = CodeFolder { path: path.to_owned() };
            assert_eq!(code.source(), CodeSource::Path(path), "{}", source(&code));
        }
    }

    #[test]
    fn gpus_are_counted_from_limits_of_any_vendor() {
        let limits = [("amd.com/gpu", "2"), ("cpu", "8"), ("example.com/fpga", "3")]
            .map(|(name, text)| (name.to_owned(), Quantity::parse(text).unwrap()));
        let resources = Resources { limits: limits.into(), requests: BTreeMap::new() };
        assert_eq!(resources.gpus(), 2);
    }
}
