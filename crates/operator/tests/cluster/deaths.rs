//! The operator dies at writes all over the lives of jobs, and another one goes on: what is left is what would be left without.

use anyhow::{Context, anyhow, ensure};
use serde_json::{Map, Value, json};
use unisono_testcluster::{COSCHEDULER, Cluster, audit, wait};

use crate::faults::{DEAD, Death, Faults};
use crate::operator::{Operator, Start, USER};
use crate::remains;
use crate::story::{GATED, PATIENCE, Story, at_once, holds, job, tell_alone};
use crate::support::put;

/// How many operators must have died at least.
const DEATHS: usize = 20;

/// A kind of life, and at how many of its writes an operator dies.
#[derive(Clone, Copy)]
struct Life {
    name: &'static str,
    points: u64,
    in_gang: bool,
    /// Lives it; what is left leaves.
    live: fn(&mut Kept<'_>) -> anyhow::Result<Value>,
}

const LIVES: &[Life] = &[
    Life { name: "succeeds", points: 8, in_gang: false, live: succeeds },
    Life { name: "fails", points: 4, in_gang: false, live: fails },
    Life { name: "suspended", points: 5, in_gang: false, live: suspended },
    Life { name: "grows", points: 4, in_gang: false, live: grows },
    Life { name: "deleted", points: 3, in_gang: false, live: deleted },
    Life { name: "in-gang", points: 4, in_gang: true, live: in_gang },
];

/// A job of one worker whose launcher runs a line of shell, once.
pub(crate) fn small(line: &str) -> anyhow::Result<Value> {
    let mut job = job("v2beta1", "small", line);
    put(&mut job, "/spec/mpiReplicaSpecs/Worker/replicas", json!(1))?;
    job["spec"]["runPolicy"] = json!({"cleanPodPolicy": "Running", "backoffLimit": 0});
    Ok(job)
}

/// Waits until the small job is over and everything about it is done; what is left of it leaves.
pub(crate) fn rests(story: &Story<'_>) -> anyhow::Result<Value> {
    story.succeeds("small")?;
    story.until("small", "at rest", |job| is_at_rest(story, job))?;
    remains::of(story, "small")
}

fn is_at_rest(story: &Story<'_>, job: &Value) -> bool {
    let api = story.cluster.api();
    let pods = api.get(&story.path("/api/v1", "pods")).unwrap_or_default();
    let launcher = format!("{}/small-launcher", story.path("/apis/batch/v1", "jobs"));
    let is_over = |it: Value| it["status"]["conditions"].is_array();
    (holds(job, "Succeeded") || holds(job, "Failed"))
        && is_left(&pods)
        && api.get(&launcher).is_ok_and(is_over)
        // A worker that is being removed counts as failed until it is gone.
        && job["status"]["replicaStatuses"]["Worker"].as_object().is_none_or(Map::is_empty)
}

/// Whether nothing is left of these pods but launchers that have ended.
fn is_left(pods: &Value) -> bool {
    let pods = pods["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    !pods.is_empty()
        && pods.iter().all(|pod| {
            let launches =
                pod["metadata"]["name"].as_str().is_some_and(|it| it.contains("-launcher"));
            launches && matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
        })
}

pub(crate) fn alike(what: &str, expected: &Value, found: &Value) -> anyhow::Result<()> {
    match remains::difference(expected, found) {
        None => Ok(()),
        Some(difference) => Err(anyhow!("{what}: {difference}")),
    }
}

/// The operator dies right before or right after writes all over these lives, one story each.
pub(crate) fn at_any_write(cluster: &Cluster) -> anyhow::Result<()> {
    cluster.start_coscheduling()?;
    let undisturbed = at_once(LIVES.to_vec(), |life| {
        let told = life.tell(cluster, None).with_context(|| life.name)?;
        ensure!(told.deaths == 0, "{}: somebody died", life.name);
        Ok((life, told))
    })?;
    let points = undisturbed.iter().flat_map(|(life, told)| {
        let points = life.points.min(told.writes);
        (0..points).map(move |nth| (life, told, 1 + nth * told.writes / points, nth))
    });
    let died = at_once(points.collect(), |(life, expected, write, nth)| {
        let death = if nth % 2 == 0 { Death::After(write) } else { Death::Before(write) };
        let what = || format!("{}: {death:?}", life.name);
        let told = life.tell(cluster, Some(death)).with_context(what)?;
        alike(&what(), &expected.left, &told.left)?;
        Ok((life.name, told.deaths))
    })?;
    for life in LIVES {
        let deaths = died.iter().filter(|(name, deaths)| *name == life.name && *deaths > 0).count();
        ensure!(deaths > 0, "{}: nobody died", life.name);
    }
    let deaths: usize = died.iter().map(|(_, deaths)| deaths).sum();
    ensure!(deaths >= DEATHS, "only {deaths} died");
    Ok(())
}

/// How a life went.
struct Told {
    left: Value,
    /// Writes of its operators.
    writes: u64,
    deaths: usize,
}

impl Life {
    /// Lives it with an operator that dies, or with one that does not.
    fn tell(self, cluster: &Cluster, death: Option<Death>) -> anyhow::Result<Told> {
        let namespace = match death {
            None => self.name.to_owned(),
            Some(Death::Before(write)) => format!("{}-before-{write}", self.name),
            Some(Death::After(write)) => format!("{}-after-{write}", self.name),
        };
        tell_alone(cluster, &namespace, |story| {
            let gang = format!("scheduler-plugins={COSCHEDULER}");
            let gang = if self.in_gang { &gang } else { "none" };
            let faults = Faults { death, ..Faults::default() };
            let operator = story.operator(&Start { faults, gang, ..Start::default() })?;
            let mut kept = Kept { story, gang, operator, deaths: 0 };
            let left = (self.live)(&mut kept)?;
            let deaths = kept.end()?;
            let own = cluster.requests_since(audit::Mark::BEGINNING)?.of_user(USER);
            let is_write =
                |it: &audit::Request| !matches!(it.verb.as_str(), "get" | "list" | "watch");
            Ok(Told { left, writes: own.in_namespace(&namespace).count(is_write), deaths })
        })
    }
}

/// A story whose operator may die: then another one goes on.
struct Kept<'story> {
    story: &'story Story<'story>,
    gang: &'story str,
    operator: Operator,
    deaths: usize,
}

impl Kept<'_> {
    /// Waits until the small job is as wanted.
    fn until(
        &mut self,
        what: &str,
        is: impl Fn(&Story<'_>, &Value) -> bool,
    ) -> anyhow::Result<Value> {
        let found = wait::until(PATIENCE, &format!("the job to be {what}"), || {
            self.look_after()?;
            let job = self.story.get("small")?;
            Ok(is(self.story, &job).then_some(job))
        });
        found.with_context(|| self.operator.log())
    }

    /// Waits until everything is done; what is left leaves.
    fn rests(&mut self) -> anyhow::Result<Value> {
        self.until("at rest", is_at_rest)?;
        remains::of(self.story, "small")
    }

    /// Starts another operator where one has died.
    fn look_after(&mut self) -> anyhow::Result<()> {
        if let Some(status) = self.operator.ended()? {
            ensure!(status.code() == Some(DEAD), "{status}: {}", self.operator.log());
            self.deaths += 1;
            self.operator = self.story.operator(&Start { gang: self.gang, ..Start::default() })?;
        }
        Ok(())
    }

    /// Ends the operator, and tells how many have died.
    fn end(self) -> anyhow::Result<usize> {
        // Its last write may be one that nobody waits for.
        let log = self.operator.log();
        let ended = self.operator.stop()?;
        match ended.code() {
            Some(0) => Ok(self.deaths),
            Some(DEAD) => Ok(self.deaths + 1),
            _ => Err(anyhow!("{ended}: {log}")),
        }
    }
}

fn succeeds(kept: &mut Kept<'_>) -> anyhow::Result<Value> {
    kept.story.create(&small("true")?)?;
    kept.rests()
}

fn fails(kept: &mut Kept<'_>) -> anyhow::Result<Value> {
    kept.story.create(&small("exit 3")?)?;
    kept.until("failed", |_, job| holds(job, "Failed"))?;
    kept.rests()
}

fn suspended(kept: &mut Kept<'_>) -> anyhow::Result<Value> {
    kept.story.create(&small(GATED)?)?;
    kept.until("running", |_, job| holds(job, "Running"))?;
    kept.story.merge("small", &json!({"spec": {"runPolicy": {"suspend": true}}}))?;
    kept.until("stopped", |story, job| {
        let pods = story.pods("small").unwrap_or_default();
        let active = &job["status"]["replicaStatuses"]["Launcher"]["active"];
        holds(job, "Suspended")
            && active.is_null()
            && !pods.iter().any(|it| it.contains("-worker-"))
    })?;
    let launcher = &small("true")?["spec"]["mpiReplicaSpecs"]["Launcher"]["template"];
    let spec = json!({"runPolicy": {"suspend": false}, "mpiReplicaSpecs": {"Launcher": {"template": launcher}}});
    kept.story.merge("small", &json!({"spec": spec}))?;
    kept.until("succeeded", |_, job| holds(job, "Succeeded"))?;
    kept.rests()
}

fn grows(kept: &mut Kept<'_>) -> anyhow::Result<Value> {
    kept.story.create(&small(GATED)?)?;
    kept.until("running", |_, job| holds(job, "Running"))?;
    kept.story
        .merge("small", &json!({"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 2}}}}))?;
    kept.until("two workers wide", |_, job| {
        job["status"]["replicaStatuses"]["Worker"]["active"] == 2
    })?;
    kept.story.open("small")?;
    kept.until("succeeded", |_, job| holds(job, "Succeeded"))?;
    kept.rests()
}

/// Nothing is left.
fn deleted(kept: &mut Kept<'_>) -> anyhow::Result<Value> {
    kept.story.create(&small(GATED)?)?;
    kept.until("running", |_, job| holds(job, "Running"))?;
    kept.story.remove("small")?;
    wait::until(PATIENCE, "everything to be gone", || {
        kept.look_after()?;
        let left = remains::owned(kept.story)?;
        Ok(remains::is_nothing(&left).then_some(left))
    })
}

fn in_gang(kept: &mut Kept<'_>) -> anyhow::Result<Value> {
    kept.story.create(&small("true")?)?;
    kept.until("succeeded", |_, job| holds(job, "Succeeded"))?;
    let left = kept.rests()?;
    let groups = kept.story.path("/apis/scheduling.x-k8s.io/v1alpha1", "podgroups");
    kept.until("without a PodGroup", |story, _| {
        story
            .cluster
            .api()
            .get(&groups)
            .is_ok_and(|it| it["items"].as_array().is_some_and(Vec::is_empty))
    })?;
    Ok(left)
}
