//! One user with a home of their own and one MPI, for tests that run real jobs.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use unisono_testbed::leaks::Watch;
use unisono_testbed::mpi::{self, Flavour};
use unisono_testbed::program::{Program, compile};

/// How long what a killed run leaves may take to go on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(30);

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
    /// Where temporary files go, of which none may stay.
    temporary: tempfile::TempDir,
    pub(crate) mpi: mpi::Installation,
    pub(crate) watch: Watch,
}

impl User {
    pub(crate) fn of(flavour: Flavour) -> Self {
        let home = tempfile::tempdir().expect("a home");
        let temporary = tempfile::tempdir().expect("a folder for temporary files");
        // Anybody may use it, as they may /tmp.
        std::fs::set_permissions(temporary.path(), Permissions::from_mode(0o1777))
            .expect("allow it");
        let mpi = mpi::find(flavour).expect("an MPI");
        let watch = Watch::begin(&[temporary.path()]);
        Self { home, temporary, mpi, watch }
    }

    pub(crate) fn program(&self, program: Program) -> String {
        compile(program, &self.mpi).expect("it compiles").display().to_string()
    }

    pub(crate) fn unisono(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_unisono"));
        command.args(arguments).stdin(Stdio::null());
        self.be(&mut command);
        command
    }

    /// Lets another program begin as if this user had called it.
    pub(crate) fn be(&self, command: &mut Command) {
        command
            .current_dir(self.home.path())
            .env("HOME", self.home.path())
            .env("TMPDIR", self.temporary.path())
            .envs([self.watch.variable()])
            .env_remove("XDG_STATE_HOME");
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
