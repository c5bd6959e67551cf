//! From a job file to what a cluster is given: objects as they stand, and jobs of other systems as a UnisonoJob with their code.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use unisono_dialect::{Options, Reading, kubernetes_objects, read_object, write};
use unisono_job::{CodeFolder, CodeSource, Dialect, Image, Job, Note, label_from};
use unisono_k8s::marks;

use super::code::{self, CodeError, Packed};
use super::codes::CODE_STAYS;
use super::translate::{translate, without_image};
use crate::error::Error;
use crate::job_file::JobFile;
use crate::settings::{Origin, Settings, Sourced};

/// What a cluster is given.
#[derive(Debug, Default)]
pub(super) struct Submission {
    /// Objects in the order in which they are given.
    pub(super) items: Vec<Item>,
    /// What there is to tell.
    pub(super) notes: Vec<Note>,
}

/// One object, and what goes with it.
#[derive(Debug)]
pub(super) struct Item {
    /// The object.
    pub(super) object: Value,
    /// The job in it, if it is one.
    pub(super) job: Option<Job>,
    /// Whether the object is ours, made of a file of another system; others are applied as they are.
    pub(super) is_made: bool,
    /// Code that travels.
    pub(super) parcels: Vec<Parcel>,
}

/// A packed folder under way.
#[derive(Debug)]
pub(super) struct Parcel {
    /// What the names of its ConfigMaps begin with.
    pub(super) name: String,
    /// What is in them.
    pub(super) packed: Packed,
}

impl Submission {
    /// Asks for lines with the rank that wrote them.
    pub(super) fn tag_lines(&mut self) {
        for item in self.items.iter_mut().filter(|item| item.job.is_some()) {
            item.object["metadata"]["annotations"][marks::TAG_OUTPUT] = "true".into();
        }
    }
}

/// Prepares all of a file; none when faults stand in the way, which are then among the notes.
pub(super) fn prepare(
    file: &JobFile,
    chosen: Option<&str>,
    folder: &Path,
    settings: &Settings,
) -> Result<Submission, Error> {
    let mut submission = Submission::default();
    // A UnisonoJob that was written for another system is an object all the same.
    let readings = file.readings.iter().filter_map(|it| Some((it, it.job.as_ref()?)));
    let (mut objects, others): (Vec<_>, Vec<_>) = readings.partition(|(it, _)| is_object(it));
    for object in kubernetes_objects(file.text.as_bytes()) {
        let read = read_object(&object, &Options::default());
        let is_it = |reading: &Reading, job: &Job| {
            let same = |it: &Job| it.name == job.name && it.namespace == job.namespace;
            read.dialect == reading.dialect && read.job.as_ref().is_some_and(same)
        };
        let at = objects.iter().position(|(reading, job)| is_it(reading, job));
        match at.map(|at| objects.remove(at)) {
            Some((_, job)) if needs_translation(job) => {
                submission.translate(job, folder, settings)?;
            }
            Some((_, job)) => {
                submission.notes.extend(without_image(job));
                submission.add(object, Some(job.clone()));
            }
            // Another job than the one that was asked for.
            None if read.dialect.is_some() && chosen.is_some() => {}
            None => submission.add(object, None),
        }
    }
    for (_, job) in others {
        submission.translate(job, folder, settings)?;
    }
    Ok(submission)
}

/// The job of a document as a cluster is given it, with names that the settings map, and what there is to tell about that.
pub(crate) fn as_given(reading: &Reading, settings: &Settings) -> (Option<Job>, Vec<Note>) {
    match &reading.job {
        Some(job) if is_object(reading) && !needs_translation(job) => {
            (Some(job.clone()), without_image(job))
        }
        Some(job) => translate(job, &settings.cluster_map, &settings.user.value),
        None => (None, Vec::new()),
    }
}

fn is_object(reading: &Reading) -> bool {
    reading.dialect.is_some_and(Dialect::is_kubernetes_object)
}

/// Whether the job names something that only this machine or another system knows.
fn needs_translation(job: &Job) -> bool {
    let names_environment =
        |image: &Option<Image>| matches!(image, Some(Image::AzureEnvironment(_)));
    let is_here = |code: &CodeFolder| matches!(code.source(), CodeSource::Path(_));
    job.groups.iter().any(|group| {
        group.rdma || names_environment(&group.image) || group.code.as_ref().is_some_and(is_here)
    })
}

