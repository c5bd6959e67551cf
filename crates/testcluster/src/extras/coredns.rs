//! CoreDNS, which answers for services and pods at the address that every pod asks.

use crate::binaries;
use crate::cluster::Cluster;
use crate::network;

impl Cluster {
    /// Starts the cluster's name server. Without it no name resolves in any pod.
    pub fn start_coredns(&self) -> anyhow::Result<()> {
        let kubeconfig = self.write_kubeconfig("coredns")?;
        // As most clusters have it: an answer, also a negative one, is believed for 30 s.
        let corefile = format!(
            ".:53 {{\n    bind {}\n    errors\n    ready 127.0.0.1:8181\n\
             \x20   kubernetes cluster.local in-addr.arpa {{\n        kubeconfig {kubeconfig}\n\
             \x20       pods insecure\n    }}\n    cache 30\n}}\n",
            network::DNS_SERVICE
        );
        let corefile = self.write_file("Corefile", &corefile)?;
        self.start_part(
            "coredns",
            &binaries::CLUSTER.build()?.join("coredns"),
            &[format!("-conf={corefile}")],
        )?;
        self.wait_for_parts("CoreDNS", || {
            let answer = ureq::get("http://127.0.0.1:8181/ready").call();
            Ok(answer.is_ok().then_some(()))
        })
    }
}
