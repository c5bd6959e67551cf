//! Which rank wrote a line: how each launcher can be asked to put a tag before it, and the stand-in that asks.
//!
//! In a pod the stand-in lies first on the `PATH` of a launch line whose lines are wanted with their ranks. It finds out which launcher
//! the real one is, and becomes it, with the options that it understands. On one machine the engine has a stand-in of its own.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use thiserror::Error;

/// The names under which launchers are called.
pub const LAUNCHERS: [&str; 2] = ["mpirun", "mpiexec"];

/// How a launcher writes its tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagForm {
    /// `[1,0]<stdout>:text`, Open MPI 4 and earlier.
    OpenMpi4,
    /// `[1,0][host:pid]<stdout>: text`, Open MPI 5.
    Prrte,
    /// `[0@host] text`, MPICH and Intel MPI. We choose the form, so a run can put a mark of its own into it, which no rank writes
    /// by chance: `[0@host:5f3a0c11] text`.
    Hydra(Option<u32>),
}

impl TagForm {
    /// How the launcher that says this of itself writes its tags.
    pub fn of(version: &str) -> Option<Self> {
        if version.contains("Open MPI") || version.contains("OpenRTE") || version.contains("PRRTE")
        {
            let after_name = version.split(") ").nth(1).unwrap_or_default();
            let major: u32 =
                after_name.split('.').next().and_then(|it| it.parse().ok()).unwrap_or(5);
            Some(if major < 5 { Self::OpenMpi4 } else { Self::Prrte })
        } else if version.contains("HYDRA") || version.contains("Intel") {
            Some(Self::Hydra(None))
        } else {
            None
        }
    }

    /// With a mark of its own, where the form is ours to choose.
    #[must_use]
    pub const fn marked(self, mark: u32) -> Self {
        match self {
            Self::Hydra(_) => Self::Hydra(Some(mark)),
            Self::OpenMpi4 | Self::Prrte => self,
        }
    }

    /// The options that make a launcher tag its lines so.
    pub fn options(self) -> Vec<String> {
        match self {
            Self::OpenMpi4 => vec!["--tag-output".to_owned()],
            Self::Prrte => vec!["--output".to_owned(), "tag-detailed".to_owned()],
            Self::Hydra(mark) => {
                let mark = mark.map(suffix).unwrap_or_default();
                vec!["-prepend-pattern".to_owned(), format!("[%r@%h{mark}] ")]
            }
        }
    }
}

/// How a mark stands behind the host in a tag.
pub fn suffix(mark: u32) -> String {
    format!(":{mark:08x}")
}

/// Whether these arguments of a launcher leave nothing to ask it for: they say how lines are tagged, or nothing is run.
pub fn has_its_way(arguments: &[OsString]) -> bool {
    let options = [
        "--tag-output",
        "-tag-output",
        "-prepend-rank",
        "-prepend-pattern",
        "-l",
        "--output",
        "--version",
        "-V",
    ];
    arguments.iter().any(|word| options.iter().any(|option| word == option))
}

/// The first program of that name on the path that is not this very program.
pub fn next_on_path(name: &str, path: &OsStr) -> Option<PathBuf> {
    let ours = std::env::current_exe().ok()?;
    std::env::split_paths(path).map(|folder| folder.join(name)).find(|candidate| {
        candidate.is_file() && candidate.canonicalize().ok().as_ref() != Some(&ours)
    })
}

/// Why the real launcher does not run.
#[derive(Debug, Error)]
pub(crate) enum LauncherError {
    #[error("{0}: command not found")]
    Missing(String),
    #[error("cannot run {}", path.display())]
    Exec { path: PathBuf, source: io::Error },
}

impl LauncherError {
    /// The exit code to give, as shells do.
    pub(crate) const fn code(&self) -> u8 {
        match self {
            Self::Missing(_) => 127,
            Self::Exec { .. } => 126,
        }
    }
}

/// Becomes the real launcher of that name, and asks it to tag lines where it is one that we know. Returns only when it cannot.
pub(crate) fn launch(name: &str, arguments: &[OsString]) -> LauncherError {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let Some(real) = next_on_path(name, &path) else {
        return LauncherError::Missing(name.to_owned());
    };
    let known = || {
        let told = Command::new(&real).arg("--version").stdin(Stdio::null()).output().ok()?;
        TagForm::of(&String::from_utf8_lossy(&told.stdout))
    };
    let form = if has_its_way(arguments) { None } else { known() };
    let options = form.map(TagForm::options).unwrap_or_default();
    let source = Command::new(&real).args(options).args(arguments).exec();
    LauncherError::Exec { path: real, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_asked_in_their_own_words() {
        let options = |version| TagForm::of(version).map(TagForm::options).unwrap_or_default();
        assert_eq!(options("mpirun (Open MPI) 4.1.4"), ["--tag-output"]);
        assert_eq!(options("mpirun.openmpi (OpenRTE) 4.1.4"), ["--tag-output"]);
        assert_eq!(options("mpirun (Open MPI) 5.0.11"), ["--output", "tag-detailed"]);
        assert_eq!(options("mpirun (Open MPI) 10.0.1"), ["--output", "tag-detailed"]);
        assert_eq!(options("HYDRA build details:"), ["-prepend-pattern", "[%r@%h] "]);
        let marked = TagForm::Hydra(None).marked(0xbeef);
        assert_eq!(marked.options(), ["-prepend-pattern", "[%r@%h:0000beef] "]);
        assert_eq!(options("something else"), [""; 0]);
    }

    #[test]
    fn a_user_who_tags_is_left_alone() {
        let asks =
            |text: &str| !has_its_way(&text.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert!(asks("-n 2 ./a"));
        for line in ["--tag-output ./a", "-l -n 2 ./a", "--version"] {
            assert!(!asks(line), "{line}");
        }
    }
}
