//! One user with a home of their own and one MPI, for tests that run real jobs.

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use unisono_testbed::leaks::Watch;
use unisono_testbed::mpi::{self, Flavour};
use unisono_testbed::program::{Program, compile};

/// How long what a killed run leaves may take to go.
pub(crate) const SOON: Duration = Duration::from_secs(5);

/// Two hosts of Azure's own cluster, the first of which also runs the launch line `COMMAND`.
pub(crate) const AZURE: &str = "
name: quad
type: MpiJob
launcher: {spec: {command: COMMAND, environment: 'azureml:x:1'}}
worker: {spec: {environment: 'azureml:x:1'}}
compute: {type: AmlCompute, target: c, instance_count: 2}
";

/// Two workers with two slots each, and a launcher that runs `COMMAND`, in version `VERSION` of Kubeflow's API.
pub(crate) const TWO_TEMPLATES: &str = "
apiVersion: kubeflow.org/VERSION
kind: MPIJob
metadata: {name: quad}
spec:
  slotsPerWorker: 2
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template: {spec: {containers: [{name: l, image: 'lab/x:1', command: [/bin/sh, -c, COMMAND]}]}}
    Worker:
      replicas: 2
      template: {spec: {containers: [{name: w, image: 'lab/x:1'}]}}
";

/// One user with a home of their own and one MPI.
pub(crate) struct User {
    pub(crate) home: tempfile::TempDir,
    pub(crate) mpi: mpi::Installation,
    pub(crate) watch: Watch,
}

impl User {
    pub(crate) fn of(flavour: Flavour) -> Self {
        let home = tempfile::tempdir().expect("a home");
        let mpi = mpi::find(flavour).expect("an MPI");
        Self { home, mpi, watch: Watch::begin(&[]) }
    }

    pub(crate) fn program(&self, program: Program) -> String {
        compile(program, &self.mpi).expect("it compiles").display().to_string()
    }

    pub(crate) fn unisono(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_unisono"));
        let (name, mark) = self.watch.variable();
        command
            .args(arguments)
            .current_dir(self.home.path())
            .env("HOME", self.home.path())
            .env(name, mark)
            .env_remove("XDG_STATE_HOME")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, job: &str, more: &[&str]) -> Output {
        let name = if job.starts_with('{') { "job.json" } else { "job.yaml" };
        std::fs::write(self.home.path().join(name), job).expect("write the job");
        let prefix = self.mpi.prefix.display().to_string();
        let output = self.unisono(&[&["run", name, "--mpi", &prefix], more].concat()).output();
        output.expect("run unisono")
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
