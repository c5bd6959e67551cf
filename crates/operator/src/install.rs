//! Gives the manifests to a cluster and waits until they work: objects enter, progress leaves.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::Value;

/// Who is named as the owner of the fields that are applied.
const MANAGER: &str = "unisono";

/// How often an object that is not ready yet is looked at.
const PAUSE: Duration = Duration::from_millis(250);

/// What an installation does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Another operator of MPI jobs runs: the two would fight over them.
    Rival {
        /// Its namespace.
        namespace: String,
        /// Its Deployment.
        name: String,
    },
    /// An object was applied.
    Applied {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    },
    /// An object does not work yet.
    Waiting {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// How far it is.
        state: String,
    },
    /// Everything works.
    Ready,
}

/// Why an installation ended early.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The cluster refused an object.
    #[error("the cluster does not take {kind} {name}")]
    Refused {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// What it says.
        source: Box<kube::Error>,
    },
    /// An object did not begin to work in time.
    #[error("{kind} {name} is not ready after {seconds} s: {state}")]
    NotReady {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// How far it is.
        state: String,
        /// How long was waited.
        seconds: u64,
    },
}

/// Applies the objects in their order, the server taking over fields that others have set, and waits until the
/// definitions are served and the operator is ready; each at most as long as `patience`.
///
/// # Errors
///
/// When the cluster refuses an object, or one is not ready in time. What was applied until then stays, and a second
/// installation goes on from there.
pub async fn install(
    client: &Client,
    objects: &[Value],
    patience: Duration,
    mut tell: impl FnMut(Step),
) -> Result<(), InstallError> {
    for (namespace, name) in rivals(client).await {
        tell(Step::Rival { namespace, name });
    }
    let mut applied = Vec::with_capacity(objects.len());
    for object in objects {
        let target = Target::of(client, object);
        target.apply(object).await?;
        tell(Step::Applied { kind: target.kind(), name: target.name.clone() });
        if target.kind() == "CustomResourceDefinition" {
            target.wait(patience, &mut tell).await?;
        }
        applied.push(target);
    }
    for target in applied.iter().filter(|it| it.kind() == "Deployment") {
        target.wait(patience, &mut tell).await?;
    }
    tell(Step::Ready);
    Ok(())
}

/// Deployments of other operators of MPI jobs that have pods. Who may not look is told nothing.
async fn rivals(client: &Client) -> Vec<(String, String)> {
    const NAMES: [&str; 2] = ["mpi-operator", "training-operator"];
    let deployments: Api<Deployment> = Api::all(client.clone());
    let mut found = Vec::new();
    for name in NAMES {
        let named = ListParams::default().fields(&format!("metadata.name={name}"));
        let list = deployments.list(&named).await.map(|list| list.items).unwrap_or_default();
        let runs = |it: &Deployment| it.spec.as_ref().is_none_or(|spec| spec.replicas != Some(0));
        let running = list.into_iter().filter(runs);
        found.extend(running.map(|it| (it.namespace().unwrap_or_default(), name.to_owned())));
    }
    found
}

/// One object of the cluster.
struct Target {
    resource: ApiResource,
    api: Api<DynamicObject>,
    name: String,
}

impl Target {
    fn of(client: &Client, object: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
        let resource = ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: plural(&kind),
            api_version: api_version.clone(),
            kind,
        };
        let api = match object["metadata"]["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        Self { resource, api, name: text(&object["metadata"]["name"]) }
    }

    fn kind(&self) -> String {
        self.resource.kind.clone()
    }

    fn refused(&self, source: kube::Error) -> InstallError {
        InstallError::Refused {
            kind: self.kind(),
            name: self.name.clone(),
            source: Box::new(source),
        }
    }

    async fn apply(&self, object: &Value) -> Result<(), InstallError> {
        let parameters = PatchParams::apply(MANAGER).force();
        let patched = self.api.patch(&self.name, &parameters, &Patch::Apply(object)).await;
        patched.map(|_| ()).map_err(|source| self.refused(source))
    }

    async fn wait(
        &self,
        patience: Duration,
        tell: &mut impl FnMut(Step),
    ) -> Result<(), InstallError> {
        let deadline = tokio::time::Instant::now() + patience;
        let mut told = None;
        loop {
            let object = self.api.get(&self.name).await.map_err(|source| self.refused(source))?;
            let Some(state) = unready(&self.resource.kind, &object) else {
                return Ok(());
            };
            let (kind, name) = (self.kind(), self.name.clone());
            if tokio::time::Instant::now() > deadline {
                let seconds = patience.as_secs();
                return Err(InstallError::NotReady { kind, name, state, seconds });
            }
            if told.as_ref() != Some(&state) {
                told = Some(state.clone());
                tell(Step::Waiting { kind, name, state });
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// The word for a kind in paths. Every kind that is installed follows the rule of its language.
fn plural(kind: &str) -> String {
    let lower = kind.to_ascii_lowercase();
    match lower.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{lower}s"),
    }
}

/// What an object still lacks; nothing when it works.
fn unready(kind: &str, object: &DynamicObject) -> Option<String> {
    let status = &object.data["status"];
    if kind == "Deployment" {
        let generation = object.metadata.generation.unwrap_or(0);
        let wanted = object.data["spec"]["replicas"].as_i64().unwrap_or(1);
        let count = |key: &str| status[key].as_i64().unwrap_or(0);
        let ready = count("observedGeneration") >= generation
            && count("updatedReplicas") >= wanted
            && count("readyReplicas") >= wanted;
        return (!ready).then(|| format!("{} of {wanted} pods are ready", count("readyReplicas")));
    }
    let conditions = status["conditions"].as_array();
    let condition = |wanted: &str| conditions?.iter().find(|it| it["type"] == wanted);
    for (wanted, state) in
        [("NamesAccepted", "its names are taken"), ("Established", "it is not served yet")]
    {
        let found = condition(wanted);
        if found.is_none_or(|it| it["status"] != "True") {
            let message = found.and_then(|it| it["message"].as_str());
            return Some(message.unwrap_or(state).to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::manifests::{Options, objects};

    #[test]
    fn every_kind_that_is_installed_has_the_word_that_paths_use() {
        let known = [
            ("CustomResourceDefinition", "customresourcedefinitions"),
            ("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
            ("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
            ("Namespace", "namespaces"),
            ("ServiceAccount", "serviceaccounts"),
            ("ClusterRole", "clusterroles"),
            ("ClusterRoleBinding", "clusterrolebindings"),
            ("Role", "roles"),
            ("RoleBinding", "rolebindings"),
            ("Deployment", "deployments"),
            ("PodDisruptionBudget", "poddisruptionbudgets"),
        ];
        for object in objects(&Options::default()) {
            let kind = object["kind"].as_str().unwrap();
            let expected = known.iter().find(|it| it.0 == kind).unwrap().1;
            assert_eq!(plural(kind), expected);
        }
    }

    #[test]
    fn a_deployment_is_ready_when_all_its_new_pods_are() {
        let deployment = |observed: i64, ready: i64| {
            serde_json::from_value::<DynamicObject>(json!({
                "metadata": {"name": "x", "generation": 2},
                "spec": {"replicas": 2},
                "status": {"observedGeneration": observed, "updatedReplicas": 2, "readyReplicas": ready},
            }))
            .unwrap()
        };
        assert_eq!(unready("Deployment", &deployment(2, 2)), None);
        assert_eq!(unready("Deployment", &deployment(1, 2)).unwrap(), "2 of 2 pods are ready");
        assert_eq!(unready("Deployment", &deployment(2, 1)).unwrap(), "1 of 2 pods are ready");
    }
}
