//! Somebody at a desk: a home with files, a kubeconfig, a namespace with an operator, and the program.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use unisono_testcluster::{Cluster, UNISONO, unisono_archive, wait};

/// How long a small job may take on a machine that does other things, too.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// Every kind of object that jobs are made of.
pub(crate) const KINDS: &str = "mpijobs,unisonojobs,mpis,pods,jobs,configmaps,secrets,services,serviceaccounts,roles,rolebindings,networkpolicies";

/// Somebody at a desk.
pub(crate) struct Desk<'cluster> {
    pub(crate) cluster: &'cluster Cluster,
    pub(crate) namespace: &'cluster str,
    pub(crate) home: TempDir,
    operator: Option<Operator>,
}

/// An operator that ends with the desk.
struct Operator(Child);

impl Drop for Operator {
    fn drop(&mut self) {
        // It may have ended already.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// How a call of the program ended.
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    pub(crate) fn of(output: Output) -> Self {
        let Output { status, stdout, stderr } = output;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Self { code: status.code().unwrap_or(-1), out: text(stdout), err: text(stderr) }
    }
}

impl<'cluster> Desk<'cluster> {
    /// A desk with an operator for its namespace.
    pub(crate) fn new(
        cluster: &'cluster Cluster,
        namespace: &'cluster str,
    ) -> anyhow::Result<Self> {
        Self::with_flags(cluster, namespace, &[])
    }

    /// A desk with an operator that has these flags.
    pub(crate) fn with_flags(
        cluster: &'cluster Cluster,
        namespace: &'cluster str,
        flags: &[&str],
    ) -> anyhow::Result<Self> {
        install(cluster)?;
        let mut desk = Self::without_operator(cluster, namespace)?;
        desk.operator = Some(Operator(desk.start_operator(flags)?));
        Ok(desk)
    }

    /// A desk with a namespace only.
    pub(crate) fn without_operator(
        cluster: &'cluster Cluster,
        namespace: &'cluster str,
    ) -> anyhow::Result<Self> {
        cluster.api().create("/api/v1/namespaces", &json!({"metadata": {"name": namespace}}))?;
        let account = format!("/api/v1/namespaces/{namespace}/serviceaccounts/default");
        wait::until(PATIENCE, "a service account", || cluster.api().find(&account))?;
        let home = tempfile::tempdir()?;
        Ok(Self { cluster, namespace, home, operator: None })
    }

    fn start_operator(&self, flags: &[&str]) -> anyhow::Result<Child> {
        /// Operators that run at the same time answer on different ports.
        static PORT: AtomicU16 = AtomicU16::new(8300);
        let listen = format!("127.0.0.1:{}", PORT.fetch_add(1, Ordering::Relaxed));
        let log = fs::File::create(self.home.path().join("operator.log"))?;
        let gang: &[&str] = if flags.contains(&"--gang") { &[] } else { &["--gang", "none"] };
        let words = ["--image", UNISONO, "--listen", &listen];
        let mut command = self.unisono(&["operator", "run"])?;
        command.args(words).args(gang).args(flags).stdout(Stdio::null()).stderr(log);
        command.spawn().context("start the operator")
    }

    /// The program with these words, in this namespace.
    pub(crate) fn unisono(&self, words: &[&str]) -> anyhow::Result<Command> {
        self.anywhere(&[&["--namespace", self.namespace], words].concat())
    }

    /// The program with these words, in the namespace of the kubeconfig.
    pub(crate) fn anywhere(&self, words: &[&str]) -> anyhow::Result<Command> {
        let mut command = self.cluster.command(env!("CARGO_BIN_EXE_unisono"))?;
        command
            .args(words)
            .current_dir(self.home.path())
            .env("HOME", self.home.path())
            .env("KUBECONFIG", self.cluster.kubeconfig())
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_STATE_HOME")
            .stdin(Stdio::null());
        Ok(command)
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, words: &[&str]) -> anyhow::Result<Ended> {
        Ok(Ended::of(self.unisono(words)?.output()?))
    }

