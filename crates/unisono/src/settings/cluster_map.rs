//! What names of other systems mean in a cluster: Azure's environments and compute targets, OpenPAI's images and virtual
//! clusters, its RDMA. Tables of settings files enter, a map leaves; a later file's entry replaces an earlier one's.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use toml::Spanned;
use unisono_job::Quantity;

use super::{Origin, Sourced};

/// The tables of a settings file, by their names.
pub(super) const TABLES: [&str; 5] =
    ["compute", "environments", "images", "rdma", "virtual_clusters"];

/// What names of other systems mean in this cluster.
#[derive(Debug, Default)]
pub(crate) struct ClusterMap {
    /// Images by Azure ML environment, with version or without.
    pub(crate) environments: BTreeMap<String, Sourced<String>>,
    /// Images by the image that a file names.
    pub(crate) images: BTreeMap<String, Sourced<String>>,
    /// Places by Azure's compute target.
    pub(crate) compute: BTreeMap<String, Sourced<PlaceInCluster>>,
    /// Places by OpenPAI's virtual cluster.
    pub(crate) virtual_clusters: BTreeMap<String, Sourced<PlaceInCluster>>,
    /// What a member that asks for Azure's RDMA gets.
    pub(crate) rdma: Option<Sourced<Rdma>>,
}

/// Where in a cluster jobs go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PlaceInCluster {
    /// The namespace.
    pub(crate) namespace: Option<String>,
    /// The queue of a gang scheduler.
    pub(crate) queue: Option<String>,
    /// The priority class.
    pub(crate) priority_class: Option<String>,
    /// Labels that nodes must have.
    pub(crate) node_selector: BTreeMap<String, String>,
}

/// What a member that asks for RDMA gets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Rdma {
    /// Devices, as resource limits.
    pub(crate) resources: BTreeMap<String, Amount>,
    /// Paths of the node that are mounted at the same place.
    pub(crate) mounts: Vec<String>,
    /// Whether memory may be locked without limit.
    pub(crate) lock_memory: bool,
}

/// How much of a resource, as Kubernetes writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Amount(pub(crate) Quantity);

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Quantity::parse(&text).map(Self).map_err(D::Error::custom)
    }
}

/// The tables as a file has them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tables {
    environments: BTreeMap<String, Spanned<String>>,
    images: BTreeMap<String, Spanned<String>>,
    compute: BTreeMap<String, Spanned<PlaceInCluster>>,
    virtual_clusters: BTreeMap<String, Spanned<PlaceInCluster>>,
    rdma: Option<Spanned<Rdma>>,
}

impl ClusterMap {
    /// Takes the tables of a file; `at` tells where in it an offset is.
    pub(super) fn take(&mut self, tables: Tables, at: impl Fn(usize) -> Origin) {
        fn add<T>(
            known: &mut BTreeMap<String, Sourced<T>>,
            new: BTreeMap<String, Spanned<T>>,
            at: &impl Fn(usize) -> Origin,
        ) {
            known.extend(new.into_iter().map(|(name, value)| {
                let from = at(value.span().start);
                (name, Sourced { value: value.into_inner(), from })
            }));
        }
        add(&mut self.environments, tables.environments, &at);
        add(&mut self.images, tables.images, &at);
        add(&mut self.compute, tables.compute, &at);
        add(&mut self.virtual_clusters, tables.virtual_clusters, &at);
        if let Some(rdma) = tables.rdma {
            let from = at(rdma.span().start);
            self.rdma = Some(Sourced { value: rdma.into_inner(), from });
        }
    }

    #[cfg(all(test, feature = "kubernetes"))]
    pub(crate) fn parse(text: &str) -> Result<Self, toml::de::Error> {
        let mut map = Self::default();
        map.take(toml::from_str(text)?, |_| Origin::BuiltIn);
        Ok(map)
    }

    /// The image of an Azure ML environment: of its very name, else of its name without a version or label.
    #[cfg(feature = "kubernetes")]
    pub(crate) fn environment(&self, name: &str) -> Option<&str> {
        let found = self.environments.get(name).or_else(|| {
            let bare = name.strip_prefix("azureml:").unwrap_or(name);
            let end = bare.rfind(['@', ':']).unwrap_or(bare.len());
            let bare = bare.get(..end).unwrap_or(bare);
            self.environments.get(&format!("azureml:{bare}")).or(self.environments.get(bare))
        });
        found.map(|image| image.value.as_str())
    }

    /// Every entry as `config show` has it: name, value, origin.
    pub(crate) fn entries(&self) -> Vec<(String, String, &Origin)> {
        fn rows<'map, T: fmt::Display>(
            table: &'static str,
            entries: &'map BTreeMap<String, Sourced<T>>,
        ) -> impl Iterator<Item = (String, String, &'map Origin)> {
            entries.iter().map(move |(name, entry)| {
                (format!("{table}.\"{name}\""), entry.value.to_string(), &entry.from)
            })
        }
        let rdma = self.rdma.iter();
        rows("compute", &self.compute)
            .chain(rows("environments", &self.environments))
            .chain(rows("images", &self.images))
            .chain(rdma.map(|it| ("rdma".to_owned(), it.value.to_string(), &it.from)))
            .chain(rows("virtual_clusters", &self.virtual_clusters))
            .collect()
    }
}

impl fmt::Display for PlaceInCluster {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stated = [
            ("namespace", &self.namespace),
            ("queue", &self.queue),
            ("priority_class", &self.priority_class),
        ];
        let mut parts: Vec<String> = stated
            .iter()
            .filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)))
            .collect();
        parts.extend(self.node_selector.iter().map(|(name, value)| format!("{name}:{value}")));
        formatter.write_str(&parts.join(" "))
    }
}

impl fmt::Display for Rdma {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let devices =
            self.resources.iter().map(|(name, amount)| format!("{name}={}", amount.0.as_str()));
        let lock = self.lock_memory.then(|| "lock_memory".to_owned());
        let parts: Vec<String> = devices.chain(self.mounts.iter().cloned()).chain(lock).collect();
        formatter.write_str(&parts.join(" "))
    }
}

#[cfg(all(test, feature = "kubernetes"))]
mod tests {
    use super::*;

    #[test]
    fn an_environment_is_found_by_its_version_before_its_name() {
        let text = "\
[environments]
\"azureml:horovod\" = \"lab/horovod:any\"
\"azureml:horovod:7\" = \"lab/horovod:7\"
mpi = \"lab/mpi:1\"
";
        let map = ClusterMap::parse(text).unwrap();
        assert_eq!(map.environment("azureml:horovod:7"), Some("lab/horovod:7"));
        assert_eq!(map.environment("azureml:horovod:8"), Some("lab/horovod:any"));
        assert_eq!(map.environment("azureml:horovod@latest"), Some("lab/horovod:any"));
        assert_eq!(map.environment("azureml:mpi:3"), Some("lab/mpi:1"));
        assert_eq!(map.environment("azureml:other:1"), None);
    }
}
