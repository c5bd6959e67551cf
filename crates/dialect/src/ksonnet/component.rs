//! `components/NAME.jsonnet`: the text a component is written as, and the prototype a text was made from.

use serde_json::Value;

use super::operator;
use super::prototype::{Makes, PROTOTYPES, Prototype};

/// The Jsonnet of a new component. It is complete: Jsonnet itself makes the same objects of it as Unisono does.
pub(super) fn text(prototype: &Prototype, name: &str) -> String {
    let name = Value::from(name);
    let body = match prototype.makes {
        Makes::Operator => operator_list(),
        Makes::SimpleJob => job_list("gpus: params.gpus,", "", ""),
        Makes::CustomJob => job_list("replicas: params.replicas,", LIMITS, VOLUMES),
    };
    format!(
        "// {MARK}{}\n\
         local env = std.extVar(\"__ksonnet/environments\");\n\
         local params = std.extVar(\"__ksonnet/params\").components[{name}];\n{body}",
        prototype.name
    )
}

/// The prototype that a component was made from; none when it is somebody's own Jsonnet.
pub(super) fn prototype_of(text: &str) -> Option<&'static Prototype> {
    let mark = text.lines().find_map(|line| line.strip_prefix("//")?.trim().strip_prefix(MARK));
    if let Some(name) = mark {
        return PROTOTYPES.iter().find(|prototype| prototype.name == name.trim());
    }
    let makes = if text.contains("mpi-operator") {
        Makes::Operator
    } else if text.contains("gpusPerReplica") {
        Makes::CustomJob
    } else if text.contains("MPIJob") || text.contains("mpi-job.libsonnet") {
        Makes::SimpleJob
    } else {
        return None;
    };
    PROTOTYPES.iter().find(|prototype| prototype.makes == makes)
}

const MARK: &str = "prototype: ";

const LIMITS: &str = "
          resources: { limits: { \"nvidia.com/gpu\": params.gpusPerReplica } },
          volumeMounts: if mounts then [{ name: \"persistent-storage\", mountPath: params.volumeMountPath }] else [],";

const VOLUMES: &str = "
        volumes: if mounts then [
          { name: \"persistent-storage\", persistentVolumeClaim: { claimName: params.pvcName } },
        ] else [],";

fn job_list(size: &str, in_container: &str, in_pod: &str) -> String {
    let mounts = if in_pod.is_empty() {
        ""
    } else {
        "local mounts = params.pvcName != \"null\" && params.volumeMountPath != \"null\";\n"
    };
    format!(
        "local words(text) = if text == \"null\" then [] else std.split(text, \",\");
{mounts}
std.prune({{
  apiVersion: \"v1\",
  kind: \"List\",
  items: [{{
    apiVersion: \"kubeflow.org/v1alpha1\",
    kind: \"MPIJob\",
    metadata: {{ name: params.name, namespace: env.namespace }},
    spec: {{
      {size}
      template: {{ spec: {{
        containers: [{{
          name: params.name,
          image: params.image,
          command: words(params.command),
          args: words(params.args),{in_container}
        }}],{in_pod}
      }} }},
    }},
  }}],
}})
"
    )
}

/// The operator's objects, with expressions where its parameters go.
fn operator_list() -> String {
    let objects = operator::objects(&operator::Params {
        name: "<params.name>".into(),
        namespace: "<env.namespace>".into(),
        image: "<params.image>".into(),
        kubectl_delivery_image: "<params.kubectlDeliveryImage>".into(),
        gpus_per_node: "<std.toString(params.gpusPerNode)>".into(),
    });
    let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": objects});
    let text = crate::to_json(&list).replace("\"<", "").replace(">\"", "");
    format!("\nstd.prune({})\n", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_tells_its_prototype() {
        for prototype in &PROTOTYPES {
            let found = prototype_of(&text(prototype, "a-1")).expect("it has a prototype");
            assert_eq!(found.name, prototype.name);
        }
    }

    #[test]
    fn components_that_ksonnet_made_are_known_by_what_they_hold() {
        let makes = |text| prototype_of(text).map(|it| it.makes);
        assert_eq!(
            makes("local o = import \"kubeflow/mpi-job/mpi-operator.libsonnet\";"),
            Some(Makes::Operator)
        );
        assert_eq!(makes("local gpusPerReplica = params.gpusPerReplica;"), Some(Makes::CustomJob));
        assert_eq!(makes("{ kind: \"MPIJob\", spec: { gpus: gpus } }"), Some(Makes::SimpleJob));
        assert_eq!(makes("{ kind: \"Deployment\" }"), None);
    }

    #[test]
    fn expressions_stand_bare_in_the_operators_text() {
        let text = text(&PROTOTYPES[2], "op");
        assert!(text.contains("\"image\": params.image"), "{text}");
        assert!(text.contains("std.toString(params.gpusPerNode),") && !text.contains('<'));
    }
}
