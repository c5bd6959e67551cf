//! How long laying out, binding and deciding take, from 10 hosts to 100,000: all of them must grow linearly.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use unisono_job::Dialect;
use unisono_plan::bind::{Addresses, CalledBy, bind};
use unisono_plan::{
    Facts, Incarnation, Observed, Plan, Seen, SeenState, Status, Time, View, lay_out, step,
};
use unisono_testkit::jobs::kubeflow;

const HOSTS: [u32; 5] = [10, 100, 1_000, 10_000, 100_000];

fn addresses(plan: &Plan) -> Addresses {
    let address = |at: u32| (0x0a00_0000 + at).to_be_bytes().into();
    plan.hosts.iter().zip(1_u32..).map(|(host, at)| (host.member, address(at))).collect()
}

/// A view in which every host is up.
fn all_up(plan: &Plan) -> Observed {
    let seen = |host: &unisono_plan::Host| Seen {
        incarnation: Incarnation { member: host.member, epoch: 0 },
        state: SeenState::Up,
        address: None,
    };
    Observed { seen: plan.hosts.iter().map(seen).collect(), ..Observed::default() }
}

fn plans(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("plan");
    group.sample_size(10);
    for hosts in HOSTS {
        let job = kubeflow(Dialect::KubeflowV2beta1, "bench", hosts, 8, &["mpirun", "./a"]);
        let facts = Facts::default();
        let plan = lay_out(&job, &facts, 1);
        let (addresses, observed) = (addresses(&plan), all_up(&plan));
        let starting = step(&plan, &Status::default(), &Observed::default(), Time(1)).status;
        group.throughput(Throughput::Elements(u64::from(hosts)));
        group.bench_function(BenchmarkId::new("lay_out", hosts), |bencher| {
            bencher.iter(|| black_box(lay_out(black_box(&job), &facts, 1)));
        });
        group.bench_function(BenchmarkId::new("view", hosts), |bencher| {
            bencher.iter(|| black_box(View::of(black_box(&plan))));
        });
        group.bench_function(BenchmarkId::new("bind", hosts), |bencher| {
            bencher.iter(|| black_box(bind(&plan, &addresses, CalledBy::Address)));
        });
        group.bench_function(BenchmarkId::new("step", hosts), |bencher| {
            bencher.iter(|| black_box(step(&plan, &starting, &observed, Time(2))));
        });
    }
    group.finish();
}

criterion_group!(benches, plans);
criterion_main!(benches);
