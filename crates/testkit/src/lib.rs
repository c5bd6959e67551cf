//! Builders, a fake engine with faults, and a fixture walker.
