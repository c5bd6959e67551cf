//! Which system a job was written for.

use std::fmt;

use serde::{Serialize, Serializer};

/// The way a job file is written: a system and its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// Azure ML `type: MpiJob` with `launcher` and `worker`.
    AzureMpiJob,
    /// Azure ML's later flattened form: `command` and `distributed.mpi`.
    AzureFlat,
    /// Azure ML CLI v2 command job with `distribution: {type: mpi}`.
    AzureCommand,
    /// OpenPAI job configuration, version 1 (JSON).
    OpenPaiV1,
    /// OpenPAI protocol version 2 (YAML).
    OpenPaiV2,
    /// Kubeflow `MPIJob` v1alpha1; the ksonnet prototypes print this one.
    KubeflowV1alpha1,
    /// Kubeflow `MPIJob` v1alpha2.
    KubeflowV1alpha2,
    /// Kubeflow `MPIJob` v1.
    KubeflowV1,
    /// Kubeflow `MPIJob` v2beta1.
    KubeflowV2beta1,
    /// kube-batch `MPI` v1alpha1.
    KubeBatch,
    /// Unisono's own `UnisonoJob` v1alpha1.
    Unisono,
}

/// The five systems, and our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum System {
    /// Azure Machine Learning.
    AzureMl,
    /// OpenPAI.
    OpenPai,
    /// Kubeflow MPI Operator (and ksonnet, which prints its objects).
    Kubeflow,
    /// kube-batch.
    KubeBatch,
    /// Unisono.
    Unisono,
}

impl Dialect {
    /// Every dialect, in the order in which documentation lists them.
    pub const ALL: [Self; 11] = [
        Self::AzureMpiJob,
        Self::AzureFlat,
        Self::AzureCommand,
        Self::OpenPaiV1,
        Self::OpenPaiV2,
        Self::KubeflowV1alpha1,
        Self::KubeflowV1alpha2,
        Self::KubeflowV1,
        Self::KubeflowV2beta1,
        Self::KubeBatch,
        Self::Unisono,
    ];

    /// The name users type and see, `system/version`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AzureMpiJob => "azureml/mpijob",
            Self::AzureFlat => "azureml/flat",
            Self::AzureCommand => "azureml/v2",
            Self::OpenPaiV1 => "openpai/v1",
            Self::OpenPaiV2 => "openpai/v2",
            Self::KubeflowV1alpha1 => "kubeflow/v1alpha1",
            Self::KubeflowV1alpha2 => "kubeflow/v1alpha2",
            Self::KubeflowV1 => "kubeflow/v1",
            Self::KubeflowV2beta1 => "kubeflow/v2beta1",
            Self::KubeBatch => "kube-batch",
            Self::Unisono => "unisono",
        }
    }

    /// The dialect of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }

    /// The system the dialect belongs to.
    pub const fn system(self) -> System {
        match self {
            Self::AzureMpiJob | Self::AzureFlat | Self::AzureCommand => System::AzureMl,
            Self::OpenPaiV1 | Self::OpenPaiV2 => System::OpenPai,
            Self::KubeflowV1alpha1
            | Self::KubeflowV1alpha2
            | Self::KubeflowV1
            | Self::KubeflowV2beta1 => System::Kubeflow,
            Self::KubeBatch => System::KubeBatch,
            Self::Unisono => System::Unisono,
        }
    }

    /// Whether the file is a Kubernetes object, so that Kubernetes' own rules (such as `$(NAME)` in arguments) hold.
    pub const fn is_kubernetes_object(self) -> bool {
        matches!(self.system(), System::Kubeflow | System::KubeBatch | System::Unisono)
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl Serialize for Dialect {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_back_to_its_dialect() {
        for dialect in Dialect::ALL {
            assert_eq!(Dialect::from_name(dialect.name()), Some(dialect));
        }
        assert_eq!(Dialect::from_name("kubeflow"), None);
    }
}
