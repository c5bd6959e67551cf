//! The ConfigMap with the files that the dialect promises, hosts called as it promises.

use serde_json::{Map, Value, json};
use unisono_plan::bind::promised_files;

use super::Rendering;
use crate::marks::HOME;

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
                Some((name.to_owned(), Value::from(file.text)))
            })
            .collect()
    }
}
