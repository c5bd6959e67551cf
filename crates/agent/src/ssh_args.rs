//! ssh's way of being called: an argument list goes in; a host and a command come out, or a clear word about what cannot be done.
//!
//! Launchers and scripts pass options that make no difference here (user, port, terminal, host keys): they are taken and ignored.
//! Options that ask for something the agent does not do are errors, so that nothing is run under a wrong idea.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;

use thiserror::Error;

/// What the caller wants.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// As the caller named it, without a user.
    pub(crate) host: String,
    /// The arguments joined by blanks, as sshd gets them. Empty: the shell reads its commands from standard input.
    pub(crate) command: Vec<u8>,
    /// False when `-n` says that standard input is not to be read.
    pub(crate) reads_stdin: bool,
}

/// Why a call cannot be answered.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum CallError {
    #[error("the version was asked for")]
    Version,
    #[error("no host is named; call it as `rsh [ssh options] HOST COMMAND…`")]
    NoHost,
    #[error("option -{0} needs a value")]
    NoValue(char),
    #[error(
        "-{option} asks for {what}, which this stand-in for ssh does not do: it runs commands on the job's own hosts"
    )]
    CannotDo { option: char, what: &'static str },
    #[error("-o {0} is not done by this stand-in for ssh: it runs commands on the job's own hosts")]
    CannotSet(String),
    #[error("unknown option -{0}")]
    UnknownOption(char),
}

/// Options with a value that make no difference here.
const IGNORED_WITH_VALUE: &str = "lpiFEeBbcmI";

/// Options without a value that make no difference here.
const IGNORED: &str = "46aCkKqTtvxy";

/// Options that ask for something else than running a command, with what that is.
const CANNOT_DO: &[(char, &str)] = &[
    ('A', "agent forwarding"),
    ('D', "port forwarding"),
    ('L', "port forwarding"),
    ('R', "port forwarding"),
    ('g', "port forwarding"),
    ('W', "standard input forwarding"),
    ('w', "a tunnel"),
    ('X', "X11 forwarding"),
    ('Y', "X11 forwarding"),
    ('J', "a jump host"),
    ('N', "a connection without a command"),
    ('s', "a subsystem"),
    ('f', "going to the background"),
    ('M', "connection sharing"),
    ('O', "connection sharing"),
    ('S', "connection sharing"),
    ('G', "printing a configuration"),
    ('Q', "listing algorithms"),
    ('P', "a tag"),
];

/// `-o` settings that ask for something else than running a command, unless their value switches them off. Lower case, as ssh compares.
const CANNOT_SET: &[&str] = &[
    "proxycommand",
    "proxyjump",
    "localforward",
    "remoteforward",
    "dynamicforward",
    "forwardagent",
    "forwardx11",
    "forwardx11trusted",
    "tunnel",
    "localcommand",
    "permitlocalcommand",
    "remotecommand",
    "knownhostscommand",
    "stdioforward",
    "forkafterauthentication",
    "sessiontype",
];

/// Reads the arguments.
pub(crate) fn read(arguments: &[OsString]) -> Result<Call, CallError> {
    let mut rest = arguments.iter();
    let mut host = None;
    let mut reads_stdin = true;
    let mut command: Vec<&[u8]> = Vec::new();
    while let Some(argument) = rest.next() {
        let bytes = argument.as_bytes();
        match bytes {
            b"--" if host.is_none() => {
                host = rest.next();
                break;
            }
            b"--" => break,
            // As ssh does, options are also taken between the host and the command.
            [b'-', flags @ ..] if !flags.is_empty() => {
                let mut value = || rest.next();
                read_flags(flags, &mut value, &mut reads_stdin)?;
            }
            _ if host.is_none() => host = Some(argument),
            word => {
                command.push(word);
                break;
            }
        }
    }
    command.extend(rest.map(|argument| argument.as_bytes()));
    let host = host.ok_or(CallError::NoHost)?.to_string_lossy();
    let host = host.rsplit_once('@').map_or(&*host, |(_user, host)| host);
    Ok(Call { host: host.to_owned(), command: command.join(&b' '), reads_stdin })
}

/// Reads one cluster of options (`-tt`, `-xl user`, `-oBatchMode=yes`).
fn read_flags<'arg>(
    flags: &[u8],
    next_argument: &mut dyn FnMut() -> Option<&'arg OsString>,
    reads_stdin: &mut bool,
) -> Result<(), CallError> {
    let mut flags = flags;
    while let [flag, attached @ ..] = flags {
        let option = char::from(*flag);
        let mut value = || match attached {
            [] => next_argument()
                .map(|it| it.to_string_lossy().into_owned())
                .ok_or(CallError::NoValue(option)),
            attached => Ok(String::from_utf8_lossy(attached).into_owned()),
        };
        if let Some((_, what)) = CANNOT_DO.iter().find(|(known, _)| *known == option) {
            return Err(CallError::CannotDo { option, what });
        }
        match option {
            'o' => return check_setting(&value()?),
            'V' => return Err(CallError::Version),
            'n' => *reads_stdin = false,
            _ if IGNORED_WITH_VALUE.contains(option) => return value().map(drop),
            _ if IGNORED.contains(option) => {}
            _ => return Err(CallError::UnknownOption(option)),
        }
        flags = attached;
    }
    Ok(())
}

