//! Every kind of note a plan can carry, with what `unisono explain` says about it.

use unisono_job::{Code, Severity};

/// Every code of this crate.
pub static CODES: &[&Code] = &[
    &RANKS_OVER_SLOTS,
    &SLOTS_IDLE,
    &RANKS_UNKNOWN,
    &NO_LAUNCHER_VISIBLE,
    &OWN_HOSTS,
    &IMAGE_ENTRY,
    &KEPT_ENTRY,
    &CODE_ELSEWHERE,
    &LEADING_SLEEP,
    &FLAVOUR_MISMATCH,
    &GPUS_DIFFER,
    &UNEVEN_SLOTS,
    &NO_RANK_HOSTS,
    &KUBERNETES_ONLY,
    &VALUE_FROM,
    &NAME_SHORTENED,
    &OVERRIDE_NOT_APPLIED,
    &RANKS_CHANGED,
    &SSHD_LEFT_OUT,
    &COMMAND_LEFT_OUT,
    &WITHOUT_GANG,
    &QUEUE_UNUSED,
];

/// A gang is asked for and nobody places gangs.
pub static WITHOUT_GANG: Code = Code {
    name: "without-gang",
    severity: Severity::Warning,
    summary: "the job asks to be placed all at once, and no scheduler of the cluster does that",
    explanation: "The job runs all the same: commands wait until every host is up. But two jobs that each got a part of the \
                  cluster can wait for each other. Install scheduler-plugins, Volcano or kube-batch, or use a queue that admits \
                  whole jobs, such as Kueue.",
};

/// A queue or a priority class that nobody reads.
pub static QUEUE_UNUSED: Code = Code {
    name: "queue-unused",
    severity: Severity::Warning,
    summary: "the job names a queue or a priority class, and whoever places jobs in the cluster knows neither",
    explanation: "Volcano and kube-batch read both from a job's PodGroup. scheduler-plugins' PodGroup has no place for them, and \
                  without a gang scheduler there is no PodGroup. A priority class that a pod template names holds everywhere; \
                  a queue of Kueue's is the label kueue.x-k8s.io/queue-name of the job.",
};

/// More ranks than slots.
pub static RANKS_OVER_SLOTS: Code = Code {
    name: "ranks-over-slots",
    severity: Severity::Warning,
    summary: "the launch line starts more ranks than the hosts have slots",
    explanation: "Most MPIs refuse to start more ranks than there are slots unless told to oversubscribe. Raise the slots of a \
                  host (slotsPerWorker, process_count_per_instance, slots), add hosts, or lower -np.",
};

/// Fewer ranks than slots.
pub static SLOTS_IDLE: Code = Code {
    name: "slots-idle",
    severity: Severity::Note,
    summary: "the launch line starts fewer ranks than the hosts have slots",
    explanation: "Some slots stay empty, and with them the processors or GPUs they stand for. Leave -np out to fill every \
                  slot, or ask for fewer hosts.",
};

/// The number of ranks cannot be read.
pub static RANKS_UNKNOWN: Code = Code {
    name: "ranks-unknown",
    severity: Severity::Note,
    summary: "the number of ranks cannot be read from the launch line",
    explanation: "The launch line states its count through a shell variable, or names hosts of its own. The job runs as it \
                  stands; only checks that compare ranks with slots are left out.",
};

/// No known launcher in the launch line.
pub static NO_LAUNCHER_VISIBLE: Code = Code {
    name: "no-launcher-visible",
    severity: Severity::Note,
    summary: "the launch line calls no launcher that Unisono knows",
    explanation: "A script may call mpirun where it cannot be seen. It finds its hosts all the same: the host file and the \
                  variables of every MPI are set for it.",
};

/// The line names its own hosts.
pub static OWN_HOSTS: Code = Code {
    name: "own-hosts",
    severity: Severity::Note,
    summary: "the launch line names its own hosts",
    explanation: "With -H, -hosts or a host file of its own the launch line decides where ranks run. Names must be those of \
                  the plan's hosts. Leave the option out to use the planned host file.",
};

/// Only the image knows the command.
pub static IMAGE_ENTRY: Code = Code {
    name: "image-entry",
    severity: Severity::Warning,
    summary: "only the image knows what to run, so the job cannot run on this machine",
    explanation: "The file gives no command, or only arguments for the image's entry point. Hosts on this machine use its own \
                  software, not the image's. State the command in the file, or submit the job to Kubernetes.",
};

/// Hosts of ranks whose image's entry point must be kept.
pub static KEPT_ENTRY: Code = Code {
    name: "kept-entry",
    severity: Severity::Warning,
    summary: "hosts of ranks keep their image's entry point and are reached by ssh",
    explanation: "Arguments without a command are for the image's entry point, which only the image knows, so the host's agent \
                  cannot be put in front of it. Such hosts are reached as MPI operators used to do it: the image must start an sshd, \
                  names must resolve, and keys are mounted at sshAuthMountPath. State the command, or remove the arguments, and nothing of \
                  that is needed.",
};

