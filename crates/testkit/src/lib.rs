//! Test tools: builders for jobs of every dialect.

pub mod jobs;
