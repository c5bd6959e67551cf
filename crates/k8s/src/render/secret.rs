//! Secrets with the job's keys: the agent's, and those for ssh that v2beta1 promises.

use serde_json::{Map, Value, json};
use unisono_agent::keys::{JobKeys, KeyError};
use unisono_job::Dialect;

use super::{Rendering, answers, key_name};
use crate::ssh_key::SshKey;

/// The name under which the launcher's key is minted.
const LAUNCHER: &str = "launcher";

/// Keys of one job, freshly minted.
pub(crate) struct Keys {
    agent: JobKeys,
    ssh: Option<SshKey>,
}

/// Why a job has no keys.
#[derive(Debug, thiserror::Error)]
pub enum MintError {
    /// The agent's could not be made.
    #[error("make the job's keys")]
    Agent(#[from] KeyError),
    /// Those for ssh could not be made.
    #[error("make the job's keys for ssh")]
    Ssh(#[from] unisono_engine::mint::MintError),
}

impl Rendering<'_> {
    /// Mints the job's keys: one to launch with, and one for each group of hosts that are launched on. Members of a group
    /// share theirs, so that a job can grow without new keys; no host's key can launch.
    pub(crate) fn mint(&self) -> Result<Keys, MintError> {
        let answering = self.plan.job.groups.iter().enumerate().filter(|(at, _)| {
            let group = u32::try_from(*at).unwrap_or(u32::MAX);
            self.plan.hosts_of_group(group).iter().any(|host| answers(self.plan, host))
        });
        let names: Vec<String> = answering.map(|(_, group)| key_name(group)).collect();
        let agent = JobKeys::mint([LAUNCHER], names.iter().map(String::as_str))?;
        let has_ssh = self.plan.job.dialect == Dialect::KubeflowV2beta1;
        Ok(Keys { agent, ssh: has_ssh.then(SshKey::mint).transpose()? })
    }

    /// The Secrets that hold them.
    pub(crate) fn secrets(&self, keys: &Keys) -> Result<Vec<Value>, MintError> {
        let mut data = Map::new();
        let mut put = |name: &str, text: &str| data.insert(name.to_owned(), Value::from(text));
        if let Some(launcher) = keys.agent.launchers.get(LAUNCHER) {
            put("launcher.key", &launcher.to_text());
        }
        put("launchers", &keys.agent.launcher_list()?.to_string());
        put("hosts", &keys.agent.host_list());
        for (group, key) in &keys.agent.hosts {
            put(&host_key(group), &key.to_text());
        }
        let mut secrets = vec![self.agent_keys(data)];
        secrets.extend(
            keys.ssh.as_ref().map(|ssh| self.ssh_pair(ssh.private_pem(), ssh.authorized_key())),
        );
        Ok(secrets)
    }

    pub(super) fn agent_keys(&self, data: Map<String, Value>) -> Value {
        self.secret(&self.agent_secret(), "Opaque", data)
    }

    /// Exactly the two keys that v2beta1 promises.
    pub(super) fn ssh_pair(&self, private: &str, public: &str) -> Value {
        let data = [("ssh-privatekey", private), ("ssh-publickey", public)];
        let data = data.map(|(name, text)| (name.to_owned(), Value::from(text)));
        let name = self.plan.names.ssh_secret();
        self.secret(&name, "kubernetes.io/ssh-auth", data.into_iter().collect())
    }

    fn secret(&self, name: &str, kind: &str, data: Map<String, Value>) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": self.metadata(name, self.shared_labels()),
            "type": kind,
            "stringData": data,
        })
    }
}

/// Where the Secret has the key of a group's hosts.
pub(super) fn host_key(group: &str) -> String {
    format!("host.{group}.key")
}
