//! OpenSSH: one sshd per host with keys made for the occasion, and the plain `ssh` program as rsh agent.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use super::{PORT, Transport, TransportError};
use crate::hosts::{Seat, Seats};

/// How two ends agree on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyExchange {
    /// What this OpenSSH does when it is not told otherwise.
    Default,
    /// The cheapest that is common.
    Curve25519,
}

/// OpenSSH as transport.
#[derive(Debug)]
pub struct Ssh {
    key_exchange: KeyExchange,
    folder: PathBuf,
}

impl Ssh {
    /// OpenSSH with this key exchange.
    #[must_use]
    pub const fn new(key_exchange: KeyExchange) -> Self {
        Self { key_exchange, folder: PathBuf::new() }
    }
}

impl Transport for Ssh {
    fn prepare(&mut self, seats: &Seats, folder: &Path) -> Result<(), TransportError> {
        self.folder = folder.to_owned();
        for key in ["host_key", "user_key"] {
            make_key(&folder.join(key))?;
        }
        fs::copy(folder.join("user_key.pub"), folder.join("authorized_keys"))?;
        let exchange = match self.key_exchange {
            KeyExchange::Default => "",
            KeyExchange::Curve25519 => "KexAlgorithms curve25519-sha256\n",
        };
        let at = folder.display();
        let client = format!(
            "Port {PORT}\nIdentityFile {at}/user_key\nIdentitiesOnly yes\nBatchMode yes\nLogLevel ERROR\n\
             StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n{exchange}"
        );
        fs::write(folder.join("ssh_config"), client)?;
        fs::write(folder.join("passwd"), with_plain_shell(&fs::read_to_string("/etc/passwd")?))?;
        for seat in seats {
            let server = format!(
                "ListenAddress {}\nPort {PORT}\nHostKey {at}/host_key\nAuthorizedKeysFile {at}/authorized_keys\n\
                 StrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin yes\nMaxStartups 1000\n{exchange}",
                seat.address
            );
            fs::write(self.server_settings(seat), server)?;
        }
        Ok(())
    }

    /// sshd wants a folder in `/run`, `ssh` is told by its system-wide file, and commands are run by root's shell: all three are
    /// changed for this host only.
    fn process_one(&self, seat: &Seat) -> Vec<OsString> {
        let script = format!(
            "mount -t tmpfs tmpfs /run && mkdir /run/sshd && mount --bind {0}/ssh_config /etc/ssh/ssh_config \
             && mount --bind {0}/passwd /etc/passwd && exec /usr/sbin/sshd -D -e -f {1}",
            self.folder.display(),
            self.server_settings(seat).display()
        );
        vec!["/bin/sh".into(), "-c".into(), script.into()]
    }

    fn rsh_agent(&self) -> PathBuf {
        PathBuf::from("/usr/bin/ssh")
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        vec![]
    }
}

impl Ssh {
    fn server_settings(&self, seat: &Seat) -> PathBuf {
        self.folder.join(format!("sshd_config.{}", seat.name))
    }
}

/// The list of users with /bin/sh for root: what a user's own shell reads when it starts is not the transport's doing.
fn with_plain_shell(users: &str) -> String {
    let plain = |line: &str| match line.strip_prefix("root:").and_then(|it| it.rsplit_once(':')) {
        Some((entry, _)) => format!("root:{entry}:/bin/sh\n"),
        None => format!("{line}\n"),
    };
    users.lines().map(plain).collect()
}

fn make_key(path: &Path) -> Result<(), TransportError> {
    let output =
        Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path).output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(TransportError::Program(format!(
            "ssh-keygen: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(TransportError::Program(
            "no ssh-keygen: install the Debian package openssh-client".to_owned(),
        )),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_gets_a_plain_shell_and_nobody_else_does() {
        let users = "root:x:0:0:root:/root:/bin/zsh\nme:x:1:1::/home/me:/bin/bash\n";
        let plain = "root:x:0:0:root:/root:/bin/sh\nme:x:1:1::/home/me:/bin/bash\n";
        assert_eq!(with_plain_shell(users), plain);
    }
}
