//! Namespaces: a kind of isolation enters, and the calling process is apart from the machine.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::Path;

use rustix::mount::{MountFlags, MountPropagationFlags};
use rustix::process::WaitOptions;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use unisono_agent::processes::{self, Fork};

use super::{Isolation, SetUpError, io_step, step};

/// What a host has to itself, beside its network.
pub(super) const OF_A_HOST: UnshareFlags = UnshareFlags::NEWUTS
    .union(UnshareFlags::NEWNS)
    .union(UnshareFlags::NEWIPC)
    .union(UnshareFlags::NEWPID);

/// Leaves the machine's namespaces of these kinds, through a user namespace where the isolation says so.
pub(super) fn leave(isolation: Isolation, kinds: UnshareFlags) -> Result<(), SetUpError> {
    match isolation {
        Isolation::Namespaces => unshare(kinds),
        Isolation::UserNamespace => {
            let (user, group) = (rustix::process::getuid(), rustix::process::getgid());
            unshare(kinds | UnshareFlags::NEWUSER)?;
            // The user keeps the own number inside, so that files and programs see the same person.
            let (user, group) = (user.as_raw(), group.as_raw());
            io_step(std::fs::write("/proc/self/setgroups", "deny"), "fix the groups of the host")?;
            let map = |file: &str, id: u32| std::fs::write(file, format!("{id} {id} 1"));
            io_step(map("/proc/self/uid_map", user), "map the user")?;
            io_step(map("/proc/self/gid_map", group), "map the group")
        }
        Isolation::Processes => Ok(()),
    }
}

/// Enters the namespace of another process.
pub(super) fn join(process: u32, kind: LinkNameSpaceType) -> Result<(), SetUpError> {
    let name = if kind == LinkNameSpaceType::User { "user" } else { "net" };
    let path = format!("/proc/{process}/ns/{name}");
    let namespace = io_step(File::open(&path), format!("open {path}"))?;
    step(move_into_link_name_space(namespace.as_fd(), Some(kind)), format!("enter {path}"))
}

/// Does, on a folder of its own, what making a host needs, to see whether the machine allows it.
pub(super) fn try_out(isolation: Isolation, folder: &Path) -> Result<i32, SetUpError> {
    leave(isolation, OF_A_HOST)?;
    let first = match io_step(processes::fork(), "start process 1")? {
        Fork::Child => {
            let code = if try_out_mounts(folder).is_ok() { 0 } else { super::COULD_NOT_START };
            processes::exit_now(code)
        }
        Fork::Parent(first) => first,
    };
    let ended = step(rustix::process::waitpid(Some(first), WaitOptions::empty()), "wait for it")?;
    Ok(ended.map_or(super::COULD_NOT_START, |(_, status)| super::keeper::told(status)))
}

/// The part of a trial that only process 1 can do.
fn try_out_mounts(folder: &Path) -> Result<(), SetUpError> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    step(rustix::mount::mount_change("/", private), "keep mounts to the host")?;
    let mount = |kind: &str| rustix::mount::mount(kind, folder, kind, MountFlags::empty(), None);
    step(mount("tmpfs"), "mount a file system in memory")?;
    step(mount("proc"), "mount /proc")
}

#[expect(unsafe_code, reason = "the one call that leaves the machine's namespaces")]
fn unshare(flags: UnshareFlags) -> Result<(), SetUpError> {
    // SAFETY: only unsharing file descriptors can break Rust's promises, and that is not asked for.
    step(unsafe { rustix::thread::unshare_unsafe(flags) }, "make the host's namespaces")
}
