//! The agent's own words: one line on standard error, in one write, so that lines of several processes do not mix.

use std::fmt;
use std::io::Write as _;

/// Says something. Nobody listening is no reason to stop.
pub(crate) fn line(text: fmt::Arguments<'_>) {
    // Nothing a peer or a caller sent may start a line of its own in the log.
    let text = text.to_string().replace(|each: char| each.is_control(), " ");
    drop(std::io::stderr().write_all(format!("unisono-agent: {text}\n").as_bytes()));
}

/// The whole chain of causes of an error, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text += ": ";
        text += &next.to_string();
        cause = next.source();
    }
    text
}
