//! Jobs on a real cluster, driven by `tick` in a plain loop: real pods, real MPI, real ends.

mod story;
mod versions;

use std::process::ExitCode;

use unisono_testcluster::{Image, Options, Suite};

fn main() -> ExitCode {
    Suite::new(Options { nodes: 2, images: Image::ALL.to_vec(), ..Options::default() })
        .test("v2beta1_runs_its_ranks_on_its_workers", versions::v2beta1)
        .run()
}
