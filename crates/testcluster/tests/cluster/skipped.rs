//! A machine that cannot hold a cluster skips the tests and says what it lacks.

use std::process::Command;

use anyhow::ensure;

pub(crate) fn without_go() -> anyhow::Result<()> {
    // This very program, where no program is found.
    let output =
        Command::new(std::env::current_exe()?).arg("pod").env("PATH", "/nonexistent").output()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "{said}");
    ensure!(said.contains(" 0 passed; 0 failed;"), "{said}");
    let reason = "ignored (missing: go (the Go toolchain, 1.25 or newer), unshare (";
    ensure!(said.matches(reason).count() > 1, "{said}");
    Ok(())
}
