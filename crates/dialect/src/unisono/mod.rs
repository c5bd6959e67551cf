//! `UnisonoJob`: the neutral job as a Kubernetes object, with as many kinds of member as a job needs.
//!
//! Whatever the neutral model holds can be written here and read back: this is the dialect other jobs are lowered onto.
//! A converted job keeps its dialect as `writtenFor`, because host names, variables and files follow it.
//! Only how a value came to be known (origins, `Slots::from`, `MpiChoice::from`) is not carried: in the new file it is
//! stated, or follows from the same rule.

mod fields;
mod group;
mod policy;
#[cfg(test)]
mod roundtrip;
mod template;
mod words;
mod writer;

use std::collections::{BTreeMap, HashSet};

use unisono_job::{
    Dialect, Group, Job, JobName, LaunchRights, MpiChoice, MpiFrom, Note, Origins, Runs, Secrets,
    Slots, SlotsFrom,
};

use crate::check::{Leniency, check};
use crate::kubernetes::LAST_APPLIED;
use crate::shape::Shape;
use crate::tree::Node;
use crate::{Document, Options, codes};

pub(crate) use writer::write;

/// A job whose name no Kubernetes object can have keeps it in this annotation.
const NAME_ANNOTATION: &str = "unisono.dev/job-name";

/// The field table.
pub(crate) const fn shape() -> &'static Shape {
    &fields::JOB
}

/// The job of a document, and what there is to tell about it.
pub(crate) fn lower(document: &Document<'_>, _options: &Options) -> (Option<Job>, Vec<Note>) {
    let mut notes = check(document, shape(), Leniency::default());
    // Values of the wrong type would only lead to faults that are none.
    if notes.iter().any(Note::is_fault) {
        return (None, notes);
    }
    let mut reader = Reader { document, notes: Vec::new(), origins: Origins::default() };
    let job = reader.job();
    notes.append(&mut reader.notes);
    (job, notes)
}

/// Turns a checked document into a job, and remembers where values stood.
struct Reader<'document> {
    document: &'document Document<'document>,
    notes: Vec<Note>,
    origins: Origins,
}

impl Reader<'_> {
    fn job(&mut self) -> Option<Job> {
        let root = &self.document.root;
        let mut annotations = text_map(root.at(&["metadata", "annotations"]));
        annotations.remove(LAST_APPLIED);
        let name_node = root.at(&["metadata", "name"])?;
        let written_name = annotations.remove(NAME_ANNOTATION);
        let name = JobName::new(written_name.or_else(|| text(name_node))?)
            .map_err(|error| self.tell(Note::new(&codes::BAD_FORM, error.to_string()), name_node))
            .ok();
        self.remember("name", Some(name_node));

        let spec = root.at(&["spec"])?;
        let group_nodes = spec.at(&["groups"])?.items();
        let mut groups: Vec<Group> = group_nodes.iter().filter_map(|it| self.group(it)).collect();
        if groups.len() != group_nodes.len() {
            return None;
        }
        self.check_names(&groups, group_nodes);
        self.check_roles(&groups, group_nodes);
        derive_slots(&mut groups, group_nodes);
        let policies = self.policies(spec.at(&["policies"]), &groups);
        let launches = groups.iter().any(|group| group.runs.launch_line().is_some());
        self.remember("mpi", spec.at(&["mpi"]));
        self.remember("launch_rights", spec.at(&["launchRights"]));
        Some(Job {
            name: name?,
            namespace: root.at(&["metadata", "namespace"]).and_then(text),
            dialect: spec
                .at(&["writtenFor"])
                .and_then(Node::text)
                .and_then(Dialect::from_name)
                .unwrap_or(Dialect::Unisono),
            experiment: spec.at(&["experiment"]).and_then(text),
            labels: text_map(root.at(&["metadata", "labels"])),
            annotations,
            mpi: mpi(spec.at(&["mpi"]), &groups),
            launch_rights: choice(spec.at(&["launchRights"]), &words::LAUNCH_RIGHTS)
                .unwrap_or_else(|| default_rights(launches)),
            groups,
            policies,
            secrets: Secrets::default(),
            origins: std::mem::take(&mut self.origins),
        })
    }

    fn check_names(&mut self, groups: &[Group], nodes: &[Node]) {
        let mut seen = HashSet::new();
        for (group, node) in groups.iter().zip(nodes) {
            if !seen.insert(group.name.as_str()) {
                let message = format!("two groups are called `{}`", group.name);
                let note = Note::new(&codes::INVALID, message)
                    .hint("give each group its own name: host names are made from it");
                self.tell(note, node.get("name").unwrap_or(node));
            }
        }
    }

    /// One launch line starts the ranks of all groups; or every group starts its own.
    fn check_roles(&mut self, groups: &[Group], nodes: &[Node]) {
        let pairs = || groups.iter().zip(nodes);
        let mut launching = pairs().filter(|(group, _)| group.runs.launch_line().is_some());
        let Some((first, _)) = launching.next() else {
            let idle = pairs().filter(|(group, _)| matches!(group.runs, Runs::Ranks(_)));
            for (group, node) in idle {
                let message = format!(
                    "no group runs a launch line, so nothing starts ranks in group `{}`",
                    group.name
                );
                let note = Note::new(&codes::INVALID, message).hint(
                    "give one group `run: Launch` or `run: LaunchOnFirst` with the mpirun line, or every group `run: Command`",
                );
                self.tell(note, node.get("run").unwrap_or(node));
            }
            return;
        };
        for (second, node) in launching {
            let message = format!(
                "group `{}` has a launch line, but so has group `{}`",
                second.name, first.name
            );
            let note = Note::new(&codes::INVALID, message)
                .hint("a job has one launch line; make this group `run: Ranks` or `run: Command`");
            self.tell(note, node.get("run").unwrap_or(node));
        }
    }

    fn remember(&mut self, key: impl Into<String>, node: Option<&Node>) {
        if let Some(node) = node {
            self.origins.set(key, self.document.place(node));
        }
    }

    fn tell(&mut self, note: Note, node: &Node) {
        self.notes.push(self.document.note(note, node));
    }
}

