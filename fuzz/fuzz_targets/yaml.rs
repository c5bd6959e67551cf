//! Any bytes: reading must not panic, and what is read must be laid out without a breach of the plan's own rules.
#![no_main]

use libfuzzer_sys::fuzz_target;
use unisono_dialect::{Options, read};
use unisono_plan::{Facts, lay_out, lint};

/// Larger jobs are for the benchmarks; here they would only cost time.
const MOST_HOSTS: u64 = 10_000;

fuzz_target!(|bytes: &[u8]| {
    for reading in read(bytes, &Options::default()) {
        if let Some(job) = reading.job.filter(|job| job.host_count() <= MOST_HOSTS) {
            let plan = lay_out(&job, &Facts::default(), 1);
            let breaches = lint(&plan);
            assert!(breaches.is_empty(), "{breaches:?}");
        }
    }
});
