//! Enters: a Go module of `binaries/`, whose `go.mod` and `go.sum` pin every source down to its
//! checksum. Leaves: a folder of the cache with its programs.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail};

use crate::cache::{self, Key};
use crate::progress::Progress;

/// One Go module and the programs that are built from it. What they have in common is compiled once,
/// so a module holds all programs that agree on the versions of what they are made of.
pub(crate) struct Module {
    /// Its folder below `binaries/`.
    name: &'static str,
    /// What the linker writes into the programs; they would call themselves v0.0.0 otherwise.
    stamp: &'static str,
    /// The programs' names, and the packages they are built from.
    programs: &'static [(&'static str, &'static str)],
}

/// The control plane, the kubelet, kubectl to look at it all, and what goes with the same version of
/// Kubernetes: its store, a name server, and the controller that counts gangs' members.
pub(crate) const CLUSTER: Module = Module {
    name: "cluster",
    stamp: "-X k8s.io/component-base/version.gitVersion=v1.35.4 \
            -X k8s.io/component-base/version.gitMajor=1 \
            -X k8s.io/component-base/version.gitMinor=35",
    programs: &[
        ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
        ("kubelet", "k8s.io/kubernetes/cmd/kubelet"),
        ("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
        ("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
        ("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
        ("etcd", "go.etcd.io/etcd/server/v3"),
        ("coredns", "./coredns"),
        ("controller", "sigs.k8s.io/scheduler-plugins/cmd/controller"),
    ],
};

/// What compiles only with the version of Kubernetes before: the scheduler with gangs (`PodGroup`),
/// and queues and quotas for jobs.
pub(crate) const SCHEDULERS: Module = Module {
    name: "schedulers",
    stamp: "-X k8s.io/component-base/version.gitVersion=v1.34.7 \
            -X k8s.io/component-base/version.gitMajor=1 \
            -X k8s.io/component-base/version.gitMinor=34",
    programs: &[("coscheduler", "./coscheduler"), ("kueue", "sigs.k8s.io/kueue/cmd/kueue")],
};

/// Fake nodes, which compile only with a version before that.
pub(crate) const KWOK: Module =
    Module { name: "kwok", stamp: "", programs: &[("kwok", "sigs.k8s.io/kwok/cmd/kwok")] };

impl Module {
    /// The folder with the programs, built now if they never were.
    pub(crate) fn build(&self) -> anyhow::Result<PathBuf> {
        cache::folder(self.name, &self.key()?, |draft| self.build_all(draft))
    }

    /// What compiles all packages of the programs, as `go build` does, and links nothing; none when they were built.
    pub(crate) fn compilation(&self) -> anyhow::Result<Option<Command>> {
        if cache::has(self.name, &self.key()?)? {
            return Ok(None);
        }
        let mut go = self.go(&["list", "-export", "-deps", "-mod=readonly", "-trimpath"]);
        go.args(self.packages());
        Ok(Some(go))
    }

    fn key(&self) -> anyhow::Result<Key> {
        let source = self.source();
        let mut key = Key::new()
            .with(self.stamp)
            .with_file(&source.join("go.mod"))?
            .with_file(&source.join("go.sum"))?;
        for (program, package) in self.programs {
            key = key.with(program);
            if let Some(own) = package.strip_prefix("./") {
                key = key.with_file(&source.join(own).join("main.go"))?;
            }
        }
        Ok(key)
    }

    fn packages(&self) -> impl Iterator<Item = &str> {
        self.programs.iter().map(|(_, package)| *package)
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

    /// Builds all programs by one call: while one is linked, on one processor, others are compiled.
    fn build_all(&self, folder: &Path) -> anyhow::Result<()> {
        let mut progress = Progress::new(format!("building the programs of {}", self.name));
        let start = Instant::now();
        let flags = format!("-s -w {}", self.stamp);
        let mut go = self
            .go(&["build", "-v", "-mod=readonly", "-trimpath", "-ldflags", &flags])
            // With a slash at its end it is a folder; a lone program would be written to its name.
            .arg("-o")
            .arg(folder.join(""))
            .args(self.packages())
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
            let said = Vec::from(last_lines).join("\n");
            bail!("go build in {} failed:\n{said}", self.name);
        }
        for (program, package) in self.programs {
            let built = folder.join(built_name(package));
            fs::rename(built, folder.join(program)).with_context(|| format!("name {program}"))?;
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

/// What `go build` calls the program of a package: the last part of its path that is no version.
fn built_name(package: &str) -> &str {
    let is_version = |part: &&str| {
        part.strip_prefix('v').is_some_and(|rest| rest.bytes().all(|it| it.is_ascii_digit()))
    };
    package.rsplit('/').find(|part| !is_version(part)).unwrap_or(package)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_module_pins_its_programs_and_their_checksums() {
        for module in [CLUSTER, SCHEDULERS, KWOK] {
            let read = |file| fs::read_to_string(module.source().join(file)).unwrap();
            let (pins, checksums) = (read("go.mod"), read("go.sum"));
            for (_, package) in module.programs {
                let pinned = match package.strip_prefix("./") {
                    Some(own) => module.source().join(own).join("main.go").is_file(),
                    None => pins.contains(package),
                };
                assert!(pinned, "{package} in {}", module.name);
            }
            assert!(checksums.lines().count() > 100, "go.sum of {}", module.name);
        }
    }

    #[test]
    fn programs_are_found_under_the_names_that_go_gives_them() {
        assert_eq!(built_name("go.etcd.io/etcd/server/v3"), "server");
        assert_eq!(built_name("k8s.io/kubernetes/cmd/kubelet"), "kubelet");
        assert_eq!(built_name("./coredns"), "coredns");
    }
}
