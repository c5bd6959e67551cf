//! Every job file among the readers' fixtures gives a sound plan, on either engine, and runs to an end.

use std::path::{Path, PathBuf};

use unisono_dialect::{Options, read};
use unisono_job::{Retry, RetryCount};
use unisono_plan::{EngineKind, Facts, View, lay_out, lint};
use unisono_testkit::scenario::Scenario;
use unisono_testkit::simulator::run;
use unisono_testkit::world::Run;

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn every_fixture_gives_a_sound_plan_and_runs_to_an_end() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dialect/tests/fixtures");
    let mut found = Vec::new();
    files(&folder, &mut found);
    let mut jobs = 0;
    for path in found {
        let bytes = std::fs::read(&path).unwrap();
        for reading in read(&bytes, &Options::default()) {
            let (false, Some(job)) = (reading.has_faults(), reading.job) else {
                continue;
            };
            jobs += 1;
            for engine in [EngineKind::Local, EngineKind::Kubernetes] {
                let plan = lay_out(&job, &Facts { engine, ..Facts::default() }, 1);
                assert_eq!(lint(&plan), Vec::<String>::new(), "{}", path.display());
                assert_eq!(View::of(&plan).hosts.len(), plan.hosts.len());
            }
            let mut job = job;
            if job.policies.retry == Retry::ByClass(RetryCount::Always) {
                // It begins again for ever, as it asks.
                continue;
            }
            job.policies.suspend = false;
            job.policies.managed_by = None;
            let scenario = Scenario::quiet(job, vec![Run { lasts: 1_000, code: 0 }]);
            if let Err(fault) = run(&scenario) {
                panic!("{}: {fault}", path.display());
            }
        }
    }
    assert!(jobs > 20, "only {jobs} jobs were found");
}
