//! Every transition of an MPIJob in the words of every version: conditions with reasons, messages and times, replica
//! statuses, events. One snapshot a version, to be read beside what its own operator wrote.

use std::fmt::Write as _;

use serde_json::Value;
use unisono_job::{CleanUp, Dialect, Job, Retry};
use unisono_plan::Cause;
use unisono_plan::conditions::object_status;
use unisono_testkit::jobs::kubeflow;
use unisono_testkit::scenario::{Disturbance, Scenario};
use unisono_testkit::simulator::{Story, run};
use unisono_testkit::world::Run;

const VERSIONS: [(Dialect, &str); 4] = [
    (Dialect::KubeflowV1alpha1, "v1alpha1"),
    (Dialect::KubeflowV1alpha2, "v1alpha2"),
    (Dialect::KubeflowV1, "v1"),
    (Dialect::KubeflowV2beta1, "v2beta1"),
];

/// One row of the tour.
struct Row {
    name: &'static str,
    /// How launches end, one after the other.
    codes: &'static [i32],
    change: fn(&mut Job),
    disturbances: &'static [(u64, Disturbance)],
}

const fn strike(nth: u64, cause: Cause) -> Disturbance {
    Disturbance::Strike { nth, cause }
}

fn once(job: &mut Job) {
    job.policies.retry = Retry::Backoff { limit: 0 };
}

const ROWS: &[Row] = &[
    Row { name: "it succeeds", codes: &[0], change: |_| {}, disturbances: &[] },
    Row { name: "its second try succeeds", codes: &[3, 0], change: |_| {}, disturbances: &[] },
    Row { name: "no retry is left", codes: &[3], change: once, disturbances: &[] },
    Row {
        name: "it takes too long",
        codes: &[0],
        change: |job| job.policies.deadline_seconds = Some(5),
        disturbances: &[],
    },
    Row {
        name: "it is suspended and resumed",
        codes: &[0],
        change: |_| {},
        disturbances: &[(5_000, Disturbance::Suspend), (20_000, Disturbance::Resume)],
    },
    Row {
        name: "it begins suspended",
        codes: &[0],
        change: |job| job.policies.suspend = true,
        disturbances: &[(20_000, Disturbance::Resume)],
    },
    Row {
        name: "a worker is evicted, and all begin again",
        codes: &[0],
        change: |_| {},
        disturbances: &[(5_000, strike(1, Cause::Evicted))],
    },
    Row {
        name: "a worker is evicted once too often",
        codes: &[0],
        change: |job| job.policies.gang_restarts = 0,
        disturbances: &[(5_000, strike(1, Cause::Evicted))],
    },
    Row {
        name: "its launcher is evicted, and begins again",
        codes: &[0],
        change: once,
        disturbances: &[(5_000, strike(0, Cause::Evicted))],
    },
    Row {
        name: "its launcher runs out of memory",
        codes: &[0],
        change: once,
        disturbances: &[(5_000, strike(0, Cause::OutOfMemory))],
    },
    Row {
        name: "somebody stops it",
        codes: &[0],
        change: |_| {},
        disturbances: &[(5_000, Disturbance::Stop)],
    },
    Row {
        name: "workers go at its end",
        codes: &[0],
        change: |job| job.policies.clean_up = CleanUp::All,
        disturbances: &[],
    },
    Row {
        name: "it ends before anybody saw it run",
        codes: &[0],
        change: |job| job.policies.deadline_seconds = Some(0),
        disturbances: &[],
    },
];

fn tell(row: &Row, dialect: Dialect) -> Story {
    let mut job = kubeflow(dialect, "pi", 2, 1, &["mpirun", "./pi"]);
    (row.change)(&mut job);
    let script = row.codes.iter().map(|code| Run { lasts: 10_000, code: *code }).collect();
    let mut scenario = Scenario::quiet(job, script);
    scenario.disturbances = row.disturbances.to_vec();
    run(&scenario).unwrap_or_else(|fault| panic!("{}: {fault}", row.name))
}

/// A story as people read it.
fn shown(row: &Row, story: &Story) -> String {
    let mut text = format!("# {}\n", row.name);
    let mut say = |line: std::fmt::Arguments<'_>| writeln!(text, "{line}").unwrap();
    let mut before = String::new();
    for status in &story.written {
        let conditions = status.conditions.iter();
        let names: Vec<String> = conditions
            .map(|it| format!("{}{}", if it.holds { "" } else { "not " }, it.kind))
            .collect();
        if names.join(", ") != before {
            before = names.join(", ");
            say(format_args!("- {before}"));
        }
    }
    let status = serde_json::to_value(object_status(&story.plan, &story.status)).unwrap();
    for condition in status["conditions"].as_array().into_iter().flatten() {
        let of = |key: &str| condition[key].as_str().unwrap_or_default();
        say(format_args!(
            "{} {} {} {:?} updated {} changed {}",
            of("type"),
            of("status"),
            of("reason"),
            of("message"),
            of("lastUpdateTime"),
            of("lastTransitionTime"),
        ));
    }
    for (key, value) in status.as_object().into_iter().flatten() {
        match value {
            Value::Array(_) => {}
            value => say(format_args!("{key} {value}")),
        }
    }
    for told in &story.told {
        let kind = if told.is_warning { "Warning" } else { "Normal" };
        say(format_args!("event {kind} {} {:?}", told.reason, told.message));
    }
    text
}

#[test]
fn every_transition_is_told_in_the_words_of_its_version() {
    for (dialect, version) in VERSIONS {
        let stories: Vec<String> = ROWS.iter().map(|row| shown(row, &tell(row, dialect))).collect();
        insta::assert_snapshot!(version, stories.join("\n"));
    }
}
