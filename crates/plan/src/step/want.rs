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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Not there.
    Absent,
    /// There, its command held.
    Held,
    /// There, its command let go. An incarnation that has ended is not started again.
    Running,
    /// Asked to stop; killed when it is still there at that moment.
    Stopping {
        /// That moment.
        until: Time,
    },
}
