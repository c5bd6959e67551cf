//! The addresses of a cluster. They are the same in every cluster: each has a network of its own.
//!
//! The first process' network is the router: the API server listens there, tests run there, and
//! every node's link ends there. A node is a network namespace behind one link, so that cutting it
//! off is taking one link down.

use std::net::Ipv4Addr;

/// The router, in which the control plane and the tests live.
pub(crate) const ROUTER: &str = "10.77.0.1";

/// The `kubernetes` service: an address of the router, because there is no kube-proxy.
pub(crate) const API_SERVICE: &str = "10.96.0.1";

/// The cluster's name server, when CoreDNS was asked for: an address of the router, too.
pub(crate) const DNS_SERVICE: &str = "10.96.0.10";

/// Where the service addresses come from.
pub(crate) const SERVICES: &str = "10.96.0.0/16";

/// Nodes are 10.77.0.11 and up, and the pods of node N are 10.77.N.0/24.
pub(crate) const MOST_NODES: u8 = 200;

/// Where a node's link and its pods are.
#[derive(Clone, Debug)]
pub(crate) struct NodeNetwork {
    pub(crate) address: Ipv4Addr,
    pub(crate) pods: String,
}

impl NodeNetwork {
    /// The network of the node with this number, counted from 1.
    pub(crate) fn of(number: u8) -> Self {
        Self {
            address: Ipv4Addr::new(10, 77, 0, 10 + number),
            pods: format!("10.77.{number}.0/24"),
        }
    }

    /// What the CNI plugins read: a bridge in the node, an address from the node's range.
    pub(crate) fn cni(&self) -> String {
        serde_json::json!({
            "cniVersion": "0.4.0",
            "name": "pods",
            "plugins": [{
                "type": "bridge",
                "bridge": "pods",
                "isGateway": true,
                "ipMasq": false,
                "hairpinMode": true,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{ "subnet": self.pods }]],
                    "routes": [{ "dst": "0.0.0.0/0" }],
                },
            }],
        })
        .to_string()
    }
}

/// Where clients inside the cluster's network find the API server.
pub(crate) fn api_url() -> String {
    format!("https://{ROUTER}")
}
