//! What every engine must do, and the one [`tick()`] that drives them all: observe, decide, write down, do.
//!
//! Engines translate, they do not decide. The local run loop, the operator's reconcile and the simulator of the tests
//! all call the same [`tick()`], or its two halves where something must be known in between. Time enters through [`Clock`],
//! randomness through [`mint`], and nowhere else.

mod clock;
mod engine;
mod event;
pub mod mint;
mod ready;
mod tick;

pub use clock::{Clock, SystemClock};
pub use engine::{Engine, Recorded};
pub use event::{Event, What, events};
pub use ready::now_or_never;
pub use tick::{Ticked, carry_out, decide, tick};
