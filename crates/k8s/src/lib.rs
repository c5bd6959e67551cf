//! Engine: Kubernetes objects. Renders what a plan wants, observes what is there, applies the difference.
//!
//! # For whoever drives it
//!
//! 1. Take the job's object as a [`JobObject`]; [`JobObject::read`] gives the job through the same reader as a file.
//! 2. `lay_out` it with [`Settings::facts`].
//! 3. Collect what exists of it in [`Children`]: from the stores of watches, or with [`Children::list`].
//! 4. [`prior`] is the status so far. `tick` with a [`KubernetesEngine`]: it observes those children, writes the status, and
//!    creates, changes and deletes objects.
//!
//! Nothing here decides: that is `plan`'s. Nothing here runs by itself, keeps a cache or reads a Secret's contents.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod acts;
mod apply;
mod children;
mod client;
mod engine;
#[cfg(test)]
mod fake;
mod last_words;
#[cfg(test)]
mod lives;
pub mod marks;
mod object;
mod observe;
mod render;
mod settings;
pub mod slim;
mod ssh_key;
mod status;
mod target;
mod writes;

pub use apply::ApplyError;
pub use children::{Before, Children, ListError};
pub use client::{Service, connect, limited};
pub use engine::{EngineError, KubernetesEngine};
pub use object::{JobObject, NotAJob};
pub use observe::observe;
pub use render::{MintError, Owner, Rendering};
pub use settings::{GangScheduler, IMAGE_PATIENCE, Settings};
pub use status::{prior, told_why};
pub use target::{Resource, kubeflow};
pub use writes::WriteError;
