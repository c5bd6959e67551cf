//! An API server that fails: calls that go wrong in every way, watches and connections that are cut, a server that is away. Jobs end
//! as if nothing had been.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use unisono_testcluster::{Cluster, wait};

use crate::deaths::{alike, rests, small};
use crate::faults::{DOOMED, Fate, Faults};
use crate::operator::Start;
use crate::story::{GATED, HELLO, PATIENCE, at_once, holds, job, tell_alone};
use crate::wire::Wire;

/// How many connections are cut.
const CUTS: usize = 60;

/// How long the API server is away: four times as long as the lease lasts.
const AWAY: Duration = Duration::from_secs(60);

/// One call in ten fails: refused as conflict, as too many, as an error of the server or as too slow, cut before or after it was done;
/// one write is never answered; and one watch's beginning is gone. Every one of these happens.
pub(crate) fn calls_fail(cluster: &Cluster) -> anyhow::Result<()> {
    let expected = tell_alone(cluster, "calls-pass", |story| {
        let operator = story.operator(&Start::default())?;
        story.create(&small("true")?)?;
        let left = rests(story)?;
        operator.terminate()?;
        Ok(left)
    })?;
    // Three or more of the first thirty calls of each fail, and together they fail in every way.
    let logs = at_once(vec![2, 6, 10, 12], |seed| {
        tell_alone(cluster, &format!("calls-fail-{seed}"), |story| {
            let faults = Faults { seed, one_in: 10, ..Faults::default() };
            let longest_look = Some(Duration::from_secs(5));
            let operator = story.operator(&Start { faults, longest_look, ..Start::default() })?;
            story.create(&small("true")?)?;
            let left = rests(story).with_context(|| operator.log())?;
            alike(&format!("seed {seed}"), &expected, &left)?;
            let log = operator.log();
            operator.terminate()?;
            Ok(log)
        })
    })?;
    let logs = logs.concat();
    for fate in Fate::all() {
        ensure!(logs.contains(&fate.told()), "no call met {fate:?}");
    }
    ensure!(logs.contains("a look is given up"), "nobody noticed a call without an answer");
    Ok(())
}

/// Every watch is cut a tenth of a second after it began, from the beginning of a job to its end.
pub(crate) fn watches_cut(cluster: &Cluster) -> anyhow::Result<()> {
    tell_alone(cluster, "watches-cut", |story| {
        let faults = Faults { watches_live: 100, ..Faults::default() };
        let operator = story.operator(&Start { faults, ..Start::default() })?;
        operator.says("working")?;
        story.create(&job("v2beta1", "cut", HELLO))?;
        let ended = story.succeeds("cut")?;
        ensure!(ended["status"]["unisono"]["epoch"] == 0, "{}", ended["status"]);
        ensure!(operator.log().contains("a watch was cut"), "no watch was cut");
        operator.terminate()
    })
}

/// Every connection is cut, ten times a second, while a job begins.
pub(crate) fn connections_cut(cluster: &Cluster) -> anyhow::Result<()> {
    tell_alone(cluster, "connections-cut", |story| {
        let wire = Wire::to(cluster, "10.77.0.1:443")?;
        let operator =
            story.operator(&Start { through: Some(wire.address()), ..Start::default() })?;
        operator.says("working")?;
        story.create(&job("v2beta1", "cut", HELLO))?;
        let mut cut = 0;
        wait::until(PATIENCE, "connections to cut", || {
            std::thread::sleep(Duration::from_millis(100));
            cut += wire.cut();
            // On a machine that has much else to do no connection would ever live long enough. On one that has nothing else to do the
            // job may end between two cuts; nothing makes new connections then but watches, ever more slowly.
            Ok((cut >= CUTS || holds(&story.get("cut")?, "Succeeded")).then_some(()))
        })?;
        ensure!(cut > 0, "no connection was cut");
        story.succeeds("cut")?;
        operator.terminate()
    })
}

/// The API server is away for half a minute, longer than the lease lasts, while a job runs: the operator that worked steps down, the one
/// that stood by goes on, and the job has not noticed anything.
pub(crate) fn server_away(cluster: &Cluster) -> anyhow::Result<()> {
    tell_alone(cluster, "away", |story| {
        let start = |identity| story.operator(&Start { identity, ..Start::default() });
        let mut first = start(Some("first"))?;
        first.says("working")?;
        let second = start(Some("second"))?;
        second.says("standing by")?;
        story.create(&job("v2beta1", "patient", GATED))?;
        let running = story.until("patient", "running", |job| holds(job, "Running"))?;
        let pods = story.uids()?;

        cluster.stop_api_server()?;
        let back = Instant::now() + AWAY;
        let stepped_down = wait::until(PATIENCE, "the operator to step down", || first.ended());
        // Not until something happens: this long, nothing can.
        std::thread::sleep(back.saturating_duration_since(Instant::now()));
        cluster.start_api_server()?;
        ensure!(stepped_down?.code() == Some(1), "{}", first.log());
        ensure!(first.log().contains("has the lease"), "{}", first.log());
        second.says("working")?;
        wait::until(PATIENCE, "the nodes to be heard again", || {
            let ready: Result<Vec<bool>, _> =
                cluster.nodes().iter().map(|node| cluster.is_ready(node.name())).collect();
            Ok(ready?.into_iter().all(|it| it).then_some(()))
        })?;

        story.open("patient")?;
        let ended = story.succeeds("patient")?;
        ensure!(story.uids()? == pods, "pods were made anew");
        ensure!(ended["status"]["startTime"] == running["status"]["startTime"], "it began anew");
        let launcher = &ended["status"]["replicaStatuses"]["Launcher"];
        ensure!(launcher["failed"].is_null() && launcher["succeeded"] == 1, "{launcher}");
        second.terminate()
    })
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
