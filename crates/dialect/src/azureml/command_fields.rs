//! The fields of CLI v2 command jobs.

use super::fields::{CODE_FOLDER, ENVIRONMENT, EXPERIMENT, HOSTS, PROCESSES, STRINGS, VARIABLES};
use crate::shape::{Field, Form, Kind, Shape};

pub(super) static JOB: Shape = Shape::new(
    "the command job",
    &[
        Field::new("$schema", Kind::Text, "the address of the schema; editors use it"),
        Field::new("type", Kind::OneOfAnyCase(&["command"]), "the kind of job").or("command"),
        Field::new("name", Kind::FilledText, "the job's name, unique in its workspace")
            .or("the name of the file"),
        Field::new("display_name", Kind::Text, "a name for people; need not be unique"),
        EXPERIMENT,
        Field::new("description", Kind::Text, "what the job is for"),
        Field::new("tags", STRINGS, "words to find the job by"),
        Field::new("properties", STRINGS, "values of the user's own"),
        Field::new(
            "command",
            Kind::FilledText,
            "what every rank runs, by bash; Unisono writes the mpirun line before it",
        )
        .required(),
        CODE_FOLDER,
        Field::new(
            "environment",
            ENVIRONMENT,
            "`azureml:NAME:VERSION`, `azureml:NAME@LABEL` or `{image: …}`",
        )
        .required(),
        VARIABLES,
        Field::new(
            "compute",
            Kind::Either(&[Kind::FilledText, Kind::Object(&PREVIEW_COMPUTE)]),
            "the cluster, `azureml:NAME`",
        )
        .or("local"),
        Field::new("resources", Kind::Object(&RESOURCES), "how many hosts, and of what size"),
        Field::new("limits", Kind::Object(&TIME_LIMITS), "how long the job may run"),
        Field::new(
            "distribution",
            Kind::Object(&DISTRIBUTION),
            "how ranks are spread over the hosts",
        )
        .required(),
        Field::new(
            "inputs",
            Kind::Map(&Kind::Any),
            "literals and data, used in the command as `${{inputs.NAME}}`",
        ),
        Field::new(
            "outputs",
            Kind::Map(&Kind::Any),
            "data the job makes, used as `${{outputs.NAME}}`",
        ),
        Field::new("identity", Kind::Any, "as whom the job reads its data"),
        Field::new("services", Kind::Any, "programs to reach the job by while it runs"),
        Field::new(
            "queue_settings",
            Kind::Any,
            "the tier the job waits in: spot, basic, standard or premium",
        ),
    ],
);

static DISTRIBUTION: Shape = Shape::open(
    "distribution",
    &[
        Field::new("type", Kind::FilledText, "the way processes are started: `mpi`").required(),
        Field::new("process_count_per_instance", PROCESSES, "ranks on each host").or("1"),
        Field::new(
            "process_count_per_node",
            PROCESSES,
            "an older name of `process_count_per_instance`",
        ),
    ],
);

static RESOURCES: Shape = Shape::new(
    "resources",
    &[
        Field::new("instance_count", HOSTS, "how many hosts").or("1"),
        Field::new("instance_type", Kind::Scalar, "the size of a host").or("the cluster's own"),
        Field::new(
            "shm_size",
            Kind::Either(&[Kind::Form(&SHM_SIZE), Kind::Integer { min: 1, max: i64::MAX }]),
            "the size of /dev/shm, such as `2g`",
        ),
        Field::new("docker_args", Kind::Any, "further options of docker"),
        Field::new("properties", Kind::Any, "values for the cluster's scheduler"),
        Field::new("locations", Kind::Any, "places the job may run in"),
        Field::new("max_instance_count", Kind::POSITIVE, "the most hosts an elastic job may have"),
    ],
);

static TIME_LIMITS: Shape = Shape::new(
    "limits",
    &[Field::new(
        "timeout",
        Kind::Integer { min: 1, max: i64::MAX },
        "seconds after which the job is stopped",
    )],
);

static PREVIEW_COMPUTE: Shape = Shape::new(
    "compute",
    &[
        Field::new("target", Kind::FilledText, "the cluster, `azureml:NAME`"),
        Field::new("instance_count", HOSTS, "how many hosts; now `resources.instance_count`"),
        Field::new("node_count", HOSTS, "how many hosts; now `resources.instance_count`"),
        Field::new(
            "instance_type",
            Kind::Scalar,
            "the size of a host; now `resources.instance_type`",
        ),
    ],
);

static SHM_SIZE: Form = Form {
    name: "a size such as 512m or 2g (a number and b, k, m or g)",
    fits: |text| shm_mib(text).is_some(),
    pattern: "^[0-9]+[bkmgBKMG]?$",
};

/// The size in MiB, rounded up; docker's units are powers of 1024, without a unit it counts bytes.
pub(super) fn shm_mib(text: &str) -> Option<u64> {
    let lower = text.trim().to_ascii_lowercase();
    let digits = lower.trim_end_matches(['b', 'k', 'm', 'g']);
    let bytes_each: u64 = match lower.get(digits.len()..)? {
        "" | "b" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        _ => return None,
    };
    let bytes = digits.parse::<u64>().ok()?.checked_mul(bytes_each)?;
    (bytes > 0).then(|| bytes.div_ceil(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_shared_memory_are_read_as_docker_reads_them() {
        assert_eq!(shm_mib("2g"), Some(2048));
        assert_eq!(shm_mib("64M"), Some(64));
        assert_eq!(shm_mib("1b"), Some(1), "a part of a MiB is a MiB");
        assert_eq!(shm_mib("1048577"), Some(2));
        for text in
            ["", "g", "0m", "2gb", "-1g", "1.5g", "99999999999999999999g", "18446744073709551615g"]
        {
            assert_eq!(shm_mib(text), None, "{text}");
        }
    }
}
