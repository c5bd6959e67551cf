//! An image like the ones that MPI operators' examples use: an sshd on port 2222, a user of uid 1000
//! with a home, keys mounted into it, and no checks of host keys.

use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;

use anyhow::Context;
use unisono_testbed::mpi::Flavour;

use super::archive::Configuration;
use super::{Recipe, debian, programs};

const USER: &str = "mpiuser:x:1000:1000::/home/mpiuser:/bin/bash\n";
const GROUP: &str = "mpiuser:x:1000:\n";
const SHADOW: &str = "mpiuser:*:1:0:99999:7:::\n";

const SSHD: &str = "\
Port 2222
PidFile /home/mpiuser/sshd.pid
HostKey /home/mpiuser/.ssh/id_rsa
StrictModes no
";

const SSH: &str = "\
Host *
    Port 2222
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    LogLevel ERROR
";

/// Open MPI 4 with an sshd that a user can start.
pub(super) const SAMPLE: Recipe = Recipe {
    name: "sample",
    configuration: Configuration {
        user: "1000:1000",
        environment: &["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
        command: &["/usr/sbin/sshd", "-De", "-f", "/home/mpiuser/.sshd_config"],
    },
    key: || {
        let key = programs::key(debian::key(&[]));
        Ok([USER, GROUP, SHADOW, SSHD, SSH].into_iter().fold(key, |key, text| key.with(text)))
    },
    fill,
};

fn fill(root: &Path) -> anyhow::Result<()> {
    debian::install(&[], root)?;
    programs::compile_all(Flavour::OpenMpi4, root)?;
    for (file, line) in [("etc/passwd", USER), ("etc/group", GROUP), ("etc/shadow", SHADOW)] {
        let path = root.join(file);
        let text = fs::read_to_string(&path).with_context(|| format!("read {file}"))?;
        fs::write(&path, text + line).with_context(|| format!("write {file}"))?;
    }
    // Keys that everybody has are no keys: those that the package made go.
    for entry in fs::read_dir(root.join("etc/ssh")).context("list the sshd's files")? {
        let entry = entry.context("list the sshd's files")?;
        if entry.file_name().as_encoded_bytes().starts_with(b"ssh_host_") {
            fs::remove_file(entry.path()).context("remove a host key")?;
        }
    }
    fs::create_dir_all(root.join("run/sshd")).context("create /run/sshd")?;
    fs::create_dir_all(root.join("home/mpiuser/.ssh")).context("create a home")?;
    fs::write(root.join("home/mpiuser/.sshd_config"), SSHD).context("write an sshd_config")?;
    fs::write(root.join("etc/ssh/ssh_config.d/sample.conf"), SSH).context("write an ssh_config")?;
    for own in ["", ".ssh", ".sshd_config"] {
        chown(root.join("home/mpiuser").join(own), Some(1000), Some(1000))
            .context("give a home")?;
    }
    Ok(())
}
