//! What kube-batch's `MPI` promises beside its pods: an account with a role, and two ConfigMaps that are filled once every pod
//! has an address. Its scripts now call the agent; nothing is downloaded, and nobody may execute in pods.

use serde_json::{Map, Value, json};
use unisono_plan::bind::{Addresses, promised_files};
use unisono_plan::{Host, hostfile};

use super::Rendering;
use super::pod::HOSTFILES;
use super::start::END_FILE;
use super::template::Template;
use crate::marks::{AGENT_FILES, HOME};

/// Volumes of the contract's ConfigMaps, and where every pod finds them.
const HOSTFILE: (&str, &str) = ("hostfile", "/mpi");
const DATA: (&str, &str) = ("mpi-data", "/entry");

/// Readable and executable by everybody in the pod: any user may be the one that runs it.
const EXECUTABLE: u32 = 0o555;

/// A change of an object that is there.
pub(crate) struct Filling {
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    pub(crate) changes: Value,
}

impl Rendering<'_> {
    /// The objects, in the order in which each refers to the one before.
    pub(crate) fn kube_batch_objects(&self) -> Vec<Value> {
        if !self.is_kube_batch() {
            return Vec::new();
        }
        let named =
            |ending: &str| self.metadata(&self.plan.names.ending(ending), self.job_labels());
        let account = self.account();
        let names: Vec<String> =
            self.plan.hosts.iter().map(|host| self.plan.pod_name(host, 0)).collect();
        vec![
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named("sa")}),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "Role",
                "metadata": named("role"),
                "rules": rules(&names),
            }),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "RoleBinding",
                "metadata": named("rolebinding"),
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "Role",
                    "name": self.plan.names.ending("role"),
                },
                "subjects": [
                    {"kind": "ServiceAccount", "name": account, "namespace": self.plan.namespace()},
                ],
            }),
            json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": self.metadata(&self.plan.names.data_config_map(), self.job_labels()),
                "data": self.data("", ""),
            }),
        ]
    }

    /// What is filled in once every pod has an address: who the executor is, and who the hosts are.
    pub(crate) fn kube_batch_fillings(
        &self,
        pods: &[String],
        addresses: &Addresses,
    ) -> Vec<Filling> {
        if !self.is_kube_batch() {
            return Vec::new();
        }
        let plan = self.plan;
        let hosts: String = plan
            .hosts
            .iter()
            .filter_map(|host| Some(format!("{} {}\n", addresses.get(&host.member)?, host.name)))
            .collect();
        let names = hostfile::text(plan, plan.hostfile_form, |host| host.name.as_str().into());
        let executor = plan.launch_host().map_or("", |host| host.name.as_str());
        let (config_map, data) = (plan.names.config_map(), plan.names.data_config_map());
        vec![
            Filling {
                kind: "ConfigMap",
                name: config_map,
                changes: json!({"data": {"hostfile": names}}),
            },
            Filling {
                kind: "ConfigMap",
                name: data,
                changes: json!({"data": {"executor": executor, "hosts": hosts}}),
            },
            Filling {
                kind: "Role",
                name: plan.names.ending("role"),
                changes: json!({"rules": rules(pods)}),
            },
        ]
    }

    /// The files, where its pods find them. The executor's host file is written by `ready`, at once; the others' comes from the
    /// ConfigMap, at which their kubelets look when their pods are marked.
    pub(super) fn kube_batch_files(&self, template: &mut Template, host: &Host) {
        let (hostfile, at) = HOSTFILE;
        if host.runs.launches() {
            template.add_volume(json!({"name": HOSTFILES, "emptyDir": {}}));
            template.mount(json!({"name": HOSTFILES, "mountPath": at}));
        } else {
            let name = self.plan.names.config_map();
            template.add_volume(json!({"name": hostfile, "configMap": {"name": name}}));
            template.mount(json!({"name": hostfile, "mountPath": at, "readOnly": true}));
        }
        let (data, at) = DATA;
        let map = json!({"name": self.plan.names.data_config_map(), "defaultMode": EXECUTABLE});
        template.add_volume(json!({"name": data, "configMap": map}));
        template.mount(json!({"name": data, "mountPath": at, "readOnly": true}));
    }

    /// The account that pods get which name none.
    pub(super) fn account(&self) -> String {
        self.plan.names.ending("sa")
    }

    fn data(&self, executor: &str, hosts: &str) -> Map<String, Value> {
        let mut data: Map<String, Value> = promised_files(self.plan)
            .into_iter()
            .filter(|(path, _)| path.starts_with(DATA.1))
            .filter_map(|(path, file)| {
                let (_, name) = path.rsplit_once('/')?;
                Some((name.to_owned(), Value::from(file.text)))
            })
            .collect();
        data.insert("startup.sh".to_owned(), startup().into());
        data.insert("executor".to_owned(), executor.into());
        data.insert("hosts".to_owned(), hosts.into());
        data
    }
}

/// What kube-batch started every container by. Pods of ours do without; for whoever calls it, it does what it promised: the
/// executor, which alone has a key that launches, runs the command, and any other pod waits for the end and ends as the job did.
fn startup() -> String {
    let agent = format!("{HOME}/unisono-agent");
    format!(
        "#!/bin/sh
if test -e {AGENT_FILES}/launcher.key; then
  exec {agent} ready -- \"$@\"
fi
exec {agent} end-with {AGENT_FILES}/{END_FILE}
"
    )
}

/// Pods of the job may be looked at, and nothing else.
fn rules(pods: &[String]) -> Value {
    json!([{"apiGroups": [""], "resources": ["pods"], "resourceNames": pods, "verbs": ["get"]}])
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_executor_starts_the_command_and_every_other_pod_waits_for_the_end() {
        let key = format!("{AGENT_FILES}/launcher.key");
        let said = |key_at: &str| {
            let agent = format!("{HOME}/");
            let script = startup().replace(&key, key_at).replace(&agent, "echo ");
            let output = Command::new("sh").args(["-c", &script, "sh", "mpirun", "a  b"]).output();
            String::from_utf8(output.unwrap().stdout).unwrap()
        };
        assert_eq!(said("/dev/null"), "unisono-agent ready -- mpirun a  b\n");
        assert_eq!(said("/dev/null/none"), "unisono-agent end-with /etc/unisono/agent/end\n");
    }
}
