//! Waiting for a condition, with a deadline.

use std::time::{Duration, Instant};

use anyhow::bail;

/// How often a condition is looked at: often enough not to show in a start of a few seconds.
const PAUSE: Duration = Duration::from_millis(50);

/// Asks `look` until it finds something; fails at once when looking fails, and at the deadline.
pub fn until<T>(
    patience: Duration,
    what: &str,
    mut look: impl FnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<T> {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if Instant::now() > deadline {
            bail!("waited {} s in vain for {what}", patience.as_secs());
        }
        std::thread::sleep(PAUSE);
    }
}
