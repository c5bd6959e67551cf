//! Any job, written in every dialect: the text must be read back as a job.
#![no_main]

use libfuzzer_sys::fuzz_target;
use unisono_dialect::{Options, WRITABLE, read, write};

fuzz_target!(|bytes: &[u8]| {
    for reading in read(bytes, &Options::default()) {
        let Some(job) = reading.job else {
            continue;
        };
        for dialect in WRITABLE {
            if let Some(written) = write(&job, dialect) {
                assert!(!read(written.text.as_bytes(), &Options::default()).is_empty());
            }
        }
    }
});
