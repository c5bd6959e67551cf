//! Enters: a Go module of `binaries/`, whose `go.mod` and `go.sum` pin every source down to its
//! checksum. Leaves: a folder of the cache with its programs.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail};

use crate::cache::{self, Key};
use crate::progress::Progress;

/// One Go module and the programs that are built from it.
pub(crate) struct Module {
    /// Its folder below `binaries/`.
    name: &'static str,
    /// What the linker writes into the programs; they would call themselves v0.0.0 otherwise.
    stamp: &'static str,
    /// The programs' names, and the packages they are built from.
    programs: &'static [(&'static str, &'static str)],
}

/// The control plane, the kubelet, and kubectl to look at it all.
pub(crate) const KUBERNETES: Module = Module {
    name: "kubernetes",
    stamp: "-X k8s.io/component-base/version.gitVersion=v1.35.4 \
            -X k8s.io/component-base/version.gitMajor=1 \
            -X k8s.io/component-base/version.gitMinor=35",
    programs: &[
        ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
        ("kubelet", "k8s.io/kubernetes/cmd/kubelet"),
        ("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
        ("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
        ("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
    ],
};

/// The control plane's store.
pub(crate) const ETCD: Module =
    Module { name: "etcd", stamp: "", programs: &[("etcd", "go.etcd.io/etcd/server/v3")] };

/// Fake nodes.
pub(crate) const KWOK: Module =
    Module { name: "kwok", stamp: "", programs: &[("kwok", "sigs.k8s.io/kwok/cmd/kwok")] };

/// The name server.
pub(crate) const COREDNS: Module =
    Module { name: "coredns", stamp: "", programs: &[("coredns", "github.com/coredns/coredns")] };

/// The scheduler with gangs (`PodGroup`), and the controller that counts their members.
pub(crate) const SCHEDULER_PLUGINS: Module = Module {
    name: "scheduler-plugins",
    stamp: "-X k8s.io/component-base/version.gitVersion=v1.34.7 \
            -X k8s.io/component-base/version.gitMajor=1 \
            -X k8s.io/component-base/version.gitMinor=34",
    programs: &[
        ("scheduler", "sigs.k8s.io/scheduler-plugins/cmd/scheduler"),
        ("controller", "sigs.k8s.io/scheduler-plugins/cmd/controller"),
    ],
};

/// Queues and quotas for jobs.
pub(crate) const KUEUE: Module =
    Module { name: "kueue", stamp: "", programs: &[("kueue", "sigs.k8s.io/kueue/cmd/kueue")] };

impl Module {
    /// The folder with the programs, built now if they never were.
    pub(crate) fn build(&self) -> anyhow::Result<PathBuf> {
        let source = self.source();
        let key = Key::new()
            .with(self.stamp)
            .with_file(&source.join("go.mod"))?
            .with_file(&source.join("go.sum"))?;
        cache::folder(self.name, &key, |draft| {
            self.programs
                .iter()
                .try_for_each(|(program, package)| self.build_one(program, package, draft))
        })
    }

    /// The folder in which the module cache keeps the source of one of this module's dependencies.
    pub(crate) fn source_of(&self, dependency: &str) -> anyhow::Result<PathBuf> {
        let output =
            self.go(&["mod", "download", "-json", dependency]).output().context("run go")?;
        let answer: serde_json::Value =
            serde_json::from_slice(&output.stdout).context("read the answer of go mod download")?;
        match answer["Dir"].as_str() {
            Some(folder) => Ok(PathBuf::from(folder)),
            None => bail!("go mod download {dependency}: {}", answer["Error"]),
        }
    }

    fn build_one(&self, program: &str, package: &str, folder: &Path) -> anyhow::Result<()> {
        let mut progress = Progress::new(format!("building {program}"));
        let start = Instant::now();
        let flags = format!("-s -w {}", self.stamp);
        let mut go = self
            .go(&["build", "-v", "-mod=readonly", "-trimpath", "-ldflags", &flags])
            .arg("-o")
            .arg(folder.join(program))
            .arg(package)
            .stderr(Stdio::piped())
            .spawn()
            .context("run go")?;
        // Go names each package as it compiles it, and says what is wrong at the end.
        let mut last_lines = VecDeque::new();
        let mut compiled = 0;
        for line in BufReader::new(go.stderr.take().context("listen to go")?).lines() {
            let line = line.context("listen to go")?;
            compiled += 1;
            progress.tell(&format!("{compiled} packages"));
            last_lines.push_back(line);
            if last_lines.len() > 30 {
                last_lines.pop_front();
            }
        }
        if !go.wait().context("wait for go")?.success() {
            bail!("go build {package} failed:\n{}", Vec::from(last_lines).join("\n"));
        }
        progress.done(&format!("{} s", start.elapsed().as_secs()));
        Ok(())
    }

    fn go(&self, arguments: &[&str]) -> Command {
        let mut go = Command::new("go");
        go.args(arguments)
            .current_dir(self.source())
            .env("CGO_ENABLED", "0")
            .env("GOWORK", "off")
            .stdin(Stdio::null());
        go
    }

    fn source(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("binaries").join(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_module_pins_its_programs_and_their_checksums() {
        for module in [KUBERNETES, ETCD, KWOK, COREDNS, SCHEDULER_PLUGINS, KUEUE] {
            let read = |file| std::fs::read_to_string(module.source().join(file)).unwrap();
            let (pins, checksums) = (read("go.mod"), read("go.sum"));
            for (_, package) in module.programs {
                assert!(pins.contains(package), "{package} in {}", module.name);
            }
            assert!(checksums.lines().count() > 100, "go.sum of {}", module.name);
        }
    }
}
