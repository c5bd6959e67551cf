//! Enters: which packages are not wanted. Leaves: a root folder of Debian with Open MPI 4 and an
//! sshd but for those, and nothing in it that differs from one day or machine to the next.
//!
//! Installing takes a minute and removing a second: one full installation serves all images.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};

use crate::cache::{self, Key};
use crate::progress::Progress;

/// The release; the packages of a stable one hardly change.
const RELEASE: &str = "bookworm";

/// What a fresh installation leaves that belongs to the machine it was made on, to the moment, or
/// to nobody: the contents of these folders, and these files.
const EMPTIED: &[&str] = &[
    "dev",
    "proc",
    "run",
    "sys",
    "tmp",
    "usr/share/doc",
    "usr/share/info",
    "usr/share/locale",
    "usr/share/man",
    "var/cache/apt",
    "var/cache/ldconfig",
    "var/lib/apt/lists",
    "var/log",
];
const REMOVED: &[&str] = &[
    "etc/.pwd.lock",
    "etc/group-",
    "etc/gshadow-",
    "etc/hostname",
    "etc/machine-id",
    "etc/passwd-",
    "etc/resolv.conf",
    "etc/shadow-",
    "var/cache/debconf/config.dat-old",
    "var/cache/debconf/templates.dat-old",
    "var/lib/dpkg/available",
    "var/lib/dpkg/status-old",
];

/// Everything that any image needs.
const PACKAGES: &[&str] = &["openmpi-bin", "openssh-client", "openssh-server", "python3"];

/// Everything that decides what [`install`] makes, as far as it is known before.
pub(super) fn key(unwanted: &[&str]) -> Key {
    full_key().with(unwanted.join(","))
}

/// Fills an empty folder with a Debian that lacks the unwanted packages, and what only they need.
pub(super) fn install(unwanted: &[&str], root: &Path) -> anyhow::Result<()> {
    let full = cache::folder("debian", &full_key(), |draft| bootstrap(&draft.join("root")))?;
    run(Command::new("cp").arg("--archive").arg(full.join("root/.")).arg(root))?;
    if !unwanted.is_empty() {
        // Packages' scripts expect a /proc, which ends with the namespace.
        run(Command::new("unshare")
            .args(["--mount", "--pid", "--fork", "--kill-child"])
            .arg(format!("--mount-proc={}", root.join("proc").display()))
            .arg("chroot")
            .arg(root)
            .args(["apt-get", "purge", "--yes", "--auto-remove"])
            .args(unwanted)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"))?;
    }
    clean(root)
}

fn full_key() -> Key {
    Key::new().with(RELEASE).with(PACKAGES.join(","))
}

fn bootstrap(root: &Path) -> anyhow::Result<()> {
    let progress = Progress::new("installing a Debian for images".to_owned());
    let start = Instant::now();
    run(Command::new("debootstrap")
        .arg("--variant=minbase")
        .arg(format!("--include={}", PACKAGES.join(",")))
        .arg(RELEASE)
        .arg(root))?;
    progress.done(&format!("{} s", start.elapsed().as_secs()));
    Ok(())
}

fn clean(root: &Path) -> anyhow::Result<()> {
    for folder in EMPTIED {
        empty(&root.join(folder)).with_context(|| format!("empty {folder}"))?;
    }
    for file in REMOVED {
        match fs::remove_file(root.join(file)) {
            Err(fault) if fault.kind() != std::io::ErrorKind::NotFound => {
                return Err(fault).with_context(|| format!("remove {file}"));
            }
            _ => {}
        }
    }
    forget_days(&root.join("etc/shadow"))
}

/// Runs a command and shows its last words only if it fails.
fn run(command: &mut Command) -> anyhow::Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("run {program}"))?;
    ensure!(
        output.status.success(),
        "{program} ended with {}: {}",
        output.status,
        last_lines(&output.stdout, &output.stderr)
    );
    Ok(())
}

/// Removes what is in a folder, if it is there.
fn empty(folder: &Path) -> anyhow::Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Each user's line says on which day the password was last changed: the day of the installation.
fn forget_days(shadow: &Path) -> anyhow::Result<()> {
    let text = fs::read_to_string(shadow).context("read the users")?;
    let lines = text.lines().map(|line| {
        let mut fields: Vec<&str> = line.split(':').collect();
        if let Some(day) = fields.get_mut(2) {
            *day = "1";
        }
        fields.join(":") + "\n"
    });
    fs::write(shadow, lines.collect::<String>()).context("write the users")
}

fn last_lines(stdout: &[u8], stderr: &[u8]) -> String {
    let text = [stdout, stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(10)..].join("\n")
}
