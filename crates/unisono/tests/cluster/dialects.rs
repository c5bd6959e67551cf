//! The same small MPI program in every dialect: it ends in the cluster as it does on this machine, with the same ranks on hosts
//! of the same names.

use std::net::IpAddr;
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use unisono_testbed::horovod;
use unisono_testbed::mpi::{self, Flavour};
use unisono_testbed::program::{Program, compile};
use unisono_testcluster::{Cluster, Image};

use crate::desk::Desk;
use crate::every_dialect::{FILES, PROTOTYPES};

/// What stands in those files for the program, the image and the job's name.
const PROGRAM: &str = "PROGRAM";
const IMAGE: &str = "IMAGE";
const NAME: &str = "NAME";

/// The settings of whoever has all these files.
fn settings() -> String {
    let image = Image::OpenMpi4.reference();
    format!(
        "user = \"ada\"\nvirtual_clusters.vc1.queue = \"gold\"\nenvironments.\"azureml:mpi\" = \"{image}\"\n"
    )
}

pub(crate) fn every_one(cluster: &Cluster) -> anyhow::Result<()> {
    let desk = Desk::new(cluster, "dialects")?;
    desk.file("unisono.toml", &settings())?;
    let here = mpi::find(Flavour::OpenMpi4)?;
    let program = compile(Program::Hello, &here)?;
    std::fs::create_dir_all(desk.home.path().join("src"))?;
    std::fs::copy(&program, desk.home.path().join("src/hello"))?;
    // It cannot be made smaller, so it travels in several pieces; every rank looks whether it is whole.
    let large = "head -c 3000000 /dev/urandom > large && cksum < large > large.sum";
    let made = Command::new("sh")
        .args(["-c", large])
        .current_dir(desk.home.path().join("src"))
        .status()?;
    ensure!(made.success(), "{large}: {made}");
    let mut openpai = None;
    for (name, text) in FILES {
        // All of OpenPAI's want a processor for each of three tasks, and the nodes have four: without a gang scheduler each could hold
        // what the other waits for.
        if name.starts_with("openpai")
            && let Some(before) = openpai.replace(name)
        {
            desk.ends(before)?;
        }
        let file = file_name(text);
        desk.file(&file, &filled(text, name, "/programs/openmpi4/hello"))?;
        desk.done(&["submit", &file]).with_context(|| name.to_owned())?;
    }
    let all = format!("/apis/unisono.dev/v1alpha1/namespaces/{}/unisonojobs", desk.namespace);
    let labels = cluster.api().get(&format!("{all}/azure-mpijob"))?["metadata"]["labels"].take();
    ensure!(labels["unisono.dev/experiment"] == "dialects", "its experiment_name: {labels}");
    pretend_gpus(cluster)?;
    generate(&desk, "there", "/programs/openmpi4/hello")?;
    for (name, ..) in PROTOTYPES {
        desk.ks("there", &format!("apply default -c {name}"))?;
    }
    let (mpi, program) = (here.prefix.display().to_string(), program.display().to_string());
    let mut table = TITLE.to_owned();
    let mut compare = |name: &str, file: &str| {
        let state = desk.ends(name)?;
        let there = desk.done(&["logs", name, "--engine", "kubernetes"])?;
        ensure!(state == "succeeded", "{name} {state}: {there}");
        let here = run_here(&desk, file, &mpi)?;
        ensure!(ranks(&there).len() == 4, "{name}: {there}");
        ensure!(ranks(&there) == ranks(&here), "{name}\nthere: {there}\nhere: {here}");
        ensure!(variables(&there) == variables(&here), "{name}\nthere: {there}\nhere: {here}");
        ensure!(variables(&there).is_empty() != name.starts_with("openpai"), "{name}: {there}");
        ensure!(azure(&there) == azure(&here), "{name}\nthere: {there}\nhere: {here}");
        let promised: &[&str] = match name {
            "azure-mpijob" | "azure-aks" => &OF_AZURE,
            "azure-v2" => &OF_RANKS,
            _ => &[],
        };
        ensure!(azure(&there) == promised, "{name}: {there}");
        table += &row(name, &desk.status(name)?["run"], &there);
        Ok(())
    };
    for (name, text) in FILES {
        let file = file_name(text);
        desk.file(&file, &filled(text, name, &program))?;
        compare(name, &file)?;
    }
    generate(&desk, "here", &program)?;
    for (name, ..) in PROTOTYPES {
        let shown = desk.ks("here", &format!("show default -c {name}"))?;
        desk.file("job.yaml", &shown.out)?;
        compare(name, "job.yaml")?;
    }
    // For the documentation: `cargo xtask dialects` asks for it.
    match std::env::var_os("UNISONO_TABLE") {
        Some(path) => std::fs::write(path, table).context("write the table"),
        None => Ok(()),
    }
}

/// Makes nodes say that they have GPUs. Nobody uses them: a prototype of ksonnet's cannot do without.
pub(crate) fn pretend_gpus(cluster: &Cluster) -> anyhow::Result<()> {
    let gpus = json!({"nvidia.com/gpu": "8"});
    cluster.nodes().iter().try_for_each(|node| pretend_devices(cluster, node.name(), &gpus))
}

