//! What is wanted of an engine.

use std::collections::BTreeMap;

use crate::{Incarnation, Member, Time};

/// What is wanted. A second look at an unchanged world wants the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Want {
    /// The attempt that everything new belongs to.
    pub attempt: u32,
    /// The epoch that everything new belongs to.
    pub epoch: u32,
    /// What members are to be. A member that is not here is left alone.
    pub members: BTreeMap<Member, Wanted>,
    /// Incarnations that are stale or surplus, to be removed.
    pub remove: Vec<Incarnation>,
    /// Whether the job itself is to be removed, with everything it owns.
    pub remove_job: bool,
}

/// What a member is to be.
///
/// Only `Held` makes anything. So an incarnation whose command was let go, and which is gone although a late view still
/// shows it, is not made and started a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Not there.
    Absent,
    /// There, and made if it is not; its command is held. What only hosts ranks serves as soon as it is up.
    Held,
    /// Let go if it is there and held. One that has ended is not started again, one that is not there is not made.
    Running,
    /// Asked to stop; killed when it is still there at that moment.
    Stopping {
        /// That moment.
        until: Time,
    },
}
