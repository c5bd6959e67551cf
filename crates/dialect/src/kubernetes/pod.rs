//! The field table of a pod template: every key that Kubernetes knows, so that only real misspellings are told.

use super::container::CONTAINER;
use super::metadata::METADATA_OF_A_PART;
use crate::shape::{Field, Kind, Shape};

/// A pod template.
pub(crate) static POD_TEMPLATE: Shape = Shape::new(
    "PodTemplateSpec",
    &[
        Field::new("metadata", Kind::Object(&METADATA_OF_A_PART), "labels and annotations"),
        Field::new("spec", Kind::Object(&POD), "what a pod is made of").required(),
    ],
);

static POD: Shape = Shape::new(
    "PodSpec",
    &[
        Field::new(
            "containers",
            Kind::FilledList(&Kind::Object(&CONTAINER)),
            "the pod's containers; the first one is the one that counts",
        )
        .required(),
        Field::new(
            "initContainers",
            Kind::List(&Kind::Object(&CONTAINER)),
            "containers that run before the others",
        ),
        Field::new("volumes", Kind::List(&Kind::Object(&VOLUME)), "volumes to mount"),
        Field::new(
            "restartPolicy",
            Kind::OneOf(&["Always", "OnFailure", "Never"]),
            "the pods' restart policy; the operator overwrites it",
        ),
        Field::new("nodeSelector", Kind::Map(&Kind::Text), "labels that a node must have"),
        Field::new("hostNetwork", Kind::Boolean, "whether pods use the node's network").or("false"),
        Field::new("activeDeadlineSeconds", Kind::SECONDS, "how long a pod may run"),
        Field::new("affinity", Kind::Any, "where pods should run"),
        Field::new("automountServiceAccountToken", Kind::Boolean, "whether pods get a token"),
        Field::new("dnsConfig", Kind::Any, "how names are resolved"),
        Field::new("dnsPolicy", Kind::Text, "how names are resolved").or("ClusterFirst"),
        Field::new("enableServiceLinks", Kind::Boolean, "variables for Services").or("true"),
        Field::new("ephemeralContainers", Kind::Any, "containers added for debugging"),
        Field::new("hostAliases", Kind::Any, "lines for /etc/hosts"),
        Field::new("hostIPC", Kind::Boolean, "whether pods use the node's IPC").or("false"),
        Field::new("hostPID", Kind::Boolean, "whether pods see the node's processes").or("false"),
        Field::new("hostUsers", Kind::Boolean, "whether pods use the node's users").or("true"),
        Field::new("hostname", Kind::Text, "the pods' host name; the operator sets it"),
        Field::new("hostnameOverride", Kind::Text, "the pods' host name, exactly"),
        Field::new("imagePullSecrets", Kind::Any, "secrets for pulling images"),
        Field::new("nodeName", Kind::Text, "the node to run on"),
        Field::new("os", Kind::Any, "the operating system"),
        Field::new("overhead", Kind::Map(&Kind::Quantity), "resources of the runtime itself"),
        Field::new("preemptionPolicy", Kind::Text, "whether pods displace others"),
        Field::new("priority", Kind::Any, "the priority as a number"),
        Field::new("priorityClassName", Kind::Text, "the priority class"),
        Field::new("readinessGates", Kind::Any, "further conditions for readiness"),
        Field::new("resourceClaims", Kind::Any, "device claims"),
        Field::new("resources", Kind::Any, "resources of the pod as a whole"),
        Field::new("runtimeClassName", Kind::Text, "the container runtime"),
        Field::new("schedulerName", Kind::Text, "the scheduler").or("default-scheduler"),
        Field::new("schedulingGates", Kind::Any, "what must open before scheduling"),
        Field::new("securityContext", Kind::Any, "user, groups and the like of the pod"),
        Field::new("serviceAccount", Kind::Text, "the old name of serviceAccountName"),
        Field::new("serviceAccountName", Kind::Text, "the service account").or("default"),
        Field::new("setHostnameAsFQDN", Kind::Boolean, "whether the host name is the full one"),
        Field::new("shareProcessNamespace", Kind::Boolean, "whether containers see each other"),
        Field::new("subdomain", Kind::Text, "the Service of the host name; the operator sets it"),
        Field::new(
            "terminationGracePeriodSeconds",
            Kind::SECONDS,
            "seconds between the request to end and the kill",
        )
        .or("30"),
        Field::new("tolerations", Kind::Any, "taints that pods put up with"),
        Field::new("topologySpreadConstraints", Kind::Any, "how pods spread"),
        Field::new("workloadRef", Kind::Any, "the workload the pods belong to"),
    ],
);

static VOLUME: Shape = Shape::open(
    "Volume",
    &[
        Field::new("name", Kind::FilledText, "the volume's name").required(),
        Field::new("emptyDir", Kind::Object(&EMPTY_DIR), "a folder that lives as long as the pod"),
    ],
);

static EMPTY_DIR: Shape = Shape::new(
    "EmptyDirVolumeSource",
    &[
        Field::new("medium", Kind::Text, "`Memory` for a folder in memory").or("the node's disk"),
        Field::new("sizeLimit", Kind::Quantity, "the most it may hold").or("no limit"),
    ],
);
