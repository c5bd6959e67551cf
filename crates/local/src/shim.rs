//! The stand-in for `mpirun` on a host's `PATH`: it asks the real one to say which rank wrote each line.
//!
//! The job's own launch line stays as it is. Only the launcher that was found when the run began is asked, in the words
//! that it is known to understand; any other is run as if we were not there.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The names under which the stand-in is called.
pub const NAMES: [&str; 2] = ["mpirun", "mpiexec"];

/// Tells the stand-in which launcher to ask, and how: its path, then one option a line.
pub const VARIABLE: &str = "UNISONO_TAGS";

/// Runs the real launcher when the program was called by a launcher's name; else returns at once.
pub fn take_over(arguments: &[OsString]) -> Option<i32> {
    let (program, rest) = arguments.split_first()?;
    let name = Path::new(program).file_name()?.to_str().filter(|name| NAMES.contains(name))?;
    let request = std::env::var(VARIABLE).unwrap_or_default();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let Some(real) = next_on_path(name, &path) else {
        tell(&format!(
            "{name}: command not found: install an MPI, for example `apt install openmpi-bin`"
        ));
        return Some(127);
    };
    let error = Command::new(&real).args(added(&request, &real, rest)).args(rest).exec();
    tell(&format!("cannot run {}: {error}", real.display()));
    Some(126)
}

/// The options to add for this launcher.
fn added<'request>(
    request: &'request str,
    real: &Path,
    arguments: &[OsString],
) -> Vec<&'request str> {
    let mut lines = request.lines();
    let same_family = lines.next().is_some_and(|known| Path::new(known).parent() == real.parent());
    let tags_already = [
        "--tag-output",
        "-tag-output",
        "-prepend-rank",
        "-prepend-pattern",
        "-l",
        "--output",
        "--version",
        "-V",
    ];
    let tagged = arguments.iter().any(|word| tags_already.iter().any(|tag| word == tag));
    if same_family && !tagged { lines.collect() } else { Vec::new() }
}

/// The first program of that name that is not a stand-in: our own folder comes first on the `PATH`, so it is passed over.
fn next_on_path(name: &str, path: &OsStr) -> Option<PathBuf> {
    let ours = std::env::current_exe().ok()?;
    std::env::split_paths(path).map(|folder| folder.join(name)).find(|candidate| {
        candidate.is_file() && candidate.canonicalize().ok().as_ref() != Some(&ours)
    })
}

#[expect(clippy::print_stderr, reason = "the stand-in speaks where the launcher would")]
fn tell(message: &str) {
    eprintln!("unisono: {message}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn only_the_launcher_that_is_known_is_asked() {
        let request = "/usr/bin/mpirun\n--tag-output";
        assert_eq!(
            added(request, Path::new("/usr/bin/mpiexec"), &words("-n 2 ./a")),
            ["--tag-output"]
        );
        assert_eq!(added(request, Path::new("/opt/x/bin/mpirun"), &words("-n 2 ./a")), [""; 0]);
        assert_eq!(added("", Path::new("/usr/bin/mpirun"), &words("-n 2 ./a")), [""; 0]);
    }

    #[test]
    fn a_user_who_tags_is_left_alone() {
        let request = "/usr/bin/mpirun\n--tag-output";
        assert_eq!(
            added(request, Path::new("/usr/bin/mpirun"), &words("--tag-output ./a")),
            [""; 0]
        );
    }
}
