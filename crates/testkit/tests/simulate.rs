//! Thousands of stories: jobs of every dialect under late views, lost acts, deaths, lost hosts, suspensions and scaling.

use std::time::Duration;

use unisono_job::{CleanUp, Dialect, Retry};
use unisono_plan::{
    EndReason, Ended, EngineKind, Member, NoImage, SeenState, Status, Time, Verdict,
};
use unisono_testkit::jobs::{kube_batch, kubeflow, openpai, role};
use unisono_testkit::scenario::{Disturbance, Scenario};
use unisono_testkit::simulator::{Story, run};
use unisono_testkit::world::Run;

/// How many stories are told. `UNISONO_SEEDS` asks for another number, `UNISONO_SEED` for one story.
const SEEDS: u64 = 4_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn every_story_ends_as_its_rules_want() {
    let (first, count) = match number("UNISONO_SEED") {
        Some(seed) => (seed, 1),
        None => (0, number("UNISONO_SEEDS").unwrap_or(SEEDS)),
    };
    let mut turns = 0;
    for seed in first..first + count {
        let scenario = Scenario::from_seed(seed);
        let story = match run(&scenario) {
            Ok(story) => story,
            Err(fault) => {
                panic!("{}", replay(seed, &fault, &scenario))
            }
        };
        turns += story.turns;
        if let Err(fault) = end_is_right(&scenario, &story) {
            panic!("{}\n{:#?}", replay(seed, &fault, &scenario), story.status);
        }
    }
    assert!(turns >= usize::try_from(count).unwrap());
}

fn replay(seed: u64, fault: &str, scenario: &Scenario) -> String {
    let Scenario { job, facts, script, disturbances, faults, seed: _ } = scenario;
    format!(
        "seed {seed}: {fault}\nreplay with UNISONO_SEED={seed}\n{} on {:?}, {:?}\n{script:?}\n{disturbances:?}\n{faults:?}",
        job.dialect, facts.engine, job.policies
    )
}

fn end_is_right(scenario: &Scenario, story: &Story) -> Result<(), String> {
    let deleted = scenario.disturbances.iter().any(|(_, it)| *it == Disturbance::Delete);
    if deleted && story.removed {
        return Ok(());
    }
    let status = &story.status;
    let end = status.end().ok_or("no end")?;
    let policies = &scenario.job.policies;
    if status.completed.is_none() {
        return Err("an end without its time".to_owned());
    }
    if status.gang_restarts > policies.gang_restarts {
        return Err(format!("{} gang restarts", status.gang_restarts));
    }
    if let Retry::Backoff { limit } = policies.retry
        && status.counted_failures > limit
    {
        return Err(format!("{} counted failures", status.counted_failures));
    }
    let stopped = scenario.disturbances.iter().any(|(_, it)| *it == Disturbance::Stop);
    if end.verdict == Verdict::Stopped && !stopped {
        return Err("stopped, and nobody asked".to_owned());
    }
    if end.reason == EndReason::DeadlineExceeded && policies.deadline_seconds.is_none() {
        return Err("out of time without a deadline".to_owned());
    }
    if end.reason == EndReason::ImageUnavailable && !scenario.faults.no_image {
        return Err("an image is missing and none was taken away".to_owned());
    }
    if end.verdict == Verdict::Succeeded && end.code != 0 {
        return Err(format!("a success with code {}", end.code));
    }
    clean_up_is_right(scenario, story)
}

fn clean_up_is_right(scenario: &Scenario, story: &Story) -> Result<(), String> {
    for incarnation in &story.alive {
        let Some(host) = story.plan.host(incarnation.member) else {
            return Err(format!("{incarnation:?} is left and not planned"));
        };
        let may_stay = scenario.job.policies.clean_up == CleanUp::None
            && scenario.facts.engine == EngineKind::Kubernetes
            && scenario.job.dialect != Dialect::KubeBatch
            && !host.runs.runs_command();
        if !may_stay {
            return Err(format!("{} is left", host.name));
        }
    }
    Ok(())
}

/// In place of every time.
const NEVER: Time = Time(0);

const GOOD: Run = Run { lasts: 3_000, code: 0 };
const BAD: Run = Run { lasts: 1_000, code: 1 };

