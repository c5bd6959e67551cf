//! Reads the job files of every system into the neutral job, and writes them back.
