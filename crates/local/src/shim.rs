//! The stand-in for `mpirun` on a host's `PATH`: it asks the real one to say which rank wrote each line, and to start ranks through
//! `unisono-rank`, which sees how they end.
//!
//! The job's own launch line stays as it is otherwise, but for options that Open MPI 4 took with one dash and Open MPI 5 takes only
//! with two, and for `lo` beside another network. Only the launcher that was found when the run began is asked, in the words that
//! it is known to understand; any other is run as if we were not there.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use unisono_agent::tags::{LAUNCHERS, has_its_way, next_on_path};
use unisono_job::LaunchLine;

/// The names under which the stand-in is called.
pub const NAMES: [&str; 2] = LAUNCHERS;

/// Tells the stand-in which launcher to ask, and how: its path, then one option a line.
pub const VARIABLE: &str = "UNISONO_TAGS";

/// Set for launchers that take long options with two dashes only.
pub const TWO_DASHES: &str = "UNISONO_TWO_DASHES";

/// The program to start ranks through, for launchers that take no variable for it.
pub const RANK_STARTER: &str = "UNISONO_RANK";

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
    let mut rest = rest.to_vec();
    let mut tags = Vec::new();
    if is_known(&request, &real) {
        tags = added(&request, &rest);
        spare_loopback(&mut rest);
        if let Some(starter) = std::env::var_os(RANK_STARTER) {
            rest = through(&starter, name, rest, |program| can_be_run(program, &path));
        }
        if std::env::var_os(TWO_DASHES).is_some() {
            rest = with_two_dashes(name, &rest);
        }
    }
    let error = Command::new(&real).args(tags).args(rest).exec();
    tell(&format!("cannot run {}: {error}", real.display()));
    Some(126)
}

/// Whether this is the launcher that was found when the run began, or stands beside it.
fn is_known(request: &str, real: &Path) -> bool {
    let known = request.lines().next();
    known.is_some_and(|known| Path::new(known).parent() == real.parent())
}

/// The arguments with two dashes before every long option of the launcher's own. What cannot be taken apart stays as it is.
fn with_two_dashes(name: &str, arguments: &[OsString]) -> Vec<OsString> {
    let words = std::iter::once(name).map(str::to_owned).map(Some);
    let words = words.chain(arguments.iter().map(|it| it.to_str().map(str::to_owned)));
    let words: Option<Vec<String>> = words.collect();
    let Some((words, parts)) = words.and_then(|it| LaunchLine::parts(&it).map(|parts| (it, parts)))
    else {
        return arguments.to_vec();
    };
    let is_long = |at: usize, word: &str| {
        let begins_option = parts.options.iter().any(|option| option.start == at);
        begins_option && !word.starts_with("--") && word.len() > "-x".len()
    };
    let changed =
        words.into_iter().enumerate().skip(1).map(|(at, word)| match is_long(at, &word) {
            true => format!("-{word}"),
            false => word,
        });
    changed.map(OsString::from).collect()
}

/// Takes `lo` out of a list of networks that Open MPI may use. horovodrun lists every network over which hosts reach each other;
/// hosts that share one machine do by `lo`, too, and Open MPI waits for ever for a peer that it finds there and elsewhere.
fn spare_loopback(arguments: &mut [OsString]) {
    let is_option =
        |word: &OsString| ["-mca", "--mca", "-gmca", "--gmca"].iter().any(|it| word == it);
    for at in 2..arguments.len() {
        let [option, name, list] = &mut arguments[at - 2..=at] else {
            return;
        };
        if is_option(option) && name == "btl_tcp_if_include" {
            let networks = list.to_str().unwrap_or_default().split(',');
            let others: Vec<&str> = networks.filter(|network| *network != "lo").collect();
            if !others.is_empty() {
                *list = others.join(",").into();
            }
        }
    }
}

