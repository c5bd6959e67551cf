//! Every image runs what it is for, on a real node.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::ensure;
use serde_json::{Value, json};
use unisono_testcluster::{Cluster, Image, Options, Suite, UNISONO, unisono_archive, wait};

fn main() -> ExitCode {
    Suite::new(Options { nodes: 1, images: Image::ALL.to_vec(), ..Options::default() })
        .test("open_mpi_4_runs_ranks", |cluster| {
            ranks(
                cluster,
                Image::OpenMpi4,
                "openmpi4",
                "mpirun --allow-run-as-root --oversubscribe",
            )
        })
        .test("open_mpi_5_runs_ranks", |cluster| {
            let mpirun = "/opt/openmpi5/bin/mpirun --allow-run-as-root --oversubscribe";
            ranks(cluster, Image::OtherMpis, "openmpi5", mpirun)
        })
        .test("mpich_runs_ranks", |cluster| {
            ranks(cluster, Image::OtherMpis, "mpich", "/opt/mpich/bin/mpiexec.hydra")
        })
        .test("intel_mpi_runs_ranks", |cluster| {
            let mpirun = "PATH=/opt/intelmpi/bin:$PATH mpiexec.hydra";
            ranks(cluster, Image::OtherMpis, "intelmpi", mpirun)
        })
        .test("a_static_mpi_program_runs_without_a_shell", static_program)
        .test("a_bare_image_starts_ranks_without_a_shell", bare)
        .test("the_sample_image_answers_ssh_as_a_user", sample)
        .test("unisono_is_loaded_while_nodes_run_and_installs_its_agent", unisono)
        .alone("images_come_out_the_same_twice", same_twice)
        .run()
}

/// Runs a pod to its end and returns what it said.
fn run(cluster: &Cluster, name: &str, image: &str, command: &[&str]) -> anyhow::Result<String> {
    let mut container = json!({ "name": "main", "image": image, "imagePullPolicy": "Never" });
    if !command.is_empty() {
        container["command"] = json!(command);
    }
    let pod = json!({
        "metadata": { "name": name },
        "spec": { "restartPolicy": "Never", "containers": [container] },
    });
    to_the_end(cluster, name, &pod)
}

/// Creates a pod, waits for it to succeed, and returns what it said.
fn to_the_end(cluster: &Cluster, name: &str, pod: &Value) -> anyhow::Result<String> {
    let pods = "/api/v1/namespaces/default/pods";
    cluster.api().create(pods, pod)?;
    let phase = wait::until(Duration::from_secs(120), &format!("pod {name} to end"), || {
        let pod = cluster.api().get(&format!("{pods}/{name}"))?;
        let phase = pod["status"]["phase"].as_str().unwrap_or_default().to_owned();
        Ok(["Succeeded", "Failed"].contains(&phase.as_str()).then_some(phase))
    })?;
    let said = cluster.kubectl(&["logs", name])?;
    ensure!(phase == "Succeeded", "{name} {phase}: {said}");
    cluster.api().delete(&format!("{pods}/{name}?gracePeriodSeconds=0"))?;
    Ok(said)
}

fn ranks(cluster: &Cluster, image: Image, flavour: &str, mpirun: &str) -> anyhow::Result<()> {
    let line = format!("{mpirun} -n 3 /programs/{flavour}/hello");
    let said = run(cluster, flavour, &image.reference(), &["bash", "-c", &line])?;
    for rank in 0..3 {
        let expected = format!("rank {rank} of 3 on {flavour}");
        ensure!(said.contains(&expected), "no {expected:?} in {said:?}");
    }
    Ok(())
}

fn static_program(cluster: &Cluster) -> anyhow::Result<()> {
    let said = run(cluster, "static", &Image::Static.reference(), &[])?;
    ensure!(said.contains("rank 0 of 1 on static"), "{said}");
    let archive = std::fs::read(Image::Static.archive()?)?;
    let layer = tar_member(&archive, ".tar")?;
    let names = tar_names(&layer)?;
    ensure!(names == ["hello"], "the image has {names:?}");
    Ok(())
}

