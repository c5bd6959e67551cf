//! The PodGroup, in the words of whichever scheduler places gangs, and the marks by which pods belong to it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use unisono_job::{LauncherStart, Quantity};
use unisono_plan::Host;

use super::Rendering;
use super::template::{Template, object_in};
use crate::settings::GangScheduler;

/// The annotation by which Volcano's and kube-batch's pods name their group.
const GROUP_ANNOTATION: &str = "scheduling.k8s.io/group-name";
/// The label by which scheduler-plugins' pods name their group.
const GROUP_LABEL: &str = "scheduling.x-k8s.io/pod-group";

impl GangScheduler {
    /// Where PodGroups are served, and the plural in paths.
    pub(crate) const fn api(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::None => None,
            Self::SchedulerPlugins { .. } => Some(("scheduling.x-k8s.io", "v1alpha1")),
            Self::Volcano => Some(("scheduling.volcano.sh", "v1beta1")),
            Self::KubeBatch => Some(("scheduling.incubator.k8s.io", "v1alpha1")),
        }
    }

    fn scheduler_name(&self) -> Option<&str> {
        match self {
            Self::None => None,
            Self::SchedulerPlugins { scheduler } => Some(scheduler),
            Self::Volcano => Some("volcano"),
            Self::KubeBatch => Some("kube-batch"),
        }
    }
}

impl Rendering<'_> {
    /// The PodGroup, where somebody reads it.
    pub fn pod_group(&self) -> Option<Value> {
        let (group, version) = self.settings.gang.api()?;
        Some(json!({
            "apiVersion": format!("{group}/{version}"),
            "kind": "PodGroup",
            "metadata": self.metadata(&self.plan.names.pod_group(), self.shared_labels()),
            "spec": self.pod_group_spec(),
        }))
    }

    /// What it says, which changes with the number of members.
    pub(crate) fn pod_group_spec(&self) -> Map<String, Value> {
        let gang = &self.plan.job.policies.gang;
        let everybody = u32::try_from(self.made_at_once().count()).unwrap_or(u32::MAX).max(1);
        let least = match (gang.min_members, self.launcher_comes_last()) {
            (None, _) => everybody,
            (Some(stated), true) => stated.min(everybody),
            (Some(stated), false) => stated,
        };
        let mut spec = Map::new();
        spec.insert("minMember".to_owned(), json!(least));
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                spec.insert(key.to_owned(), value);
            }
        };
        match self.settings.gang {
            GangScheduler::None => {}
            GangScheduler::SchedulerPlugins { .. } => {
                put("minResources", self.min_resources(least));
                let timeout = gang.schedule_timeout_seconds.unwrap_or(0);
                put("scheduleTimeoutSeconds", Some(json!(timeout)));
            }
            GangScheduler::Volcano => {
                put("queue", gang.queue.clone().map(Value::from));
                put("priorityClassName", gang.priority_class.clone().map(Value::from));
                put("minResources", self.min_resources(least));
            }
            GangScheduler::KubeBatch => {
                put("queue", gang.queue.clone().map(Value::from));
                put("priorityClassName", gang.priority_class.clone().map(Value::from));
            }
        }
        spec
    }

    /// Whether the launcher is made only when every worker is up: a gang that waits for it would wait for ever.
    fn launcher_comes_last(&self) -> bool {
        self.plan.job.policies.launcher_start == LauncherStart::AfterWorkers
    }

    /// The hosts whose pods are there before any of them is up, launchers first.
    fn made_at_once(&self) -> impl Iterator<Item = &Host> {
        let hosts = &self.plan.hosts;
        let come_last = self.launcher_comes_last();
        let launchers = hosts.iter().filter(move |host| host.runs.launches() && !come_last);
        launchers.chain(hosts.iter().filter(|host| !host.runs.launches()))
    }

    /// Makes a pod a member of the gang.
    pub(super) fn gang(&self, template: &mut Template) {
        let Some(scheduler) = self.settings.gang.scheduler_name() else { return };
        template.spec().insert("schedulerName".to_owned(), json!(scheduler));
        let group = json!(self.plan.names.pod_group());
        let (kind, name) = match self.settings.gang {
            GangScheduler::SchedulerPlugins { .. } => ("labels", GROUP_LABEL),
            GangScheduler::None | GangScheduler::Volcano | GangScheduler::KubeBatch => {
                ("annotations", GROUP_ANNOTATION)
            }
        };
        object_in(template.metadata(), kind).insert(name.to_owned(), group);
    }

    /// What the job states, else what its first members ask for together, launcher first.
    fn min_resources(&self, least: u32) -> Option<Value> {
        let stated = &self.plan.job.policies.gang.min_resources;
        if !stated.is_empty() {
            return Some(json!(stated));
        }
        let mut sums: BTreeMap<String, u128> = BTreeMap::new();
        for host in self.made_at_once().take(least as usize) {
            for (name, amount) in self.requests(host) {
                *sums.entry(name).or_default() += amount;
            }
        }
        (!sums.is_empty())
            .then(|| sums.into_iter().map(|(name, milli)| (name, written(milli))).collect())
    }

    /// What all containers of a host's pod ask for; a limit stands in for a missing request.
    fn requests(&self, host: &Host) -> BTreeMap<String, u128> {
        let template = unisono_dialect::pod_template(self.plan.group_of(host));
        let containers = template.pointer("/spec/containers").and_then(Value::as_array);
        let mut sums = BTreeMap::new();
        for container in containers.into_iter().flatten() {
            let amounts = |kind: &str| {
                let amounts = container.get("resources").and_then(|it| it.get(kind));
                amounts.and_then(Value::as_object).cloned().unwrap_or_default()
            };
            let mut asked = amounts("limits");
            asked.extend(amounts("requests"));
            for (name, amount) in asked {
                let text = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
                if let Ok(quantity) = Quantity::parse(&text) {
                    *sums.entry(name).or_default() += u128::from(quantity.milli());
                }
            }
        }
        sums
    }
}

/// Thousandths as a quantity.
fn written(milli: u128) -> Value {
    match milli.is_multiple_of(1000) {
        true => json!((milli / 1000).to_string()),
        false => json!(format!("{milli}m")),
    }
}
