//! Whole lives of jobs on the fake server, and the same lives with one request gone wrong: every request in every way.
//!
//! A life is a sequence of acts (a job is submitted, its command ends, somebody edits it). After each act the job is looked at until
//! nothing moves any more. What is stored then must be the same whatever went wrong in between. So a disturbed life begins
//! where its fault is, and ends where it is again as the undisturbed one was.

mod acts;
mod cluster;
mod fault;
mod jobs;
mod same;
mod watch;
mod world;

use std::collections::BTreeSet;

use acts::Life;
use fault::{Asking, Fault};
use jobs::Kind;
use same::State;
use world::World;

/// So many faults are shown; more would hide the first.
const MOST_SHOWN: usize = 5;

/// A look at the undisturbed world, and what it asked for.
struct Look {
    before: World,
    state: State,
    /// The act after which it was.
    after: usize,
    asked: Vec<Asking>,
}

/// The undisturbed life.
struct Undisturbed {
    looks: Vec<Look>,
    /// How the world is when nothing moves any more after each act.
    rests: Vec<State>,
}

impl Undisturbed {
    async fn of(life: &Life) -> Self {
        let mut world = World::new(life);
        let (mut looks, mut rests) = (Vec::new(), Vec::new());
        for (after, act) in life.acts.iter().enumerate() {
            world.act(&act.what).unwrap();
            loop {
                let before = world.fork();
                let (rested, asked) = world.look(None).await;
                looks.push(Look { state: State::of(&before), before, after, asked });
                if rested.unwrap_or_else(|fault| panic!("{}: {fault}", life.name)) {
                    break;
                }
            }
            assert_eq!(world.stage(), act.leads_to, "{} after {:?}", life.name, act.what);
            rests.push(State::of(&world));
        }
        Self { looks, rests }
    }
}

/// Goes on from a look with one of its requests gone wrong, until everything is as it was in a life that is known to be right: the
/// undisturbed one, or one in which something else went wrong with the same look. What is wrong leaves.
async fn disturbed(
    life: &Life,
    Undisturbed { looks, rests }: &Undisturbed,
    (begin, nth): (usize, usize),
    fault: Fault,
    right: &mut Vec<State>,
) -> Option<String> {
    let begun_after = looks[begin].after;
    let mut world = looks[begin].before.fork();
    let mut state = looks[begin].state.clone();
    let mut trouble = Some((nth, fault));
    let mut passed = Vec::new();
    let mut differs = None;
    for (after, act) in life.acts.iter().enumerate().skip(begun_after) {
        if after > begun_after
            && let Err(fault) = world.act(&act.what)
        {
            return Some(differs.unwrap_or(fault));
        }
        loop {
            let is_at_rest = match world.look(trouble.take()).await.0 {
                Ok(is_at_rest) => is_at_rest,
                Err(fault) => return Some(fault),
            };
            state = state.now(&world);
            if is_at_rest {
                break;
            }
            let undisturbed = looks[begin..].iter().filter(|look| look.after == after);
            let mut known = undisturbed.map(|look| &look.state).chain(&*right);
            if known.any(|known| known.is(&state)) {
                right.extend(passed);
                return None;
            }
            if after == begun_after {
                passed.push(state.clone());
            }
        }
        differs = rests[after].difference(&state);
        if differs.is_none() {
            right.extend(passed);
            return None;
        }
    }
    differs
}

/// Disturbs a life in every way at every request, but for those after acts that are known: a life that begins as another one
/// did is the same so far.
async fn every_fault(life: &Life, known: &mut BTreeSet<String>) -> (usize, Vec<String>) {
    let undisturbed = Undisturbed::of(life).await;
    let (mut tried, mut faults, mut n) = (0, Vec::new(), 0);
    let is_new: Vec<bool> = (0..life.acts.len())
        .map(|last| known.insert(format!("{:?}", &life.acts[..=last])))
        .collect();
    for (begin, look) in undisturbed.looks.iter().enumerate() {
        if !is_new[look.after] {
            n += look.asked.len();
            continue;
        }
        let mut right = Vec::new();
        for (nth, asked) in look.asked.iter().enumerate() {
            n += 1;
            for fault in Fault::all(asked) {
                tried += 1;
                let at = (begin, nth);
                if let Some(what) = disturbed(life, &undisturbed, at, fault, &mut right).await {
                    faults
                        .push(format!("{}, request {n}, {fault}: {asked}\n    {what}", life.name));
                }
            }
        }
    }
    (tried, faults)
}

async fn whatever_goes_wrong(kind: Kind) {
    let (mut tried, mut faults, mut known) = (0, Vec::new(), BTreeSet::new());
    for life in kind.lives() {
        let (of_life, of_life_faults) = every_fault(&life, &mut known).await;
        tried += of_life;
        faults.extend(of_life_faults);
    }
    assert!(tried > 1000, "only {tried} faults were tried");
    let shown = faults.iter().take(MOST_SHOWN).cloned().collect::<Vec<_>>().join("\n");
    assert!(faults.is_empty(), "{} of {tried} faults are not made up for:\n{shown}", faults.len());
}

#[tokio::test]
async fn a_v1_job_comes_to_the_same_end_whatever_goes_wrong() {
    whatever_goes_wrong(jobs::v1()).await;
}

#[tokio::test]
async fn a_v2beta1_job_comes_to_the_same_end_whatever_goes_wrong() {
    whatever_goes_wrong(jobs::v2beta1()).await;
}

#[tokio::test]
async fn a_job_of_two_worker_groups_comes_to_the_same_end_whatever_goes_wrong() {
    whatever_goes_wrong(jobs::unisono()).await;
}

#[tokio::test]
async fn a_kube_batch_job_comes_to_the_same_end_whatever_goes_wrong() {
    whatever_goes_wrong(jobs::kube_batch()).await;
}

#[tokio::test]
async fn a_gang_comes_to_the_same_end_whatever_goes_wrong() {
    whatever_goes_wrong(jobs::gang()).await;
}
