//! What Kubernetes dialects share: object metadata and pod templates, as field tables and as readers.

mod compose;
mod container;
mod lowering;
mod metadata;
mod pod;
mod template;

pub(crate) use compose::{NO_IMAGE, compose, container_name, put_first};
pub use compose::{bare_template, pod_template};
pub(crate) use lowering::{Body, Lowering, Role};
pub(crate) use metadata::{
    LAST_APPLIED, METADATA_OF_A_PART, from_a_cluster, is_dns_1035_label, is_subdomain, object,
};
pub(crate) use pod::POD_TEMPLATE;
pub(crate) use template::{container_named, lift, quantities};
