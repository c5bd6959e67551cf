//! Decides: from a job to a [`Plan`], from a plan and addresses to files, and from what is seen to what is wanted.
//!
//! Pure: no clock, no randomness, no files, no network. [`lay_out()`] is called once for every version of a job, [`bind()`]
//! once its hosts have addresses, and [`step()`] whenever something may have happened.

mod azure_word;
pub mod bind;
pub mod complaints;
pub mod conditions;
pub mod env;
mod expand;
mod facts;
mod files;
mod folders;
pub mod hostfile;
mod lay_out;
mod limits;
pub mod line;
pub mod lint;
mod names;
pub mod notes;
pub mod only_sshd;
mod overrides;
mod plan;
pub mod ports;
mod ranks;
mod recount;
#[cfg(test)]
mod sample;
pub mod spread;
pub mod step;
mod time;
pub mod view;

pub use bind::bind;
pub use facts::{EngineKind, Facts, Overrides};
pub use folders::resolve as resolve_folders;
pub use lay_out::lay_out;
pub use limits::Limits;
pub use lint::lint;
pub use names::Names;
pub use notes::codes::CODES;
pub use plan::{Argv, FileContent, Host, HostRuns, Member, Plan, PlannedFile, Program, Variable};
pub use step::observed::{
    Cause, Ended, FailedRank, Incarnation, NoImage, Observed, Room, Seen, SeenState,
};
pub use step::status::{End, EndReason, Failure, GroupCounts, Stage, Status, Verdict};
pub use step::want::{Want, Wanted};
pub use step::why::Why;
pub use step::{Next, step};
pub use time::Time;
pub use view::View;
