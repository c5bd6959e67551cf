//! The testbed's small MPI programs, compiled for where they will be in an image:
//! `/programs/FLAVOUR/NAME`, with the MPI in `/opt/FLAVOUR`.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use unisono_testbed::mpi::{self, Flavour};
use unisono_testbed::program::Program;

use crate::cache::Key;

/// Adds the programs' own sources to what an image is made of.
pub(super) fn key(mut key: Key) -> Key {
    for program in Program::ALL {
        key = key.with(program.source().1);
    }
    key
}

/// Compiles all programs for one MPI into an image's root.
pub(super) fn compile_all(flavour: Flavour, root: &Path) -> anyhow::Result<()> {
    let folder = root.join("programs").join(flavour.name());
    fs::create_dir_all(&folder).context("create a folder for programs")?;
    let mpi = mpi::find(flavour)?;
    for program in Program::ALL {
        let (name, source) = program.source();
        let mut compiler = match flavour {
            Flavour::OpenMpi4 => Command::new(mpi.bin.join("mpicc.openmpi")),
            Flavour::OpenMpi5 | Flavour::Mpich | Flavour::IntelMpi => Command::new("cc"),
        };
        // Intel's wheel has no headers; MPICH's describe the same binary interface.
        let headers = match flavour {
            Flavour::OpenMpi4 => None,
            Flavour::OpenMpi5 | Flavour::Mpich => Some(mpi.prefix.join("include")),
            Flavour::IntelMpi => Some(mpi::find(Flavour::Mpich)?.prefix.join("include")),
        };
        let mut libraries = Vec::new();
        if let Some(headers) = headers {
            compiler.arg("-I").arg(headers);
            libraries.push(format!("-L{}", mpi.prefix.join("lib").display()));
            libraries.push(format!("-Wl,-rpath,/opt/{}/lib", flavour.name()));
            // What the library itself needs is found in the image, not here.
            libraries.push("-Wl,--allow-shlib-undefined".to_owned());
            libraries.push("-lmpi".to_owned());
        }
        compile(&mut compiler, source, &folder.join(name), &libraries)?;
    }
    Ok(())
}

/// Compiles one program from its text.
pub(super) fn compile(
    compiler: &mut Command,
    source: &str,
    output: &Path,
    libraries: &[String],
) -> anyhow::Result<()> {
    let work = tempfile::tempdir().context("create a folder to compile in")?;
    fs::write(work.path().join("program.c"), source).context("write a source")?;
    // A path of the machine in the program would make it differ from one to the next.
    let answer = compiler
        .current_dir(work.path())
        .args(["-O1", "-s", "program.c", "-o"])
        .arg(output)
        .args(libraries)
        .output()
        .context("run the C compiler (the Debian packages gcc and libopenmpi-dev)")?;
    ensure!(
        answer.status.success(),
        "compile {}: {}",
        output.display(),
        String::from_utf8_lossy(&answer.stderr)
    );
    Ok(())
}
