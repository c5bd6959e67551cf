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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::fixtures::{JOBS, owner, plan, settings};

    #[test]
    fn only_pods_of_the_same_job_reach_the_agent_of_an_mpi_that_asks_for_it() {
        let mut plan = plan(JOBS[10].1);
        let (settings, owner) = (settings(), owner(&plan));
        let policy =
            |plan: &_| Rendering { plan, settings: &settings, owner: &owner }.network_policy();
        assert_eq!(policy(&plan), None, "nobody asked");
        plan.job.annotations.insert(marks::NETWORK_POLICY.to_owned(), "true".to_owned());
        let policy = policy(&plan).unwrap();
        let own = json!({"matchLabels": {"unisono.dev/job-uid": owner.uid}});
        let spec = &policy["spec"];
        assert_eq!(policy["metadata"]["name"], "tri-agent");
        assert_eq!((&spec["podSelector"], &spec["policyTypes"]), (&own, &json!(["Ingress"])));
        let [from_own, from_all] = &spec["ingress"].as_array().unwrap()[..] else {
            panic!("{spec}")
        };
        assert_eq!(*from_own, json!({"from": [{"podSelector": own}]}), "on every port");
        assert_eq!(from_all.as_object().unwrap().keys().collect::<Vec<_>>(), ["ports"]);
        let is_open = |protocol: &str, port: u64| {
            from_all["ports"].as_array().unwrap().iter().any(|it| {
                let (first, last) = (it["port"].as_u64().unwrap(), it["endPort"].as_u64().unwrap());
                it["protocol"] == protocol && (first..=last).contains(&port)
            })
        };
        let closed: Vec<u64> = (1..=65535).filter(|port| !is_open("TCP", *port)).collect();
        assert_eq!(closed, [7711], "the agent's port and no other");
        assert!(is_open("UDP", 7711) && is_open("SCTP", 7711), "agents do not listen there");
    }
}
