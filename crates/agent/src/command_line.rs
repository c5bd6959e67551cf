//! What the program was called to do: its arguments go in, one of nine calls comes out.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;

use crate::hostfile::By;
use crate::ready::Wish;
use crate::settings::{self, Settings, SettingsError};
use crate::tags::LAUNCHERS;

/// How it is used.
pub(crate) const USAGE: &str = "\
unisono-agent: starts MPI ranks on the hosts of a job, in place of sshd and ssh

  unisono-agent serve   [--listen ADDRESS:PORT] [--key FILE] [--launchers FILE] [-- COMMAND…]
      answers launches on this host; with a command, runs it too and ends with it
  unisono-agent rsh     [ssh options] HOST COMMAND…
      runs a command on a host of the job; also when called as `unisono-rsh`, `rsh` or `ssh`
  unisono-agent ready   [--table FILE] [--key FILE] [--identity TEXT] [--attempt N] [--epoch N]
                        [--hostfile FILE] [--hydra-hostfile FILE] [--bare-hostfile FILE] [--by address|name] [--timeout SECONDS]
                        [--name NAME] [--proof FILE] [--last-words FILE] [--path DIR] [--watch-parent] [--once] [-- COMMAND…]
      waits for the host table and for every host (with --once each is asked only once), writes the hostfiles, then runs the command;
      last words are where ranks ran and what the command said last
  unisono-agent rank    PROGRAM ARGUMENTS…
      writes down in the launch proof which rank begins here and how it ends, and becomes the program; also when called as `unisono-rank`
  unisono-agent install DIR [--code FOLDER]
      copies itself there, with the names it answers to; the archive whose pieces are in a folder is unpacked to DIR/code;
      with DIR/launchers first on the PATH, `mpirun` and `mpiexec` are asked to say which rank wrote each line
  unisono-agent end-with FILE
      waits until an exit code stands in the file, and ends with it
  unisono-agent keys    --launcher NAME… --host NAME… DIR
      makes the keys of one job

Files not named by an option come from UNISONO_AGENT_LISTEN, UNISONO_AGENT_HOST_KEY, UNISONO_AGENT_LAUNCHERS,
UNISONO_AGENT_LAUNCHER_KEY, UNISONO_AGENT_TABLE, UNISONO_AGENT_HOST_KEYS and UNISONO_AGENT_PROOF, or from /etc/unisono/agent.
";

/// How long `ready` waits unless told otherwise: image pulls on a cold cluster take minutes.
const USUAL_TIMEOUT: Duration = Duration::from_secs(600);

/// One call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// Answer launches; run this command too.
    Serve(Vec<OsString>),
    /// Run a command elsewhere; the arguments are ssh's.
    Rsh(Vec<OsString>),
    /// Wait, then run.
    Ready(Box<Wish>),
    /// Tell which rank this is and become its program.
    Rank(Vec<OsString>),
    /// Become the launcher of this name, and ask it to say which rank wrote each line.
    Launcher(&'static str, Vec<OsString>),
    /// Copy the program, and unpack the code whose pieces are in the second folder.
    Install(PathBuf, Option<PathBuf>),
    /// Wait for an exit code in a file, and end with it.
    EndWith(PathBuf),
    /// Make keys.
    Keys { launchers: Vec<String>, hosts: Vec<String>, folder: PathBuf },
    /// Say how it is used.
    Help,
}

