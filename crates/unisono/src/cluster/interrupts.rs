//! Signals that ask the program to end, while it waits for a cluster.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::Error;

/// Who asks the program to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupt {
    /// Somebody at the keyboard: Ctrl-C.
    Keyboard,
    /// Another program, or the system on its way down.
    Terminate,
}

impl Interrupt {
    /// The exit code of a program that ends by it.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Keyboard => 130,
            Self::Terminate => 143,
        }
    }
}

/// Ctrl-C, and what asks a process to end. From here on neither ends the program by itself.
pub(crate) struct Interrupts {
    keyboard: Signal,
    terminate: Signal,
}

impl Interrupts {
    /// Begins to listen.
    pub(crate) fn listen() -> Result<Self, Error> {
        let listen =
            |kind| signal(kind).map_err(|error| Error::run("signals cannot be waited for", error));
        Ok(Self {
            keyboard: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> Interrupt {
        tokio::select! {
            _ = self.terminate.recv() => Interrupt::Terminate,
            _ = self.keyboard.recv() => Interrupt::Keyboard,
        }
    }
}
