//! Jobs written in another dialect: what is written can be read, says the same, or tells what it lost.

mod support;

use std::path::{Path, PathBuf};

use unisono_dialect::{Options, Reading, Written, read, write};
use unisono_job::{Dialect, Job, Origins};

use support::files;

/// The dialects whose writers are tested here.
const TARGETS: [Dialect; 2] = [Dialect::AzureCommand, Dialect::OpenPaiV2];

fn readings(bytes: &[u8]) -> Vec<Reading> {
    read(bytes, &Options::default())
}

/// A job without the places its values stood at, which differ from file to file.
fn placeless(job: Job) -> Job {
    Job { origins: Origins::default(), ..job }
}

fn written(job: &Job, target: Dialect) -> Written {
    write(job, target).expect("jobs can be written in it")
}

/// The job that a written text gives.
fn again(written: &Written, target: Dialect) -> Job {
    let mut readings = readings(written.text.as_bytes());
    assert_eq!(readings.len(), 1, "{}", written.text);
    let reading = readings.remove(0);
    assert_eq!(reading.dialect, Some(target), "{}", written.text);
    let notes = reading.notes;
    placeless(reading.job.unwrap_or_else(|| panic!("{}\n{notes:#?}", written.text)))
}

/// Every job of every fixture and sample.
fn jobs() -> Vec<(PathBuf, Job)> {
    let mut jobs = Vec::new();
    for path in files(Path::new("tests")) {
        let bytes = std::fs::read(&path).expect("a fixture can be read");
        let read = readings(&bytes).into_iter().filter_map(|reading| reading.job);
        jobs.extend(read.map(|job| (path.clone(), job)));
    }
    jobs
}

#[test]
fn whatever_is_written_can_be_read() {
    for (path, job) in jobs() {
        for target in TARGETS {
            let again = again(&written(&job, target), target);
            assert!(again.host_count() > 0, "{} as {target}", path.display());
        }
    }
}

#[test]
fn a_job_written_in_its_own_dialect_comes_back_whole_or_tells_what_it_lost() {
    let mut whole = 0;
    for (path, job) in jobs().into_iter().filter(|(_, job)| TARGETS.contains(&job.dialect)) {
        let target = job.dialect;
        let written = written(&job, target);
        if written.notes.is_empty() {
            assert_eq!(again(&written, target), placeless(job), "{}", path.display());
            whole += 1;
        }
    }
    assert!(whole >= 8, "only {whole} fixtures came back whole");
}

#[test]
fn what_was_written_once_is_written_the_same_again() {
    for (path, job) in jobs() {
        for target in TARGETS {
            let once = again(&written(&job, target), target);
            let second = written(&once, target);
            assert_eq!(second.notes, [], "{} as {target}:\n{}", path.display(), second.text);
            assert_eq!(again(&second, target), once, "{} as {target}", path.display());
        }
    }
}

#[test]
fn samples_are_converted_as_reviewed() {
    let samples = [
        ("azureml-1", &include_bytes!("seeds/azureml-1.yaml")[..]),
        ("azureml-2", include_bytes!("seeds/azureml-2.yaml")),
        ("azureml-3", include_bytes!("seeds/azureml-3.yaml")),
        ("openpai", include_bytes!("seeds/openpai.json")),
        ("openpai-ring", include_bytes!("fixtures/openpai/v1.json")),
        ("openpai-special", include_bytes!("fixtures/openpai/v1-special.json")),
        ("openpai-protocol", include_bytes!("fixtures/openpai/v2.yaml")),
        ("azureml-command", include_bytes!("fixtures/azureml/command.yaml")),
    ];
    for (name, bytes) in samples {
        let job = readings(bytes).remove(0).job.expect("it is a job");
        for target in TARGETS {
            let Written { text, notes } = written(&job, target);
            let lost: Vec<String> =
                notes.iter().map(|note| format!("# {}\n", note.message)).collect();
            let snapshot = format!("{name} as {}", target.name().replace('/', " "));
            insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
                insta::assert_snapshot!(snapshot, lost.concat() + &text);
            });
        }
    }
}
