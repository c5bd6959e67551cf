//! Whole sessions at the command line, on a folder that exists only in memory.

use crate::ksonnet::{Application, Edit, KsError, Outcome, run, values_file};
use crate::{Options, read};

/// A folder that edits go into.
#[derive(Default)]
struct Session {
    application: Application,
}

impl Session {
    /// The folder as `ks init lab` leaves it.
    fn new() -> Self {
        let mut session = Self::default();
        let outcome = run(&split("init lab --namespace ml"), None).expect("it starts");
        session.apply(&outcome, "lab/");
        session
    }

    fn apply(&mut self, outcome: &Outcome, prefix: &str) {
        for edit in &outcome.edits {
            match edit {
                Edit::Write { path, text } => {
                    let path = path.strip_prefix(prefix).expect("it is inside the folder");
                    self.application.files.insert(path.to_owned(), text.clone());
                }
                Edit::Remove { path } => {
                    assert!(self.application.files.remove(path).is_some(), "{path} is not there");
                }
            }
        }
    }

    fn try_ks(&mut self, line: &str) -> Result<Outcome, KsError> {
        let outcome = run(&split(line), Some(&self.application))?;
        self.apply(&outcome, "");
        Ok(outcome)
    }

    fn ks(&mut self, line: &str) -> String {
        self.try_ks(line).unwrap_or_else(|error| panic!("ks {line}: {error}")).output
    }

    fn fault(&mut self, line: &str) -> String {
        let error = self.try_ks(line).expect_err(line);
        format!("{error} | {}", error.hint().unwrap_or_default())
    }
}

