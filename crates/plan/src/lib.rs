//! Decides: from a job to hosts, ranks, files and commands, and from what is seen to what is wanted.
