//! The few system calls without a safe wrapper: fork, signals read as data, a new session for a child, how another's child ended,
//! interface addresses.
//!
//! This is the only module with `unsafe`. Every program of the agent is single-threaded, which is what makes a fork without
//! exec sound here: no other thread can hold a lock in the copy.
#![expect(unsafe_code, reason = "system calls that neither std nor rustix wraps")]

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal};

/// Which side of a fork this is.
#[derive(Clone, Copy, Debug)]
pub enum Fork {
    /// The copy.
    Child,
    /// The original, with the copy's process id.
    Parent(Pid),
}

/// Copies this process. Only to be called while it is single-threaded.
///
/// # Errors
/// When the machine allows no more processes.
pub fn fork() -> io::Result<Fork> {
    // SAFETY: the process is single-threaded (see the module text), so the child may use the whole of std.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        pid => Pid::from_raw(pid)
            .map(Fork::Parent)
            .ok_or_else(|| io::Error::from(io::ErrorKind::Other)),
    }
}

/// Ends a forked copy at once, without the original's exit handlers.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` has no precondition.
    unsafe { libc::_exit(code) }
}

/// Makes the command's process lead a session of its own, with every signal as at the start of a fresh login, and die with this
/// process, should this one be killed.
pub(crate) fn start_apart(command: &mut Command) {
    let set_up = || {
        // A leader that is already one is fine.
        let _ = rustix::process::setsid();
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        for signal in 1..=libc::SIGSYS {
            // SAFETY: setting a default disposition has no precondition; the two that cannot be set refuse.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        block(&[])
    };
    // SAFETY: between fork and exec the closure only makes plain system calls and allocates nothing.
    unsafe { command.pre_exec(set_up) };
}

/// Lets the command's process receive the signals that we have blocked for ourselves.
pub(crate) fn unblock_signals(command: &mut Command) {
    // SAFETY: between fork and exec the closure makes one system call and allocates nothing.
    unsafe { command.pre_exec(|| block(&[])) };
}

/// Blocks exactly these signals.
pub(crate) fn block(signals: &[Signal]) -> io::Result<()> {
    let set = signal_set(signals);
    // SAFETY: the set is initialised, and the old one is not asked for.
    match unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn signal_set(signals: &[Signal]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initialises the set before anything reads it.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), signal.as_raw());
        }
        set.assume_init()
    }
}

/// Signals as data: blocked for this process, read from a descriptor that can be polled.
pub(crate) struct Signals(OwnedFd);

impl Signals {
    /// Blocks these signals and collects them. Commands inherit what is blocked unless they are started by the calls above.
    pub(crate) fn collect(signals: &[Signal]) -> io::Result<Self> {
        block(signals)?;
        let set = signal_set(signals);
        // SAFETY: the set is initialised; a descriptor that is returned is new and ours.
        unsafe {
            match libc::signalfd(-1, &raw const set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC) {
                -1 => Err(io::Error::last_os_error()),
                fd => Ok(Self(OwnedFd::from_raw_fd(fd))),
            }
        }
    }