fn split(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn the_quick_start_can_be_typed_as_it_stands() {
    let mut session = Session::new();
    session.ks("pkg install kubeflow/mpi-job@master");
    session.ks("generate mpi-operator mpi-operator");
    let operator = session.try_ks("apply default -c mpi-operator").unwrap().handover.unwrap();
    assert_eq!((operator.objects.len(), operator.deletes), (5, false));
    session.ks("generate mpi-job-simple tensorflow-benchmark-16 --gpus 16");
    let job = session.try_ks("apply default -c tensorflow-benchmark-16").unwrap().handover.unwrap();
    assert_eq!(job.environment, "default");
    assert_eq!(job.objects[0]["spec"]["gpus"], 16);
}

#[test]
fn sixteen_gpus_are_two_workers_with_eight_slots() {
    let mut session = Session::new();
    session.ks(
        "generate mpi-job-simple tensorflow-benchmark-16 --gpus 16 --command mpirun,/opt/bench",
    );
    let shown = session.ks("show default -c tensorflow-benchmark-16");
    assert_eq!(
        shown,
        "---\napiVersion: kubeflow.org/v1alpha1\nkind: MPIJob\nmetadata:\n  name: tensorflow-benchmark-16\n  namespace: ml\nspec:\n  gpus: 16\n  template:\n    spec:\n      containers:\n      - command:\n        - mpirun\n        - /opt/bench\n        image: mpioperator/tensorflow-benchmarks:latest\n        name: tensorflow-benchmark-16\n"
    );
    let job = read(shown.as_bytes(), &Options::default()).remove(0).job.expect("it is a job");
    let workers = job.group("worker").expect("it has workers");
    assert_eq!((workers.replicas, workers.slots.count), (2, 8));
}

#[test]
fn odd_gpu_counts_are_told_by_whoever_reads_the_objects() {
    let mut session = Session::new();
    for (gpus, fine) in
        [("1", true), ("4", true), ("24", true), ("0", false), ("3", false), ("12", false)]
    {
        let name = format!("g{gpus}");
        session.ks(&format!("generate mpi-job-simple {name} --gpus {gpus} --command mpirun"));
        let shown = session.ks(&format!("show default -c {name}"));
        let reading = read(shown.as_bytes(), &Options::default()).remove(0);
        assert_eq!(!reading.has_faults(), fine, "{gpus} GPUs: {:?}", reading.notes);
    }
}

#[test]
fn parameters_are_set_listed_and_deleted_for_all_and_for_one_environment() {
    let mut session = Session::new();
    session.ks("generate mpi-job-custom fit --replicas 3 --gpusPerReplica 2");
    session.ks("env add dev --namespace dev-ns");
    session.ks("param set fit replicas 4");
    session.ks("param set fit replicas 1 --env dev");
    session.ks("param set fit image lab/fit:1");
    let replicas = |session: &mut Session, environment: &str| {
        let job = session.try_ks(&format!("apply {environment}")).unwrap().handover.unwrap();
        (
            job.objects[0]["spec"]["replicas"].clone(),
            job.objects[0]["metadata"]["namespace"].clone(),
        )
    };
    assert_eq!(replicas(&mut session, "default"), (4.into(), "ml".into()));
    assert_eq!(replicas(&mut session, "dev"), (1.into(), "dev-ns".into()));
    let list = session.ks("param list fit --env dev");
    assert!(
        list.starts_with("COMPONENT PARAM           VALUE\n========= =====           =====\n"),
        "{list}"
    );
    assert!(
        list.contains("fit       replicas        1\n") && list.contains("\"lab/fit:1\""),
        "{list}"
    );
    session.ks("param delete fit replicas --env dev");
    assert_eq!(replicas(&mut session, "dev").0, 4);
    session.ks("param delete fit image");
    assert_eq!(
        session.fault("show default"),
        "component `fit`: the parameter `image` is not set | set it: `ks param set fit image VALUE`"
    );
}

#[test]
fn a_removed_component_leaves_nothing_behind() {
    let mut session = Session::new();
    let before = session.application.files.clone();
    session.ks("generate mpi-job-simple a --gpus 8");
    session.ks("param set a gpus 16 --env default");
    assert_eq!(session.ks("component list"), "COMPONENT TYPE\n========= ====\na         jsonnet\n");
    session.ks("component rm a");
    assert_eq!(session.application.files, before);
}

#[test]
fn environments_are_added_renamed_and_removed() {
    let mut session = Session::new();
    session.ks("env add us-west/staging --server https://10.0.0.2 --api-spec version:v1.9.0");
    session.ks("env set us-west/staging --name us-east --namespace st");
    let list = session.ks("env list");
    assert!(list.contains("us-east v1.9.0             st        https://10.0.0.2\n"), "{list}");
    assert!(session.application.files.contains_key("environments/us-east/params.libsonnet"));
    session.ks("env rm us-east");
    assert!(!session.application.files.keys().any(|path| path.contains("us-")));
    assert_eq!(
        session.fault("env rm us-east"),
        "environment 'us-east' was not found | the environments are: default"
    );
}

#[test]
fn every_wrong_use_says_what_to_type() {
    let mut session = Session::new();
    session.ks("generate mpi-job-simple a");
    for (line, told) in [
        ("generate mpi-job b", "no prototype names matched 'mpi-job'; a list of partial matches: "),
        ("generate mpi-job-simple b --gpus many", "could not convert parameter 'gpus'"),
        (
            "generate mpi-job-simple b --replicas 2",
            "unknown flag: --replicas | `ks prototype describe",
        ),
        ("generate mpi-job-simple b --gpus", "flag needs an argument: --gpus"),
        ("generate mpi-job-simple a", "create component: component 'a' already exists"),
        ("generate mpi-job-simple", "wrong number of arguments | usage: ks generate"),
        ("generate mpi-job-simple ../b", "'../b' cannot be a name here"),
        ("generate mpi-job-simple b --module m", "modules are not supported"),
        ("show prod", "environment 'prod' was not found"),
        ("show default -c b", "component 'b' was not found"),
        ("show default -o xml", "Unknown --format: xml"),
        ("param set b gpus 1", "component 'b' was not found"),
        ("param delete a replicas", "'a' has no parameter 'replicas'"),
        ("pkg install kubeflow/tf-job", "package 'kubeflow/tf-job' is not to be had"),
        ("genrate x y", "unknown command \"genrate\" for \"ks\" | did you mean `ks generate`?"),
        ("env", "unknown command \"env\""),
        ("component rm a --what 1", "unknown flag: --what"),
    ] {
        let fault = session.fault(line);
        assert!(fault.starts_with(told), "ks {line}: {fault}");
    }
    assert_eq!(run(&split("env list"), None), Err(KsError::NoApplication));
    assert!(run(&[], None).unwrap().output.contains("ks generate"));
    assert!(run(&split("generate --help"), None).unwrap().output.contains("ks generate"));
}

#[test]
fn prototypes_are_listed_found_and_described() {
    let text = |line: &str| run(&split(line), None).unwrap().output;
    assert_eq!(text("prototype list").lines().count(), 5);
    assert_eq!(text("prototype search simple").lines().count(), 3);
    let described = text("prototype describe mpi-job-custom");
    for param in [
        "name",
        "replicas",
        "gpusPerReplica",
        "image",
        "command",
        "args",
        "pvcName",
        "volumeMountPath",
    ] {
        assert!(described.contains(&format!("  --{param}=<{param}> ")), "{described}");
    }
    assert!(text("prototype preview mpi-operator").contains("params.gpusPerNode"));
}

#[test]
fn files_that_ksonnet_wrote_are_understood() {
    let mut session = Session::new();
    let files = &mut session.application.files;
    files.insert(
        "components/ring.jsonnet".into(),
        "local gpusPerReplica = import \"param://gpusPerReplica\";\n".into(),
    );
    files.insert("components/web.jsonnet".into(), "{ kind: \"Service\" }\n".into());
    files.insert(
        "components/params.libsonnet".into(),
        "{\n  global: {},\n  components: {\n    // jobs\n    ring: {\n      name: 'ring', image: \"lab/ring\", replicas: 2, gpusPerReplica: 0,\n      command: |||\n        mpirun\n      |||,\n      args: \"null\", pvcName: 'null', volumeMountPath: 'null'\n    },\n  },\n}\n".into(),
    );
    files.insert(
        "environments/default/params.libsonnet".into(),
        "local params = import \"../../components/params.libsonnet\";\nparams + {\n  components +: {\n    ring +: {\n      replicas: 5,\n    },\n  },\n}\n".into(),
    );
    let outcome = session.try_ks("show default").unwrap();
    assert!(outcome.output.contains("replicas: 5"), "{}", outcome.output);
    assert!(outcome.remarks[0].contains("'web' is Jsonnet of your own"));
    assert!(session.fault("show default -c web").starts_with("component 'web' is Jsonnet"));
    session.ks("param set ring args -- -n,10");
    assert!(session.application.files["components/params.libsonnet"].contains("// jobs"));
    assert!(session.ks("show default -c ring").contains("- -n\n"));
}

#[test]
fn a_broken_parameter_file_is_told_with_its_place() {
    let mut session = Session::new();
    session.ks("generate mpi-job-simple a");
    let broken = "{\n  components: {\n    a: { gpus: 2 * 8 },\n  },\n}\n";
    session.application.files.insert("components/params.libsonnet".into(), broken.into());
    let fault = session.fault("show default");
    assert!(fault.starts_with("components/params.libsonnet:3:18: `*` stands where"), "{fault}");
    let escaping = "environments: {../../x: {path: y}}\n";
    session.application.files.insert("app.yaml".into(), escaping.into());
    assert!(
        session.fault("param set a gpus 1 --env ../../x").starts_with("'../../x' cannot be a name")
    );
    session.application.files.insert("app.yaml".into(), "a: [".into());
    assert!(session.fault("env list").starts_with("app.yaml: "));
}

#[test]
fn values_of_a_file_are_taken_and_flags_win() {
    let mut session = Session::new();
    let line = "generate mpi-job-simple a --values-file v.jsonnet --gpus 8";
    assert_eq!(values_file(&split(line)).as_deref(), Some("v.jsonnet"));
    session.application.values_file = Some("{gpus: 2, image: 'lab/a'}".into());
    session.ks(line);
    let shown = session.ks("show default -o json");
    assert!(shown.contains("\"gpus\": 8") && shown.contains("\"lab/a\""), "{shown}");
}
