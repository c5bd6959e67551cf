//! A decision is total: whatever status and view it is given, even of another job, it decides and never leaves an end.

use unisono_plan::{Facts, Time, lay_out, step};
use unisono_testkit::random::Random;
use unisono_testkit::scenario::Scenario;
use unisono_testkit::simulator::run;

#[test]
fn any_status_of_any_job_can_be_stepped_with_any_plan() {
    let stories: Vec<_> = (0..60)
        .map(Scenario::from_seed)
        .map(|scenario| (run(&scenario).unwrap(), scenario))
        .collect();
    let mut random = Random::new(7);
    for (story, _) in &stories {
        for (_, other) in &stories {
            let plan = lay_out(&other.job, &Facts::default(), random.below(3));
            let mut status = story.status.clone();
            if random.one_in(2) {
                // As if the end had never been written.
                status.stage = unisono_plan::Stage::Running;
                status.released = vec![9; usize::try_from(random.below(4)).unwrap()];
            }
            let observed = unisono_plan::Observed {
                seen: story.seen.clone(),
                ..unisono_plan::Observed::default()
            };
            let next = step(&plan, &status, &observed, Time(random.below(1 << 40)));
            assert!(!next.why.is_empty() || next.status.end().is_some());
            if status.is_terminal() {
                assert_eq!(next.status.stage, status.stage);
            }
            assert!(next.status.epoch >= status.epoch && next.status.attempt >= status.attempt);
        }
    }
}
