//! The way out: a job as text of another dialect, with what that dialect cannot carry.

use unisono_job::{Dialect, Job, Note};

use crate::codes;

/// A job, written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The text.
    pub text: String,
    /// What was lost or changed its meaning.
    pub notes: Vec<Note>,
}

/// Dialects that jobs can be written in.
pub const WRITABLE: [Dialect; 5] = [
    Dialect::AzureCommand,
    Dialect::OpenPaiV2,
    Dialect::KubeflowV1,
    Dialect::KubeflowV2beta1,
    Dialect::Unisono,
];

/// The job as text of that dialect; none when jobs cannot be written in it.
pub fn write(job: &Job, dialect: Dialect) -> Option<Written> {
    let mut written = written(job, dialect)?;
    if !job.secrets.is_empty() {
        let message = format!("the values of secrets stand in the commands: {}", job.secrets);
        written.notes.push(
            Note::new(&codes::SECRET_WRITTEN, message)
                .hint("take them out before you give the file to anybody"),
        );
    }
    Some(written)
}

fn written(job: &Job, dialect: Dialect) -> Option<Written> {
    match dialect {
        Dialect::AzureCommand => Some(crate::azureml::write(job)),
        Dialect::OpenPaiV2 => Some(crate::openpai::write(job)),
        Dialect::KubeflowV1 | Dialect::KubeflowV2beta1 => {
            Some(crate::kubeflow::write(job, dialect))
        }
        Dialect::Unisono => Some(crate::unisono::write(job)),
        Dialect::AzureMpiJob
        | Dialect::AzureFlat
        | Dialect::OpenPaiV1
        | Dialect::KubeflowV1alpha1
        | Dialect::KubeflowV1alpha2
        | Dialect::KubeBatch => None,
    }
}
