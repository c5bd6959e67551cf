//! Where things are: environment variables go in, paths and places come out. Options of the command line override them later.
//!
//! Only paths stand in the environment, never a key.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Everything the programs read from their environment, with what stands in when it is not set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// `UNISONO_AGENT_LISTEN`: where `serve` listens; every address at the usual port when not set.
    pub(crate) listen: Option<SocketAddr>,
    /// `UNISONO_AGENT_HOST_KEY`: the secret key by which `serve` is known.
    pub(crate) host_key: PathBuf,
    /// `UNISONO_AGENT_LAUNCHERS`: the public keys that may launch here.
    pub(crate) launchers: PathBuf,
    /// `UNISONO_AGENT_LAUNCHER_KEY`: the secret key by which `rsh` and `ready` launch.
    pub(crate) launcher_key: PathBuf,
    /// `UNISONO_AGENT_TABLE`: the host table.
    pub(crate) table: PathBuf,
    /// `UNISONO_AGENT_HOST_KEYS`: the public keys that the table only names.
    pub(crate) host_keys: PathBuf,
    /// `UNISONO_AGENT_PROOF`: the file that takes the launch proof; none is kept when not set.
    pub(crate) proof: Option<PathBuf>,
    /// `UNISONO_NOT_FOR_RANKS`: variables that are only for what starts ranks, with commas between them.
    pub(crate) not_for_ranks: Vec<String>,
}

/// A variable that cannot be used.
#[derive(Debug, Error)]
#[error(
    "UNISONO_AGENT_LISTEN is `{0}`; write an address and a port, such as 10.0.0.5:7711 or [::]:7711"
)]
pub(crate) struct SettingsError(pub(crate) String);

/// The variable that names those that ranks do not get.
pub const NOT_FOR_RANKS: &str = "UNISONO_NOT_FOR_RANKS";

/// The folder of what is not named otherwise.
const USUAL_PLACE: &str = "/etc/unisono/agent";

impl Settings {
    /// Reads the variables through `variable`.
    pub(crate) fn read(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, SettingsError> {
        let named = |name: &str| variable(name).filter(|value| !value.is_empty());
        let path = |name: &str, usual: &str| {
            named(name).map_or_else(|| Path::new(USUAL_PLACE).join(usual), PathBuf::from)
        };
        let listen =
            named("UNISONO_AGENT_LISTEN").map(|text| place(&text.to_string_lossy())).transpose()?;
        Ok(Self {
            listen,
            host_key: path("UNISONO_AGENT_HOST_KEY", "host.key"),
            launchers: path("UNISONO_AGENT_LAUNCHERS", "launchers"),
            launcher_key: path("UNISONO_AGENT_LAUNCHER_KEY", "launcher.key"),
            table: path("UNISONO_AGENT_TABLE", "table"),
            host_keys: path("UNISONO_AGENT_HOST_KEYS", "hosts"),
            proof: named("UNISONO_AGENT_PROOF").map(PathBuf::from),
            not_for_ranks: named(NOT_FOR_RANKS)
                .map(|names| names.to_string_lossy().split(',').map(str::to_owned).collect())
                .unwrap_or_default(),
        })
    }
}

/// Reads `address:port`.
pub(crate) fn place(text: &str) -> Result<SocketAddr, SettingsError> {
    text.parse().map_err(|_| SettingsError(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unset_variables_mean_the_usual_place() {
        let settings = Settings::read(|_| None).unwrap();
        assert_eq!(settings.table, Path::new("/etc/unisono/agent/table"));
        assert_eq!((settings.listen, settings.proof), (None, None));
    }

    #[test]
    fn a_name_is_no_place_to_listen() {
        let read =
            Settings::read(|name| (name == "UNISONO_AGENT_LISTEN").then(|| "localhost:1".into()));
        assert!(read.is_err());
    }
}
