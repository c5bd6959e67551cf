//! The NetworkPolicy that whoever wants it gets: only the job's own pods reach its agents.

use serde_json::{Value, json};
use unisono_agent::table::DEFAULT_PORT;

use super::Rendering;
use crate::marks;

impl Rendering<'_> {
    /// The policy, where the cluster's settings or the job ask for it. It closes the agents' port to everybody else and leaves
    /// every other port as open as it was.
    pub fn network_policy(&self) -> Option<Value> {
        let asked = self.plan.job.annotations.get(marks::NETWORK_POLICY);
        let wanted = asked.map_or(self.settings.network_policy, |it| it == "true");
        let own = json!({"matchLabels": {marks::JOB_UID: self.owner.uid}});
        let range = |protocol: &str, first: u16, last: u16| json!({"protocol": protocol, "port": first, "endPort": last});
        wanted.then(|| {
            json!({
                "apiVersion": "networking.k8s.io/v1",
                "kind": "NetworkPolicy",
                "metadata": self.metadata(&self.plan.names.ending("agent"), self.shared_labels()),
                "spec": {
                    "podSelector": own,
                    "policyTypes": ["Ingress"],
                    "ingress": [
                        {"from": [{"podSelector": own}]},
                        {"ports": [
                            range("TCP", 1, DEFAULT_PORT - 1),
                            range("TCP", DEFAULT_PORT + 1, u16::MAX),
                            range("UDP", 1, u16::MAX),
                            range("SCTP", 1, u16::MAX),
                        ]},
                    ],
                },
            })
        })
    }
}
