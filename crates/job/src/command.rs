//! What a member runs: words, a line for a shell, or whatever its image says.

use serde::Serialize;

use crate::{LaunchLine, quote};

/// A command as its dialect meant it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    /// Program and arguments, run without a shell.
    Words(Vec<String>),
    /// One line (or script) that a shell reads.
    Line {
        /// Which shell.
        shell: Shell,
        /// What it reads.
        text: String,
    },
    /// The image's own entry point with these arguments (none: its default ones).
    ImageEntry(Vec<String>),
}

/// A shell that a dialect promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shell {
    /// `/bin/sh`.
    Sh,
    /// `/bin/bash`.
    Bash,
    /// `/bin/bash` that stops at the first failing command, unset variable or broken pipe, as OpenPAI's runtime sets it.
    StrictBash,
}

impl Command {
    /// A line for bash.
    pub fn bash(text: impl Into<String>) -> Self {
        Self::Line { shell: Shell::Bash, text: text.into() }
    }

    /// The words to execute; none when only the image knows them.
    pub fn argv(&self) -> Option<Vec<String>> {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        match self {
            Self::Words(words) => Some(words.clone()),
            Self::Line { shell: Shell::Sh, text } => Some(owned(&["/bin/sh", "-c", text])),
            Self::Line { shell: Shell::Bash, text } => Some(owned(&["/bin/bash", "-c", text])),
            Self::Line { shell: Shell::StrictBash, text } => {
                Some(owned(&["/bin/bash", "-euo", "pipefail", "-c", text]))
            }
            Self::ImageEntry(_) => None,
        }
    }

    /// What the command says about ranks and MPI, when it starts ranks in a way we can read.
    pub fn launch_line(&self) -> Option<LaunchLine> {
        match self {
            Self::Words(words) | Self::ImageEntry(words) => LaunchLine::from_words(words),
            Self::Line { text, .. } => LaunchLine::from_text(text),
        }
    }

    /// The command on one line, for people.
    pub fn display(&self) -> String {
        match self {
            Self::Words(words) => quote(words),
            Self::Line { text, .. } => text.clone(),
            Self::ImageEntry(words) if words.is_empty() => "(the image's own command)".to_owned(),
            Self::ImageEntry(words) => format!("(the image's entry point) {}", quote(words)),
        }
    }
}