/// `key=value` or `key value`; what would do more than run a command is refused, the rest is ignored.
fn check_setting(setting: &str) -> Result<(), CallError> {
    let trimmed = setting.trim();
    let (key, value) = trimmed.split_once(['=', ' ', '\t']).unwrap_or((trimmed, ""));
    let value = value.trim_start_matches([' ', '\t', '=']);
    let is_off =
        ["no", "none", "false", "default"].iter().any(|off| value.eq_ignore_ascii_case(off));
    if !is_off && CANNOT_SET.contains(&key.to_ascii_lowercase().as_str()) {
        return Err(CallError::CannotSet(key.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(arguments: &[&str]) -> Result<Call, CallError> {
        read(&arguments.iter().map(OsString::from).collect::<Vec<_>>())
    }

    fn host_and_command(arguments: &[&str]) -> (String, String) {
        let call = call(arguments).unwrap();
        (call.host, String::from_utf8(call.command).unwrap())
    }

    fn pair(host: &str, command: &str) -> (String, String) {
        (host.to_owned(), command.to_owned())
    }

    #[test]
    fn what_the_four_mpis_pass() {
        assert_eq!(
            host_and_command(&[
                "n1",
                "  PATH=/usr/bin:$PATH ; export PATH ;   /usr/bin/orted",
                "-mca",
                "ess",
                "\"env\""
            ]),
            pair("n1", "  PATH=/usr/bin:$PATH ; export PATH ;   /usr/bin/orted -mca ess \"env\"")
        );
        assert_eq!(
            host_and_command(&["-x", "n1", "\"/opt/hydra_pmi_proxy\"", "--control-port", "n0:1"]),
            pair("n1", "\"/opt/hydra_pmi_proxy\" --control-port n0:1")
        );
        assert_eq!(
            host_and_command(&[
                "-q",
                "-x",
                "n1",
                "/opt/hydra_bstrap_proxy",
                "--upstream-host",
                "n0"
            ]),
            pair("n1", "/opt/hydra_bstrap_proxy --upstream-host n0")
        );
    }

    #[test]
    fn habits_of_scripts_are_taken() {
        for arguments in [
            &["-l", "root", "w", "date"][..],
            &["-p22", "root@w", "date"],
            &["-o", "StrictHostKeyChecking=no", "-oBatchMode=yes", "-tt", "w", "date"],
            &["-Tnqxlroot", "w", "date"],
            &["w", "-p", "2222", "-l", "me", "date"],
            &["-i", "/root/.ssh/id", "-F", "/dev/null", "-4", "--", "w", "date"],
            &["-o", "ProxyCommand=none", "-o", "ForwardAgent no", "w", "date"],
        ] {
            assert_eq!(host_and_command(arguments), pair("w", "date"), "{arguments:?}");
        }
    }

    #[test]
    fn only_n_closes_standard_input() {
        assert!(call(&["w", "cat"]).unwrap().reads_stdin);
        assert!(!call(&["-n", "w", "cat"]).unwrap().reads_stdin);
        assert!(call(&["w", "cat", "-n"]).unwrap().reads_stdin);
    }

    #[test]
    fn what_it_cannot_do_is_an_error() {
        for option in [
            "-L8080:x:80",
            "-R1:x:1",
            "-D1080",
            "-W",
            "-N",
            "-s",
            "-X",
            "-Y",
            "-A",
            "-J",
            "-f",
            "-Mx",
            "-w0",
        ] {
            assert!(
                matches!(call(&[option, "w", "date"]), Err(CallError::CannotDo { .. })),
                "{option}"
            );
        }
        for setting in [
            "-oProxyCommand=touch /tmp/x",
            "-oproxycommand touch",
            "-oLocalCommand=x",
            "-oPermitLocalCommand=yes",
            "-oProxyJump=a",
            "-oKnownHostsCommand=/x",
        ] {
            assert!(
                matches!(call(&[setting, "w", "date"]), Err(CallError::CannotSet(_))),
                "{setting}"
            );
        }
    }

    #[test]
    fn incomplete_calls_are_errors() {
        assert_eq!(call(&[]), Err(CallError::NoHost));
        assert_eq!(call(&["-x"]), Err(CallError::NoHost));
        assert_eq!(call(&["-l"]), Err(CallError::NoValue('l')));
        assert_eq!(call(&["-Z", "w"]), Err(CallError::UnknownOption('Z')));
        assert_eq!(call(&["-V"]), Err(CallError::Version));
    }

    #[test]
    fn a_host_alone_means_the_shell() {
        assert_eq!(host_and_command(&["w"]), pair("w", ""));
    }
}
