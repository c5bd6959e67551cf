//! The operator as a process of its own in the cluster's network, with the rights of its account and no others. The test
//! program plays it: called with a word of its own, it is the operator.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use unisono_operator::RunOptions;
use unisono_testcluster::{Cluster, UNISONO, wait};

use crate::faults::{Faults, Faulty};
use crate::support::prepare;

/// The word by which the test program knows that it is the operator.
const WORD: &str = "play-the-operator";

/// How many lines of its log are shown when a story fails.
const LAST_WORDS: usize = 40;

/// Who asks, as the audit log says it.
pub(crate) const USER: &str = "system:serviceaccount:unisono-system:unisono-operator";

/// Is the operator, if called as one: the options are JSON behind the word.
pub(crate) fn take_over() -> Option<ExitCode> {
    let words: Vec<String> = std::env::args().collect();
    let [_, word, options] = words.as_slice() else { return None };
    (word == WORD).then(|| match play(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            tracing::error!("{fault:#}");
            ExitCode::FAILURE
        }
    })
}

/// Ends the process that plays the operator, whatever it is doing.
#[expect(clippy::exit, reason = "a death asks nobody")]
pub(crate) fn end_at_once(code: i32) -> ! {
    std::process::exit(code)
}

fn play(options: &str) -> anyhow::Result<()> {
    let options: Value = serde_json::from_str(options)?;
    unisono_operator::log(options["log_json"] == true);
    // It ends with the test program, however that ends.
    std::thread::spawn(|| {
        std::io::stdin().read_to_end(&mut Vec::new()).ok();
        end_at_once(1);
    });
    let text = |key: &str| options[key].as_str().map(str::to_owned);
    let longest_look: Option<Duration> = serde_json::from_value(options["longest_look"].clone())?;
    let image_patience: Option<Duration> =
        serde_json::from_value(options["image_patience"].clone())?;
    let run = RunOptions {
        only_namespace: text("namespace"),
        image: UNISONO.to_owned(),
        image_pull_policy: Some("Never".to_owned()),
        cluster_domain: text("cluster_domain"),
        gang: text("gang").context("no gang")?.parse()?,
        network_policy: false,
        image_patience: image_patience.or(Some(unisono_k8s::IMAGE_PATIENCE)),
        reading: unisono_dialect::Options::default(),
        listen: text("listen").context("no address")?.parse()?,
        lease: text("home").zip(text("identity")),
        workers: 32,
        longest_look: longest_look.unwrap_or(unisono_operator::LONGEST_LOOK),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let faults = serde_json::from_value(options["faults"].clone())?;
        let config = kube::Config::infer().await?;
        let client = unisono_k8s::connect(config)?.with_layer(&Faulty::new(faults)).build();
        let mut terminate =
            tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        let stop = async move {
            terminate.recv().await;
        };
        Ok(unisono_operator::run(client, run, stop).await?)
    })
}

/// A running operator. It is killed when this value goes.
pub(crate) struct Operator {
    child: Child,
    folder: TempDir,
    port: u16,
}

/// How an operator is started.
#[derive(Clone)]
pub(crate) struct Start<'start> {
    pub(crate) gang: &'start str,
    /// Its name in the lease; without, it has none.
    pub(crate) identity: Option<&'start str>,
    pub(crate) port: u16,
    /// Where it reaches the API server, if not directly.
    pub(crate) through: Option<SocketAddr>,
    /// The namespace it lives in, whose account it has.
    pub(crate) home: &'start str,
    /// The only namespace whose jobs it runs.
    pub(crate) only_namespace: Option<&'start str>,
    /// What goes wrong between it and the API server.
    pub(crate) faults: Faults,
    /// The longest look at a job, if not the usual.
    pub(crate) longest_look: Option<Duration>,
    /// How long jobs wait for an image, if not the usual.
    pub(crate) image_patience: Option<Duration>,
    /// The cluster's domain, if not the usual.
    pub(crate) cluster_domain: Option<&'start str>,
    /// Whether its log is JSON.
    pub(crate) log_json: bool,
}

impl Default for Start<'_> {
    fn default() -> Self {
        Self {
            gang: "none",
            identity: None,
            port: 8180,
            through: None,
            home: "unisono-system",
            only_namespace: None,
            faults: Faults::default(),
            longest_look: None,
            image_patience: None,
            cluster_domain: None,
            log_json: false,
        }
    }
}

impl Operator {
    /// Installs everything but the Deployment, and starts an operator that runs the jobs of all namespaces.
    pub(crate) fn start(cluster: &Cluster) -> anyhow::Result<Self> {
        prepare(cluster)?;
        // Jobs of other tests would be run, too.
        cluster.kubectl(&[
            "delete",
            "mpijobs",
            "--all",
            "--all-namespaces",
            "--cascade=foreground",
        ])?;
        Self::again(cluster, &Start::default())
    }

