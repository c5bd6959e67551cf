//! The live line: what a run waits for, on a terminal only, and gone as soon as there is something to read.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How often the line moves, to show that we are alive.
const MOVES: Duration = Duration::from_millis(120);

/// At most one line below everything else that is written.
#[derive(Default)]
pub(crate) struct Live {
    bar: Option<ProgressBar>,
}

impl Live {
    /// Whether anybody sees the line: not where standard error is no terminal.
    pub(crate) fn is_seen() -> bool {
        std::io::stderr().is_terminal()
    }

    /// Shows a line in place of the last one, where anybody sees it.
    pub(crate) fn show(&mut self, text: &str) {
        if !Self::is_seen() {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::new_spinner();
            // A template that cannot be read would be a fault of ours; the plain spinner then serves as well.
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(MOVES);
            bar
        });
        bar.set_message(text.to_owned());
    }

    /// Takes the line away.
    pub(crate) fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
