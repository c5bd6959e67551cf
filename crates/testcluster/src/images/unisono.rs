//! Unisono's own images: the static agent alone, and the whole program beside it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

use super::archive::{self, Configuration};
use super::libraries::{below, copy_libraries};
use crate::cache::{self, Key};

/// What a pod writes to have Unisono's own image.
pub const UNISONO: &str = "unisono.test/unisono:1";

/// Builds Unisono's static agent and packs it as [`UNISONO`], a `docker save` archive. It changes
/// with every build, so that nodes are given it while they run.
pub fn unisono_archive() -> anyhow::Result<PathBuf> {
    pack(UNISONO, &static_agent()?, None)
}

/// Builds the agent and packs it and the whole program under this name: the operator's image. The program was built for
/// this machine, and nobody waits until it is built once more: the libraries that it loads go along.
pub fn operator_archive(reference: &str, program: &Path) -> anyhow::Result<PathBuf> {
    pack(reference, &static_agent()?, Some(program))
}

/// Builds the agent; the task prints its path.
fn static_agent() -> anyhow::Result<PathBuf> {
    let mut cargo = Command::new(env!("CARGO"));
    // What cargo told this program about itself would make build scripts run again.
    for (name, _) in std::env::vars_os() {
        let name_bytes = name.as_encoded_bytes();
        if name_bytes.starts_with(b"CARGO_PKG_") || name_bytes.starts_with(b"CARGO_MANIFEST_") {
            cargo.env_remove(name);
        }
    }
    let output = cargo
        .args(["run", "--quiet", "--package", "xtask", "--", "agent"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("run cargo")?;
    ensure!(output.status.success(), "cargo xtask agent: {}", output.status);
    let path = String::from_utf8(output.stdout).context("read a path")?;
    Ok(PathBuf::from(path.trim_end()))
}

/// Packs the agent as `/unisono-agent` and the program, if any, as `/unisono`.
fn pack(reference: &str, agent: &Path, program: Option<&Path>) -> anyhow::Result<PathBuf> {
    let read = |path: &Path| fs::read(path).with_context(|| format!("read {}", path.display()));
    let bytes = read(agent)?;
    ensure!(
        is_static(&bytes),
        "{} is not a static program: an empty root has no loader to run it",
        agent.display()
    );
    let mut key = Key::new().with(reference).with(bytes);
    if let Some(program) = program {
        key = key.with(read(program)?);
    }
    let folder = cache::folder("image-unisono", &key, |draft| {
        let root = tempfile::tempdir().context("create a root")?;
        fs::copy(agent, root.path().join("unisono-agent")).context("copy the agent")?;
        if let Some(program) = program {
            add_program(program, root.path())?;
        }
        let configuration =
            Configuration { user: "65534:65534", environment: &["PATH=/"], command: &[] };
        archive::write(reference, root.path(), configuration, &draft.join("image.tar"))
    })?;
    Ok(folder.join("image.tar"))
}

/// Adds the program without what only debuggers read, and its libraries.
fn add_program(program: &Path, root: &Path) -> anyhow::Result<()> {
    let status = Command::new("strip").arg("-o").arg(root.join("unisono")).arg(program).status();
    let status = status.context("run strip")?;
    ensure!(status.success(), "strip {}: {status}", program.display());
    copy_libraries([program.to_owned()], Path::new(""), |library| below(root, library))
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
            let fault = pack(UNISONO, refused, None).unwrap_err().to_string();
            assert!(fault.contains("is not a static program"), "{fault}");
        }
    }
}