/// A call that cannot be understood.
#[derive(Debug, Error)]
pub(crate) enum CallError {
    #[error("say what to do: serve, rsh, ready, rank, install, end-with, keys or --help")]
    Nothing,
    #[error("`{0}` is none of serve, rsh, ready, rank, install, end-with, keys")]
    Unknown(String),
    #[error("{0} needs a value")]
    NoValue(String),
    #[error("{option} {value}: {wanted}")]
    BadValue { option: String, value: String, wanted: &'static str },
    #[error("unknown option or argument `{0}`")]
    Unexpected(String),
    #[error("install needs the folder to copy to")]
    NoFolder,
    #[error("end-with needs the file in which the exit code will stand")]
    NoFile,
    #[error("keys needs a folder, at least one --launcher and at least one --host")]
    IncompleteKeys,
    #[error(transparent)]
    Settings(#[from] SettingsError),
}

/// Reads the whole argument list, program name first. Options that name files go to the settings.
pub(crate) fn read(arguments: &[OsString], settings: &mut Settings) -> Result<Call, CallError> {
    let (called_as, arguments) = arguments.split_first().ok_or(CallError::Nothing)?;
    let called_as = Path::new(called_as).file_name().and_then(OsStr::to_str);
    if matches!(called_as, Some("ssh" | "rsh" | "unisono-rsh")) {
        return Ok(Call::Rsh(arguments.to_vec()));
    }
    if let Some(name) = LAUNCHERS.into_iter().find(|name| called_as == Some(name)) {
        return Ok(Call::Launcher(name, arguments.to_vec()));
    }
    if called_as == Some("unisono-rank") {
        return Ok(Call::Rank(arguments.to_vec()));
    }
    let (verb, rest) = arguments.split_first().ok_or(CallError::Nothing)?;
    match verb.to_str() {
        Some("serve") => serve(rest, settings),
        Some("rsh") => Ok(Call::Rsh(rest.to_vec())),
        Some("ready") => ready(rest, settings),
        Some("rank") => Ok(Call::Rank(rest.to_vec())),
        Some("install") => match rest {
            [folder] => Ok(Call::Install(folder.into(), None)),
            [folder, option, code] if option == "--code" => {
                Ok(Call::Install(folder.into(), Some(code.into())))
            }
            _ => Err(CallError::NoFolder),
        },
        Some("end-with") => match rest {
            [file] => Ok(Call::EndWith(file.into())),
            _ => Err(CallError::NoFile),
        },
        Some("keys") => keys(rest),
        Some("help" | "--help" | "-h") => Ok(Call::Help),
        _ => Err(CallError::Unknown(verb.to_string_lossy().into_owned())),
    }
}

fn serve(arguments: &[OsString], settings: &mut Settings) -> Result<Call, CallError> {
    let mut options = Options(arguments.iter());
    while let Some(option) = options.next_option()? {
        match option {
            "--listen" => settings.listen = Some(settings::place(&options.text(option)?)?),
            "--key" => settings.host_key = options.path(option)?,
            "--launchers" => settings.launchers = options.path(option)?,
            other => return Err(CallError::Unexpected(other.to_owned())),
        }
    }
    Ok(Call::Serve(options.rest()))
}

fn ready(arguments: &[OsString], settings: &mut Settings) -> Result<Call, CallError> {
    let mut wish = Wish {
        identity: None,
        attempt: None,
        epoch: None,
        hostfile: None,
        hydra_hostfile: None,
        bare_hostfile: None,
        by: By::Address,
        asks_once: false,
        timeout: USUAL_TIMEOUT,
        name: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        path: None,
        last_words: None,
        watch_parent: false,
        command: Vec::new(),
    };
    let mut options = Options(arguments.iter());
    while let Some(option) = options.next_option()? {
        match option {
            "--table" => settings.table = options.path(option)?,
            "--key" => settings.launcher_key = options.path(option)?,
            "--proof" => settings.proof = Some(options.path(option)?),
            "--identity" => wish.identity = Some(options.text(option)?),
            "--attempt" => wish.attempt = Some(options.number(option)?),
            "--epoch" => wish.epoch = Some(options.number(option)?),
            "--hostfile" => wish.hostfile = Some(options.path(option)?),
            "--hydra-hostfile" => wish.hydra_hostfile = Some(options.path(option)?),
            "--bare-hostfile" => wish.bare_hostfile = Some(options.path(option)?),
            "--timeout" => wish.timeout = Duration::from_secs(options.number(option)?.into()),
            "--name" => wish.name = options.text(option)?,
            "--path" => wish.path = Some(options.path(option)?),
            "--last-words" => wish.last_words = Some(options.path(option)?),
            "--watch-parent" => wish.watch_parent = true,
            "--once" => wish.asks_once = true,
            "--by" => wish.by = by(options.text(option)?)?,
            other => return Err(CallError::Unexpected(other.to_owned())),
        }
    }
    wish.command = options.rest();
    Ok(Call::Ready(Box::new(wish)))
}

fn by(value: String) -> Result<By, CallError> {
    match value.as_str() {
        "address" => Ok(By::Address),
        "name" => Ok(By::Name),
        _ => Err(CallError::BadValue {
            option: "--by".to_owned(),
            value,
            wanted: "write address or name",
        }),
    }
}

fn keys(arguments: &[OsString]) -> Result<Call, CallError> {
    let (mut launchers, mut hosts, mut folder) = (Vec::new(), Vec::new(), None);
    let mut rest = Options(arguments.iter());
    while let Some(argument) = rest.0.next() {
        match argument.to_str() {
            Some("--launcher") => launchers.push(rest.text("--launcher")?),
            Some("--host") => hosts.push(rest.text("--host")?),
            Some(option) if option.starts_with('-') => {
                return Err(CallError::Unexpected(option.to_owned()));
            }
            _ if folder.is_none() => folder = Some(PathBuf::from(argument)),
            _ => {
                return Err(CallError::Unexpected(argument.to_string_lossy().into_owned()));
            }
        }
    }
    match folder {
        Some(folder) if !launchers.is_empty() && !hosts.is_empty() => {
            Ok(Call::Keys { launchers, hosts, folder })
        }
        _ => Err(CallError::IncompleteKeys),
    }
}

/// Options up to `--`, then a command.
struct Options<'arg>(std::slice::Iter<'arg, OsString>);

impl<'arg> Options<'arg> {
    fn next_option(&mut self) -> Result<Option<&'arg str>, CallError> {
        match self.0.next().map(|option| (option, option.to_str())) {
            None | Some((_, Some("--"))) => Ok(None),
            Some((_, Some(option))) if option.starts_with("--") => Ok(Some(option)),
            Some((other, _)) => Err(CallError::Unexpected(other.to_string_lossy().into_owned())),
        }
    }

