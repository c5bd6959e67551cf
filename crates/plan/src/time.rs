//! Moments, as numbers that come in from outside: this crate never asks a clock.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

const DAY: u64 = 24 * 60 * 60;

/// A moment, in milliseconds since 1970 began (UTC).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(pub u64);

impl Time {
    /// The moment that much later.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(milliseconds))
    }

    /// The moment that many seconds later.
    #[must_use]
    pub fn after_seconds(self, seconds: u64) -> Self {
        Self(self.0.saturating_add(seconds.saturating_mul(1000)))
    }

    /// How long after `earlier` this is; nothing when it is not.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

/// As RFC 3339 writes it, in whole seconds, which is what Kubernetes objects hold.
impl fmt::Display for Time {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0 / 1000;
        let (year, month, day) = date(seconds / DAY);
        let (hour, minute, second) = (seconds % DAY / 3600, seconds % 3600 / 60, seconds % 60);
        write!(formatter, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

/// Year, month and day of a number of days since 1970 began. Counts in years that begin in March, so that the odd day
/// of leap years is their last.
const fn date(days: u64) -> (u64, u64, u64) {
    const FOUR_CENTURIES: u64 = 146_097;
    const TO_MARCH_OF_YEAR_0: u64 = 719_468;
    let days = days + TO_MARCH_OF_YEAR_0;
    let of_era = days % FOUR_CENTURIES;
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / (FOUR_CENTURIES - 1)) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = days / FOUR_CENTURIES * 400 + year;
    (if month <= 2 { year + 1 } else { year }, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_rfc_3339() {
        for (milliseconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (1_589_522_741_999, "2020-05-15T06:05:41Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(Time(milliseconds).to_string(), text);
        }
    }
}
