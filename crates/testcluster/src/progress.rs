//! Telling a person that something long goes on: one live line on a terminal, else a line now and
//! then.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// How often a log that nobody watches gets a line.
const QUIET: Duration = Duration::from_secs(15);

/// One act that takes long.
pub(crate) struct Progress {
    act: String,
    live: bool,
    told: Instant,
}

impl Progress {
    pub(crate) fn new(act: String) -> Self {
        let live = std::io::stderr().is_terminal();
        let progress = Self { act, live, told: Instant::now() };
        progress.write("", !live);
        progress
    }

    /// Says how far it got.
    pub(crate) fn tell(&mut self, news: &str) {
        let pause = if self.live { Duration::from_millis(100) } else { QUIET };
        if self.told.elapsed() >= pause {
            self.write(news, !self.live);
            self.told = Instant::now();
        }
    }

    /// Says that it is done.
    pub(crate) fn done(self, news: &str) {
        self.write(news, true);
    }

    #[expect(clippy::print_stderr, reason = "progress is talk, and talk is stderr")]
    fn write(&self, news: &str, line: bool) {
        let before = if self.live { "\r\x1b[K" } else { "" };
        let end = if line { "\n" } else { "" };
        let colon = if news.is_empty() { "" } else { ": " };
        eprint!("{before}{}{colon}{news}{end}", self.act);
    }
}