/// Code on somebody's machine, in a job for a cluster.
pub static CODE_ELSEWHERE: Code = Code {
    name: "code-elsewhere",
    severity: Severity::Warning,
    summary: "a code folder is on somebody's machine, where no cluster can read it",
    explanation: "A cluster knows no folder of the machine that a job comes from. `unisono submit` packs the folder and takes it along; \
                  an object that is given to a cluster as it is, by kubectl, runs without it. Code that is in a volume is named as \
                  claim:NAME/FOLDER.",
};

/// A sleep that waits for other hosts.
pub static LEADING_SLEEP: Code = Code {
    name: "leading-sleep",
    severity: Severity::Note,
    summary: "a leading sleep is not needed",
    explanation: "Jobs used to sleep so that other tasks could come up first. Unisono starts a command when every host of \
                  the job answers. Remove the sleep, or run with --skip-sleep.",
};

/// The file says one MPI, the launch line another.
pub static FLAVOUR_MISMATCH: Code = Code {
    name: "flavour-mismatch",
    severity: Severity::Warning,
    summary: "the launch line has options of another MPI than the file states",
    explanation: "Open MPI, Intel MPI and MPICH take different options. The host file is written for the MPI the file \
                  states; a launcher of another MPI may not read it. Correct the stated MPI or the options.",
};

/// GPUs and slots differ.
pub static GPUS_DIFFER: Code = Code {
    name: "gpus-differ-from-slots",
    severity: Severity::Warning,
    summary: "a member has another number of GPUs than of slots",
    explanation: "One rank a GPU is the rule. With fewer slots than GPUs some GPUs are idle, with more slots ranks share them.",
};

/// Intel MPI and uneven slots.
pub static UNEVEN_SLOTS: Code = Code {
    name: "uneven-slots",
    severity: Severity::Warning,
    summary: "Intel MPI takes one number of ranks for all hosts",
    explanation: "Intel MPI does not read counts from the host file that its variables name. Hosts with different slots need \
                  -machinefile with the host file's path on the launch line.",
};

/// Nobody hosts ranks.
pub static NO_RANK_HOSTS: Code = Code {
    name: "no-rank-hosts",
    severity: Severity::Warning,
    summary: "no host of the job has a slot for a rank",
    explanation: "The host file is empty, so mpirun starts its ranks on the launching host or refuses. Add workers, or let \
                  the launcher host ranks too.",
};

/// Fields only Kubernetes can use.
pub static KUBERNETES_ONLY: Code = Code {
    name: "kubernetes-only",
    severity: Severity::Note,
    summary: "parts of the pod template have no effect on this machine",
    explanation: "Volumes, node selectors, tolerations and the like need a cluster. They are kept and used when the job is \
                  submitted to Kubernetes.",
};

/// A variable only Kubernetes can fill.
pub static VALUE_FROM: Code = Code {
    name: "value-from",
    severity: Severity::Warning,
    summary: "a variable takes its value from Kubernetes and is not set on this machine",
    explanation: "valueFrom and envFrom read secrets, config maps and pod fields. Give a value with --env NAME=VALUE to run \
                  here.",
};

/// A host name had to be shortened.
pub static NAME_SHORTENED: Code = Code {
    name: "name-shortened",
    severity: Severity::Note,
    summary: "host names had to be made shorter or plainer than the file would give",
    explanation: "Host names have at most 63 characters, small letters, digits and dashes. A name that does not fit ends in \
                  a digest of the whole. Choose a shorter name to keep it.",
};

/// A number of the caller's could not be used.
pub static OVERRIDE_NOT_APPLIED: Code = Code {
    name: "override-not-applied",
    severity: Severity::Warning,
    summary: "a number given on the command line could not be used",
    explanation: "--hosts changes the one group that hosts ranks, --np the one count of the launch line. Where there are \
                  several, or none, the file has to be changed.",
};

/// The launch line's count was changed.
pub static RANKS_CHANGED: Code = Code {
    name: "ranks-changed",
    severity: Severity::Note,
    summary: "the launch line's count of ranks was changed",
    explanation: "--np was given, or --hosts and --slots left fewer slots than the launch line's count.",
};

/// An ssh server that is not needed.
pub static SSHD_LEFT_OUT: Code = Code {
    name: "sshd-left-out",
    severity: Severity::Note,
    summary: "an ssh server is not started on this machine",
    explanation: "Images for the MPI operator run sshd so that the launcher can reach its workers. Here every host answers \
                  by itself, and ssh inside the job reaches it; a real sshd would want the machine's own port. The command \
                  is kept for Kubernetes.",
};

/// The command of a host that only takes ranks.
pub static COMMAND_LEFT_OUT: Code = Code {
    name: "command-left-out",
    severity: Severity::Note,
    summary: "the command of a worker is not run on this machine",
    explanation: "Workers of the MPI operator run a command of their own, mostly one that only keeps them alive. Here a host \
                  stays alive by itself until the launch line has ended, and takes ranks. The command is kept for Kubernetes.",
};
