//! Log lines: structured, on standard error, for people or as JSON.

use tracing_subscriber::EnvFilter;

/// Writes the log lines of this process from now on. `RUST_LOG` chooses which; a second call changes nothing.
pub fn log(json: bool) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Somebody else may write them already.
    let _begun = if json {
        lines.json().flatten_event(true).try_init()
    } else {
        lines.with_ansi(false).try_init()
    };
}
