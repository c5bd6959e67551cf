//! Everything the operator is installed with: options enter, Kubernetes objects leave, in the order they must be applied.

mod definition;
mod deployment;
mod permissions;
mod policy;

use serde_json::{Value, json};

use crate::resources::RESOURCES;

/// The name of everything the operator has of its own.
pub const NAME: &str = "unisono-operator";

/// The port that answers for health, readiness and metrics.
pub const PORT: u16 = 8080;

/// What an installation can differ in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The namespace the operator lives in.
    pub namespace: String,
    /// The image with the program, and with the agent that goes into the pods of jobs.
    pub image: String,
    /// How many operators run, of which one works.
    pub replicas: u32,
    /// The only namespace whose jobs it runs; all when absent.
    pub only_namespace: Option<String>,
    /// More arguments of `unisono operator run`.
    pub arguments: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            namespace: "unisono-system".to_owned(),
            image: default_image(),
            replicas: 2,
            only_namespace: None,
            arguments: Vec::new(),
        }
    }
}

/// The image of this version.
pub fn default_image() -> String {
    format!("unisono.dev/unisono:{}", env!("CARGO_PKG_VERSION"))
}

/// The objects, in order: what others refer to comes first.
pub fn objects(options: &Options) -> Vec<Value> {
    let mut objects: Vec<Value> = RESOURCES.iter().map(definition::definition).collect();
    objects.extend(RESOURCES.iter().flat_map(policy::policies));
    objects.push(json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": options.namespace,
            "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
        },
    }));
    objects.extend(permissions::objects(options));
    objects.extend(deployment::objects(options));
    objects
}

/// The objects as one YAML text.
pub fn to_yaml(objects: &[Value]) -> String {
    let documents: Vec<String> = objects.iter().map(unisono_dialect::to_yaml).collect();
    documents.join("---\n")
}

/// Labels of the operator's own objects.
fn labels() -> Value {
    json!({"app.kubernetes.io/name": NAME, "app.kubernetes.io/part-of": "unisono"})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifests_are_the_same_every_time_and_small_enough_for_any_client() {
        let text = to_yaml(&objects(&Options::default()));
        assert_eq!(text, to_yaml(&objects(&Options::default())));
        let definition = serde_json::to_string(&objects(&Options::default())[0]).unwrap();
        assert!(definition.len() < 400 * 1024, "{} bytes", definition.len());
        // `kubectl apply` keeps a copy in an annotation, which holds 256 KiB.
        assert!(definition.len() < 256 * 1024, "{} bytes", definition.len());
    }

    /// Roles and their bindings: kind, namespace and name, and what they grant or bind.
    fn rights(options: &Options) -> Vec<(String, String, String, Value)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let of = |it: &Value| {
            let (kind, metadata) = (text(&it["kind"]), &it["metadata"]);
            let what = match kind.ends_with("Binding") {
                true => json!({"role": it["roleRef"]["name"], "to": it["subjects"]}),
                false => it["rules"].clone(),
            };
            (kind, text(&metadata["namespace"]), text(&metadata["name"]), what)
        };
        let objects = objects(options);
        objects
            .iter()
            .filter(|it| it["apiVersion"] == "rbac.authorization.k8s.io/v1")
            .map(of)
            .collect()
    }

    #[test]
    fn one_namespace_is_granted_what_all_are_and_nothing_else() {
        let everywhere = rights(&Options::default());
        let in_lab =
            rights(&Options { only_namespace: Some("lab".to_owned()), ..Options::default() });
        let is_of_people = |name: &str| name.starts_with("unisono-jobs-");
        let expected: Vec<_> = everywhere
            .into_iter()
            .filter(|(_, _, name, _)| !is_of_people(name))
            .map(|(kind, namespace, name, what)| match kind.strip_prefix("Cluster") {
                Some(kind) => (kind.to_owned(), "lab".to_owned(), name, what),
                None => (kind, namespace, name, what),
            })
            .collect();
        assert_eq!(in_lab, expected);
        // Names of roles and who gets them, and what works only in the namespace of the operator.
        let places: Vec<(&str, &str, &str)> =
            in_lab.iter().map(|it| (it.0.as_str(), it.1.as_str(), it.2.as_str())).collect();
        assert_eq!(
            places,
            [
                ("Role", "lab", NAME),
                ("RoleBinding", "lab", NAME),
                ("Role", "unisono-system", "unisono-operator-lease"),
                ("RoleBinding", "unisono-system", "unisono-operator-lease"),
            ]
        );
        for (_, _, _, what) in &in_lab {
            let text = what.to_string();
            assert!(!text.contains('*'), "{text}");
        }
    }

    #[test]
    fn one_namespace_needs_no_rights_in_others() {
        let options = Options { only_namespace: Some("lab".to_owned()), ..Options::default() };
        let objects = objects(&options);
        let kinds: Vec<&str> = objects.iter().filter_map(|it| it["kind"].as_str()).collect();
        assert!(!kinds.contains(&"ClusterRole") && !kinds.contains(&"ClusterRoleBinding"));
        let arguments = &objects.iter().find(|it| it["kind"] == "Deployment").unwrap()["spec"]["template"]
            ["spec"]["containers"][0]["args"];
        assert!(arguments.as_array().unwrap().contains(&"--namespace=lab".into()), "{arguments}");
    }
}
