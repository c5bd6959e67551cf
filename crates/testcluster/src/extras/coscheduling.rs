//! The scheduler that starts all members of a `PodGroup` or none.

use std::sync::{Mutex, PoisonError};

use serde_json::json;

use crate::binaries;
use crate::cluster::Cluster;

/// The `schedulerName` of pods that want to be scheduled as a gang.
pub const SCHEDULER: &str = "scheduler-plugins-scheduler";

const CONTROLLER: &str = "coscheduling-controller";

impl Cluster {
    /// Starts the coscheduling plugin's scheduler, [`SCHEDULER`], beside the usual one, with the
    /// controller that counts a `PodGroup`'s members; once, however often it is asked for.
    pub fn start_coscheduling(&self) -> anyhow::Result<()> {
        static ONE_BY_ONE: Mutex<()> = Mutex::new(());
        let _turn = ONE_BY_ONE.lock().unwrap_or_else(PoisonError::into_inner);
        if self.has_part(CONTROLLER) {
            return Ok(());
        }
        let scheduler = binaries::SCHEDULERS.build()?.join("coscheduler");
        let controller = binaries::CLUSTER.build()?.join("controller");
        let source = binaries::CLUSTER.source_of("sigs.k8s.io/scheduler-plugins")?;
        self.define_kinds(&source.join("config/crd/bases"))?;
        let kubeconfig = self.write_kubeconfig("coscheduling")?;
        let configuration = self.write_file(
            "coscheduling.json",
            &json!({
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "leaderElection": { "leaderElect": false },
                "clientConnection": { "kubeconfig": kubeconfig, "qps": 1000, "burst": 2000 },
                "profiles": [{
                    "schedulerName": SCHEDULER,
                    "plugins": {
                        "multiPoint": { "enabled": [{ "name": "Coscheduling" }] },
                        "queueSort": {
                            "enabled": [{ "name": "Coscheduling" }],
                            "disabled": [{ "name": "*" }],
                        },
                    },
                    "pluginConfig": [{
                        "name": "Coscheduling",
                        "args": { "permitWaitingTimeSeconds": 10 },
                    }],
                }],
            })
            .to_string(),
        )?;
        self.start_part(
            "coscheduling-scheduler",
            &scheduler,
            &[
                format!("--config={configuration}"),
                // The usual scheduler has the usual port.
                "--secure-port=10359".to_owned(),
            ],
        )?;
        self.start_part(
            CONTROLLER,
            &controller,
            &[
                format!("--kubeconfig={kubeconfig}"),
                "--metricsAddr=0".to_owned(),
                "--probeAddr=127.0.0.1:8091".to_owned(),
                "--qps=1000".to_owned(),
                "--burst=2000".to_owned(),
            ],
        )?;
        self.wait_for_parts("the coscheduling controller", || {
            let answer = ureq::get("http://127.0.0.1:8091/readyz").call();
            Ok(answer.is_ok().then_some(()))
        })
    }
}
