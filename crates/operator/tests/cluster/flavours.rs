//! Every MPI in every version of the API, on two nodes, through the real operator; and hosts in a domain of the cluster's own.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use unisono_testcluster::{Cluster, Image};

use crate::operator::Start;
use crate::story::{GATED, HELLO, Story, at_once, holds, job, tell, tell_alone};
use crate::support::put;

/// An MPI, as v2beta1 and v1alpha2 name it, and how it starts ranks.
struct Flavour {
    name: &'static str,
    implementation: &'static str,
    distribution: &'static str,
    image: Image,
    line: &'static str,
}

const FLAVOURS: [Flavour; 4] = [
    Flavour {
        name: "openmpi4",
        implementation: "OpenMPI",
        distribution: "OpenMPI",
        image: Image::OpenMpi4,
        line: HELLO,
    },
    Flavour {
        name: "openmpi5",
        implementation: "OpenMPI",
        distribution: "OpenMPI",
        image: Image::OtherMpis,
        line: "/opt/openmpi5/bin/mpirun --allow-run-as-root -np 4 /programs/openmpi5/hello",
    },
    Flavour {
        name: "mpich",
        implementation: "MPICH",
        distribution: "MPICH",
        image: Image::OtherMpis,
        line: "/opt/mpich/bin/mpiexec.hydra -n 4 /programs/mpich/hello",
    },
    Flavour {
        name: "intelmpi",
        implementation: "Intel",
        distribution: "IntelMPI",
        image: Image::OtherMpis,
        line: "PATH=/opt/intelmpi/bin:$PATH mpiexec.hydra -n 4 /programs/intelmpi/hello",
    },
];

const VERSIONS: [&str; 4] = ["v1alpha1", "v1alpha2", "v1", "v2beta1"];

pub(crate) fn of_every_version(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "flavours", |story, _| {
        let pairs = FLAVOURS.iter().flat_map(|flavour| VERSIONS.map(|version| (flavour, version)));
        at_once(pairs.collect(), |(flavour, version)| {
            let name = format!("{}-{version}", flavour.name);
            story.create(&flavour.job(version, &name)?)?;
            spread(story, &name)?;
            story.until(&name, "let go", |_| story.open(&name).is_ok())?;
            story.succeeds(&name)?;
            let selector = format!("mpi_job_name={name},mpi_role_type=launcher");
            let logs = story.kubectl(&["logs", "--selector", &selector])?;
            for rank in 0..4 {
                let line = format!("rank {rank} of 4 on {name}-worker-{}", rank / 2);
                ensure!(logs.contains(&line), "no {line:?} in {logs}");
            }
            story.remove(&name)
        })?;
        Ok(())
    })
}

impl Flavour {
    /// A job whose workers cannot be on the same node, and whose launcher waits until somebody has seen where they are. In v1 it
    /// runs as a user that no image knows.
    fn job(&self, version: &str, name: &str) -> anyhow::Result<Value> {
        let mut job = job(version, name, &format!("{GATED}; {}", self.line));
        match version {
            "v1alpha2" => job["spec"]["mpiDistribution"] = json!(self.distribution),
            "v2beta1" => {
                job["spec"]["mpiImplementation"] = json!(self.implementation);
                job["spec"]["runPolicy"] = json!({"cleanPodPolicy": "Running"});
            }
            _ => {}
        }
        // In v1alpha1 launchers have the same template, and no third node keeps away from both workers: so this holds between
        // workers only.
        let apart = json!([{
            "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"mpi_job_name": name, "mpi_role_type": "worker"}},
        }]);
        let of_workers = "/spec/mpiReplicaSpecs/Worker/template/spec";
        let of_launchers = "/spec/mpiReplicaSpecs/Launcher/template/spec";
        let templates: &[&str] = match version {
            "v1alpha1" => &["/spec/template/spec"],
            _ => &[of_workers, of_launchers],
        };
        for template in templates {
            put(
                &mut job,
                &format!("{template}/containers/0/image"),
                json!(self.image.reference()),
            )?;
        }
        // Debian's Open MPI 4 has other stories without root.
        if version == "v1" && self.name != "openmpi4" {
            for template in templates {
                let nobody = json!({"runAsUser": 4711, "runAsNonRoot": true});
                put(&mut job, &format!("{template}/securityContext"), nobody)?;
            }
        }
        put(&mut job, &format!("{}/topologySpreadConstraints", templates[0]), apart)?;
        Ok(job)
    }
}