fn bare(cluster: &Cluster) -> anyhow::Result<()> {
    let line = ["mpiexec.hydra", "-n", "2", "/programs/mpich/hello"];
    let said = run(cluster, "bare", &Image::Bare.reference(), &line)?;
    ensure!(said.contains("rank 1 of 2 on bare"), "{said}");
    let layer = tar_member(&std::fs::read(Image::Bare.archive()?)?, ".tar")?;
    let names = tar_names(&layer)?;
    let is_shell = |name: &&String| {
        ["sh", "bash", "dash", "busybox", "ssh"].contains(&name.rsplit('/').next().unwrap_or(name))
    };
    ensure!(!names.iter().any(|name| is_shell(&name)), "the image has a shell: {names:?}");
    Ok(())
}

fn sample(cluster: &Cluster) -> anyhow::Result<()> {
    // An operator mounts the keys; here they are made on the spot.
    let line = "set -e; cd; ssh-keygen -q -t rsa -N '' -f .ssh/id_rsa; \
                cp .ssh/id_rsa.pub .ssh/authorized_keys; \
                /usr/sbin/sshd -f .sshd_config; \
                ssh $(hostname) 'id -u; hostname; mpirun -n 2 --oversubscribe /programs/openmpi4/hello'";
    let said = run(cluster, "sample", &Image::Sample.reference(), &["bash", "-c", line])?;
    ensure!(said.starts_with("1000\nsample\n"), "{said}");
    ensure!(said.contains("rank 1 of 2 on sample"), "{said}");
    Ok(())
}

fn unisono(cluster: &Cluster) -> anyhow::Result<()> {
    cluster.load(&unisono_archive()?)?;
    let mount = json!([{ "name": "tools", "mountPath": "/tools" }]);
    let pod = json!({
        "metadata": { "name": "unisono" },
        "spec": {
            "restartPolicy": "Never",
            "volumes": [{ "name": "tools", "emptyDir": {} }],
            "initContainers": [{
                "name": "install",
                "image": UNISONO,
                "imagePullPolicy": "Never",
                "command": ["/unisono-agent", "install", "/tools"],
                "volumeMounts": mount,
            }],
            // The other image has no shell and no library: the agent must do without.
            "containers": [{
                "name": "main",
                "image": Image::Static.reference(),
                "imagePullPolicy": "Never",
                "command": ["/tools/unisono-agent", "--help"],
                "volumeMounts": mount,
            }],
        },
    });
    let said = to_the_end(cluster, "unisono", &pod)?;
    ensure!(said.contains("unisono-agent serve"), "{said}");
    Ok(())
}

/// The slow ones are made of the same parts as these.
fn same_twice() -> anyhow::Result<()> {
    for image in [Image::Busybox, Image::Static, Image::OpenMpi4] {
        let folder = tempfile::tempdir()?;
        let again = std::fs::read(image.make(folder.path())?)?;
        ensure!(again == std::fs::read(image.archive()?)?, "{image:?} came out differently");
    }
    Ok(())
}

fn tar_member(archive: &[u8], suffix: &str) -> anyhow::Result<Vec<u8>> {
    for entry in tar::Archive::new(archive).entries()? {
        let mut entry = entry?;
        if entry.path()?.to_string_lossy().ends_with(suffix) {
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut entry, &mut bytes)?;
            return Ok(bytes);
        }
    }
    anyhow::bail!("no {suffix} in the archive")
}

fn tar_names(layer: &[u8]) -> anyhow::Result<Vec<String>> {
    let mut layer = tar::Archive::new(layer);
    let entries = layer.entries()?;
    entries.map(|entry| Ok(entry?.path()?.to_string_lossy().into_owned())).collect()
}