fn crash_stories() -> Vec<(&'static str, Scenario)> {
    let line: &[&str] = &["mpirun", "./a"];
    let kubeflow = || {
        let mut job = kubeflow(Dialect::KubeflowV2beta1, "k", 3, 1, line);
        job.policies.clean_up = CleanUp::Running;
        job
    };
    let with = |disturbances: Vec<(u64, Disturbance)>| {
        let mut scenario = Scenario::quiet(kubeflow(), vec![Run { lasts: 9_000, code: 0 }]);
        scenario.disturbances = disturbances;
        scenario
    };
    let mut failing = kubeflow();
    failing.policies.retry = Retry::Backoff { limit: 1 };
    let mut brief = kubeflow();
    brief.policies.ttl_seconds = Some(1);
    // Which of several workers is given up on first depends on how long each of them took to be placed.
    let mut alone = kubeflow();
    alone.groups[1].replicas = 1;
    let mut imageless = Scenario::quiet(alone, vec![GOOD]);
    imageless.faults.no_image = true;
    imageless.facts.image_patience = Some(Duration::from_secs(60));
    vec![
        ("no image", imageless),
        ("removal", Scenario::quiet(brief, vec![GOOD])),
        ("succeed", Scenario::quiet(kubeflow(), vec![GOOD])),
        ("retry", Scenario::quiet(kubeflow(), vec![BAD, GOOD])),
        ("fail", Scenario::quiet(failing, vec![BAD])),
        ("kube-batch", Scenario::quiet(kube_batch("b", 3, line), vec![BAD, GOOD])),
        (
            "openpai",
            Scenario::quiet(
                openpai("o", vec![role("main", 1, "mpirun ./a"), role("node", 2, "./b")]),
                vec![Run { lasts: 1_000, code: 143 }, GOOD],
            ),
        ),
        (
            "suspend and resume",
            with(vec![(5_000, Disturbance::Suspend), (9_000, Disturbance::Resume)]),
        ),
        ("scale up", with(vec![(5_000, Disturbance::Scale(5))])),
        ("scale down", with(vec![(5_000, Disturbance::Scale(1))])),
        ("stop", with(vec![(5_000, Disturbance::Stop)])),
        ("delete", with(vec![(5_000, Disturbance::Delete)])),
        ("delete at once", with(vec![(100, Disturbance::Delete)])),
    ]
}

/// The process dies right before and right after every single write, one story each: the end is the same as without.
#[test]
fn a_death_at_any_write_changes_nothing_in_the_end() {
    let mut points = 0;
    for (name, scenario) in crash_stories() {
        let undisturbed = run(&scenario).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        for write in 1..=undisturbed.writes {
            let (mut before, mut after) = (scenario.clone(), scenario.clone());
            before.faults.death_before_write = Some(write);
            after.faults.death_after_write = Some(write);
            for (when, dying) in [("before", before), ("after", after)] {
                let what = format!("{name}, death {when} write {write}");
                let story = run(&dying).unwrap_or_else(|fault| panic!("{what}: {fault}"));
                assert_eq!(end_of(&story), end_of(&undisturbed), "{what}");
                points += 1;
            }
        }
    }
    assert!(points > 200, "only {points} crash points");
}

/// What is the same however often the process died: the whole status and everything that is left, but for the times.
fn end_of(story: &Story) -> impl PartialEq + std::fmt::Debug {
    let seen = story.seen.iter().map(|it| (it.incarnation, timeless_state(&it.state), it.address));
    let mut status = timeless(&story.status);
    let commands = story.plan.hosts.iter().filter(|host| host.runs.runs_command()).count();
    if let Some(failure) = status.first_failure.as_mut().filter(|_| commands > 1) {
        // Which of several that all fail was the first depends on how long each of them took to boot.
        (failure.host, failure.member) = (String::new(), Member { group: 0, index: 0 });
    }
    (status, seen.collect::<Vec<_>>(), story.plan.generation, story.removed)
}

fn timeless(status: &Status) -> Status {
    let mut status = status.clone();
    let times = [
        &mut status.created,
        &mut status.started,
        &mut status.completed,
        &mut status.not_before,
        &mut status.running_since,
        &mut status.first_ran,
        &mut status.stopping_since,
    ];
    let failed = status.first_failure.iter_mut().map(|failure| &mut failure.ended);
    failed.chain(status.ended.values_mut()).for_each(|ended| *ended = timeless_end(ended));
    let conditions = status.conditions.iter_mut().flat_map(|it| [&mut it.updated, &mut it.changed]);
    let known = times.into_iter().flatten().chain(conditions).chain(status.missing.values_mut());
    known.for_each(|time| *time = NEVER);
    status
}

fn timeless_state(state: &SeenState) -> SeenState {
    match state {
        SeenState::Ended(ended) => SeenState::Ended(timeless_end(ended)),
        SeenState::Running { .. } => SeenState::Running { since: NEVER },
        SeenState::NoImage(waiting) => {
            SeenState::NoImage(NoImage { since: NEVER, ..waiting.clone() })
        }
        other => other.clone(),
    }
}

fn timeless_end(ended: &Ended) -> Ended {
    Ended { at: NEVER, started: ended.started.map(|_| NEVER), ..ended.clone() }
}
