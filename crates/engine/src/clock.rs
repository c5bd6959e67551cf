//! Where time comes from.

use std::time::{SystemTime, UNIX_EPOCH};

use unisono_plan::Time;

/// Tells the time.
pub trait Clock {
    /// The time now.
    fn now(&self) -> Time;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Time {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Time(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}
