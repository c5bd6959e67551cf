//! The operator: controllers over the engine for Kubernetes, the manifests it is installed with, and how it lives in a cluster.