    /// The next signal that arrived, if any.
    pub(crate) fn next(&self) -> Option<Signal> {
        const RECORD: usize = size_of::<libc::signalfd_siginfo>();
        let mut record = [0; RECORD];
        match rustix::io::read(&self.0, &mut record) {
            Ok(RECORD) => {}
            Ok(_) | Err(_) => return None,
        }
        // The signal's number is the record's first field.
        let number = record.first_chunk::<4>().map(|bytes| u32::from_ne_bytes(*bytes))?;
        Signal::from_named_raw(i32::try_from(number).ok()?)
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Gives back the memory of program code: what ran at the start is not needed again, what is needed comes back by itself from
/// the page cache. A process that mostly waits then counts only for what it uses while it waits.
pub(crate) fn release_code() {
    unsafe extern "C" {
        /// The linker's marks around everything that is only read or executed.
        static __executable_start: u8;
        static etext: u8;
    }
    let page = rustix::param::page_size();
    let start = (&raw const __executable_start).addr().next_multiple_of(page);
    let end = (&raw const etext).addr() & !(page - 1);
    let code = (&raw const __executable_start).cast_mut().with_addr(start);
    if let Some(length) = end.checked_sub(start) {
        // SAFETY: the range holds the program's own unchanged pages, which the kernel reads again from the file on their next use.
        unsafe { libc::madvise(code.cast(), length, libc::MADV_DONTNEED) };
    }
}

/// Whether the kernel holds something that the peer's machine has not acknowledged, sent or waiting for room.
pub(crate) fn is_something_on_its_way(socket: BorrowedFd<'_>) -> bool {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the request (`SIOCOUTQ`, which has the terminals' number) writes one integer.
    let asked = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    asked == 0 && bytes > 0
}

/// Whether the peer's machine has not acknowledged what we sent for this long, although the kernel keeps sending it, or keeps asking
/// for room. A peer that merely does not read is not meant: its kernel answers.
pub(crate) fn is_unacknowledged(socket: BorrowedFd<'_>, since: Duration) -> bool {
    /// A lost packet or two are no sign of death.
    const UNANSWERED: u8 = 3;
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = libc::socklen_t::try_from(size_of::<libc::tcp_info>()).unwrap_or_default();
    // SAFETY: the kernel writes at most `length` bytes, and the structure is plain numbers for which zero is valid.
    let info = unsafe {
        let (level, name) = (libc::IPPROTO_TCP, libc::TCP_INFO);
        let into = info.as_mut_ptr().cast();
        if libc::getsockopt(socket.as_raw_fd(), level, name, into, &raw mut length) != 0 {
            return false;
        }
        info.assume_init()
    };
    (info.tcpi_retransmits >= UNANSWERED || info.tcpi_probes >= UNANSWERED)
        && u128::from(info.tcpi_last_ack_recv) >= since.as_millis()
}

/// Closes everything that this process has open but for one descriptor, which is given back.
pub(crate) fn close_all_but(kept: OwnedFd) -> io::Result<OwnedFd> {
    const KEPT_AS: libc::c_int = 0;
    const FIRST_CLOSED: libc::c_uint = 1;
    // SAFETY: the caller is about to do nothing but use what is kept; nothing else in this process owns number 0 from here on,
    // and owners of other numbers that are dropped later close what is closed already.
    unsafe {
        let kept = std::mem::ManuallyDrop::new(kept);
        if libc::dup2(kept.as_raw_fd(), KEPT_AS) == -1
            || libc::syscall(libc::SYS_close_range, FIRST_CLOSED, libc::c_uint::MAX, 0) == -1
        {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(KEPT_AS))
    }
}

/// How the process behind this descriptor ended, as `wait` would tell its parent: nothing while it was not waited for.
///
/// # Errors
/// Kernels before 6.13 do not know the question; those before 6.15 never know the answer.
pub(crate) fn exit_status(process: BorrowedFd<'_>) -> io::Result<Option<i32>> {
    /// `struct pidfd_info` as it first was; later kernels fill what they are given room for.
    #[repr(C)]
    #[derive(Default)]
    struct Info {
        mask: u64,
        control_group: u64,
        numbers: [u32; 11],
        exit_status: i32,
    }
    /// `PIDFD_INFO_EXIT`.
    const EXIT: u64 = 1 << 3;
    /// `PIDFD_GET_INFO`: read and write, 64 bytes, number 11 of group 0xff.
    const GET_INFO: libc::c_ulong = 0xc040_ff0b;
    let mut info = Info { mask: EXIT, ..Info::default() };
    // SAFETY: the kernel writes at most the 64 bytes that the request names, and the structure is plain numbers.
    match unsafe { libc::ioctl(process.as_raw_fd(), GET_INFO as _, &raw mut info) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok((info.mask & EXIT != 0).then_some(info.exit_status)),
    }
}

/// The name of the network interface that holds this address.
pub(crate) fn interface_of(address: IpAddr) -> Option<String> {
    let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: `getifaddrs` fills the pointer with a list that stays valid until `freeifaddrs`; each node and its name are
    // read only in between, and a socket address is read as the family it says it is.
    unsafe {
        if libc::getifaddrs(&raw mut list) != 0 {
            return None;
        }
        let mut found = None;
        let mut node = list;
        while let Some(entry) = node.as_ref() {
            if found.is_none() && address_at(entry.ifa_addr) == Some(address) {
                found = Some(CStr::from_ptr(entry.ifa_name).to_string_lossy().into_owned());
            }
            node = entry.ifa_next;
        }
        libc::freeifaddrs(list);
        found
    }
}

/// Reads a socket address.
///
/// # Safety
/// The pointer is null or points to a socket address of the family it names.
unsafe fn address_at(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: by this function's own contract.
    unsafe {
        match i32::from(address.as_ref()?.sa_family) {
            libc::AF_INET => {
                let inner = address.cast::<libc::sockaddr_in>().read_unaligned();
                Some(Ipv4Addr::from(u32::from_be(inner.sin_addr.s_addr)).into())
            }
            libc::AF_INET6 => {
                let inner = address.cast::<libc::sockaddr_in6>().read_unaligned();
                Some(Ipv6Addr::from(inner.sin6_addr.s6_addr).into())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_an_interface_and_a_foreign_address_has_none() {
        assert_eq!(interface_of(Ipv4Addr::LOCALHOST.into()).as_deref(), Some("lo"));
        assert_eq!(interface_of(Ipv4Addr::new(192, 0, 2, 1).into()), None);
    }
}
