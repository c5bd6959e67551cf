//! The field table of a container: typed where the neutral job takes a value out of it, open to the rest.

use crate::shape::{Field, Form, Kind, Shape};

static CONTAINER_NAME: Form = Form {
    name: "a container name (lower-case letters, digits and inner dashes, at most 63)",
    fits: unisono_job::is_dns_label,
    pattern: r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
};

/// A container of a pod.
pub(super) static CONTAINER: Shape = Shape::new(
    "Container",
    &[
        Field::new("name", Kind::Form(&CONTAINER_NAME), "the container's name, unique in its pod")
            .required(),
        Field::new("image", Kind::FilledText, "the container image").required(),
        Field::new("command", Kind::List(&Kind::Text), "program and first arguments")
            .or("the image's entry point"),
        Field::new("args", Kind::List(&Kind::Text), "arguments after `command`")
            .or("the image's own arguments when `command` is absent too"),
        Field::new("workingDir", Kind::Text, "the directory the program starts in")
            .or("the image's own"),
        Field::new("env", Kind::List(&Kind::Object(&VARIABLE)), "environment variables"),
        Field::new("envFrom", Kind::Any, "environment from ConfigMaps and Secrets"),
        Field::new("resources", Kind::Object(&RESOURCES), "what the container gets and needs"),
        Field::new("volumeMounts", Kind::List(&Kind::Object(&MOUNT)), "where volumes appear"),
        Field::new("imagePullPolicy", Kind::Text, "when the image is pulled")
            .or("Always for the tag latest, else IfNotPresent"),
        Field::new("ports", Kind::Any, "ports the container serves"),
        Field::new("securityContext", Kind::Any, "user, capabilities and the like"),
        Field::new("livenessProbe", Kind::Any, "how Kubernetes sees that the container lives"),
        Field::new("readinessProbe", Kind::Any, "how Kubernetes sees that the container is ready"),
        Field::new("startupProbe", Kind::Any, "how Kubernetes sees that the container has started"),
        Field::new("lifecycle", Kind::Any, "actions after start and before stop"),
        Field::new("resizePolicy", Kind::Any, "whether a change of resources restarts it"),
        Field::new("restartPolicy", Kind::Any, "the container's own restart policy"),
        Field::new("restartPolicyRules", Kind::Any, "restart rules by exit code"),
        Field::new("stdin", Kind::Boolean, "whether standard input stays open").or("false"),
        Field::new("stdinOnce", Kind::Boolean, "whether it closes after the first client")
            .or("false"),
        Field::new("tty", Kind::Boolean, "whether the container has a terminal").or("false"),
        Field::new("terminationMessagePath", Kind::Text, "the file with the last words")
            .or("/dev/termination-log"),
        Field::new("terminationMessagePolicy", Kind::Text, "where last words are taken from")
            .or("File"),
        Field::new("volumeDevices", Kind::Any, "block devices"),
    ],
);

static VARIABLE: Shape = Shape::new(
    "EnvVar",
    &[
        Field::new("name", Kind::FilledText, "the variable's name").required(),
        Field::new("value", Kind::Text, "its value, as text").or("the empty text"),
        Field::new("valueFrom", Kind::Any, "where Kubernetes takes the value from"),
    ],
);

static RESOURCES: Shape = Shape::new(
    "ResourceRequirements",
    &[
        Field::new("limits", Kind::Map(&Kind::Quantity), "the most the container may use"),
        Field::new("requests", Kind::Map(&Kind::Quantity), "what the container is promised")
            .or("the limits"),
        Field::new("claims", Kind::Any, "device claims"),
    ],
);

static MOUNT: Shape = Shape::new(
    "VolumeMount",
    &[
        Field::new("name", Kind::FilledText, "the volume's name").required(),
        Field::new("mountPath", Kind::FilledText, "where the volume appears").required(),
        Field::new("readOnly", Kind::Boolean, "whether it cannot be written to").or("false"),
        Field::new("recursiveReadOnly", Kind::Text, "whether mounts below it cannot either"),
        Field::new("subPath", Kind::Text, "the folder of the volume that appears"),
        Field::new("subPathExpr", Kind::Text, "the same, with variables"),
        Field::new("mountPropagation", Kind::Text, "whether later mounts are seen").or("None"),
    ],
);
