//! The sample documents that Unisono was asked to run, and the hosts, slots and ranks each must give.

use unisono_dialect::{Options, Reading, read};
use unisono_job::{Dialect, EndRule, Flavour, Job, LaunchRights, Runs, SlotsFrom};

fn reading(bytes: &[u8]) -> Reading {
    let mut readings = read(bytes, &Options::default());
    assert_eq!(readings.len(), 1);
    readings.remove(0)
}

fn job(bytes: &[u8]) -> Job {
    let reading = reading(bytes);
    reading.job.unwrap_or_else(|| panic!("{:?}", reading.notes))
}

/// Name, members and slots of every group.
fn sizes(job: &Job) -> Vec<(&str, u32, u32)> {
    job.groups.iter().map(|it| (it.name.as_str(), it.replicas, it.slots.count)).collect()
}

#[test]
fn azure_on_managed_hosts_is_four_hosts_of_four_slots_and_the_first_launches() {
    for bytes in
        [&include_bytes!("seeds/azureml-1.yaml")[..], include_bytes!("seeds/azureml-2.yaml")]
    {
        let reading = reading(bytes);
        assert_eq!((reading.dialect, &reading.notes[..]), (Some(Dialect::AzureMpiJob), &[][..]));
        let job = reading.job.expect("it is a job");
        assert_eq!(sizes(&job), [("node", 4, 4)]);
        assert_eq!(job.groups[0].slots.from, SlotsFrom::LaunchLine);
        assert_eq!(job.experiment.as_deref(), Some("pytorch-mnist-horovod"));
        assert_eq!(job.groups[0].code.as_ref().map(|it| it.path.as_str()), Some("./src"));
        let Runs::LaunchOnFirst(command) = &job.groups[0].runs else {
            panic!("{:?}", job.groups[0].runs)
        };
        assert_eq!(command.launch_line().and_then(|line| line.ranks), Some(16));
        assert_eq!(job.launch_rights, LaunchRights::Launcher);
    }
}

#[test]
fn azure_on_kubernetes_is_a_launcher_without_slots_and_four_workers_of_four() {
    let reading = reading(include_bytes!("seeds/azureml-3.yaml"));
    assert_eq!(reading.notes, []);
    let job = reading.job.expect("it is a job");
    assert_eq!(sizes(&job), [("launcher", 1, 0), ("worker", 4, 4)]);
    assert_eq!(job.groups[1].slots.from, SlotsFrom::Gpus);
    assert_eq!(job.mpi.flavour, Some(Flavour::OpenMpi));
    assert_eq!(job.groups[0].resources.limits["memory"].whole(), 2 << 30);
    assert_eq!((job.groups[0].end, job.groups[1].end), (EndRule::FIRST, EndRule::NEVER));
}

#[test]
fn openpai_is_a_master_and_a_worker_with_one_slot_each() {
    let reading = reading(include_bytes!("seeds/openpai.json"));
    let codes: Vec<&str> = reading.notes.iter().map(|note| note.code.name).collect();
    assert_eq!(codes, ["rdma-off"]);
    let job = reading.job.expect("it is a job");
    assert_eq!(sizes(&job), [("master", 1, 1), ("worker", 1, 1)]);
    assert!(job.groups.iter().all(|group| group.end == EndRule::FIRST));
    assert_eq!(job.launch_rights, LaunchRights::Everybody);
    let command = job.groups[0].runs.command().expect("it has one").display();
    assert!(command.starts_with("sleep 1000 &&  Your code"), "any UTF-8 is taken: {command}");
}

#[test]
fn a_setting_that_offers_rdma_silences_its_warning() {
    let options = Options { az_rdma: true, ..Options::default() };
    let readings = read(include_bytes!("seeds/openpai.json"), &options);
    assert_eq!(readings[0].notes, []);
    assert_eq!(job(include_bytes!("seeds/openpai.json")).groups[0].env[0].name, "paiAzRDMA");
}
