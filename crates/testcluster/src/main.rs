//! `cargo xtask cluster`: a cluster to play with. Enters: a command line. Leaves: a running cluster, or
//! one less.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::time::Instant;

use anyhow::bail;
use clap::{Args, Parser};
use unisono_testcluster::{Cluster, Image, Options, UNISONO, prerequisites, unisono_archive};

/// A real Kubernetes on this machine, in namespaces of its own.
#[derive(Parser)]
#[command(name = "cargo xtask cluster")]
enum Task {
    /// Starts a cluster and leaves it running.
    Up(Up),
    /// Ends a cluster; nothing of it stays.
    Down(Name),
    /// Runs a command (a shell if there is none) in the cluster's network, with kubectl pointed at it.
    Exec(Exec),
    /// Lists the running clusters, their nodes, and what they cost.
    Status,
    /// Makes all images and lists them.
    Images,
}

#[derive(Args)]
struct Name {
    /// The cluster's name.
    #[arg(long, default_value = "play")]
    name: String,
}

#[derive(Args)]
struct Up {
    #[command(flatten)]
    name: Name,
    /// How many real nodes.
    #[arg(long, default_value_t = 2)]
    nodes: u8,
    /// How many fake nodes, by kwok.
    #[arg(long, default_value_t = 0)]
    fake_nodes: u32,
    /// With a name server.
    #[arg(long)]
    coredns: bool,
    /// With the gang scheduler of scheduler-plugins.
    #[arg(long)]
    coscheduling: bool,
    /// With Kueue.
    #[arg(long)]
    kueue: bool,
}

#[derive(Args)]
struct Exec {
    #[command(flatten)]
    name: Name,
    /// The command and its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

fn main() -> anyhow::Result<()> {
    match Task::parse() {
        Task::Up(up) => start(&up),
        Task::Down(Name { name }) => Cluster::attach(&name)?.down(),
        Task::Exec(exec) => execute(&exec),
        Task::Status => status(),
        Task::Images => images(),
    }
}

#[expect(clippy::print_stderr, reason = "says how to use what was started")]
fn start(up: &Up) -> anyhow::Result<()> {
    let missing = prerequisites::missing();
    if !missing.is_empty() {
        bail!("this machine cannot hold a cluster; missing: {}", missing.join(", "));
    }
    let name = &up.name.name;
    let start = Instant::now();
    let cluster = Cluster::start(&Options {
        name: Some(name.clone()),
        nodes: up.nodes,
        images: Image::ALL.to_vec(),
        ..Options::default()
    })?;
    cluster.load(&unisono_archive()?)?;
    if up.fake_nodes > 0 {
        cluster.add_fake_nodes(up.fake_nodes, 1000)?;
    }
    if up.coredns {
        cluster.start_coredns()?;
    }
    if up.coscheduling {
        cluster.start_coscheduling()?;
    }
    if up.kueue {
        cluster.start_kueue()?;
    }
    let seconds = start.elapsed().as_secs_f32();
    let first = cluster.first_process();
    cluster.release()?;
    let option = if name == "play" { String::new() } else { format!(" --name {name}") };
    eprintln!("cluster {name} is up after {seconds:.1} s; it ends with process {first}");
    eprintln!("  look at it     cargo xtask cluster exec{option} -- kubectl get nodes");
    eprintln!("  a shell in it  cargo xtask cluster exec{option}");
    eprintln!("  its images     cargo xtask cluster images");
    eprintln!("  end it         cargo xtask cluster down{option}");
    Ok(())
}

fn execute(exec: &Exec) -> anyhow::Result<()> {
    let shell = || vec![std::env::var_os("SHELL").unwrap_or_else(|| "sh".into())];
    let words = if exec.command.is_empty() { shell() } else { exec.command.clone() };
    let Some((program, arguments)) = words.split_first() else {
        bail!("no command");
    };
    let mut command = Cluster::attach(&exec.name.name)?.command(program)?;
    // The command takes this process' place, and with it its signals and its exit code.
    Err(command.args(arguments).exec().into())
}

#[expect(clippy::print_stdout, reason = "the answer of a command")]
fn status() -> anyhow::Result<()> {
    for name in Cluster::names()? {
        let cluster = Cluster::attach(&name)?;
        println!("{name}, process {}", cluster.first_process());
        for node in cluster.nodes() {
            let state = if cluster.is_ready(node.name())? { "ready" } else { "not ready" };
            println!("  {:<24} {state}", node.name());
        }
        for program in [
            "etcd",
            "kube-apiserver",
            "kube-controller-manager",
            "kube-scheduler",
            "kubelet",
            "containerd",
        ] {
            let Ok(usage) = cluster.usage(program) else {
                println!("  {program:<24} not running");
                continue;
            };
            let seconds = usage.processor.as_secs_f32();
            println!("  {program:<24} {seconds:>8.1} s {:>6} MiB", usage.resident >> 20);
        }
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the answer of a command")]
fn images() -> anyhow::Result<()> {
    let mut all = vec![(UNISONO.to_owned(), unisono_archive()?)];
    for image in Image::ALL {
        all.push((image.reference(), image.archive()?));
    }
    for (reference, archive) in all {
        let size = std::fs::metadata(&archive)?.len() >> 20;
        println!("{reference:<32} {size:>5} MiB  {}", archive.display());
    }
    Ok(())
}
