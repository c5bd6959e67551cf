//! Every kind of note of `unisono submit`, with what `unisono explain` says about it.

use unisono_job::{Code, Severity};

/// Every kind of note of this command.
pub(crate) static CODES: &[&Code] =
    &[&UNMAPPED_ENVIRONMENT, &NO_IMAGE, &UNMAPPED_PLACE, &CODE_STAYS, &RDMA_UNMAPPED];

/// An environment without an image.
pub(super) static UNMAPPED_ENVIRONMENT: Code = Code {
    name: "unmapped-environment",
    severity: Severity::Error,
    summary: "no setting says which image an Azure ML environment is",
    explanation: "An environment such as azureml:horovod:7 is a name of an Azure ML workspace; a cluster needs an image. The table \
                  [environments] of unisono.toml or ~/.config/unisono/config.toml maps one to the other, with a version \
                  (\"azureml:horovod:7\") or for all versions (\"azureml:horovod\").",
};

/// No image at all.
pub(super) static NO_IMAGE: Code = Code {
    name: "group-without-image",
    severity: Severity::Error,
    summary: "the job does not say which image its members run in",
    explanation: "On this machine a job runs with the machine's own programs and needs no image. In a cluster every member \
                  runs in one, so the file has to name it.",
};

/// A place without an entry.
pub(super) static UNMAPPED_PLACE: Code = Code {
    name: "unmapped-place",
    severity: Severity::Note,
    summary: "no setting says where in the cluster a compute target or virtual cluster is",
    explanation: "The tables [compute] (Azure ML) and [virtual_clusters] (OpenPAI) of a settings file map a name to a namespace, a \
                  queue, a priority class and node labels. Without an entry the job goes where any other job goes.",
};

/// Code that only another place has.
pub(super) static CODE_STAYS: Code = Code {
    name: "code-stays",
    severity: Severity::Warning,
    summary: "a code folder is not on this machine and does not travel with the job",
    explanation: "A folder of this machine travels with a job to a cluster. An address such as hdfs://… is of a file system that \
                  the cluster may not have. Copy the folder here, or put it into a volume and name that with --code-volume.",
};

/// RDMA without an entry.
pub(super) static RDMA_UNMAPPED: Code = Code {
    name: "rdma-unmapped",
    severity: Severity::Warning,
    summary: "no setting says how members get at RDMA devices",
    explanation: "OpenPAI's paiAzRDMA mounted driver files and lifted the limit of locked memory. In a cluster the table [rdma] of a \
                  settings file says which devices (resources), which files of the node (mounts) and whether memory may be \
                  locked (lock_memory).",
};
