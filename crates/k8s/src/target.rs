//! Which API serves a kind of job.

use kube::api::ApiResource;
use unisono_job::Dialect;

/// A kind of job object, in one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The API group.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The plural in paths.
    pub plural: &'static str,
}

/// `MPIJob` in a version.
pub const fn kubeflow(version: &'static str) -> Resource {
    Resource { group: "kubeflow.org", version, kind: "MPIJob", plural: "mpijobs" }
}

impl Resource {
    /// kube-batch's `MPI`.
    pub const KUBE_BATCH: Self = Self {
        group: "scheduling.incubator.k8s.io",
        version: "v1alpha1",
        kind: "MPI",
        plural: "mpis",
    };

    /// `UnisonoJob`.
    pub const UNISONO: Self = Self {
        group: "unisono.dev",
        version: "v1alpha1",
        kind: "UnisonoJob",
        plural: "unisonojobs",
    };

    /// The resource of a dialect's objects, in the version they are written in; none for dialects that are no objects.
    pub const fn of(dialect: Dialect) -> Option<Self> {
        match dialect {
            Dialect::KubeflowV1alpha1 => Some(kubeflow("v1alpha1")),
            Dialect::KubeflowV1alpha2 => Some(kubeflow("v1alpha2")),
            Dialect::KubeflowV1 => Some(kubeflow("v1")),
            Dialect::KubeflowV2beta1 => Some(kubeflow("v2beta1")),
            Dialect::KubeBatch => Some(Self::KUBE_BATCH),
            Dialect::Unisono => Some(Self::UNISONO),
            Dialect::AzureMpiJob
            | Dialect::AzureFlat
            | Dialect::AzureCommand
            | Dialect::OpenPaiV1
            | Dialect::OpenPaiV2 => None,
        }
    }

    /// The version that owner references name, whatever version an object was written in: the one that discovery prefers, by which
    /// the garbage collector knows owners; it looks up each object that names another one, and its owner. Queues know jobs by v2beta1.
    pub const fn for_owners(self, is_queued: bool) -> Self {
        match (self.group.as_bytes(), is_queued) {
            (b"kubeflow.org", true) => kubeflow("v2beta1"),
            (b"kubeflow.org", false) => kubeflow("v1"),
            _ => self,
        }
    }

    /// As the client wants it.
    pub fn api_resource(&self) -> ApiResource {
        ApiResource {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            api_version: self.api_version(),
            kind: self.kind.to_owned(),
            plural: self.plural.to_owned(),
        }
    }

    /// Group and version.
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }
}
