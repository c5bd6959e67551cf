//! Which scheduler places all pods of a job at once: what was asked for, else what the cluster has.

use std::str::FromStr;

use kube::Client;
use unisono_k8s::GangScheduler;

/// The name that scheduler-plugins' own manifests give their scheduler.
const SCHEDULER_PLUGINS: &str = "scheduler-plugins-scheduler";

/// kube-batch's API group.
const KUBE_BATCH: &str = "scheduling.incubator.k8s.io";

/// What was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Gang {
    /// Whatever the cluster has.
    #[default]
    Auto,
    /// This one.
    Fixed(GangScheduler),
}

/// A word that names no scheduler.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write auto, scheduler-plugins, scheduler-plugins=NAME, volcano, kube-batch or none")]
pub struct UnknownGang;

impl FromStr for Gang {
    type Err = UnknownGang;

    fn from_str(text: &str) -> Result<Self, UnknownGang> {
        let scheduler = match text.split_once('=') {
            Some(("scheduler-plugins", name)) if !name.is_empty() => scheduler_plugins(name),
            Some(_) => return Err(UnknownGang),
            None => match text {
                "auto" => return Ok(Self::Auto),
                "none" => GangScheduler::None,
                "scheduler-plugins" => scheduler_plugins(SCHEDULER_PLUGINS),
                "volcano" => GangScheduler::Volcano,
                "kube-batch" => GangScheduler::KubeBatch,
                _ => return Err(UnknownGang),
            },
        };
        Ok(Self::Fixed(scheduler))
    }
}

fn scheduler_plugins(name: &str) -> GangScheduler {
    GangScheduler::SchedulerPlugins { scheduler: name.to_owned() }
}

impl Gang {
    /// The scheduler, found by the API groups that the cluster serves.
    pub(crate) async fn scheduler(&self, client: &Client) -> Result<GangScheduler, kube::Error> {
        if let Self::Fixed(scheduler) = self {
            return Ok(scheduler.clone());
        }
        let groups = client.list_api_groups().await?;
        let mut names: Vec<&str> = groups.groups.iter().map(|group| group.name.as_str()).collect();
        if names.contains(&KUBE_BATCH) {
            // The group is also that of the jobs which we serve ourselves.
            let version = format!("{KUBE_BATCH}/v1alpha1");
            let served = client.list_api_group_resources(&version).await?;
            if !served.resources.iter().any(|it| it.name == "podgroups") {
                names.retain(|name| *name != KUBE_BATCH);
            }
        }
        Ok(found(&names))
    }
}

fn found(groups: &[&str]) -> GangScheduler {
    if groups.contains(&"scheduling.volcano.sh") {
        GangScheduler::Volcano
    } else if groups.contains(&"scheduling.x-k8s.io") {
        scheduler_plugins(SCHEDULER_PLUGINS)
    } else if groups.contains(&KUBE_BATCH) {
        GangScheduler::KubeBatch
    } else {
        GangScheduler::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_schedulers() {
        assert_eq!("auto".parse(), Ok(Gang::Auto));
        assert_eq!("none".parse(), Ok(Gang::Fixed(GangScheduler::None)));
        let named = Gang::Fixed(scheduler_plugins("mine"));
        assert_eq!("scheduler-plugins=mine".parse(), Ok(named));
        for wrong in ["", "voulcano", "volcano=x", "scheduler-plugins="] {
            assert_eq!(wrong.parse::<Gang>(), Err(UnknownGang), "{wrong}");
        }
    }

    #[test]
    fn the_cluster_tells_what_it_has() {
        assert_eq!(found(&["apps", "batch"]), GangScheduler::None);
        assert_eq!(found(&["scheduling.x-k8s.io"]), scheduler_plugins(SCHEDULER_PLUGINS));
    }
}