const fn default_rights(launches: bool) -> LaunchRights {
    if launches { LaunchRights::Launcher } else { LaunchRights::Everybody }
}

/// The flavour the file states, else the one to which the launch line's options belong.
fn mpi(stated: Option<&Node>, groups: &[Group]) -> MpiChoice {
    if let Some(flavour) = choice(stated, &words::MPI) {
        return MpiChoice { flavour: Some(flavour), from: MpiFrom::Stated };
    }
    inferred_mpi(groups)
}

fn inferred_mpi(groups: &[Group]) -> MpiChoice {
    let commands = groups.iter().filter_map(|group| group.runs.command());
    match commands.filter_map(unisono_job::Command::launch_line).find_map(|line| line.flavour) {
        Some(flavour) => MpiChoice { flavour: Some(flavour), from: MpiFrom::LaunchLine },
        None => MpiChoice { flavour: None, from: MpiFrom::Unknown },
    }
}

/// Gives every group without `slots` the count that the general rule finds.
fn derive_slots(groups: &mut [Group], nodes: &[Node]) {
    let rule = SlotRule::of(groups);
    for (group, node) in groups.iter_mut().zip(nodes) {
        if node.at(&["slots"]).is_none() {
            group.slots = rule.slots(group);
        }
    }
}

/// What the slots of a group follow from when nobody states them.
struct SlotRule {
    ranks: Option<u32>,
    hosts: u32,
}

impl SlotRule {
    fn of(groups: &[Group]) -> Self {
        let launch_line = groups.iter().find_map(|group| group.runs.launch_line());
        let hosting = groups.iter().filter(|group| hosts_ranks(group));
        Self {
            ranks: launch_line.and_then(|it| it.launch_line()).and_then(|line| line.ranks),
            hosts: hosting.fold(0, |hosts, group| hosts.saturating_add(group.replicas)),
        }
    }

    fn slots(&self, group: &Group) -> Slots {
        match group.runs {
            Runs::Launch(_) => Slots::NONE,
            Runs::Own(_) if group.resources.gpus() == 0 => {
                Slots { count: 1, from: SlotsFrom::Default }
            }
            Runs::LaunchOnFirst(_) | Runs::Own(_) | Runs::Ranks(_) => {
                Slots::derived(group.resources.gpus(), self.ranks, self.hosts)
            }
        }
    }
}

const fn hosts_ranks(group: &Group) -> bool {
    matches!(group.runs, Runs::LaunchOnFirst(_) | Runs::Ranks(_))
}

fn text(node: &Node) -> Option<String> {
    node.text().map(str::to_owned)
}

fn choice<T: Copy>(node: Option<&Node>, words: &[(&'static str, T)]) -> Option<T> {
    node.and_then(Node::text).and_then(|word| words::meaning(words, word))
}

fn text_map(node: Option<&Node>) -> BTreeMap<String, String> {
    let entries = node.map(Node::entries).unwrap_or_default();
    entries.iter().filter_map(|entry| Some((entry.key.clone(), text(&entry.node)?))).collect()
}

#[cfg(test)]
mod tests;