/// Waits until a job runs, and finds its workers on two nodes.
fn spread(story: &Story<'_>, name: &str) -> anyhow::Result<()> {
    story.until(name, "running", |job| {
        holds(job, "Running") || job["status"]["launcherStatus"] == "Active"
    })?;
    let selector = format!("labelSelector=mpi_job_name%3D{name},mpi_role_type%3Dworker");
    let list = story.cluster.api().get(&format!("{}?{selector}", story.path("/api/v1", "pods")))?;
    let pods = list["items"].as_array().context("no list")?;
    let mut nodes: Vec<&str> =
        pods.iter().filter_map(|pod| pod["spec"]["nodeName"].as_str()).collect();
    nodes.sort_unstable();
    ensure!(nodes == ["node-1", "node-2"], "{name}: {nodes:?}");
    Ok(())
}

/// Hosts are named in the cluster's own domain, and found although no name server knows it.
pub(crate) fn in_a_domain(cluster: &Cluster) -> anyhow::Result<()> {
    tell_alone(cluster, "domain", |story| {
        let cluster_domain = Some("lab.example");
        let operator = story.operator(&Start { cluster_domain, ..Start::default() })?;
        let line = format!("cat /etc/mpi/hostfile; {HELLO}");
        story.create(&job("v2beta1", "named", &line))?;
        let mut shared = job("v2beta1", "shared", &HELLO.replace("-np 4", "-np 6"));
        shared["spec"]["runLauncherAsWorker"] = json!(true);
        story.create(&shared)?;
        story.succeeds("named")?;
        let map = format!("{}/named-config", story.path("/api/v1", "configmaps"));
        let expected = "named-worker-0.named.domain.svc.lab.example slots=2\n\
                        named-worker-1.named.domain.svc.lab.example slots=2\n";
        let listed = &cluster.api().get(&map)?["data"]["hostfile"];
        ensure!(*listed == expected, "{listed}");
        let logs = story.kubectl(&["logs", "job/named-launcher"])?;
        ensure!(logs.contains("rank 3 of 4 on named-worker-1"), "{logs}");
        launcher_hosts_ranks(story, "shared")?;
        operator.terminate()
    })
}

/// Waits for the end of a job of six ranks: two of them on its launcher, the first host of all.
fn launcher_hosts_ranks(story: &Story<'_>, name: &str) -> anyhow::Result<()> {
    story.succeeds(name)?;
    let hosts = ["launcher", "worker-0", "worker-1"].map(|it| format!("{name}-{it}"));
    let map = format!("{}/{name}-config", story.path("/api/v1", "configmaps"));
    let listed = &story.cluster.api().get(&map)?["data"]["hostfile"];
    let expected =
        hosts.each_ref().map(|it| format!("{it}.{name}.domain.svc.lab.example slots=2\n"));
    ensure!(*listed == expected.concat(), "{listed}");
    let logs = story.kubectl(&["logs", &format!("job/{name}-launcher")])?;
    for rank in 0..6 {
        let line = format!("rank {rank} of 6 on {}", hosts[rank / 2]);
        ensure!(logs.contains(&line), "no {line:?} in {logs}");
    }
    let pods = story.cluster.api().get(&format!(
        "{}?labelSelector=training.kubeflow.org/job-name%3D{name}",
        story.path("/api/v1", "pods")
    ))?;
    let number = |pod: &Value| {
        let metadata = &pod["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&metadata["labels"]["training.kubeflow.org/replica-index"]), text(&metadata["name"]))
    };
    let mut numbers: Vec<_> =
        pods["items"].as_array().context("no list")?.iter().map(number).collect();
    numbers.sort();
    let expected: Vec<_> =
        hosts.into_iter().zip(0..).map(|(host, at)| (at.to_string(), host)).collect();
    ensure!(numbers == expected, "{numbers:?}");
    Ok(())
}
