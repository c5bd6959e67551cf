//! An API server that fails: calls that go wrong in every way, a server that is away. Jobs end as if nothing had been.

use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use serde_json::{Map, Value, json};
use unisono_testcluster::{Cluster, audit, wait};

use crate::faults::{DEAD, DOOMED, Death, Faults};
use crate::operator::{Operator, Start, USER};
use crate::remains;
use crate::story::{HELLO, Story, holds, job, tell_alone};
use crate::support::put;
use crate::wire::Wire;

/// How long the operator may take to end, or a job to come to rest.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often the operator dies, each time at another write.
const POINTS: usize = 24;

/// How many connections are cut.
const CUTS: usize = 60;

/// How many of these stories go on at once.
const AT_ONCE: usize = 4;

/// A job of one worker whose launcher does almost nothing.
fn small() -> anyhow::Result<Value> {
    let mut job = job("v2beta1", "small", "true");
    put(&mut job, "/spec/mpiReplicaSpecs/Worker/replicas", json!(1))?;
    job["spec"]["runPolicy"] = json!({"cleanPodPolicy": "Running"});
    Ok(job)
}

/// Waits until the small job is over and everything about it is done; what is left of it leaves.
fn rests(story: &Story<'_>) -> anyhow::Result<Value> {
    story.succeeds("small")?;
    story.until("small", "at rest", |job| is_at_rest(story, job))?;
    remains::of(story, "small")
}

fn is_at_rest(story: &Story<'_>, job: &Value) -> bool {
    let api = story.cluster.api();
    let pods = api.get(&story.path("/api/v1", "pods")).unwrap_or_default();
    let launcher = format!("{}/small-launcher", story.path("/apis/batch/v1", "jobs"));
    let is_complete = |it: Value| it["status"]["completionTime"].is_string();
    holds(job, "Succeeded")
        && is_left(&pods)
        && api.get(&launcher).is_ok_and(is_complete)
        // A worker that is being removed counts as failed until it is gone.
        && job["status"]["replicaStatuses"]["Worker"].as_object().is_none_or(Map::is_empty)
}

/// Whether nothing is left of these pods but a launcher that has ended.
fn is_left(pods: &Value) -> bool {
    let pods = pods["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    matches!(pods, [launcher] if launcher["status"]["phase"] == "Succeeded")
}

/// What is left of the small job when nothing goes wrong, and how many writes that took.
fn undisturbed(cluster: &Cluster, namespace: &str) -> anyhow::Result<(Value, u64)> {
    let mut found = None;
    tell_alone(cluster, namespace, |story| {
        let operator = story.operator(&Start::default())?;
        story.create(&small()?)?;
        let left = rests(story)?;
        operator.terminate()?;
        let own = cluster.requests_since(audit::Mark::BEGINNING)?.of_user(USER);
        let writes = own
            .in_namespace(namespace)
            .count(|it| matches!(it.verb.as_str(), "create" | "patch" | "update" | "delete"));
        found = Some((left, writes));
        Ok(())
    })?;
    found.context("nothing is left")
}

fn alike(what: &str, expected: &Value, found: &Value) -> anyhow::Result<()> {
    match remains::difference(expected, found) {
        None => Ok(()),
        Some(difference) => Err(anyhow!("{what}: {difference}")),
    }
}

/// One call in ten fails: refused as conflict, as too many, as an error of the server, cut before or after it was done, and watches
/// whose beginning is gone.
pub(crate) fn calls_fail(cluster: &Cluster) -> anyhow::Result<()> {
    let (expected, _) = undisturbed(cluster, "calls-pass")?;
    at_once(vec![1, 2, 3, 4], |seed| {
        tell_alone(cluster, &format!("calls-fail-{seed}"), |story| {
            let faults = Faults { seed, one_in: 10, ..Faults::default() };
            let operator = story.operator(&Start { faults, ..Start::default() })?;
            story.create(&small()?)?;
            alike(&format!("seed {seed}"), &expected, &rests(story)?)?;
            operator.terminate()
        })
    })
}

/// The operator dies after every one of its writes, and before the first ones, in one story each.
pub(crate) fn deaths(cluster: &Cluster) -> anyhow::Result<()> {
    let (expected, writes) = undisturbed(cluster, "no-death")?;
    // Right before one is right after another, but for those that are sent at once: the pods and what they share come first.
    let before = (1..=writes).map(Death::Before);
    let points: Vec<Death> = (1..=writes).map(Death::After).chain(before).take(POINTS).collect();
    ensure!(points.len() == POINTS, "only {} points", points.len());
    at_once(points, |death| {
        let namespace = match death {
            Death::Before(write) => format!("dies-before-{write}"),
            Death::After(write) => format!("dies-after-{write}"),
        };
        tell_alone(cluster, &namespace, |story| {
            let faults = Faults { death: Some(death), ..Faults::default() };
            let mut mortal = story.operator(&Start { faults, ..Start::default() })?;
            story.create(&small()?)?;
            dies(&mut mortal, story)?;
            let operator = story.operator(&Start::default())?;
            alike(&format!("{death:?}"), &expected, &rests(story)?)?;
            operator.terminate()
        })
    })
}

/// Waits until an operator has died. One that needs fewer writes than another did is killed when its job is at rest.
fn dies(operator: &mut Operator, story: &Story<'_>) -> anyhow::Result<()> {
    wait::until(PATIENCE, "the operator to die", || {
        if let Some(status) = operator.ended()? {
            ensure!(status.code() == Some(DEAD), "{status}: {}", operator.log());
            return Ok(Some(()));
        }
        Ok(is_at_rest(story, &story.get("small")?).then_some(()))
    })?;
    operator.kill()
}

/// Runs the same story with each of these, some at once; the first fault leaves when all are told.
fn at_once<T: Send>(
    all: Vec<T>,
    story: impl Fn(T) -> anyhow::Result<()> + Sync,
) -> anyhow::Result<()> {
    let rest = std::sync::Mutex::new(all.into_iter());
    let told: Vec<anyhow::Result<()>> = std::thread::scope(|scope| {
        let one_by_one = || {
            loop {
                let next = rest.lock().map_err(|_| anyhow!("a story panicked"))?.next();
                let Some(next) = next else { return Ok(()) };
                story(next)?;
            }
        };
        let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(one_by_one)).collect();
        let joined =
            threads.into_iter().map(|it| it.join().map_err(|_| anyhow!("a story panicked")));
        joined.map(|it| it.and_then(|told| told)).collect()
    });
    told.into_iter().collect()
}

