//! Unisono's own image: static programs and nothing else.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

use super::archive::{self, Configuration};
use crate::cache::{self, Key};

/// What a pod writes to have Unisono's own image.
pub const UNISONO: &str = "unisono.test/unisono:1";

/// What a pod writes to have the whole program beside it: the operator's image.
pub const OPERATOR: &str = "unisono.test/operator:1";

/// Builds Unisono's static agent and packs it as [`UNISONO`], a `docker save` archive. It changes
/// with every build, so that nodes are given it while they run.
pub fn unisono_archive() -> anyhow::Result<PathBuf> {
    pack(UNISONO, &[&static_program("agent")?])
}

/// Builds the agent and the whole program and packs both as [`OPERATOR`]. Takes minutes the first time.
pub fn operator_archive() -> anyhow::Result<PathBuf> {
    operator_archive_as(OPERATOR)
}

/// The same under another name, such as the one it is published by.
pub fn operator_archive_as(reference: &str) -> anyhow::Result<PathBuf> {
    pack(reference, &[&static_program("agent")?, &static_unisono()?])
}

/// Builds the whole program, static, and tells where it is.
pub fn static_unisono() -> anyhow::Result<PathBuf> {
    static_program("program")
}

/// Builds one static program; the task prints its path.
fn static_program(task: &str) -> anyhow::Result<PathBuf> {
    let mut cargo = Command::new(env!("CARGO"));
    // What cargo told this program about itself would make build scripts run again.
    for (name, _) in std::env::vars_os() {
        let name_bytes = name.as_encoded_bytes();
        if name_bytes.starts_with(b"CARGO_PKG_") || name_bytes.starts_with(b"CARGO_MANIFEST_") {
            cargo.env_remove(name);
        }
    }
    let output = cargo
        .args(["run", "--quiet", "--package", "xtask", "--", task])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("run cargo")?;
    ensure!(output.status.success(), "cargo xtask {task}: {}", output.status);
    let path = String::from_utf8(output.stdout).context("read a path")?;
    Ok(PathBuf::from(path.trim_end()))
}

/// Packs static programs, each into `/NAME`.
fn pack(reference: &str, programs: &[&Path]) -> anyhow::Result<PathBuf> {
    let mut key = Key::new().with(reference);
    for program in programs {
        let bytes = fs::read(program).with_context(|| format!("read {}", program.display()))?;
        ensure!(
            is_static(&bytes),
            "{} is not a static program: an empty root has no loader to run it",
            program.display()
        );
        key = key.with(program.file_name().unwrap_or_default().as_encoded_bytes()).with(bytes);
    }
    let folder = cache::folder("image-unisono", &key, |draft| {
        let root = tempfile::tempdir().context("create a root")?;
        for program in programs {
            let name = program.file_name().context("a program without a name")?;
            fs::copy(program, root.path().join(name)).context("copy a program")?;
        }
        let configuration =
            Configuration { user: "65534:65534", environment: &["PATH=/"], command: &[] };
        archive::write(reference, root.path(), configuration, &draft.join("image.tar"))
    })?;
    Ok(folder.join("image.tar"))
}

/// Whether an ELF file of 64 bits, little-endian, names no loader.
fn is_static(elf: &[u8]) -> bool {
    const INTERPRETER: [u8; 4] = 3_u32.to_le_bytes();
    let half =
        |at: usize| Some(usize::from(u16::from_le_bytes(elf.get(at..at + 2)?.try_into().ok()?)));
    let place =
        |at: usize| usize::try_from(u64::from_le_bytes(elf.get(at..at + 8)?.try_into().ok()?)).ok();
    let headers = || Some((place(32)?, half(54)?, half(56)?));
    let Some((start, size, count)) = headers() else {
        return false;
    };
    elf.starts_with(b"\x7fELF\x02\x01")
        && (0..count).all(|index| {
            let kind = start + index * size;
            elf.get(kind..kind + 4).is_some_and(|kind| kind != INTERPRETER)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_with_a_loader_or_no_program_is_refused() {
        let own = std::env::current_exe().unwrap();
        for refused in [own.as_path(), Path::new("/etc/passwd")] {
            let fault = pack(UNISONO, &[refused]).unwrap_err().to_string();
            assert!(fault.contains("is not a static program"), "{fault}");
        }
    }
}
