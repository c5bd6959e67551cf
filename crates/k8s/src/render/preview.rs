//! Everything that becomes of a job when it begins, to be looked at before it does.

use serde_json::{Map, Value, json};
use unisono_job::Dialect;

use super::secret::host_key;
use super::{Rendering, answers, key_name};

/// What stands where a key will be.
const KEY: &str = "(made by the operator)";

impl Rendering<'_> {
    /// Every object of the job's first attempt, in the order in which they are made. Keys are left out: each job gets its own.
    pub fn preview(&self) -> Vec<Value> {
        let mut objects = vec![self.config_map(), self.secret_without_keys()];
        objects.extend(self.service());
        objects.extend(self.kube_batch_objects());
        objects.extend(self.network_policy());
        objects.extend(self.pod_group());
        objects.extend(self.launcher_job());
        // The Job's uid is not known before there is one, so its pods are shown as the job's own.
        objects.extend(self.plan.hosts.iter().map(|host| self.pod(host, 0, 0, None)));
        objects
    }

    fn secret_without_keys(&self) -> Value {
        let is_ssh = self.plan.job.dialect == Dialect::KubeflowV2beta1;
        let mut names: Vec<String> = Vec::new();
        if is_ssh {
            names.extend(["ssh-privatekey", "ssh-publickey"].map(str::to_owned));
        }
        names.extend(["launcher.key", "launchers", "hosts"].map(str::to_owned));
        for (at, group) in self.plan.job.groups.iter().enumerate() {
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            if self.plan.hosts_of_group(at).iter().any(|host| answers(self.plan, host)) {
                names.push(host_key(&key_name(group)));
            }
        }
        let data: Map<String, Value> = names.into_iter().map(|it| (it, KEY.into())).collect();
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": self.metadata(&self.secret_name(), self.shared_labels()),
            "type": if is_ssh { "kubernetes.io/ssh-auth" } else { "Opaque" },
            "stringData": data,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::fixtures::{JOBS, owner, plan, settings};

    #[test]
    fn a_preview_has_the_keys_that_are_minted_and_none_of_their_values() {
        let settings = settings();
        for (_, text) in JOBS {
            let plan = plan(text);
            let owner = owner(&plan);
            let rendering = Rendering { plan: &plan, settings: &settings, owner: &owner };
            let real = rendering.secret(&rendering.mint().unwrap()).unwrap();
            let objects = rendering.preview();
            let shown = objects.iter().find(|it| it["kind"] == "Secret").unwrap();
            let names = |it: &Value| {
                let names: Vec<String> =
                    it["stringData"].as_object().unwrap().keys().cloned().collect();
                names
            };
            assert_eq!(names(shown), names(&real));
            assert!(shown["stringData"].as_object().unwrap().values().all(|it| it == KEY));
            let pods = objects.iter().filter(|it| it["kind"] == "Pod").count();
            assert_eq!(pods, plan.hosts.len());
        }
    }
}
