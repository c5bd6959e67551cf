//! The same small MPI program in every dialect: it ends in the cluster as it does on this machine, with the same ranks on hosts
//! of the same names.

use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use unisono_testbed::horovod;
use unisono_testbed::mpi::{self, Flavour};
use unisono_testbed::program::{Program, compile};
use unisono_testcluster::{Cluster, Image};

use crate::desk::Desk;

/// What stands in the files below for the program, the image and the job's name.
const PROGRAM: &str = "PROGRAM";
const IMAGE: &str = "IMAGE";
const NAME: &str = "NAME";

/// Kubeflow's file since v1alpha2; such a job is called by its version.
const TWO_ROLES: &str = "\
apiVersion: kubeflow.org/NAME
kind: MPIJob
metadata: {name: NAME}
spec:
  slotsPerWorker: 2
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: c, image: IMAGE, command: [mpirun, -np, '4', PROGRAM]}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: c, image: IMAGE}]}}}
";

/// Every dialect with its file: four ranks, two on each of two hosts.
const FILES: [(&str, &str); 15] = [
    ("azure-mpijob", "\
name: NAME
type: MpiJob
experiment_name: dialects
launcher: {spec: {command: mpirun -np 4 --hostfile AZUREML_MPI_HOSTFILE PROGRAM, environment: 'azureml:mpi:1'}}
worker: {spec: {environment: 'azureml:mpi:1'}}
compute: {type: AmlCompute, target: pool, instance_count: 2}
"),
    ("azure-horovodrun", "\
name: NAME
type: MpiJob
launcher: {spec: {command: horovodrun -np 4 --mpi --hostfile AZUREML_MPI_HOSTFILE PROGRAM, environment: 'azureml:mpi:1'}}
worker: {spec: {environment: 'azureml:mpi:1'}}
compute: {type: AmlCompute, target: pool, instance_count: 2}
"),
    ("azure-aks", "\
name: NAME
type: MpiJob
launcher: {spec: {command: mpirun -np 4 PROGRAM, environment: 'azureml:mpi:1'}}
worker: {num_replicas: 2, spec: {environment: 'azureml:mpi:1'}}
compute: {type: AksCompute, target: pool}
"),
    ("azure-flat", "\
name: NAME
command: mpirun -np 4 PROGRAM
environment: {docker: {image: IMAGE}}
distributed: {mpi: {worker: {count: 2, slots_per: 2}}}
compute: {infrastructure: managed, target: pool}
"),
    ("azure-v2", "\
name: NAME
type: command
command: PROGRAM
environment: azureml:mpi:1
compute: azureml:pool
distribution: {type: mpi, process_count_per_instance: 2}
resources: {instance_count: 2}
"),
    ("openpai-v1", r#"{"jobName": "NAME", "image": "IMAGE", "virtualCluster": "vc1", "dataDir": "/data/$PAI_USER_NAME", "taskRoles": [
  {"name": "master", "taskNumber": 1, "memoryMB": 256, "minSucceededTaskCount": 1, "command": "env | grep PAI_; mpirun -np 4 -H worker-0:2,worker-1:2 PROGRAM"},
  {"name": "worker", "taskNumber": 2, "memoryMB": 256, "command": "sleep infinity"}]}"#),
    ("openpai-v2", "\
protocolVersion: 2
name: NAME
type: job
prerequisites: [{protocolVersion: 2, name: mpi, type: dockerimage, uri: IMAGE}]
taskRoles:
  master:
    instances: 1
    dockerImage: mpi
    completion: {minSucceededInstances: 1}
    resourcePerInstance: {cpu: 1, memoryMB: 256, gpu: 0}
    commands: [env | grep PAI_, 'mpirun -np 4 -H worker-0:2,worker-1:2 PROGRAM']
  worker:
    instances: 2
    dockerImage: mpi
    completion: {minSucceededInstances: -1}
    resourcePerInstance: {cpu: 1, memoryMB: 256, gpu: 0}
    commands: [sleep infinity]
"),
    ("v1alpha1", "\
apiVersion: kubeflow.org/v1alpha1
kind: MPIJob
metadata: {name: NAME}
spec:
  replicas: 2
  slotsPerWorker: 2
  template: {spec: {containers: [{name: c, image: IMAGE, command: [mpirun, -np, '4', PROGRAM]}]}}
"),
    ("v1alpha2", TWO_ROLES),
    ("v1", TWO_ROLES),
    ("v2beta1", TWO_ROLES),
    ("kube-batch-1", "\
apiVersion: scheduling.incubator.k8s.io/v1alpha1
kind: MPI
metadata: {name: NAME}
spec:
  job:
    apiVersion: batch/v1
    kind: Job
    spec:
      completions: 4
      parallelism: 4
      template: {spec: {containers: [{name: c, image: IMAGE, command: [mpirun, -n, '4', PROGRAM]}]}}
  podGroup: {spec: {minMember: 4}}
"),
    ("kube-batch-2", "\
apiVersion: scheduling.incubator.k8s.io/v1alpha1
kind: MPI
metadata: {name: NAME}
spec:
  job:
    completions: 4
    parallelism: 4
    template: {spec: {containers: [{name: c, image: IMAGE, command: [mpirun, -n, '4', PROGRAM]}]}}
"),
    ("unisono", "\
apiVersion: unisono.dev/v1alpha1
kind: UnisonoJob
metadata: {name: NAME}
spec:
  groups:
  - {name: launcher, run: Launch, image: IMAGE, command: [mpirun, -np, '4', PROGRAM]}
  - {name: wide, slots: 3, image: IMAGE}
  - {name: narrow, slots: 1, image: IMAGE}
"),
    ("unisono-code", "\
apiVersion: unisono.dev/v1alpha1
kind: UnisonoJob
metadata: {name: NAME}
spec:
  groups:
  - {name: node, replicas: 2, slots: 2, run: LaunchOnFirst, image: IMAGE, code: src, command: [mpirun, -np, '4', sh, -c, 'cksum < large | cmp - large.sum && exec ./hello']}
"),
];

/// ksonnet's prototypes of a job, with what makes four ranks of them.
const PROTOTYPES: [(&str, &str, &str); 2] = [
    ("ks-simple", "mpi-job-simple", "--gpus 4"),
    ("ks-custom", "mpi-job-custom", "--replicas 2 --gpusPerReplica 2"),
];

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
    for (name, text) in FILES {
        // Both of OpenPAI's want a processor for each of three tasks, and the nodes have four: without a gang scheduler each could hold
        // what the other waits for.
        if name == "openpai-v2" {
            desk.ends("openpai-v1")?;
        }
        let file = file_name(text);
        desk.file(&file, &filled(text, name, "/programs/openmpi4/hello"))?;
        desk.done(&["submit", &file]).with_context(|| name.to_owned())?;
    }
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
