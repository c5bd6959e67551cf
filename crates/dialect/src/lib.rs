//! Reads the job files of every system into the neutral job, and writes them back.
//!
//! Text goes through one pipeline: bytes → [`Source`] → tree with a range on every value ([`tree`]) → the dialect it
//! belongs to ([`detect`]) → field table ([`shape`]) against which everything is checked at once ([`mod@check`]) → the
//! dialect's own lowering into a [`Job`](unisono_job::Job). API objects enter at the tree. Nothing here does I/O or panics on any input.

pub mod ksonnet;

mod azureml;
mod build;
mod check;
mod codes;
mod detect;
mod emit;
mod json;
mod kept;
mod kube_batch;
mod kubeflow;
mod kubernetes;
mod launch_text;
mod lost;
mod notebook;
mod object;
mod openpai;
mod read;
mod reference;
mod scalar;
mod schema;
mod shape;
mod source;
mod tree;
mod unisono;
mod write;
mod yaml;

pub use azureml::compute_target;
pub use check::{Leniency, check, check_node, clipped, describe, nearest};
pub use codes::CODES;
pub use emit::{to_json, to_yaml};
pub use kubernetes::{bare_template, pod_template};
pub use object::document_from_object;
pub use read::{Options, ProcessingUnit, Reading, kubernetes_objects, read, read_object};
pub use reference::{FoundField, find_fields, generated_files, served_shape, shape_of};
pub use scalar::Schema;
pub use schema::{SchemaStyle, job_schema, schema};
pub use shape::{Field, Form, Kind, Others, Presence, Shape};
pub use source::{MAX_BYTES, Source};
pub use tree::{Document, Entry, Node, Range, Value};
pub use write::{WRITABLE, Written, write};