    /// Starts an operator where everything is installed.
    pub(crate) fn again(cluster: &Cluster, start: &Start<'_>) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let kubeconfig = folder.path().join("kubeconfig");
        write_kubeconfig(cluster, start, &kubeconfig)?;
        let options = json!({
            "gang": start.gang,
            "identity": start.identity,
            "home": start.home,
            "namespace": start.only_namespace,
            "faults": start.faults,
            "longest_look": start.longest_look,
            "image_patience": start.image_patience,
            "cluster_domain": start.cluster_domain,
            "log_json": start.log_json,
            "listen": format!("127.0.0.1:{}", start.port),
        });
        let log = File::create(folder.path().join("log"))?;
        let child = cluster
            .command(std::env::current_exe()?)?
            .args([WORD, &options.to_string()])
            .env("KUBECONFIG", &kubeconfig)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context("start the operator")?;
        Ok(Self { child, folder, port: start.port })
    }

    /// What it has said so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Waits until its log has a text.
    pub(crate) fn says(&self, text: &str) -> anyhow::Result<()> {
        wait::until(Duration::from_secs(30), &format!("the operator to say {text:?}"), || {
            Ok(self.log().contains(text).then_some(()))
        })
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Its process' number.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How many connections to an API server it has.
    pub(crate) fn connections(&self) -> anyhow::Result<usize> {
        let process = Path::new("/proc").join(self.pid().to_string());
        let mut own = HashSet::new();
        for open in std::fs::read_dir(process.join("fd"))? {
            // What was closed meanwhile is none.
            own.extend(std::fs::read_link(open?.path()).ok());
        }
        let all = std::fs::read_to_string(process.join("net/tcp"))?;
        let is_one = |line: &&str| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [_, _, peer, "01", _, _, _, _, _, inode, ..] = fields[..] else { return false };
            peer.ends_with(":01BB") && own.contains(Path::new(&format!("socket:[{inode}]")))
        };
        Ok(all.lines().filter(is_one).count())
    }

    /// Ends it as a kubelet does, and returns when it has ended well.
    pub(crate) fn terminate(mut self) -> anyhow::Result<()> {
        let ended = self.end()?;
        ensure!(ended.success(), "the operator ended with {ended}: {}", self.log());
        Ok(())
    }

    /// Ends it as a kubelet does, and tells how it ended.
    pub(crate) fn stop(mut self) -> anyhow::Result<ExitStatus> {
        self.end()
    }

    fn end(&mut self) -> anyhow::Result<ExitStatus> {
        // Waiting would close it, and that is another end.
        let _stdin = self.child.stdin.take();
        let sent = Command::new("kill").arg(self.pid().to_string()).status()?;
        ensure!(sent.success(), "kill: {sent}");
        Ok(self.child.wait()?)
    }

    /// What it answers under a path.
    pub(crate) fn answer(&self, cluster: &Cluster, path: &str) -> anyhow::Result<String> {
        let answer = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                cluster.enter()?;
                let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
                write!(stream, "GET {path} HTTP/1.0\r\n\r\n")?;
                let mut text = String::new();
                stream.read_to_string(&mut text)?;
                anyhow::Ok(text)
            });
            thread.join()
        });
        let answer = answer.map_err(|_| anyhow!("the asking thread panicked"))??;
        let (head, body) = answer.split_once("\r\n\r\n").context("no HTTP answer")?;
        ensure!(head.contains(" 200 "), "{path}: {head}");
        Ok(body.to_owned())
    }
}

impl Drop for Operator {
    #[expect(clippy::print_stderr, reason = "nobody else has its last words")]
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // The story has failed, or this one would have been told to end.
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            eprintln!("{}", lines[lines.len().saturating_sub(LAST_WORDS)..].join("\n"));
        }
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A kubeconfig with a token of the operator's account.
fn write_kubeconfig(cluster: &Cluster, start: &Start<'_>, path: &Path) -> anyhow::Result<()> {
    let account = format!("/api/v1/namespaces/{}/serviceaccounts/unisono-operator", start.home);
    let token = cluster.api().create(&format!("{account}/token"), &json!({"spec": {}}))?;
    let mut config: Value = serde_json::from_slice(&std::fs::read(cluster.kubeconfig())?)?;
    config["users"][0]["user"] = json!({"token": token["status"]["token"]});
    if let Some(address) = start.through {
        config["clusters"][0]["cluster"]["server"] = format!("https://{address}").into();
    }
    std::fs::write(path, config.to_string()).context("write a kubeconfig")
}
