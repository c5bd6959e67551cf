//! A hundred runs in a row: launchers hang, if they do, once in many.

use unisono_testbed::cluster::Shape;
use unisono_testbed::mpi::Flavour;
use unisono_testbed::program::Program;

use crate::run::{THREE, cluster, spread, start};

crate::for_every_flavour!(a_hundred_short_runs_in_a_row);

fn a_hundred_short_runs_in_a_row(flavour: Flavour) {
    let cluster = cluster(Shape { slots: 1, ..THREE });
    for _ in 0..100 {
        let ended = start(&cluster, flavour, 3, Program::Hello, &[]).end().expect_success();
        assert_eq!(ended.ranks_per_host(), spread(3, 1));
    }
}
