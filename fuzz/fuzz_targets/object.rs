//! Any JSON value as an object of a cluster.
#![no_main]

use libfuzzer_sys::fuzz_target;
use unisono_dialect::{Options, read_object};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(object) = serde_json::from_slice(bytes) {
        let reading = read_object(&object, &Options::default());
        assert!(reading.job.is_some() || !reading.notes.is_empty(), "a refusal has a reason");
    }
});
