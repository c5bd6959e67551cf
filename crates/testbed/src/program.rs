//! Small MPI programs, compiled for the MPI they are to run with and kept by the digest of all that went into them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use crate::cache;
use crate::mpi::{self, Flavour, Installation};

/// One of the programs in `programs/`; what each does stands on its first line there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Says rank, size and host.
    Hello,
    /// Sums one number and 8 MB over all ranks and checks the sums.
    Allreduce,
    /// `RANK CODE`: that rank ends with that code.
    ExitCode,
    /// `RANK`: that rank dies of SIGSEGV.
    Segfault,
    /// `RANK CODE`: that rank calls `MPI_Abort`.
    Abort,
    /// Rank 0 copies its input, up to a line `end`, to its output.
    Echo,
    /// `SECONDS [ignore-term]`: all ranks say so and wait.
    Wait,
    /// `SECONDS`: each rank leaves a daemon in a session of its own, then waits.
    Daemon,
    /// `RANK MEGABYTES`: that rank prints so much.
    Print,
    /// `NAME…`: all ranks print their host and those variables of their environment.
    Environment,
}

impl Program {
    /// Every program.
    pub const ALL: [Self; 10] = [
        Self::Hello,
        Self::Allreduce,
        Self::ExitCode,
        Self::Segfault,
        Self::Abort,
        Self::Echo,
        Self::Wait,
        Self::Daemon,
        Self::Print,
        Self::Environment,
    ];

    /// The program's name and its text in C.
    #[must_use]
    pub const fn source(self) -> (&'static str, &'static str) {
        match self {
            Self::Hello => ("hello", include_str!("../programs/hello.c")),
            Self::Allreduce => ("allreduce", include_str!("../programs/allreduce.c")),
            Self::ExitCode => ("exit_code", include_str!("../programs/exit_code.c")),
            Self::Segfault => ("segfault", include_str!("../programs/segfault.c")),
            Self::Abort => ("abort", include_str!("../programs/abort.c")),
            Self::Echo => ("echo", include_str!("../programs/echo.c")),
            Self::Wait => ("wait", include_str!("../programs/wait.c")),
            Self::Daemon => ("daemon", include_str!("../programs/daemon.c")),
            Self::Print => ("print", include_str!("../programs/print.c")),
            Self::Environment => ("environment", include_str!("../programs/environment.c")),
        }
    }
}

/// Why a program could not be compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The compiler is not there.
    #[error("run the compiler {compiler}: {hint}", hint = "`cargo xtask setup test` installs it")]
    NoCompiler {
        /// The program that was to be run.
        compiler: String,
        /// Why it was not.
        source: io::Error,
    },
    /// The compiler refused.
    #[error("{compiler} could not compile {name}: {stderr}")]
    Refused {
        /// The compiler.
        compiler: String,
        /// The program.
        name: String,
        /// What the compiler said.
        stderr: String,
    },
    /// The headers of another MPI are needed.
    #[error(transparent)]
    NotInstalled(#[from] mpi::NotInstalled),
    /// The cache could not be written.
    #[error("write to the cache of compiled programs")]
    Cache(#[from] io::Error),
}

/// Compiles a program for one MPI, unless the cache has it, and returns its path.
///
/// # Errors
/// When a compiler or header is missing.
pub fn compile(program: Program, mpi: &Installation) -> Result<PathBuf, CompileError> {
    let (name, source) = program.source();
    let (compiler, arguments) = compiler_of(mpi)?;
    compile_source(name, source, &compiler, &arguments)
}

/// Compiles a plain C program, statically: it also runs in an empty root.
pub(crate) fn compile_static(name: &str, source: &str) -> Result<PathBuf, CompileError> {
    compile_source(name, source, Path::new("cc"), &["-static".to_owned()])
}

/// Intel's wheel brings no headers and no compiler wrapper; MPICH's headers describe the same ABI.
fn compiler_of(mpi: &Installation) -> Result<(PathBuf, Vec<String>), CompileError> {
    Ok(match mpi.flavour {
        Flavour::OpenMpi4 => (mpi.bin.join("mpicc.openmpi"), vec![]),
        Flavour::OpenMpi5 | Flavour::Mpich => (mpi.bin.join("mpicc"), vec![]),
        Flavour::IntelMpi => {
            let library = mpi.prefix.join("lib").display().to_string();
            let headers = mpi::find(Flavour::Mpich)?.prefix.join("include").display().to_string();
            let arguments = vec![
                format!("-I{headers}"),
                format!("-L{library}"),
                format!("-Wl,-rpath,{library}"),
                "-lmpi".to_owned(),
            ];
            (PathBuf::from("cc"), arguments)
        }
    })
}

fn compile_source(
    name: &str,
    source: &str,
    compiler: &Path,
    arguments: &[String],
) -> Result<PathBuf, CompileError> {
    let compiler_name = compiler.display().to_string();
    let digest = cache::digest(&[
        source.as_bytes(),
        compiler_name.as_bytes(),
        arguments.join("\n").as_bytes(),
    ]);
    let folder = cache::root().join("programs").join(format!("{name}-{digest}"));
    let folder = cache::filled(folder, |folder| {
        let file = folder.join(format!("{name}.c"));
        fs::write(&file, source)?;
        let output = Command::new(compiler)
            .args(["-O1", "-Wall", "-Wextra", "-Werror", "-o"])
            .args([&folder.join(name), &file])
            .args(arguments)
            .output()
            .map_err(|source| CompileError::NoCompiler {
                compiler: compiler_name.clone(),
                source,
            })?;
        if output.status.success() {
            return Ok(());
        }
        Err(CompileError::Refused {
            compiler: compiler_name.clone(),
            name: name.to_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    })?;
    Ok(folder.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_compiles_for_every_flavour() {
        for flavour in Flavour::ALL {
            let mpi = mpi::find(flavour).unwrap();
            for program in Program::ALL {
                let path = compile(program, &mpi).unwrap();
                assert!(path.is_file(), "{program:?} for {flavour:?}");
            }
        }
    }

    #[test]
    fn a_program_that_does_not_compile_is_told_with_the_compilers_words() {
        let error = compile_static("broken", "int main(void) { return nothing; }").unwrap_err();
        assert!(error.to_string().contains("nothing"), "{error}");
    }

    #[test]
    fn intel_programs_run_with_intels_library() {
        let mpi = mpi::find(Flavour::IntelMpi).unwrap();
        let program = compile(Program::Hello, &mpi).unwrap();
        let listing = Command::new("ldd").arg(program).output().unwrap();
        let listing = String::from_utf8(listing.stdout).unwrap();
        assert!(listing.contains(mpi.prefix.to_str().unwrap()), "{listing}");
    }
}