    fn value(&mut self, option: &str) -> Result<&'arg OsString, CallError> {
        self.0.next().ok_or_else(|| CallError::NoValue(option.to_owned()))
    }

    fn text(&mut self, option: &str) -> Result<String, CallError> {
        Ok(self.value(option)?.to_string_lossy().into_owned())
    }

    fn path(&mut self, option: &str) -> Result<PathBuf, CallError> {
        Ok(self.value(option)?.into())
    }

    fn number(&mut self, option: &str) -> Result<u32, CallError> {
        let value = self.text(option)?;
        value.parse().map_err(|_| CallError::BadValue {
            option: option.to_owned(),
            value,
            wanted: "write a whole number",
        })
    }

    fn rest(self) -> Vec<OsString> {
        self.0.cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(arguments: &[&str]) -> Result<Call, CallError> {
        let mut settings = Settings::read(|_| None).unwrap();
        read(&arguments.iter().map(OsString::from).collect::<Vec<_>>(), &mut settings)
    }

    #[test]
    fn called_as_ssh_it_is_ssh() {
        for name in ["ssh", "/opt/unisono/bin/ssh", "/opt/unisono/unisono-rsh", "rsh"] {
            assert_eq!(call(&[name, "-x", "w"]).unwrap(), Call::Rsh(vec!["-x".into(), "w".into()]));
        }
    }

    #[test]
    fn called_by_a_launcher_for_a_rank_it_is_the_rank() {
        let expected = Call::Rank(vec!["./a".into(), "-x".into()]);
        assert_eq!(call(&["/opt/unisono/bin/unisono-rank", "./a", "-x"]).unwrap(), expected);
        assert_eq!(call(&["unisono-agent", "rank", "./a", "-x"]).unwrap(), expected);
    }

    #[test]
    fn called_as_a_launcher_it_stands_in_for_it() {
        let expected = Call::Launcher("mpiexec", vec!["-n".into(), "2".into()]);
        assert_eq!(call(&["/opt/unisono/launchers/mpiexec", "-n", "2"]).unwrap(), expected);
    }

    #[test]
    fn a_command_follows_two_dashes() {
        let Call::Serve(command) =
            call(&["unisono-agent", "serve", "--key", "k", "--", "sleep", "--", "1"]).unwrap()
        else {
            panic!("not serve");
        };
        assert_eq!(command, ["sleep", "--", "1"]);
        assert!(matches!(
            call(&["unisono-agent", "serve", "sleep"]),
            Err(CallError::Unexpected(_))
        ));
    }

    #[test]
    fn ready_takes_its_wishes() {
        let Call::Ready(wish) =
            call(&["a", "ready", "--attempt", "2", "--by", "name", "--timeout", "7", "--", "true"])
                .unwrap()
        else {
            panic!("not ready");
        };
        assert_eq!(
            (wish.attempt, wish.by, wish.timeout),
            (Some(2), By::Name, Duration::from_secs(7))
        );
        assert!(matches!(call(&["a", "ready", "--attempt", "x"]), Err(CallError::BadValue { .. })));
        assert!(matches!(call(&["a", "ready", "--by"]), Err(CallError::NoValue(_))));
    }

    #[test]
    fn keys_needs_all_its_parts() {
        assert!(matches!(
            call(&["a", "keys", "--launcher", "l", "d"]),
            Err(CallError::IncompleteKeys)
        ));
        assert!(matches!(
            call(&["a", "keys", "--launcher", "l", "--host", "h", "d"]),
            Ok(Call::Keys { .. })
        ));
    }
}
