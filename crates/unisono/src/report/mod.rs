//! How things look: reports enter, text for people or JSON for programs leaves. Nothing here decides anything.

mod advice;
mod check;
mod config;
mod console;
#[cfg(feature = "kubernetes")]
mod follow;
mod live;
mod note;
mod plan;
mod prose;
mod run;
mod runs;
mod seats;
mod table;
mod why;

pub(crate) use check::CheckReport;
pub(crate) use console::{Console, usage};
#[cfg(feature = "kubernetes")]
pub(crate) use follow::FollowReport;
pub(crate) use plan::PlanReport;
pub(crate) use prose::{sentence, wrapped};
pub(crate) use run::RunReport;
#[cfg(feature = "kubernetes")]
pub(crate) use runs::HostView;
pub(crate) use runs::{RunView, proof_of};
pub(crate) use table::{Align, Table, aligned, counted};
pub(crate) use why::WhyView;

use clap::ValueEnum;

/// The forms a result can be printed in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people.
    #[default]
    Text,
    /// One JSON document.
    Json,
}
