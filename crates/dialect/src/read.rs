//! The way in: bytes or an API object → jobs and everything there is to tell about them.

use unisono_job::{Dialect, Job, Note};

use crate::detect::{Found, detect, schema};
use crate::tree::{Document, Node};
use crate::{Source, codes, json, object, scalar, yaml};

/// What reading depends on besides the file.
#[derive(Clone, Debug)]
pub struct Options {
    /// GPUs (or other processing units) of one node, for Kubeflow v1alpha1; the published manifests set 8.
    pub gpus_per_node: u32,
    /// What a processing unit is where Kubeflow v1alpha1 does not say it.
    pub processing_unit: ProcessingUnit,
    /// Whether the cluster offers Azure's RDMA devices (OpenPAI's `paiAzRDMA`).
    pub az_rdma: bool,
    /// The name for jobs whose dialect does not need one; most often the file's own name.
    pub fallback_name: String,
}

/// What the processing units of a Kubeflow v1alpha1 job are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProcessingUnit {
    /// GPUs.
    #[default]
    Gpu,
    /// CPUs.
    Cpu,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            gpus_per_node: 8,
            processing_unit: ProcessingUnit::Gpu,
            az_rdma: false,
            fallback_name: "job".to_owned(),
        }
    }
}

/// One document of a file, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The dialect it is written in; absent when nothing tells.
    pub dialect: Option<Dialect>,
    /// The job; absent when a fault stands in its way.
    pub job: Option<Job>,
    /// Faults, warnings and notes, in the order of the file.
    pub notes: Vec<Note>,
}

/// Reads a file. Every document that is a job, or should be one, gives one reading; there is always at least one.
pub fn read(bytes: &[u8], options: &Options) -> Vec<Reading> {
    let source = match Source::new(bytes) {
        Ok(source) => source,
        Err(fault) => return vec![Reading::refused(fault)],
    };
    let documents =
        if json::is_json(source.text()) { vec![json::read(&source)] } else { yaml::read(&source) };
    let mut readings = Vec::new();
    let mut skipped = Vec::new();
    for document in documents {
        let has_faults = document.faults.iter().any(Note::is_fault);
        let Some(root) = document.root.filter(|_| !has_faults) else {
            let mut notes = document.faults;
            if !has_faults {
                notes.push(Note::new(&codes::EMPTY, "the file holds only comments"));
            }
            readings.push(Reading { dialect: None, job: None, notes });
            continue;
        };
        let before = readings.len();
        read_tree(Some(&source), root, options, &mut readings, &mut skipped);
        if let Some(first) = readings.get_mut(before) {
            first.notes.splice(0..0, document.faults);
        }
    }
    attach_skipped(readings, skipped)
}

/// Reads an object of a cluster.
pub fn read_object(object: &serde_json::Value, options: &Options) -> Reading {
    let document = object::document_from_object(object);
    let (mut readings, mut skipped) = (Vec::new(), Vec::new());
    read_tree(None, document.root, options, &mut readings, &mut skipped);
    attach_skipped(readings, skipped).remove(0)
}

/// The Kubernetes objects of a file, as a client gives them to a cluster: lists taken apart, scalars read as Kubernetes
/// reads them. Documents that are no objects are left out, and so is what cannot be read: [`read`] tells why.
pub fn kubernetes_objects(bytes: &[u8]) -> Vec<serde_json::Value> {
    let Ok(source) = Source::new(bytes) else { return Vec::new() };
    let documents =
        if json::is_json(source.text()) { vec![json::read(&source)] } else { yaml::read(&source) };
    let mut objects = Vec::new();
    for mut root in documents.into_iter().filter_map(|document| document.root) {
        scalar::resolve(&mut root, scalar::Schema::Yaml11);
        collect_objects(&root, &mut objects);
    }
    objects
}

fn collect_objects(root: &Node, objects: &mut Vec<serde_json::Value>) {
    match detect(root) {
        Found::List(items) => items.iter().for_each(|item| collect_objects(item, objects)),
        _ if root.get("apiVersion").is_some() && root.get("kind").is_some() => {
            objects.push(root.to_json());
        }
        Found::Job(_) | Found::OtherObject(_) | Found::Refused(_) => {}
    }
}

impl Reading {
    fn refused(fault: Note) -> Self {
        Self { dialect: None, job: None, notes: vec![fault] }
    }

    /// Whether a fault stands in the way of the job.
    pub fn has_faults(&self) -> bool {
        self.notes.iter().any(Note::is_fault)
    }
}

fn read_tree(
    source: Option<&Source<'_>>,
    mut root: Node,
    options: &Options,
    readings: &mut Vec<Reading>,
    skipped: &mut Vec<Note>,
) {
    match detect(&root) {
        Found::List(items) => {
            for item in items.iter().cloned() {
                read_tree(source, item, options, readings, skipped);
            }
        }
        Found::OtherObject(note) => {
            skipped.push(Document { source, root: root.clone() }.note(note, &root));
        }
        Found::Refused(fault) => {
            let fault = Document { source, root: root.clone() }.note(fault, &root);
            readings.push(Reading::refused(fault));
        }
        Found::Job(dialect) => {
            scalar::resolve(&mut root, schema(dialect));
            let document = Document { source, root };
            readings.push(lower(dialect, &document, options));
        }
    }
}

/// Notes about skipped documents go with the first job; without any job they are the fault.
fn attach_skipped(mut readings: Vec<Reading>, skipped: Vec<Note>) -> Vec<Reading> {
    match readings.first_mut() {
        Some(first) => first.notes.extend(skipped),
        None => {
            let fault = Note::new(&codes::NO_JOB, "the file holds no MPI job")
                .hint("`unisono explain unknown-document` lists what Unisono reads");
            let notes = std::iter::once(fault).chain(skipped).collect();
            readings.push(Reading { dialect: None, job: None, notes });
        }
    }
    readings
}

/// Hands the document to its dialect.
fn lower(dialect: Dialect, document: &Document<'_>, options: &Options) -> Reading {
    let (job, notes): (Option<Job>, Vec<Note>) = match dialect {
        Dialect::AzureMpiJob | Dialect::AzureFlat | Dialect::AzureCommand => {
            crate::azureml::lower(dialect, document, options)
        }
        Dialect::OpenPaiV1 | Dialect::OpenPaiV2 => {
            crate::openpai::lower(dialect, document, options)
        }
        Dialect::KubeflowV1alpha1
        | Dialect::KubeflowV1alpha2
        | Dialect::KubeflowV1
        | Dialect::KubeflowV2beta1 => crate::kubeflow::lower(dialect, document, options),
        Dialect::KubeBatch => crate::kube_batch::lower(document, options),
        Dialect::Unisono => crate::unisono::lower(document, options),
    };
    let job = job.filter(|_| !notes.iter().any(Note::is_fault));
    Reading { dialect: Some(dialect), job, notes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_of_a_file_are_those_a_cluster_is_given() {
        let file = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data: {answer: no, mode: '0777'}
---
name: azure
command: x
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Secret, metadata: {name: b}}
";
        let objects = kubernetes_objects(file.as_bytes());
        let kinds: Vec<_> = objects.iter().map(|it| it["kind"].as_str()).collect();
        assert_eq!(kinds, [Some("ConfigMap"), Some("Secret")]);
        assert_eq!(objects[0]["data"]["answer"], false);
        assert_eq!(objects[0]["data"]["mode"], "0777");
        assert_eq!(kubernetes_objects(b"{\"a\": [}"), [] as [serde_json::Value; 0]);
    }
}
