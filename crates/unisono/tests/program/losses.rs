//! README's table says what each dialect cannot hold. Here every one of those losses happens, and is told.

use std::collections::BTreeSet;

use crate::environment::Environment;

/// A loss: how README calls it, a job that has what is lost, and what is told about it.
struct Loss {
    phrase: &'static str,
    job: String,
    told: &'static str,
}

/// A launcher and workers, with more keys for each and for the policies.
fn job(launcher: &str, worker: &str, spec: &str) -> String {
    format!(
        "apiVersion: unisono.dev/v1alpha1\nkind: UnisonoJob\nmetadata: {{name: job}}\nspec:\n  groups:\n\
         \x20 - {{name: launcher, run: Launch, image: i, script: mpirun ./a, {launcher}}}\n\
         \x20 - {{name: worker, replicas: 2, slots: 1, image: i, {worker}}}\n{spec}"
    )
}

fn policies(policies: &str) -> String {
    job("", "", &format!("  policies: {{{policies}}}\n"))
}

const POD_TEMPLATE: &str = "template: {spec: {nodeSelector: {disk: fast}}}";
const OTHER_WORKERS: &str = "  - {name: other, replicas: 3, slots: 1, image: j}\n";

fn loss(phrase: &'static str, job: String, told: &'static str) -> Loss {
    Loss { phrase, job, told }
}

/// What README says of Azure ML and OpenPAI alike.
fn common_losses() -> Vec<Loss> {
    vec![
        loss("clean-up", policies("cleanUp: None"), "that workers stay after the end"),
        loss("removal", policies("ttlSecondsAfterFinished: 60"), "removal 60 s after the end"),
        loss("suspension", policies("suspend: true"), "that the job waits to be resumed"),
        loss("priorities", policies("gang: {priorityClass: high}"), "the priority class `high`"),
        loss(
            "what only a pod template can say",
            job("", POD_TEMPLATE, ""),
            "`spec.nodeSelector` of `worker`",
        ),
    ]
}

fn azure_losses() -> Vec<Loss> {
    let mut losses = common_losses();
    losses.extend([
        loss(
            "further kinds of member",
            job("", "", OTHER_WORKERS),
            "all hosts have the image of `worker`, not that of `other`",
        ),
        loss(
            "resource limits",
            job("", "resources: {limits: {cpu: 2}}", ""),
            "the cpu limit of `worker`",
        ),
        loss("ports", job("", "ports: [{name: x}]", ""), "the ports `x` of `worker`"),
        loss(
            "rules for the end",
            job("", "completion: {minFailed: 1}", ""),
            "when `worker` ends the job",
        ),
        loss(
            "commands of workers",
            job("", "run: Ranks, script: ./serve", ""),
            "the command of `worker`",
        ),
        loss(
            "options of the launch line",
            job("", "", "").replace("mpirun ./a", "mpirun --bind-to none ./a"),
            "without `--bind-to none`",
        ),
        loss("retries", policies("backoffLimit: 3"), "3 further attempts"),
        loss("queues", policies("gang: {queue: gold}"), "the queue `gold`"),
    ]);
    losses
}

fn openpai_losses() -> Vec<Loss> {
    let mut losses = common_losses();
    losses.extend([
        loss("deadlines", policies("deadlineSeconds: 60"), "the deadline of 60 s"),
        loss("code folders", job("code: ./src", "", ""), "the code folder `./src`"),
        loss("experiments", job("", "", "  experiment: x\n"), "the experiment `x`"),
    ]);
    losses
}

/// What README says of both versions of MPIJob.
fn kubeflow_losses() -> Vec<Loss> {
    vec![
        loss(
            "further kinds of worker",
            job("", "", OTHER_WORKERS),
            "an MPIJob has one kind of worker; 3 members of other are left out",
        ),
        loss("code folders", job("code: ./src", "", ""), "`./src` does not travel with an MPIJob"),
        loss("ports", job("", "ports: [{name: x}]", ""), "an MPIJob promises no ports; `x`"),
        loss("experiments", job("", "", "  experiment: x\n"), "an MPIJob has no experiment"),
        loss(
            "retries by exit code",
            policies("retryCount: 3"),
            "does not tell failures apart by exit code",
        ),
        loss(
            "rules for the end",
            job("", "completion: {minFailed: 1}", ""),
            "the job's own rules for its end are left out",
        ),
    ]
}

fn losses_of(dialect: &str) -> Vec<Loss> {
    match dialect {
        "azureml/v2" => azure_losses(),
        "openpai/v2" => openpai_losses(),
        "kubeflow/v1" => {
            let mut losses = kubeflow_losses();
            losses.extend([
                loss("the MPI", job("", "", "  mpi: MPICH\n"), "v1 has no field for the MPI"),
                loss(
                    "ranks on a launcher without GPUs",
                    job("slots: 1", "", ""),
                    "a v1 launcher without a GPU limit hosts no ranks",
                ),
            ]);
            losses
        }
        "kubeflow/v2beta1" => {
            let mut losses = kubeflow_losses();
            losses.push(loss(
                "restarts by exit code",
                job("restartPolicy: ExitCode", "", ""),
                "v2beta1 has no restart by exit code",
            ));
            losses
        }
        other => panic!("README has a dialect to write in that this test does not know: {other}"),
    }
}

/// The rows of README's table whose dialect can be written: the dialect, and what is lost.
fn documented() -> Vec<(String, BTreeSet<String>)> {
    let readme = include_str!("../../../../README.md");
    let rows = readme.lines().filter(|line| line.starts_with("| ") && line.contains(" | yes | "));
    let cells = rows.map(|row| row.trim_matches('|').split(" | ").map(str::trim).collect());
    let writable = cells.filter(|cells: &Vec<&str>| cells[3] == "yes");
    writable
        .map(|cells| {
            let lost = cells[4].split([',', ';']).map(|it| it.trim().to_owned()).collect();
            (cells[1].trim_matches('`').to_owned(), lost)
        })
        .collect()
}

#[test]
fn every_loss_that_readme_names_happens_and_is_told() {
    let rows = documented();
    assert_eq!(rows.len(), 5, "{rows:?}");
    for (dialect, phrases) in rows.into_iter().filter(|(dialect, _)| dialect != "unisono") {
        let losses = losses_of(&dialect);
        let tested: BTreeSet<String> = losses.iter().map(|it| it.phrase.to_owned()).collect();
        assert_eq!(phrases, tested, "README's row of {dialect} (left) and this test (right)");
        for Loss { phrase, job, told } in losses {
            let environment = Environment::new();
            environment.file("job.yaml", &job);
            let ended = environment.run(&["convert", "job.yaml", "--to", &dialect]);
            assert_eq!(ended.code, 0, "{dialect}, {phrase}: {}", ended.stderr);
            assert!(
                ended.stderr.contains("warning[lost-in-conversion]") && ended.stderr.contains(told),
                "{dialect}, {phrase}: {}",
                ended.stderr
            );
            let strict = environment.run(&["convert", "job.yaml", "--to", &dialect, "--strict"]);
            assert_eq!((strict.code, strict.stdout.as_str()), (1, ""), "{dialect}, {phrase}");
        }
    }
}

#[test]
fn unisonos_own_form_loses_nothing_of_all_that() {
    for dialect in ["azureml/v2", "openpai/v2", "kubeflow/v1", "kubeflow/v2beta1"] {
        for Loss { phrase, job, .. } in losses_of(dialect) {
            let environment = Environment::new();
            environment.file("job.yaml", &job);
            let ended = environment.run(&["convert", "job.yaml", "--to", "unisono", "--strict"]);
            assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{phrase}");
        }
    }
}
