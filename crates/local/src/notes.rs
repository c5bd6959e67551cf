//! Every kind of note that this machine can be the reason for, with what `unisono explain` says about it.

use unisono_job::{Code, Severity};

/// Every code of this crate.
pub static CODES: &[&Code] = &[
    &NAMESPACES_REFUSED,
    &OFFLINE,
    &NO_NETWORK,
    &LIMITS_NOT_KEPT,
    &NO_GPUS,
    &GPUS_SHARED,
    &OTHER_MPI,
];

/// No namespaces.
pub static NAMESPACES_REFUSED: Code = Code {
    name: "namespaces-refused",
    severity: Severity::Warning,
    summary: "this machine refuses namespaces, so hosts are plain processes",
    explanation: "A host normally has a name, processes, /tmp, /dev/shm and files of its own. A container without the right \
                  to make namespaces, or the setting user.max_user_namespaces=0, takes that away. Hosts then share the \
                  machine's name and files: each has a TMPDIR of its own, host files are in the run's folder, and a launch \
                  line that names /etc/mpi/hostfile itself does not find it. Run as root, or allow user namespaces \
                  (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, \
                  kernel.apparmor_restrict_unprivileged_userns).",
};

/// Only `lo` is up.
pub static OFFLINE: Code = Code {
    name: "offline",
    severity: Severity::Note,
    summary: "this machine has no network, so the job gets a private one",
    explanation: "MPIs look for an interface other than lo, and most fail where there is none. The hosts are joined by a \
                  network of their own, which exists as long as the job does.",
};

/// Only `lo` is up, and nothing can be done about it.
pub static NO_NETWORK: Code = Code {
    name: "no-network",
    severity: Severity::Warning,
    summary: "this machine has no network and refuses a private one",
    explanation: "MPIs look for an interface other than lo, and most fail where there is none. A private network needs \
                  namespaces, which this machine refuses. Ranks on one host still run.",
};

/// No control groups.
pub static LIMITS_NOT_KEPT: Code = Code {
    name: "limits-not-kept",
    severity: Severity::Note,
    summary: "limits on processors and memory are not kept on this machine",
    explanation: "Limits are kept by control groups, which only root or a user with a delegated group may make. Without \
                  them a host can use as much as the machine has. Run as root, or in a session that systemd has delegated \
                  control groups to.",
};

/// No GPUs.
pub static NO_GPUS: Code = Code {
    name: "no-gpus",
    severity: Severity::Note,
    summary: "the job asks for GPUs, and this machine offers none",
    explanation: "The job runs on the CPU: programs see no GPU. GPUs are found by their devices in /dev; the setting `gpus` \
                  names them otherwise.",
};

/// Fewer GPUs than asked for.
pub static GPUS_SHARED: Code = Code {
    name: "gpus-shared",
    severity: Severity::Note,
    summary: "the job asks for more GPUs than this machine offers",
    explanation: "Hosts take turns with the GPUs that are there, so that some serve several hosts at once. Use --hosts and \
                  --slots to make the job smaller.",
};

/// Another MPI than the file means.
pub static OTHER_MPI: Code = Code {
    name: "other-mpi",
    severity: Severity::Warning,
    summary: "the MPI on this machine is not the one the job is for",
    explanation: "Open MPI, Intel MPI and MPICH take different options, and a program runs only with the MPI it was built \
                  with. Name another MPI with --mpi DIR. With --strict the job does not run.",
};
