//! What reading an Azure ML job can tell beyond what every dialect tells.

use crate::codes::codes;

codes! {
    HOST_COUNT = "azure-host-count", Note, "the number of hosts is not stated",
        "No field states how many hosts the job has (`compute.instance_count`, `worker.num_replicas`, `distributed.mpi.worker.count`, `resources.instance_count`), and the launch line and the GPU limit do not tell it either, so the job gets one. State the count.";
    PROCESS_COUNT = "azure-process-count", Note, "the number of processes on each host is not stated",
        "Azure ML needs to know how many ranks each host runs, because it writes the hostfile. Unisono takes, in this order: what the file states (`worker.slots_per` or `compute.process_count_per_instance` with `type: MpiJob`, `distributed.mpi.worker.slots_per` in the flattened form, `distribution.process_count_per_instance` in CLI v2); else the worker's GPU limit; else the ranks of the launch line, spread evenly over the hosts; else one. With one process a host of several GPUs uses only one of them.";
    WORKER_COMMAND = "azure-worker-command", Warning, "an MPI worker has a command or code of its own",
        "The workers of an MPI job only host the ranks that the launcher's command starts, so a command or code folder of theirs has no effect. Move it to `launcher.spec`.";
    OWN_LAUNCHER = "launcher-in-rank-command", Warning, "the command of every rank starts ranks itself",
        "With `distribution: {type: mpi}` the command is what each rank runs; `mpirun` is put before it by Azure ML, and by Unisono. A launcher in the command would be started once in every rank. Write the program alone.";
    UNRESOLVED_INPUT = "unresolved-input", Warning, "a placeholder of the command has no literal value",
        "Unisono puts literal inputs in the place of `${{inputs.NAME}}`. Inputs that are data to be mounted or downloaded, and outputs, are known to Azure ML only, so their placeholders stay in the command as they are. Give the path itself, or make the input a literal.";
    NO_IMAGE = "no-image", Note, "the environment names no image",
        "The environment is to be built from a build context, a conda file or a registered definition; Unisono builds no images. Running here uses this machine's own software; on Kubernetes an image is needed.";
}
