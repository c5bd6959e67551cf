//! The same small MPI program in every dialect. `PROGRAM`, `IMAGE` and `NAME` stand for the program, the image and the job's name.

/// Kubeflow's file since v1alpha2; such a job is called by its version.
const TWO_ROLES: &str = "\
apiVersion: kubeflow.org/NAME
kind: MPIJob
metadata: {name: NAME}
spec:
  slotsPerWorker: 2
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: c, image: IMAGE, command: [mpirun, -np, '4', PROGRAM]}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: c, image: IMAGE}]}}}
";

/// Every dialect with its file: four ranks, two on each of two hosts.
pub(crate) const FILES: [(&str, &str); 17] = [
    ("azure-mpijob", "\
name: NAME
type: MpiJob
experiment_name: dialects
launcher: {spec: {command: env | grep ^AZ; sed 's/^/hostfile /' $AZUREML_MPI_HOSTFILE; mpirun -np 4 --hostfile AZUREML_MPI_HOSTFILE PROGRAM, environment: 'azureml:mpi:1'}}
worker: {spec: {environment: 'azureml:mpi:1'}}
compute: {type: AmlCompute, target: pool, instance_count: 2}
"),
    ("azure-horovodrun", "\
name: NAME
type: MpiJob
launcher: {spec: {command: horovodrun -np 4 --mpi --hostfile AZUREML_MPI_HOSTFILE PROGRAM, environment: 'azureml:mpi:1'}}
worker: {spec: {environment: 'azureml:mpi:1'}}
compute: {type: AmlCompute, target: pool, instance_count: 2}
"),
    ("azure-aks", "\
name: NAME
type: MpiJob
launcher: {spec: {command: env | grep ^AZ; sed 's/^/hostfile /' $AZUREML_MPI_HOSTFILE; mpirun -np 4 PROGRAM, environment: 'azureml:mpi:1'}}
worker: {num_replicas: 2, spec: {environment: 'azureml:mpi:1'}}
compute: {type: AksCompute, target: pool}
"),
    ("azure-code", "\
name: NAME
type: MpiJob
launcher: {spec: {command: 'mpirun -np 4 sh -c \"cksum < large | cmp - large.sum && exec ./hello\"', code: {path: src}, environment: 'azureml:mpi:1'}}
worker: {spec: {environment: 'azureml:mpi:1'}}
compute: {type: AmlCompute, target: pool, instance_count: 2}
"),
    ("azure-flat", "\
name: NAME
command: mpirun -np 4 PROGRAM
environment: {docker: {image: IMAGE}}
distributed: {mpi: {worker: {count: 2, slots_per: 2}}}
compute: {infrastructure: managed, target: pool}
"),
    ("azure-v2", "\
name: NAME
type: command
command: echo ompi $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE, here $OMPI_COMM_WORLD_LOCAL_RANK of $OMPI_COMM_WORLD_LOCAL_SIZE; PROGRAM
environment: azureml:mpi:1
compute: azureml:pool
distribution: {type: mpi, process_count_per_instance: 2}
resources: {instance_count: 2}
"),
    ("openpai-v1", r#"{"jobName": "NAME", "image": "IMAGE", "virtualCluster": "vc1", "dataDir": "/data/$PAI_USER_NAME", "taskRoles": [
  {"name": "master", "taskNumber": 1, "memoryMB": 256, "minSucceededTaskCount": 1, "command": "env | grep PAI_; mpirun -np 4 -H worker-0:2,worker-1:2 PROGRAM"},
  {"name": "worker", "taskNumber": 2, "memoryMB": 256, "command": "sleep infinity"}]}"#),
    ("openpai-code", r#"{"jobName": "NAME", "image": "IMAGE", "virtualCluster": "vc1", "codeDir": "src", "taskRoles": [
  {"name": "master", "taskNumber": 1, "memoryMB": 256, "minSucceededTaskCount": 1, "command": "env | grep PAI_; cksum < large | cmp - large.sum && mpirun -np 4 -H worker-0:2,worker-1:2 sh -c 'cksum < large | cmp - large.sum && exec ./hello'"},
  {"name": "worker", "taskNumber": 2, "memoryMB": 256, "command": "cksum < large | cmp - large.sum && sleep infinity"}]}"#),
    ("openpai-v2", "\
protocolVersion: 2
name: NAME
type: job
prerequisites: [{protocolVersion: 2, name: mpi, type: dockerimage, uri: IMAGE}]
taskRoles:
  master:
    instances: 1
    dockerImage: mpi
    completion: {minSucceededInstances: 1}
    resourcePerInstance: {cpu: 1, memoryMB: 256, gpu: 0}
    commands: [env | grep PAI_, 'mpirun -np 4 -H worker-0:2,worker-1:2 PROGRAM']
  worker:
    instances: 2
    dockerImage: mpi
    completion: {minSucceededInstances: -1}
    resourcePerInstance: {cpu: 1, memoryMB: 256, gpu: 0}
    commands: [sleep infinity]
"),
    ("v1alpha1", "\
apiVersion: kubeflow.org/v1alpha1
kind: MPIJob
metadata: {name: NAME}
spec:
  replicas: 2
  slotsPerWorker: 2
  template: {spec: {containers: [{name: c, image: IMAGE, command: [mpirun, -np, '4', PROGRAM]}]}}
"),
    ("v1alpha2", TWO_ROLES),
    ("v1", TWO_ROLES),
    ("v2beta1", TWO_ROLES),
    ("kube-batch-1", "\
apiVersion: scheduling.incubator.k8s.io/v1alpha1
kind: MPI
metadata: {name: NAME}
spec:
  job:
    apiVersion: batch/v1
    kind: Job
    spec:
      completions: 4
      parallelism: 4
      template: {spec: {containers: [{name: c, image: IMAGE, command: [mpirun, -n, '4', PROGRAM]}]}}
  podGroup: {spec: {minMember: 4}}
"),
    ("kube-batch-2", "\
apiVersion: scheduling.incubator.k8s.io/v1alpha1
kind: MPI
metadata: {name: NAME}
spec:
  job:
    completions: 4
    parallelism: 4
    template: {spec: {containers: [{name: c, image: IMAGE, command: [mpirun, -n, '4', PROGRAM]}]}}
"),
    ("unisono", "\
apiVersion: unisono.dev/v1alpha1
kind: UnisonoJob
metadata: {name: NAME}
spec:
  groups:
  - {name: launcher, run: Launch, image: IMAGE, command: [mpirun, -np, '4', PROGRAM]}
  - {name: wide, slots: 3, image: IMAGE}
  - {name: narrow, slots: 1, image: IMAGE}
"),
    ("unisono-code", "\
apiVersion: unisono.dev/v1alpha1
kind: UnisonoJob
metadata: {name: NAME}
spec:
  groups:
  - {name: node, replicas: 2, slots: 2, run: LaunchOnFirst, image: IMAGE, code: src, command: [mpirun, -np, '4', sh, -c, 'cksum < large | cmp - large.sum && exec ./hello']}
"),
];

/// ksonnet's prototypes of a job, with what makes four ranks of them.
pub(crate) const PROTOTYPES: [(&str, &str, &str); 2] = [
    ("ks-simple", "mpi-job-simple", "--gpus 4"),
    ("ks-custom", "mpi-job-custom", "--replicas 2 --gpusPerReplica 2"),
];
