//! What the kernel of this machine can do: its version enters, yes or no leaves.

/// Whether others than its parent are told how a process ended: Linux 6.15 and later do that.
///
/// # Panics
/// When this is no Linux.
#[must_use]
pub fn tells_how_processes_end() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("Linux");
    let mut numbers =
        release.split(|it: char| !it.is_ascii_digit()).map_while(|it| it.parse().ok());
    (numbers.next(), numbers.next()) >= (Some(6_u32), Some(15))
}
