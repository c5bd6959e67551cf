//! The rules of a job's life, one file each. Every rule is a pure function of the plan, the status and what is seen.

pub(crate) mod admission;
pub(crate) mod barrier;
pub(crate) mod clean_up;
pub(crate) mod deadline;
pub(crate) mod end_rules;
pub(crate) mod gang_restart;
pub(crate) mod image;
pub(crate) mod loss;
pub(crate) mod retry;
pub mod retry_class;
pub(crate) mod suspend;
pub(crate) mod ttl;
