//! Any bytes behind a brace, so that every input reaches the JSON reader.
#![no_main]

use libfuzzer_sys::fuzz_target;
use unisono_dialect::{Options, read};

fuzz_target!(|bytes: &[u8]| {
    let text = [b"{", bytes].concat();
    assert!(!read(&text, &Options::default()).is_empty());
});