/// Makes a node say that it has these devices.
pub(crate) fn pretend_devices(
    cluster: &Cluster,
    node: &str,
    devices: &Value,
) -> anyhow::Result<()> {
    let status = json!({"status": {"capacity": devices, "allocatable": devices}});
    cluster.api().merge(&format!("/api/v1/nodes/{node}/status"), &status)?;
    Ok(())
}

/// An application of ksonnet's with a component of each prototype.
fn generate(desk: &Desk<'_>, application: &str, program: &str) -> anyhow::Result<()> {
    desk.done(&["ks", "init", application, "--namespace", desk.namespace])?;
    let image = Image::OpenMpi4.reference();
    for (name, prototype, size) in PROTOTYPES {
        let line = format!(
            "generate {prototype} {name} {size} --image {image} --command mpirun,-np,4,{program}"
        );
        desk.ks(application, &line)?;
    }
    Ok(())
}

const TITLE: &str = "\
| file | dialect | hosts | ranks | exit | where they ran, there as here |
|---|---|---|---|---|---|
";

/// What became of one file, as a row of a table.
fn row(name: &str, run: &Value, said: &str) -> String {
    let hosts: Vec<String> =
        ranks(said).iter().filter_map(|line| Some(line.rsplit_once(' ')?.1.to_owned())).collect();
    let dialect = run["dialect"].as_str().unwrap_or("-");
    let places = hosts.join(", ");
    format!(
        "| {name} | `{dialect}` | {} | {} | {} | {places} |\n",
        run["hosts"], run["ranks"], run["exit"]
    )
}

/// The same file on this machine.
fn run_here(desk: &Desk<'_>, file: &str, mpi: &str) -> anyhow::Result<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_unisono"))
        .args(["run", file, "--raw", "--mpi", mpi])
        .current_dir(desk.home.path())
        .env("HOME", desk.home.path())
        .env("PATH", format!("{}:/usr/bin:/bin", horovod::find()?.display()))
        .env_remove("XDG_STATE_HOME")
        .stdin(std::process::Stdio::null())
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{file} here: {said}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What Azure's users find where their launch line runs: its variables, and the lines of its host file.
const OF_AZURE: [&str; 10] = [
    "AZUREML_MPI_HOSTFILE=/etc/mpi/hostfile",
    "AZ_BATCHAI_MPI_HOST_FILE=/etc/mpi/hostfile",
    "AZ_BATCHAI_MPI_MASTER_NODE=ADDRESS",
    "AZ_BATCHAI_NUM_GPUS=0",
    "AZ_BATCHAI_TASK_INDEX=0",
    "AZ_BATCH_HOST_LIST=ADDRESS,ADDRESS",
    "AZ_BATCH_MASTER_NODE=ADDRESS:6105",
    "AZ_BATCH_NODE_LIST=ADDRESS;ADDRESS",
    "hostfile HOST slots=2",
    "hostfile HOST slots=2",
];

/// What they find in every rank.
const OF_RANKS: [&str; 4] = [
    "ompi 0 of 4, here 0 of 2",
    "ompi 1 of 4, here 1 of 2",
    "ompi 2 of 4, here 0 of 2",
    "ompi 3 of 4, here 1 of 2",
];

/// What a command of Azure's saw of those. Addresses differ from place to place, and host files go by name here and by address there.
fn azure(text: &str) -> Vec<String> {
    let is_told = |line: &&str| {
        let is_variable = line.starts_with("AZ") && line.contains('=');
        is_variable || line.starts_with("hostfile ") || line.starts_with("ompi ")
    };
    let is_address = |text: &str| text.parse::<IpAddr>().is_ok();
    let plain = |line: &str| {
        if let ["hostfile", _, slots] = line.split(' ').collect::<Vec<_>>()[..] {
            return format!("hostfile HOST {slots}");
        }
        let parts = line.split_inclusive(['=', ',', ';', ':']).map(|part| {
            let text = part.trim_end_matches(['=', ',', ';', ':']);
            if is_address(text) { part.replace(text, "ADDRESS") } else { part.to_owned() }
        });
        parts.collect()
    };
    let mut lines: Vec<String> = text.lines().filter(is_told).map(plain).collect();
    lines.sort_unstable();
    lines
}

/// OpenPAI's variables that a command saw, but for those that say where it ran: addresses, ports and folders.
fn variables(text: &str) -> Vec<&str> {
    let is_of_a_place =
        |name: &str| ["_IP", "PORT", "HOST_LIST", "WORK_DIR"].iter().any(|it| name.contains(it));
    let mut lines: Vec<&str> = text
        .lines()
        .filter(|line| {
            line.split_once('=')
                .is_some_and(|(name, _)| name.starts_with("PAI_") && !is_of_a_place(name))
        })
        .collect();
    lines.sort_unstable();
    lines
}

fn file_name(text: &str) -> String {
    if text.starts_with('{') { "job.json".to_owned() } else { "job.yaml".to_owned() }
}

fn filled(text: &str, name: &str, program: &str) -> String {
    text.replace(NAME, name).replace(IMAGE, &Image::OpenMpi4.reference()).replace(PROGRAM, program)
}

/// What ranks said of themselves, in their order. horovodrun puts something before every line.
fn ranks(text: &str) -> Vec<String> {
    let own = |line: &str| line.rsplit_once("<stdout>:").map_or(line, |it| it.1).to_owned();
    let mut lines: Vec<String> =
        text.lines().map(own).filter(|it| it.starts_with("rank ")).collect();
    lines.sort();
    lines
}
