//! On a machine that has nothing yet, what later suites need is compiled in the time that this one leaves.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::binaries::{KWOK, Module, SCHEDULERS};

/// Runs a command behind everything else, and ends it and all that it started when standard input closes: by its owner, or by the
/// kernel when that was killed.
const SCRIPT: &str = "nice -n 19 \"$@\" </dev/null >/dev/null 2>&1 & cat; kill -KILL 0";

/// Compilers that work for others, until this value goes. Go keeps each package that they have compiled.
pub(crate) struct Ahead(Vec<Compiler>);

struct Compiler {
    shell: Child,
    /// Where Go works; it would leave that behind.
    _folder: TempDir,
}

impl Ahead {
    /// Begins. What cannot be begun is compiled by who needs it, who also says what is wrong.
    pub(crate) fn begin() -> Self {
        let begin = |module: Module| Compiler::begin(&module.compilation().ok()??).ok();
        Self([SCHEDULERS, KWOK].into_iter().filter_map(begin).collect())
    }
}

impl Compiler {
    fn begin(go: &Command) -> std::io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut shell = Command::new("sh");
        shell.args(["-c", SCRIPT, "sh"]).arg(go.get_program()).args(go.get_args());
        shell.envs(go.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(source) = go.get_current_dir() {
            shell.current_dir(source);
        }
        shell.env("GOTMPDIR", folder.path()).stdin(Stdio::piped()).process_group(0);
        Ok(Self { shell: shell.spawn()?, _folder: folder })
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        for compiler in &mut self.0 {
            drop(compiler.shell.stdin.take());
            // It kills itself, too.
            compiler.shell.wait().ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::wait;

    #[test]
    fn what_works_ahead_ends_with_who_began_it() {
        let folder = tempfile::tempdir().unwrap();
        let told = folder.path().join("pid");
        let mut endless = Command::new("sh");
        endless.arg("-c").arg(format!("echo $$ > {}; sleep 1000", told.display()));
        let ahead = Ahead(vec![Compiler::begin(&endless).unwrap()]);
        let look = || Ok(fs::read_to_string(&told).ok().filter(|it| it.ends_with('\n')));
        let pid = wait::until(Duration::from_secs(30), "it to begin", look).unwrap();
        drop(ahead);
        let process = Path::new("/proc").join(pid.trim());
        let look = || Ok((!process.exists()).then_some(()));
        wait::until(Duration::from_secs(30), "it to be gone", look).unwrap();
    }
}
