//! The keeper: makes a host's namespaces, starts process 1 in them, and ends as it ends.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus};

use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::{CapabilitySet, UnshareFlags};

use super::{HostSpec, INIT, Isolation, SetUpError, io_step, step};

/// Keeps the host that a file describes, to its end. What leaves is the exit code of the host's command.
pub(super) fn keep(spec_path: &Path) -> Result<i32, SetUpError> {
    // A killed engine takes its keepers along, and each keeper its host.
    step(set_parent_process_death_signal(Some(Signal::KILL)), "tie the host to its engine")?;
    let spec = HostSpec::read(spec_path)?;
    make_namespaces(spec.isolation)?;
    step(rustix::system::sethostname(spec.name.as_bytes()), "set the host name")?;
    let program = io_step(std::env::current_exe(), "find the program")?;
    let me = std::process::id().to_string();
    let mut init = io_step(
        Command::new(program).arg(INIT).arg(spec_path).env("UNISONO_KEEPER", me).spawn(),
        "start process 1",
    )?;
    let status = io_step(init.wait(), "wait for process 1")?;
    Ok(exit_code(status))
}

fn make_namespaces(isolation: Isolation) -> Result<(), SetUpError> {
    let (user, group) = (rustix::process::getuid(), rustix::process::getgid());
    let mut flags =
        UnshareFlags::NEWUTS | UnshareFlags::NEWNS | UnshareFlags::NEWIPC | UnshareFlags::NEWPID;
    if isolation == Isolation::UserNamespace {
        flags |= UnshareFlags::NEWUSER;
    }
    unshare(flags)?;
    if isolation == Isolation::UserNamespace {
        // The user keeps the own number inside, so that files and programs see the same person.
        let (user, group) = (user.as_raw(), group.as_raw());
        io_step(std::fs::write("/proc/self/setgroups", "deny"), "fix the groups of the host")?;
        io_step(std::fs::write("/proc/self/uid_map", format!("{user} {user} 1")), "map the user")?;
        io_step(
            std::fs::write("/proc/self/gid_map", format!("{group} {group} 1")),
            "map the group",
        )?;
        keep_right_to_mount()?;
    }
    Ok(())
}

/// An ordinary user's program loses its rights in the namespace when it is executed; process 1 needs one of them once more.
fn keep_right_to_mount() -> Result<(), SetUpError> {
    let what = "keep the right to mount";
    let mut sets = step(rustix::thread::capabilities(None), what)?;
    sets.inheritable |= CapabilitySet::SYS_ADMIN;
    step(rustix::thread::set_capabilities(None, sets), what)?;
    step(rustix::thread::configure_capability_in_ambient_set(CapabilitySet::SYS_ADMIN, true), what)
}

#[expect(unsafe_code, reason = "the one call that leaves the machine's namespaces")]
fn unshare(flags: UnshareFlags) -> Result<(), SetUpError> {
    // SAFETY: only unsharing file descriptors can break Rust's promises, and that is not asked for.
    step(unsafe { rustix::thread::unshare_unsafe(flags) }, "make the host's namespaces")
}

/// As shells tell it: the code, or 128 and the signal.
pub(crate) fn exit_code(status: ExitStatus) -> i32 {
    status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(super::COULD_NOT_START)
}
