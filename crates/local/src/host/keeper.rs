//! The keeper: makes a host's namespaces, starts process 1 in them, and ends as it ends.
//!
//! It is told to end by SIGTERM, also by the kernel when the engine ends: then it ends the host with everything in it, and
//! takes away what the host has outside its namespaces.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, set_parent_process_death_signal};
use rustix::thread::{LinkNameSpaceType, UnshareFlags};
use signal_hook::consts::{SIGCHLD, SIGTERM};
use signal_hook::iterator::Signals;
use unisono_agent::processes::{self, Fork};

use super::limits::Bounded;
use super::{HostSpec, Isolation, SetUpError, init, io_step, namespaces, network, plain, step};

/// Keeps the host that a file describes, to its end. What leaves is the exit code of the host's command.
pub(super) fn keep(spec_path: &Path) -> Result<i32, SetUpError> {
    let mut signals = io_step(Signals::new([SIGTERM, SIGCHLD]), "listen for the end")?;
    tie_to_engine()?;
    // Its description is a file of the engine's: it can be read only while the engine lives, and so after it was tied to.
    let spec = HostSpec::read(spec_path)?;
    let bounded = spec.bounds.as_ref().map(Bounded::make).transpose();
    let _bounded = io_step(bounded, "set the host's limits")?;
    make_namespaces(&spec)?;
    tie_to_engine()?;
    if spec.isolation == Isolation::Processes {
        plain::furnish(&spec)?;
    } else {
        step(rustix::system::sethostname(spec.name.as_bytes()), "set the host name")?;
    }
    let keeper = std::process::id();
    let first = match io_step(processes::fork(), "start process 1")? {
        Fork::Child => init::become_host(&spec, keeper),
        Fork::Parent(first) => first,
    };
    let code = attend(&mut signals, first, spec.isolation);
    if spec.isolation == Isolation::Processes {
        plain::clear_away(&spec);
    }
    code
}

/// A killed engine takes its keepers along, and each keeper its host.
fn tie_to_engine() -> Result<(), SetUpError> {
    step(set_parent_process_death_signal(Some(Signal::TERM)), "tie the host to its engine")
}

fn make_namespaces(spec: &HostSpec) -> Result<(), SetUpError> {
    let network = if spec.cable.is_some() { UnshareFlags::NEWNET } else { UnshareFlags::empty() };
    match (spec.isolation, &spec.cable) {
        (Isolation::Processes, _) => {
            let me = rustix::process::getpid();
            return step(rustix::process::set_child_subreaper(Some(me)), "adopt orphans");
        }
        // Both ends of a cable must be ours: all hosts of the job are in the hub's user namespace.
        (Isolation::UserNamespace, Some(cable)) => {
            namespaces::join(cable.hub, LinkNameSpaceType::User)?;
            namespaces::leave(Isolation::Namespaces, namespaces::OF_A_HOST | network)?;
        }
        (isolation, _) => namespaces::leave(isolation, namespaces::OF_A_HOST | network)?,
    }
    if let Some(cable) = &spec.cable {
        network::plug_in(cable)?;
    }
    Ok(())
}

/// Waits for process 1, and ends everything when told to.
fn attend(signals: &mut Signals, first: Pid, isolation: Isolation) -> Result<i32, SetUpError> {
    let mut code = None;
    for signal in signals.forever() {
        if signal == SIGTERM {
            end(first, isolation);
        }
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((process, status))) if process == first => code = Some(told(status)),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => break,
                Err(_) => return Ok(code.unwrap_or(super::COULD_NOT_START)),
            }
        }
        match (code, isolation) {
            // The kernel waits for the whole of a namespace before it lets go of its process 1.
            (Some(code), Isolation::Namespaces | Isolation::UserNamespace) => return Ok(code),
            // Here it does not, and what process 1 left is ours: end it too, until no child is left to wait for.
            (Some(_), Isolation::Processes) => end(first, isolation),
            (None, _) => {}
        }
    }
    Ok(code.unwrap_or(super::COULD_NOT_START))
}

fn end(first: Pid, isolation: Isolation) {
    match isolation {
        Isolation::Namespaces | Isolation::UserNamespace => {
            // It may have ended this moment, which is just as well.
            let _sent = rustix::process::kill_process(first, Signal::KILL);
        }
        Isolation::Processes => {
            for process in processes::descendants(rustix::process::getpid()) {
                processes::signal(process, Signal::KILL);
            }
        }
    }
}

/// As shells tell it: the code, or 128 and the signal.
pub(crate) fn exit_code(status: ExitStatus) -> i32 {
    status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(super::COULD_NOT_START)
}

pub(super) fn told(status: WaitStatus) -> i32 {
    status
        .exit_status()
        .or_else(|| status.terminating_signal().map(|signal| 128 + signal))
        .unwrap_or(super::COULD_NOT_START)
}
