//! What lowering any Kubernetes object has in common: its notes, its origins, its name, and the job they end up in.

use unisono_job::{
    Command, Dialect, EndRule, Extras, Flavour, Group, Job, MpiChoice, MpiFrom, Note, Policies,
    RestartPolicy, Runs, Slots,
};

use super::metadata::{Identity, identity};
use super::template::lift;
use crate::check::{Leniency, check};
use crate::codes;
use crate::kubeflow::codes as own;
use crate::notebook::Notebook;
use crate::shape::Shape;
use crate::tree::{Document, Node};

/// A document on its way to a job.
pub(crate) struct Lowering<'document> {
    pub(crate) document: &'document Document<'document>,
    identity: Identity,
    notebook: Notebook<'document>,
}

/// What a dialect's own rules make of a document.
pub(crate) struct Body {
    pub(crate) mpi: MpiChoice,
    pub(crate) groups: Vec<Group>,
    pub(crate) policies: Policies,
}

/// What a group is besides its template.
pub(crate) struct Role {
    pub(crate) name: &'static str,
    pub(crate) replicas: u32,
    pub(crate) slots: Slots,
    pub(crate) end: EndRule,
    pub(crate) restart: RestartPolicy,
    /// Which container of the template counts.
    pub(crate) container: usize,
    pub(crate) ssh_auth_path: Option<String>,
}

impl<'document> Lowering<'document> {
    /// Checks the document against its field table and reads who it is. The hint says what to do about a key that the
    /// table does not have but the caller knows, by its path.
    pub(crate) fn new(
        document: &'document Document<'document>,
        shape: &'static Shape,
        hint: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let mut notes = check(document, shape, Leniency::default());
        for note in notes.iter_mut().filter(|note| *note.code == codes::UNKNOWN_KEY) {
            let better = note.place.as_ref().and_then(|place| hint(&place.path));
            note.hint = better.or_else(|| note.hint.take());
        }
        let (identity, fault) = identity(document);
        notes.extend(fault);
        let notebook = Notebook::new(document, notes);
        let mut lowering = Self { document, identity, notebook };
        lowering.remember("name", document.root.at(&["metadata", "name"]));
        lowering
    }

    /// The object's name, where it has one that can be used.
    pub(crate) fn name(&self) -> Option<&str> {
        self.identity.name.as_ref().map(|it| it.as_str())
    }

    /// An annotation of the object.
    pub(crate) fn annotation(&self, key: &str) -> Option<&str> {
        self.identity.annotations.get(key).map(String::as_str)
    }

    /// Tells something about a value.
    pub(crate) fn tell(&mut self, note: Note, node: &Node) {
        self.notebook.tell(note, node);
    }

    /// Remembers where a value of the job stood.
    pub(crate) fn remember(&mut self, key: impl Into<String>, node: Option<&Node>) {
        self.notebook.origin(key, node);
    }

    /// Remembers where the command of a group's container stood.
    pub(crate) fn remember_command(&mut self, group: &str, template: &Node, container: usize) {
        let containers = template.at(&["spec", "containers"]).map(Node::items).unwrap_or_default();
        if let Some(main) = containers.get(container) {
            let node = main.at(&["command"]).or_else(|| main.at(&["args"])).unwrap_or(main);
            self.remember(format!("{group}.command"), Some(node));
        }
    }

    /// A group made of a pod template, with what its members run decided by the caller.
    pub(crate) fn group(
        &self,
        role: Role,
        template: &Node,
        runs: impl FnOnce(Option<Command>) -> Runs,
    ) -> Group {
        let Role { name, replicas, slots, end, restart, container, ssh_auth_path } = role;
        let lifted = lift(template, container);
        Group {
            image: lifted.image,
            resources: lifted.resources,
            env: lifted.env,
            working_dir: lifted.working_dir,
            shm_mib: lifted.shm_mib,
            end,
            restart,
            extras: Some(Extras {
                template: template.to_json().to_string(),
                kubernetes_only: lifted.kubernetes_only,
                container,
                ssh_auth_path,
            }),
            ..Group::new(name, replicas, slots, runs(lifted.command))
        }
    }

    /// The MPI that the file states, else the one whose options the launch line has, else the dialect's own.
    pub(crate) fn mpi(
        &mut self,
        stated: Option<(&Node, Flavour)>,
        command: &Command,
        default: Flavour,
    ) -> MpiChoice {
        let launched = command.launch_line().and_then(|line| line.flavour);
        let Some((node, flavour)) = stated else {
            return match launched {
                Some(flavour) => MpiChoice { flavour: Some(flavour), from: MpiFrom::LaunchLine },
                None => MpiChoice { flavour: Some(default), from: MpiFrom::Default },
            };
        };
        // Intel MPI and MPICH start ranks in the same way and share most options.
        let is_open_mpi = |it: Flavour| it == Flavour::OpenMpi;
        if let Some(other) = launched
            && is_open_mpi(other) != is_open_mpi(flavour)
        {
            let message = format!(
                "the file states {}, but the launch line has options of {}",
                flavour.name(),
                other.name()
            );
            let hint = format!("state {} here, or change the launch line", other.name());
            self.tell(Note::new(&own::MPI_MISMATCH, message).hint(hint), node);
        }
        self.remember("mpi", Some(node));
        MpiChoice { flavour: Some(flavour), from: MpiFrom::Stated }
    }

    /// The job, when nothing is missing, and all notes in the order of the file.
    pub(crate) fn finish(self, dialect: Dialect, body: Option<Body>) -> (Option<Job>, Vec<Note>) {
        let (notes, origins) = self.notebook.finish();
        let Identity { name, namespace, labels, annotations } = self.identity;
        let job = name.zip(body).map(|(name, Body { mpi, groups, policies })| Job {
            namespace,
            labels,
            annotations,
            mpi,
            policies,
            origins,
            ..Job::new(name, dialect, groups)
        });
        (job, notes)
    }
}