/// Every connection is cut, ten times a second, while a job begins and runs.
pub(crate) fn watches_cut(cluster: &Cluster) -> anyhow::Result<()> {
    tell_alone(cluster, "cut", |story| {
        let wire = Wire::to(cluster, "10.77.0.1:443")?;
        let operator =
            story.operator(&Start { through: Some(wire.address()), ..Start::default() })?;
        operator.says("working")?;
        story.create(&job("v2beta1", "cut", HELLO))?;
        let mut cut = 0;
        wait::until(PATIENCE, "connections to cut", || {
            std::thread::sleep(Duration::from_millis(100));
            cut += wire.cut();
            // On a machine that has much else to do no connection would ever live long enough.
            Ok((cut >= CUTS).then_some(()))
        })?;
        story.succeeds("cut")?;
        operator.terminate()
    })
}

/// The API server is away for longer than the lease lasts, while a job runs: the operator that worked steps down, the one that stood
/// by goes on, and the job has not noticed anything.
pub(crate) fn server_away(cluster: &Cluster) -> anyhow::Result<()> {
    tell_alone(cluster, "away", |story| {
        let start = |identity| story.operator(&Start { identity, ..Start::default() });
        let mut first = start(Some("first"))?;
        first.says("working")?;
        let second = start(Some("second"))?;
        second.says("standing by")?;
        story.create(&job("v2beta1", "patient", "until test -e /tmp/go; do sleep 0.2; done"))?;
        let running = story.until("patient", "running", |job| holds(job, "Running"))?;
        let pods = uids(story)?;

        cluster.stop_api_server()?;
        let stepped_down = wait::until(PATIENCE, "the operator to step down", || first.ended());
        cluster.start_api_server()?;
        ensure!(stepped_down?.code() == Some(1), "{}", first.log());
        ensure!(first.log().contains("has the lease"), "{}", first.log());
        second.says("working")?;

        story.kubectl(&["exec", "patient-launcher", "--", "touch", "/tmp/go"])?;
        let ended = story.succeeds("patient")?;
        ensure!(uids(story)? == pods, "pods were made anew");
        ensure!(ended["status"]["startTime"] == running["status"]["startTime"], "it began anew");
        let launcher = &ended["status"]["replicaStatuses"]["Launcher"];
        ensure!(launcher["failed"].is_null() && launcher["succeeded"] == 1, "{launcher}");
        second.terminate()
    })
}

/// Names and uids of all pods of a story.
fn uids(story: &Story<'_>) -> anyhow::Result<Vec<(Value, Value)>> {
    let list = story.cluster.api().get(&story.path("/api/v1", "pods"))?;
    let pods = list["items"].as_array().context("no list")?;
    Ok(pods
        .iter()
        .map(|it| (it["metadata"]["name"].clone(), it["metadata"]["uid"].clone()))
        .collect())
}

/// A fault in the program itself, which only a look at one job meets: that job is told of, and no other is harmed.
pub(crate) fn one_look_panics(cluster: &Cluster) -> anyhow::Result<()> {
    tell_alone(cluster, "panics", |story| {
        let faults = Faults { panics: true, ..Faults::default() };
        let operator = story.operator(&Start { faults, ..Start::default() })?;
        story.create(&job("v2beta1", DOOMED, "true"))?;
        let warned = ("Warning".to_owned(), "InternalError".to_owned());
        story.until(DOOMED, "told of", |job| {
            story.events(job).is_ok_and(|it| it == [warned.clone()])
        })?;
        story.create(&job("v2beta1", "lucky", HELLO))?;
        story.succeeds("lucky")?;
        let looks = operator.log().matches("a look at a job panicked").count();
        ensure!(looks > 1, "it was given up");
        operator.terminate()
    })
}
