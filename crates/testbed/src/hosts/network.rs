//! Joins hosts that have a network namespace each: a bridge in the namespace of one more host, and a cable to every host.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{Host, HostError, Maker, Seat, io_error};

/// Makes the bridge and the cables; the returned host holds the bridge.
pub(super) fn join(maker: &Maker<'_>, hosts: &[Host]) -> Result<Host, HostError> {
    let seat = Seat { name: "testbed-hub".to_owned(), address: std::net::Ipv4Addr::UNSPECIFIED };
    let mut hub = maker.make(&seat, "", &[])?;
    hub.wait_made()?;
    hub.go()?;
    hub.wait_ready()?;

    let mut cables = String::from("link add hub type bridge\nlink set hub up\n");
    for (number, host) in hosts.iter().enumerate() {
        // Writing to a String cannot fail.
        let _infallible = writeln!(
            cables,
            "link add port{number} type veth peer name eth0 netns {}\nlink set port{number} master hub up",
            host.pid()
        );
    }
    batch(&mut hub.enter("net", Path::new("/")), &cables)?;
    for host in hosts {
        let address = format!("addr add {}/16 dev eth0\nlink set eth0 up\n", host.address());
        batch(&mut host.enter("net", Path::new("/")), &address)?;
    }
    Ok(hub)
}

/// Runs `ip` over a list of its commands.
fn batch(enter: &mut Command, lines: &str) -> Result<(), HostError> {
    let mut ip = enter
        .args(["ip", "-batch", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(io_error("run ip"))?;
    if let Some(mut stdin) = ip.stdin.take() {
        stdin.write_all(lines.as_bytes()).map_err(io_error("write to ip"))?;
    }
    let output = ip.wait_with_output().map_err(io_error("wait for ip"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(HostError::Network(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}
