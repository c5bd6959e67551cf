//! What a simulated job is and what is done to it: drawn from a seed, so that every seed is another story.

use std::time::Duration;

use unisono_job::{CleanUp, Dialect, EndRule, Job, LauncherStart, Retry, RetryCount, Slots};
use unisono_plan::{Cause, EngineKind, Facts};

use crate::jobs::{azure, kube_batch, kubeflow, openpai, role};
use crate::random::Random;
use crate::world::{Faults, Run};

/// A story.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The job.
    pub job: Job,
    /// Where it runs.
    pub facts: Facts,
    /// How its commands go.
    pub script: Vec<Run>,
    /// What is done to it, each at so many milliseconds after its start.
    pub disturbances: Vec<(u64, Disturbance)>,
    /// What goes wrong.
    pub faults: Faults,
    /// The seed of everything else.
    pub seed: u64,
}

/// Something that is done to a job from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// It is suspended.
    Suspend,
    /// It is resumed.
    Resume,
    /// Its last group gets that many members.
    Scale(u32),
    /// Somebody stops it.
    Stop,
    /// Somebody deletes it, and the platform removes what belongs to it.
    Delete,
    /// Something of it is lost.
    Strike {
        /// Which.
        nth: u64,
        /// How.
        cause: Cause,
    },
}

impl Scenario {
    /// A quiet story: nothing goes wrong, nothing is done from outside.
    pub fn quiet(job: Job, script: Vec<Run>) -> Self {
        Self {
            job,
            facts: Facts { engine: EngineKind::Kubernetes, ..Facts::default() },
            script,
            disturbances: Vec::new(),
            faults: Faults::default(),
            seed: 1,
        }
    }

    /// The story of a seed.
    pub fn from_seed(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let job = any_job(&mut random);
        let local = random.one_in(5);
        let script = any_script(&mut random);
        let disturbances = any_disturbances(&mut random, local);
        let mut faults = if random.one_in(4) {
            Faults::default()
        } else {
            Faults {
                // Nothing on this machine is seen late.
                late_view: if local { 0 } else { 2 + random.below(8) },
                seen_twice: 4,
                lost_act: 10 + random.below(30),
                death: 8 + random.below(40),
                death_before_write: None,
                death_after_write: None,
                no_image: false,
            }
        };
        let engine = if local { EngineKind::Local } else { EngineKind::Kubernetes };
        // Nothing on this machine has images.
        faults.no_image = !local && random.one_in(12);
        let image_patience = Some(Duration::from_secs(random.below(30)));
        let facts = Facts { engine, image_patience, ..Facts::default() };
        Self { job, facts, script, disturbances, faults, seed }
    }
}

fn any_job(random: &mut Random) -> Job {
    let workers = u32::try_from(random.below(4)).unwrap_or(0);
    let line = ["mpirun", "./a"];
    let mut job = match random.below(6) {
        0 => azure("az", workers + 1, 2, "mpirun -np 4 ./a"),
        1 => kube_batch("kb", workers + 1, &line),
        2 => {
            let mut worker = role("worker", workers + 1, "sleep infinity");
            worker.end = *random.pick(&[EndRule::FIRST, EndRule::NEVER]);
            let mut master = role("master", 1, "mpirun ./a");
            master.end = *random.pick(&[EndRule::FIRST, EndRule::NEVER, master.end]);
            let mut job = openpai("pai", vec![master, worker]);
            let limits = [RetryCount::Limited(0), RetryCount::Limited(2), RetryCount::UntilSuccess];
            job.policies.retry = Retry::ByClass(*random.pick(&limits));
            job
        }
        _ => {
            let dialect = *random.pick(&[
                Dialect::KubeflowV1alpha1,
                Dialect::KubeflowV1alpha2,
                Dialect::KubeflowV1,
                Dialect::KubeflowV2beta1,
            ]);
            let mut job = kubeflow(dialect, "kf", workers, 1, &line);
            if random.one_in(4) {
                job.groups[0].slots = Slots::stated(1);
            }
            job.policies.retry =
                Retry::Backoff { limit: u32::try_from(random.below(4)).unwrap_or(0) };
            job
        }
    };
    let policies = &mut job.policies;
    policies.clean_up = *random.pick(&[CleanUp::None, CleanUp::Running, CleanUp::All]);
    policies.launcher_start =
        *random.pick(&[LauncherStart::AtOnce, LauncherStart::AtOnce, LauncherStart::AfterWorkers]);
    policies.deadline_seconds = random.one_in(6).then(|| 1 + random.below(30));
    policies.ttl_seconds = random.one_in(6).then(|| random.below(20));
    policies.suspend = random.one_in(10);
    policies.gang_restarts = u32::try_from(random.below(4)).unwrap_or(0);
    job
}

fn any_script(random: &mut Random) -> Vec<Run> {
    let failures = random.below(4);
    let failing = |random: &mut Random| Run {
        lasts: random.below(5_000),
        code: *random.pick(&[1, 2, 134, 137, 139, 143, 255]),
    };
    let mut script: Vec<Run> = (0..failures).map(|_| failing(random)).collect();
    script.push(Run { lasts: random.below(8_000), code: 0 });
    script
}

fn any_disturbances(random: &mut Random, local: bool) -> Vec<(u64, Disturbance)> {
    let mut disturbances = Vec::new();
    for _ in 0..random.below(4) {
        let at = random.below(15_000);
        let causes = [Cause::Evicted, Cause::NodeLost, Cause::Deleted, Cause::OutOfMemory];
        let what = match random.below(8) {
            0 => Disturbance::Suspend,
            1 => Disturbance::Scale(1 + u32::try_from(random.below(4)).unwrap_or(0)),
            2 if random.one_in(3) => Disturbance::Stop,
            // Only a cluster has objects that somebody can delete.
            3 if random.one_in(3) && !local => Disturbance::Delete,
            _ => Disturbance::Strike { nth: random.number(), cause: *random.pick(&causes) },
        };
        disturbances.push((at, what));
    }
    // Whatever is suspended is resumed in the end.
    disturbances.push((20_000, Disturbance::Resume));
    disturbances.sort_by_key(|(at, _)| *at);
    disturbances
}
