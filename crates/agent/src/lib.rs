//! The rank transport: how mpirun reaches the other hosts of a job, without sshd, ssh, a home folder, root or a name server.
//!
//! # For engines
//!
//! 1. Mint the job's keys ([`keys::JobKeys`]): one pair per member that may launch, one per host.
//! 2. Start `unisono-agent serve` on every host, with its own host key and the [`keys::Launchers`] list:
//!    `UNISONO_AGENT_HOST_KEY`, `UNISONO_AGENT_LAUNCHERS`, `UNISONO_AGENT_LISTEN` (or `--key`, `--launchers`, `--listen`).
//! 3. Once addresses are known, write the [`table::HostTable`] where `UNISONO_AGENT_TABLE` says.
//! 4. Run the launch line as `unisono-agent ready --hostfile F --hydra-hostfile G -- COMMAND`, with `UNISONO_AGENT_LAUNCHER_KEY`,
//!    `UNISONO_AGENT_TABLE` and `UNISONO_AGENT_PROOF` set, and every MPI told to use `unisono-rsh` (what `install` lays beside the
//!    program) as its remote shell. `rsh` reads the same three variables, which mpirun hands down.
//! 5. Read the [`proof`] file: who was reached, which ranks ran where, how each launch ended.
//!
//! # For programs that contain the agent
//!
//! [`main`] answers a whole argument list, program name first. It must be called before any other thread is started.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod channel;
mod code;
mod command_line;
mod connection;
mod dial;
mod echo;
mod end_with;
mod foreground;
mod frame;
pub mod hostfile;
mod install;
pub mod keys;
pub mod last_words;
mod launch;
mod log;
mod losses;
mod outlet;
mod polling;
mod probe;
pub mod processes;
pub mod proof;
mod rank_start;
pub mod ranks;
mod ready;
mod rsh;
mod serve;
mod settings;
mod shell_words;
mod ssh_args;
mod strangers;
mod sys;
pub mod table;
pub mod tags;
mod tls;
mod tree;
mod witness;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use command_line::Call;
pub use settings::NOT_FOR_RANKS;
use settings::Settings;

/// The exit code of a call that could not be understood.
const USAGE_FAULT: u8 = 2;

/// The exit code of our own failures.
const FAILED: u8 = 1;

/// Does what the arguments say (program name first) and gives the exit code. Call it while the process has a single thread.
pub fn main(arguments: &[OsString]) -> ExitCode {
    // No core dump and no debugger of another process may read the keys. Commands become readable again by their exec.
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    ExitCode::from(run(arguments))
}

fn run(arguments: &[OsString]) -> u8 {
    let call = Settings::read(|name| std::env::var_os(name))
        .map_err(command_line::CallError::from)
        .and_then(|mut settings| {
            command_line::read(arguments, &mut settings).map(|call| (call, settings))
        });
    match call {
        Ok((call, settings)) => perform(call, &settings),
        Err(fault) => failed(&fault, USAGE_FAULT),
    }
}

fn perform(call: Call, settings: &Settings) -> u8 {
    match call {
        Call::Serve(own_command) => {
            serve::serve(settings, &own_command).unwrap_or_else(|error| failed(&error, FAILED))
        }
        Call::Rsh(arguments) => match rsh::rsh(settings, &arguments) {
            Ok(code) => code,
            Err(rsh::RshError::Call(ssh_args::CallError::Version)) => {
                say(concat!("unisono-agent ", env!("CARGO_PKG_VERSION"), ", in place of ssh\n"))
            }
            Err(error) => failed(&error, error.code()),
        },
        Call::Ready(wish) => {
            ready::ready(settings, &wish).unwrap_or_else(|error| failed(&error, error.code()))
        }
        Call::Rank(command) => {
            let error = rank_start::begin(settings, &command);
            failed(&error, error.code())
        }
        Call::Launcher(name, arguments) => {
            let error = tags::launch(name, &arguments);
            failed(&error, error.code())
        }
        Call::Install(folder, pieces) => {
            let installed = install::install(&folder).map_err(|error| failed(&error, FAILED));
            let unpacked = installed.and_then(|()| match pieces {
                Some(pieces) => code::unpack(&pieces, &folder.join("code"))
                    .map_err(|error| failed(&error, FAILED)),
                None => Ok(()),
            });
            unpacked.map_or_else(|code| code, |()| 0)
        }
        Call::Keys { launchers, hosts, folder } => keys::JobKeys::mint(
            launchers.iter().map(String::as_str),
            hosts.iter().map(String::as_str),
        )
        .and_then(|keys| keys.write(&folder))
        .map_or_else(|error| failed(&error, FAILED), |()| 0),
        Call::EndWith(file) => {
            end_with::end_with(&file).unwrap_or_else(|error| failed(&error, FAILED))
        }
        Call::Help => say(command_line::USAGE),
    }
}

fn failed(error: &dyn std::error::Error, code: u8) -> u8 {
    log::line(format_args!("{}", log::chain(error)));
    code
}

/// Prints what was asked for; a reader that is gone is no fault of ours.
fn say(text: &str) -> u8 {
    drop(std::io::stdout().write_all(text.as_bytes()));
    0
}
