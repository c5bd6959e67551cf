//! What objects are marked with: labels, annotations and the paths inside pods. All that users and other programs may see.

/// Label of everything that belongs to a job: the job object's uid. Watches select by it.
pub const JOB_UID: &str = "unisono.dev/job-uid";
/// Label of a pod: the member, `GROUP.INDEX`.
pub const MEMBER: &str = "unisono.dev/member";
/// Label of a pod: the name of its group, where the job's system has no label for it.
pub const GROUP: &str = "unisono.dev/group";
/// Label of a pod: the epoch it was made in.
pub const EPOCH: &str = "unisono.dev/epoch";
/// Label of a pod: the attempt it was made in.
pub const ATTEMPT: &str = "unisono.dev/attempt";

/// Label of every child, whichever operator for MPIJobs made it: the name of its job.
pub const JOB_NAME: &str = "training.kubeflow.org/job-name";
/// Label of a pod: whether it launches or hosts ranks.
pub const ROLE: &str = "mpi-job-role";

/// Annotation of a launching pod: its host table.
pub const TABLE: &str = "unisono.dev/table";
/// Annotation of a launching pod: a digest of its host table, so that nobody has to keep the table to compare it. Other pods of
/// kube-batch's have it too: their files follow the same hosts.
pub const TABLE_DIGEST: &str = "unisono.dev/table-digest";
/// Annotation of a pod: when its command was let go, in milliseconds since 1970.
pub const RELEASED: &str = "unisono.dev/released";
/// Annotation of a pod that only hosts ranks: the job is over, and the pod ends with this exit code.
pub const END: &str = "unisono.dev/end";
/// Annotation of a job object: somebody asks to stop the job.
pub const STOP: &str = "unisono.dev/stop";

/// Annotation of a job object: `true` asks for a NetworkPolicy that keeps everybody else from the job's agents, anything else
/// declines it.
pub const NETWORK_POLICY: &str = "unisono.dev/network-policy";

/// Annotation of a job object: `true` asks launchers to say which rank wrote each line, for whoever reads logs by rank.
pub const TAG_OUTPUT: &str = "unisono.dev/tag-output";
/// Annotation of a job object: who submitted the job, for variables and folders that name them.
pub const USER: &str = "unisono.dev/user";
/// Annotation of a job object: what OpenPAI's users call the place it was submitted to.
pub const VIRTUAL_CLUSTER: &str = "unisono.dev/virtual-cluster";

/// Annotation of a pod: the container that logs and terminals are about.
pub const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// Who manages launcher Jobs: their `spec.managedBy`.
pub const MANAGER: &str = "unisono.dev/operator";

/// Label of a job object that waits in a queue of Kueue's.
pub const QUEUE: &str = "kueue.x-k8s.io/queue-name";

/// Labels of a job object that all its children carry, so that a queue knows whose they are.
pub const QUEUE_LABELS: [&str; 2] = [QUEUE, "kueue.x-k8s.io/priority-class"];

/// The field manager of every write.
pub const FIELD_MANAGER: &str = "unisono";

/// Where the agent and what it writes are inside pods.
pub const HOME: &str = "/opt/unisono";
/// Where keys and the host table are inside pods: the agent looks there by itself.
pub const AGENT_FILES: &str = "/etc/unisono/agent";
/// Where a launcher finds the files of the job's ConfigMap as they are now.
pub const CONFIG_FILES: &str = "/etc/unisono/config";
/// The script among them that prints the hosts, for those who follow them while they come and go.
pub const DISCOVER_HOSTS: &str = "discover_hosts.sh";
/// Where the pieces of a job's code are inside the init container that unpacks them.
pub const CODE_PIECES: &str = "/etc/unisono/code";
/// The init container that brings the agent.
pub const INSTALL: &str = "unisono-install";
/// The init container that waits for all hosts, where the image's entry point is kept.
pub const READY: &str = "unisono-ready";