impl Submission {
    /// Whether a fault stands in the way.
    pub(super) fn has_faults(&self) -> bool {
        self.notes.iter().any(Note::is_fault)
    }

    /// The jobs of it.
    pub(super) fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.items.iter().filter_map(|item| item.job.as_ref())
    }

    fn add(&mut self, object: Value, job: Option<Job>) {
        self.items.push(Item { object, job, is_made: false, parcels: Vec::new() });
    }

    fn translate(&mut self, job: &Job, folder: &Path, settings: &Settings) -> Result<(), Error> {
        let (translated, notes) = translate(job, &settings.cluster_map, &settings.user.value);
        self.notes.extend(notes);
        let Some(mut job) = translated else { return Ok(()) };
        let parcels = self.pack(&mut job, folder, &settings.code_volume)?;
        let Some(written) = write(&job, Dialect::Unisono) else { return Ok(()) };
        self.notes.extend(written.notes);
        let object = kubernetes_objects(written.text.as_bytes()).into_iter().next();
        let object = object.unwrap_or_default();
        self.items.push(Item { object, job: Some(job), is_made: true, parcels });
        Ok(())
    }

    /// Packs the code of a job, each folder once, and tells its groups where it will be.
    fn pack(
        &mut self,
        job: &mut Job,
        folder: &Path,
        volume: &Sourced<String>,
    ) -> Result<Vec<Parcel>, Error> {
        let stem = label_from(job.name.as_str(), unisono_job::MAX_LABEL);
        let mut parcels: Vec<Parcel> = Vec::new();
        let mut known: BTreeMap<PathBuf, Option<CodeFolder>> = BTreeMap::new();
        for group in &mut job.groups {
            let Some(code) = &group.code else { continue };
            let CodeSource::Path(path) = code.source() else { continue };
            let at = folder.join(path);
            if let Some(found) = known.get(&at) {
                group.code.clone_from(found);
                continue;
            }
            let name = match parcels.len() {
                0 => format!("{stem}-code"),
                more => format!("{stem}-code{more}"),
            };
            let found = match self.travels(path, &at, volume)? {
                Travels::Packed(packed) => {
                    let count = u32::try_from(packed.pieces.len()).unwrap_or(u32::MAX);
                    parcels.push(Parcel { name: name.clone(), packed });
                    Some(CodeFolder::pieces(&name, count))
                }
                Travels::InVolume => Some(CodeFolder::volume(&volume.value)),
                Travels::Not => None,
            };
            known.insert(at, found.clone());
            group.code = found;
        }
        Ok(parcels)
    }

    /// How a folder gets to the cluster. A volume that the command line names always has it; one of the settings only has what
    /// cannot travel.
    fn travels(
        &mut self,
        path: &str,
        at: &Path,
        volume: &Sourced<String>,
    ) -> Result<Travels, Error> {
        let has_volume = !volume.value.is_empty();
        if has_volume && matches!(volume.from, Origin::Flag(_)) {
            return Ok(Travels::InVolume);
        }
        if is_address(path) {
            if has_volume {
                return Ok(Travels::InVolume);
            }
            self.notes.push(stays(path));
            return Ok(Travels::Not);
        }
        match code::pack(at) {
            Ok(packed) => Ok(Travels::Packed(packed)),
            Err(CodeError::TooLarge { .. } | CodeError::Missing(_)) if has_volume => {
                Ok(Travels::InVolume)
            }
            Err(error) => Err(Error::Run {
                message: "the code cannot travel with the job".to_owned(),
                hint: Some(error.hint()),
                source: Some(Box::new(error)),
            }),
        }
    }
}

/// How a code folder gets to a cluster.
enum Travels {
    Packed(Packed),
    InVolume,
    Not,
}

/// Whether a path is of another file system than this machine's.
fn is_address(path: &str) -> bool {
    path.contains("://") || path.starts_with('$') || path.starts_with("azureml:")
}

fn stays(path: &str) -> Note {
    let message = format!("the code at `{path}` does not travel with the job");
    let hint = "copy it here and name that folder, or put it into a volume: --code-volume";
    Note::new(&CODE_STAYS, message).hint(hint)
}
