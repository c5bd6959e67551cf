//! Test tools: builders for jobs of every dialect, a fake engine with faults, and a simulator that runs jobs to the end.

pub mod jobs;
pub mod random;
pub mod scenario;
pub mod simulator;
pub mod world;
