//! Any job as `MPIJob` v2beta1 and v1, and back.

use std::path::{Path, PathBuf};

use unisono_dialect::{Options, Written, read, write};
use unisono_job::{Dialect, Job, Note, Origins};

const TARGETS: [Dialect; 2] = [Dialect::KubeflowV2beta1, Dialect::KubeflowV1];

/// Every job of every fixture, with the file it is from.
fn jobs() -> Vec<(PathBuf, Job)> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")];
    let mut jobs = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("fixtures can be listed") {
            let path = entry.expect("an entry can be read").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = std::fs::read(&path).expect("a fixture can be read");
            let readings = read(&bytes, &Options::default());
            jobs.extend(readings.into_iter().filter_map(|it| Some((path.clone(), it.job?))));
        }
    }
    assert!(jobs.len() > 20, "the fixtures are found");
    jobs
}

fn written(job: &Job, dialect: Dialect) -> Written {
    write(job, dialect).expect("both versions can be written")
}

fn read_back(text: &str) -> Job {
    let mut readings = read(text.as_bytes(), &Options::default());
    let reading = readings.remove(0);
    reading.job.unwrap_or_else(|| panic!("cannot be read back: {:#?}\n{text}", reading.notes))
}

fn is_lost(note: &Note) -> bool {
    note.code.name == "lost-in-conversion"
}

fn job(text: &str) -> Job {
    read_back(text)
}

#[test]
fn whatever_is_written_can_be_read() {
    for (path, job) in jobs() {
        for dialect in TARGETS {
            let written = written(&job, dialect);
            let back = read_back(&written.text);
            assert_eq!(back.dialect, dialect);
            let same =
                back.host_count() == job.host_count() && back.slot_count() == job.slot_count();
            assert!(
                same || written.notes.iter().any(is_lost),
                "{} as {dialect}: {} hosts and {} slots became {} and {} without a word\n{}",
                path.display(),
                job.host_count(),
                job.slot_count(),
                back.host_count(),
                back.slot_count(),
                written.text
            );
        }
    }
}

#[test]
fn a_job_written_in_its_own_version_is_the_same_job() {
    for (path, job) in jobs().into_iter().filter(|(_, job)| TARGETS.contains(&job.dialect)) {
        let written = written(&job, job.dialect);
        assert_eq!(written.notes, [], "{}", path.display());
        assert_eq!(bare(job), bare(read_back(&written.text)), "{}", path.display());
    }
}

/// A job without what no file holds: where values stood, and what servers write into templates.
fn bare(mut job: Job) -> Job {
    job.origins = Origins::default();
    for extras in job.groups.iter_mut().filter_map(|it| it.extras.as_mut()) {
        extras.template = extras.template.replace(r#""metadata":{"creationTimestamp":null},"#, "");
    }
    job
}

#[test]
fn a_job_that_lost_nothing_in_the_other_version_comes_back() {
    let mut compared = 0;
    for (path, job) in jobs().into_iter().filter(|(_, job)| TARGETS.contains(&job.dialect)) {
        let other = if job.dialect == TARGETS[0] { TARGETS[1] } else { TARGETS[0] };
        let there = written(&job, other);
        let back = written(&read_back(&there.text), job.dialect);
        if there.notes.iter().chain(&back.notes).any(is_lost) {
            continue;
        }
        let mut returned = read_back(&back.text);
        // Told as changed: v1 launchers wait inside, v2beta1 ones by their creation policy; v1 has the first container elsewhere.
        returned.policies.launcher_start = job.policies.launcher_start;
        returned.mpi.from = job.mpi.from;
        if job.groups.iter().all(|it| it.extras.as_ref().is_none_or(|it| it.container == 0)) {
            assert_eq!(bare(job), bare(returned), "{}", path.display());
            compared += 1;
        }
    }
    assert!(compared >= 3, "only {compared} fixtures could be compared");
}

#[test]
fn what_lost_nothing_is_written_the_same_a_second_time() {
    for (path, job) in jobs() {
        for dialect in TARGETS {
            let once = written(&job, dialect);
            let twice = written(&read_back(&once.text), dialect);
            if !once.notes.iter().any(is_lost) {
                assert_eq!(once.text, twice.text, "{}", path.display());
                assert_eq!(twice.notes, [], "{}", path.display());
            }
        }
    }
}

#[test]
fn versions_are_converted_as_reviewed() {
    insta::glob!("fixtures/kube*/*.yaml", reviewed);
}

#[test]
fn jobs_of_other_systems_are_written_as_reviewed() {
    insta::glob!("seeds/*", reviewed);
}

fn reviewed(path: &Path) {
    let bytes = std::fs::read(path).expect("a fixture can be read");
    for reading in read(&bytes, &Options::default()) {
        let Some(job) = reading.job else { continue };
        let shown = TARGETS.map(|dialect| {
            let Written { text, notes } = written(&job, dialect);
            let told: String =
                notes.iter().map(|it| format!("# {}: {}\n", it.code.name, it.message)).collect();
            format!("{told}{text}")
        });
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(format!("mpijob-{}", job.name), shown.join("---\n"));
        });
    }
}

/// A job of one group whose first member launches.
fn equal_members(limits: &str) -> Job {
    job(&format!(
        "apiVersion: scheduling.incubator.k8s.io/v1alpha1\nkind: MPI\nmetadata: {{name: tri}}\nspec: {{job: {{parallelism: 3, template: {{spec: {{containers: [{{name: m, image: x, command: [mpirun, /ring], resources: {{limits: {{{limits}}}}}}}]}}}}}}}}\n"
    ))
}

#[test]
fn the_first_of_equal_members_becomes_a_launcher_that_hosts_ranks() {
    let v2 = read_back(&written(&equal_members("cpu: 1"), Dialect::KubeflowV2beta1).text);
    let sizes: Vec<_> = v2.groups.iter().map(|it| (it.replicas, it.slots.count)).collect();
    assert_eq!(sizes, [(1, 1), (2, 1)]);
    assert_eq!(v2.groups[1].runs.command(), None, "only the launcher launches");
    let without_gpu = written(&equal_members("cpu: 1"), Dialect::KubeflowV1);
    assert!(without_gpu.notes.iter().any(is_lost));
    let with_gpu = written(&equal_members("nvidia.com/gpu: 1"), Dialect::KubeflowV1);
    let sizes: Vec<_> =
        read_back(&with_gpu.text).groups.iter().map(|it| (it.replicas, it.slots.count)).collect();
    assert_eq!(sizes, [(1, 1), (2, 1)]);
}

#[test]
fn a_name_that_no_host_can_have_is_changed_and_told() {
    let mut long = equal_members("cpu: 1");
    long.name = unisono_job::JobName::new(format!("8_Ranks{}", "x".repeat(80))).unwrap();
    for dialect in TARGETS {
        let written = written(&long, dialect);
        assert!(written.notes.iter().any(|it| is_lost(it) && it.message.contains("8_Ranks")));
        read_back(&written.text);
    }
}

#[test]
fn what_a_server_wrote_is_not_written_again() {
    let text = include_str!("fixtures/kubeflow/v1alpha2-as-printed.yaml");
    let written = written(&job(text), Dialect::KubeflowV2beta1);
    for word in ["uid", "creationTimestamp", "last-applied", "status", "resourceVersion"] {
        assert!(!written.text.contains(word), "{word} in\n{}", written.text);
    }
    assert!(written.text.contains("launcherCreationPolicy: WaitForWorkersReady"));
    assert!(written.text.contains("backoffLimit: 6"));
}
