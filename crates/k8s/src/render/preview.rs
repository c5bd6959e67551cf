//! Everything that becomes of a job when it begins, to be looked at before it does.

use serde_json::{Map, Value};
use unisono_job::Dialect;

use super::secret::host_key;
use super::{Rendering, answers, key_name};

/// What stands where a key will be.
const KEY: &str = "(made by the operator)";

impl Rendering<'_> {
    /// Every object of the job's first attempt, in the order in which they are made. Keys are left out: each job gets its own.
    pub fn preview(&self) -> Vec<Value> {
        let mut objects = vec![self.config_map()];
        objects.extend(self.secrets_without_keys());
        objects.extend(self.service());
        objects.extend(self.kube_batch_objects());
        objects.extend(self.network_policy());
        objects.extend(self.pod_group());
        objects.extend(self.launcher_job());
        // The Job's uid is not known before there is one, so its pods are shown as the job's own.
        objects.extend(self.plan.hosts.iter().map(|host| self.pod(host, 0, 0, None)));
        objects
    }

    fn secrets_without_keys(&self) -> Vec<Value> {
        let mut names = Vec::from(["launcher.key", "launchers", "hosts"].map(str::to_owned));
        for (at, group) in self.plan.job.groups.iter().enumerate() {
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            if self.plan.hosts_of_group(at).iter().any(|host| answers(self.plan, host)) {
                names.push(host_key(&key_name(group)));
            }
        }
        let data: Map<String, Value> = names.into_iter().map(|it| (it, KEY.into())).collect();
        let mut secrets = vec![self.agent_keys(data)];
        if self.plan.job.dialect == Dialect::KubeflowV2beta1 {
            secrets.push(self.ssh_pair(KEY, KEY));
        }
        secrets
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::render::fixtures::{JOBS, owner, plan, settings};

    #[test]
    fn a_preview_has_the_keys_that_are_minted_and_none_of_their_values() {
        let settings = settings();
        for (_, text) in JOBS {
            let plan = plan(text);
            let owner = owner(&plan);
            let rendering = Rendering { plan: &plan, settings: &settings, owner: &owner };
            let mut real = rendering.secrets(&rendering.mint().unwrap()).unwrap();
            let keys = real.iter_mut().flat_map(|it| it["stringData"].as_object_mut().unwrap());
            keys.for_each(|(_, value)| *value = json!(KEY));
            let objects = rendering.preview();
            let shown: Vec<&Value> = objects.iter().filter(|it| it["kind"] == "Secret").collect();
            assert_eq!(shown, real.iter().collect::<Vec<_>>());
            let pods = objects.iter().filter(|it| it["kind"] == "Pod").count();
            assert_eq!(pods, plan.hosts.len());
        }
    }
}
