//! What a component becomes: its parameters enter, the Kubernetes objects that ksonnet printed leave.

use serde_json::{Map, Value, json};

use super::operator;
use super::prototype::{Makes, Prototype};

/// The parameters of a component, as its files have them.
pub(super) type Params = Map<String, Value>;

/// A parameter that the component's files do not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the parameter `{0}` is not set")]
pub struct NoSuchParam(pub &'static str);

/// The objects of a component, in the order in which ksonnet printed them, keys sorted.
pub(super) fn objects(
    prototype: &Prototype,
    params: &Params,
    namespace: &str,
) -> Result<Vec<Value>, NoSuchParam> {
    let objects = match prototype.makes {
        Makes::Operator => operator::objects(&operator::Params {
            name: needed(params, "name")?,
            namespace: namespace.into(),
            image: needed(params, "image")?,
            kubectl_delivery_image: needed(params, "kubectlDeliveryImage")?,
            gpus_per_node: as_text(&needed(params, "gpusPerNode")?),
        }),
        Makes::SimpleJob => {
            let container = container(params)?;
            vec![job(params, namespace, ("gpus", needed(params, "gpus")?), container, None)?]
        }
        Makes::CustomJob => {
            let mut container = container(params)?;
            let gpus = needed(params, "gpusPerReplica")?;
            container.insert("resources".into(), json!({"limits": {"nvidia.com/gpu": gpus}}));
            let claim = claim(params);
            if let Some((_, path)) = &claim {
                let mounts = json!([{"name": VOLUME, "mountPath": path}]);
                container.insert("volumeMounts".into(), mounts);
            }
            let volumes = claim.map(|(claim, _)| {
                json!([{"name": VOLUME, "persistentVolumeClaim": {"claimName": claim}}])
            });
            let replicas = ("replicas", needed(params, "replicas")?);
            vec![job(params, namespace, replicas, container, volumes)?]
        }
    };
    Ok(objects.into_iter().filter_map(pruned).collect())
}

const VOLUME: &str = "persistent-storage";

fn job(
    params: &Params,
    namespace: &str,
    size: (&str, Value),
    container: Map<String, Value>,
    volumes: Option<Value>,
) -> Result<Value, NoSuchParam> {
    Ok(json!({
        "apiVersion": "kubeflow.org/v1alpha1",
        "kind": "MPIJob",
        "metadata": {"name": needed(params, "name")?, "namespace": namespace},
        "spec": {
            size.0: size.1,
            "template": {"spec": {"containers": [container], "volumes": volumes}},
        },
    }))
}

fn container(params: &Params) -> Result<Map<String, Value>, NoSuchParam> {
    let mut container = Map::new();
    container.insert("name".into(), needed(params, "name")?);
    container.insert("image".into(), needed(params, "image")?);
    for key in ["command", "args"] {
        if let Some(text) = stated(params, key) {
            // A comma always separates: there is no way to write one inside a word.
            container.insert(key.into(), as_text(text).split(',').collect());
        }
    }
    Ok(container)
}

/// The volume claim and its path, when both are given.
fn claim(params: &Params) -> Option<(Value, Value)> {
    Some((stated(params, "pvcName")?.clone(), stated(params, "volumeMountPath")?.clone()))
}

/// A parameter, unless it is the word `null`, which is how prototypes say that nothing was given.
fn stated<'params>(params: &'params Params, key: &str) -> Option<&'params Value> {
    params.get(key).filter(|value| !value.is_null() && value.as_str() != Some("null"))
}

fn needed(params: &Params, key: &'static str) -> Result<Value, NoSuchParam> {
    params.get(key).cloned().ok_or(NoSuchParam(key))
}

fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The value without nulls, empty lists and empty objects, keys sorted; none when nothing is left.
fn pruned(value: Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Array(items) => {
            let items: Vec<Value> = items.into_iter().filter_map(pruned).collect();
            (!items.is_empty()).then(|| items.into())
        }
        Value::Object(fields) => {
            let mut fields: Vec<(String, Value)> =
                fields.into_iter().filter_map(|(key, value)| Some((key, pruned(value)?))).collect();
            fields.sort_by(|left, right| left.0.cmp(&right.0));
            (!fields.is_empty()).then(|| fields.into_iter().collect::<Map<_, _>>().into())
        }
        scalar => Some(scalar),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ksonnet::prototype::find;

    fn shown(query: &str, given: &[(&str, &str)]) -> Vec<Value> {
        let prototype = find(query).unwrap();
        let given: Vec<_> =
            given.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let values = prototype.values("ring8", &given).unwrap();
        let params = values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        objects(prototype, &params, "lab").unwrap()
    }

    #[test]
    fn command_and_arguments_are_split_at_commas() {
        let given = [
            ("gpus", "8"),
            ("image", "lab/ring:2"),
            ("command", "mpirun,--tag-output,/opt/ring"),
            ("args", "-n,1000"),
        ];
        assert_eq!(
            shown("mpi-job-simple", &given),
            [json!({
                "apiVersion": "kubeflow.org/v1alpha1", "kind": "MPIJob",
                "metadata": {"name": "ring8", "namespace": "lab"},
                "spec": {"gpus": 8, "template": {"spec": {"containers": [{
                    "name": "ring8", "image": "lab/ring:2",
                    "command": ["mpirun", "--tag-output", "/opt/ring"], "args": ["-n", "1000"],
                }]}}},
            })]
        );
    }

    #[test]
    fn blanks_do_not_split_and_nothing_given_is_nothing_shown() {
        let container = |given: &[(&str, &str)]| {
            shown("simple", given)[0].pointer("/spec/template/spec/containers/0").cloned().unwrap()
        };
        assert_eq!(
            container(&[("command", "mpirun -np 2 x")])["command"],
            json!(["mpirun -np 2 x"])
        );
        assert_eq!(
            container(&[]).as_object().unwrap().keys().collect::<Vec<_>>(),
            ["image", "name"]
        );
        assert_eq!(
            container(&[("args", "-mca,btl,tcp,self")])["args"].as_array().unwrap().len(),
            4
        );
    }

    #[test]
    fn a_claim_is_mounted_only_when_both_halves_are_given() {
        let given = [
            ("replicas", "3"),
            ("gpusPerReplica", "2"),
            ("pvcName", "data"),
            ("volumeMountPath", "/data"),
        ];
        let job = &shown("custom", &given)[0];
        assert_eq!(job["spec"]["replicas"], 3);
        let spec = &job["spec"]["template"]["spec"];
        assert_eq!(spec["containers"][0]["resources"]["limits"]["nvidia.com/gpu"], 2);
        assert_eq!(spec["volumes"][0]["persistentVolumeClaim"]["claimName"], "data");
        assert_eq!(spec["containers"][0]["volumeMounts"][0]["mountPath"], "/data");
        assert!(shown("custom", &given[..3])[0].pointer("/spec/template/spec/volumes").is_none());
    }

    #[test]
    fn zero_survives_where_nothing_does_not() {
        let job = &shown("custom", &[("gpusPerReplica", "0")])[0];
        assert_eq!(
            job.pointer("/spec/template/spec/containers/0/resources/limits/nvidia.com~1gpu"),
            Some(&json!(0))
        );
        assert_eq!(
            pruned(json!({"a": {"b": [null, {}]}, "c": 0, "d": "", "e": false})),
            Some(json!({"c": 0, "d": "", "e": false}))
        );
        assert_eq!(pruned(json!([{}])), None);
    }

    #[test]
    fn a_parameter_that_was_taken_out_of_the_file_is_told() {
        let params = json!({"name": "a", "image": "b"}).as_object().unwrap().clone();
        assert_eq!(objects(find("simple").unwrap(), &params, "x"), Err(NoSuchParam("gpus")));
    }
}