/// The arguments with the starter before every program. Where one cannot be told from an option's value the line stays as it is.
fn through(
    starter: &OsStr,
    name: &str,
    arguments: Vec<OsString>,
    is_program: impl Fn(&str) -> bool,
) -> Vec<OsString> {
    let programs: Option<Vec<usize>> = arguments
        .split(|word| word == ":")
        .map(|words| {
            let words = std::iter::once(Some(name.to_owned()))
                .chain(words.iter().map(|it| it.to_str().map(str::to_owned)))
                .collect::<Option<Vec<String>>>()?;
            let at = LaunchLine::parts(&words)?.program;
            is_program(words.get(at)?).then_some(at - 1)
        })
        .collect();
    let Some(programs) = programs else {
        return arguments;
    };
    let lines = arguments.split(|word| word == ":").zip(programs).map(|(words, program)| {
        let (options, command) = words.split_at(program);
        [options, &[starter.to_owned()], command].concat()
    });
    lines.collect::<Vec<_>>().join(&OsString::from(":"))
}

fn can_be_run(program: &str, path: &OsStr) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    let is_executable = |file: &Path| {
        file.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    match program.contains('/') {
        true => is_executable(Path::new(program)),
        false => std::env::split_paths(path).any(|folder| is_executable(&folder.join(program))),
    }
}

/// The options to add for the known launcher.
fn added<'request>(request: &'request str, arguments: &[OsString]) -> Vec<&'request str> {
    if has_its_way(arguments) { Vec::new() } else { request.lines().skip(1).collect() }
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
        assert!(is_known(request, Path::new("/usr/bin/mpiexec")));
        assert!(!is_known(request, Path::new("/opt/x/bin/mpirun")));
        assert!(!is_known("", Path::new("/usr/bin/mpirun")));
        assert_eq!(added(request, &words("-n 2 ./a")), ["--tag-output"]);
    }

    #[test]
    fn long_options_get_a_second_dash_and_nothing_else_does() {
        let two = |text: &str| with_two_dashes("mpirun", &words(text));
        assert_eq!(
            two("-np 4 -bind-to none -x A -mca btl ^openib --map-by slot -H a,b ./a -bind-to -np"),
            words(
                "--np 4 --bind-to none -x A --mca btl ^openib --map-by slot -H a,b ./a -bind-to -np"
            )
        );
        assert_eq!(two("-n 2 ./a : -np 3 ./b"), words("-n 2 ./a : -np 3 ./b"));
    }

    #[test]
    fn ranks_are_started_through_a_program_where_it_is_clear_which_word_theirs_is() {
        let through = |text: &str| {
            through(OsStr::new("R"), "mpirun", words(text), |it| ["./a", "python"].contains(&it))
        };
        assert_eq!(through("-n 2 -genv A 1 ./a -n 3"), words("-n 2 -genv A 1 R ./a -n 3"));
        assert_eq!(through("-n 2 ./a : -n 3 python x"), words("-n 2 R ./a : -n 3 R python x"));
        for unclear in ["-unheard of ./a", "-n 2 ./a : -n 3 ./b", "--version", "-n 2", "./b"] {
            assert_eq!(through(unclear), words(unclear), "{unclear}");
        }
    }

    #[test]
    fn loopback_beside_another_network_is_left_out() {
        let spared = |text: &str| {
            let mut words = words(text);
            spare_loopback(&mut words);
            words
        };
        let line = "-mca btl_tcp_if_include LIST -x NCCL_SOCKET_IFNAME=lo,eth0 ./a";
        for (listed, left) in [("lo,eth0", "eth0"), ("eth0,lo,ib0", "eth0,ib0"), ("lo", "lo")] {
            assert_eq!(spared(&line.replace("LIST", listed)), words(&line.replace("LIST", left)));
        }
        assert_eq!(spared("./a"), words("./a"));
    }

    #[test]
    fn a_user_who_tags_is_left_alone() {
        let request = "/usr/bin/mpirun\n--tag-output";
        assert_eq!(added(request, &words("--tag-output ./a")), [""; 0]);
    }
}
