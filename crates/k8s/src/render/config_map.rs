//! The ConfigMap with the files that the dialect promises, hosts called as it promises.

use serde_json::{Map, Value, json};
use unisono_plan::bind::promised_files;

use super::Rendering;
use crate::marks::{CONFIG_FILES, DISCOVER_HOSTS, HOME};

impl Rendering<'_> {
    /// The ConfigMap.
    pub fn config_map(&self) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": self.metadata(&self.plan.names.config_map(), self.shared_labels()),
            "data": self.config_data(),
        })
    }

    /// What it holds.
    pub(crate) fn config_data(&self) -> Map<String, Value> {
        if self.is_kube_batch() {
            // Empty until every pod has an address.
            return Map::from_iter([("hostfile".to_owned(), Value::from(""))]);
        }
        let files = promised_files(self.plan);
        let promised = files.into_iter().filter(|(path, _)| !path.starts_with(HOME));
        promised
            .filter_map(|(path, file)| {
                let (_, name) = path.rsplit_once('/')?;
                let text = if name == DISCOVER_HOSTS { following(&file.text) } else { file.text };
                Some((name.to_owned(), Value::from(text)))
            })
            .collect()
    }
}

/// The script that prints hosts, in a form that goes on to the newest one: where it is mounted for itself it stays as it was when
/// its container began.
fn following(script: &str) -> String {
    let newest = format!("{CONFIG_FILES}/{DISCOVER_HOSTS}");
    let follow = format!(
        "#!/bin/sh\nif [ \"$0\" != {newest} ] && [ -x {newest} ]; then exec {newest}; fi\n"
    );
    script.strip_prefix("#!/bin/sh\n").map_or_else(|| script.to_owned(), |rest| follow + rest)
}
