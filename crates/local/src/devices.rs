//! What launchers need not find out. Each daemon of a launcher looks at every device of its machine by hwloc, which takes one of Open MPI
//! longer than all else it does to start; hosts of one machine share its devices, and no launcher places ranks by them here.

use std::collections::BTreeMap;

use unisono_agent::NOT_FOR_RANKS;

/// What makes hwloc leave out devices, and the libraries that only they need.
const UNSEEN: [(&str, &str); 2] =
    [("HWLOC_COMPONENTS", "-pci,-linux:pci"), ("HWLOC_PLUGINS_PATH", "/nonexistent")];

/// Hides devices from what starts ranks, not from the ranks. Whoever has settings of their own keeps them.
pub(crate) fn hide(variables: &mut BTreeMap<String, String>) {
    let added: Vec<_> =
        UNSEEN.into_iter().filter(|(name, _)| !variables.contains_key(*name)).collect();
    let names = added.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(",");
    variables.extend(added.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())));
    variables.insert(NOT_FOR_RANKS.to_owned(), names);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_somebodys_own_stay_and_reach_ranks() {
        let own = ("HWLOC_PLUGINS_PATH".to_owned(), "/mine".to_owned());
        let mut variables = BTreeMap::from([own.clone()]);
        hide(&mut variables);
        assert_eq!(variables[&own.0], own.1);
        assert_eq!(variables[NOT_FOR_RANKS], "HWLOC_COMPONENTS");
    }
}
