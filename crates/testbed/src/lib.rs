//! Real MPIs and isolated hosts for tests and benchmarks.