    /// Types a line of ksonnet's in one of its applications; it must end well.
    pub(crate) fn ks(&self, application: &str, line: &str) -> anyhow::Result<Ended> {
        let words: Vec<&str> = std::iter::once("ks").chain(line.split(' ')).collect();
        let mut command = self.unisono(&words)?;
        let ended = Ended::of(command.current_dir(self.home.path().join(application)).output()?);
        ensure!(ended.code == 0, "ks {line} ended with {}: {}", ended.code, ended.err);
        Ok(ended)
    }

    /// Runs the program, which must end well; gives what it printed.
    pub(crate) fn done(&self, words: &[&str]) -> anyhow::Result<String> {
        let ended = self.run(words)?;
        ensure!(
            ended.code == 0,
            "{words:?} ended with {}: {}{}",
            ended.code,
            ended.err,
            self.log()
        );
        Ok(ended.out)
    }

    /// Writes a file into the home.
    pub(crate) fn file(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let path = self.home.path().join(name);
        fs::create_dir_all(path.parent().context("no folder")?)?;
        fs::write(path, text).with_context(|| format!("write {name}"))
    }

    /// What `unisono status` says of a job, as JSON.
    pub(crate) fn status(&self, name: &str) -> anyhow::Result<Value> {
        let shown = self.done(&["status", name, "--engine", "kubernetes", "--output", "json"])?;
        serde_json::from_str(&shown).context("one JSON document")
    }

    /// Waits until a job is told as running.
    pub(crate) fn runs(&self, name: &str) -> anyhow::Result<()> {
        wait::until(PATIENCE, &format!("{name} to run"), || {
            Ok((self.status(name)?["run"]["state"] == "running").then_some(()))
        })
    }

    /// Waits until a job has ended; gives its state.
    pub(crate) fn ends(&self, name: &str) -> anyhow::Result<String> {
        let ended = wait::until(PATIENCE, &format!("{name} to end"), || {
            let status = self.status(name)?;
            let state = status["run"]["state"].as_str().unwrap_or_default().to_owned();
            let is_over = ["succeeded", "failed", "stopped"].contains(&state.as_str());
            Ok(is_over.then_some(state))
        });
        ended.with_context(|| self.log())
    }

    /// The names of objects of a kind in the namespace.
    pub(crate) fn names(&self, kind: &str) -> anyhow::Result<Vec<String>> {
        let words = ["get", kind, "--namespace", self.namespace, "--output=name"];
        Ok(self.cluster.kubectl(&words)?.lines().map(str::to_owned).collect())
    }

    /// What the operator said, and what is in the namespace.
    fn log(&self) -> String {
        let said = fs::read_to_string(self.home.path().join("operator.log")).unwrap_or_default();
        let words =
            ["get", "jobs,pods,mpijobs,mpis,unisonojobs", "-n", self.namespace, "-o", "wide"];
        let left = self.cluster.kubectl(&words).unwrap_or_default();
        format!("\n{left}\n{said}")
    }
}

impl Drop for Desk<'_> {
    fn drop(&mut self) {
        // A namespace that stays behind goes with the cluster.
        self.cluster.api().delete(&format!("/api/v1/namespaces/{}", self.namespace)).ok();
    }
}

/// Installs all that an operator needs but its Deployment: the program itself is the operator here.
fn install(cluster: &Cluster) -> anyhow::Result<()> {
    static INSTALLED: Mutex<bool> = Mutex::new(false);
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if *installed {
        return Ok(());
    }
    cluster.load(&unisono_archive()?)?;
    let output =
        Command::new(env!("CARGO_BIN_EXE_unisono")).args(["operator", "manifests"]).output()?;
    let text = String::from_utf8(output.stdout)?;
    let documents = text.split("\n---\n").filter(|it| !it.contains("\nkind: Deployment\n"));
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("operator.yaml");
    fs::write(&path, documents.collect::<Vec<_>>().join("\n---\n"))?;
    apply(cluster, &path)?;
    cluster.kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"])?;
    *installed = true;
    Ok(())
}

fn apply(cluster: &Cluster, path: &Path) -> anyhow::Result<()> {
    let path = path.to_str().context("a path that is text")?;
    cluster.kubectl(&["apply", "--server-side", "--force-conflicts", "--filename", path])?;
    Ok(())
}
