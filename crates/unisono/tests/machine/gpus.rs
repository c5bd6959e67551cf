//! GPUs, as the setting says they are there: what is shared out are variables.

use unisono_testbed::mpi::Flavour;

use crate::support::{User, text};

const JOB: &str = "
name: lit
type: MpiJob
launcher: {spec: {command: 'for i in 0 1; do ssh lit-node-$i printenv CUDA_VISIBLE_DEVICES NVIDIA_VISIBLE_DEVICES; done',
  environment: 'azureml:x:1'}}
worker: {spec: {environment: 'azureml:x:1', resource_limits: {nvidia.com/gpu: 2}}}
compute: {type: AmlCompute, target: c, instance_count: 2}
";

fn shares(gpus: &str, more: &[&str]) -> (String, String) {
    let user = User::of(Flavour::OpenMpi4);
    std::fs::write(user.home.path().join("job.yaml"), JOB).expect("write the job");
    let mut unisono = user.unisono(&[&["run", "job.yaml", "--raw"], more].concat());
    let output = unisono.env("UNISONO_GPUS", gpus).env_remove("CUDA_VISIBLE_DEVICES").output();
    let output = output.expect("run unisono");
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn every_host_gets_its_share_and_a_machine_without_gpus_is_told() {
    assert_eq!(shares("0,2,5,7", &[]).0, "0,2\n0,2\n5,7\n5,7\n");
    let (out, err) = shares("0,1,2", &["--gpus", "2"]);
    assert_eq!(out, "0,1\n0,1\n0,1\n0,1\n");
    assert!(err.contains("asks for 4 GPUs and shares 2"), "{err}");
    let (out, err) = shares("none", &[]);
    assert_eq!(out, "");
    assert!(err.contains("runs on the CPU"), "{err}");
}
