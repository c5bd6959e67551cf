//! Settings: files, environment and flags enter, one value each with its origin leaves. Later layers win.
//!
//! The layers: built in, `~/.config/unisono/config.toml`, `./unisono.toml`, `UNISONO_*` variables, flags. Nothing else
//! in the program reads the environment.

mod cluster_map;
mod file;
mod value;

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;

use crate::args::SettingsArgs;

pub(crate) use cluster_map::ClusterMap;
#[cfg(feature = "kubernetes")]
pub(crate) use cluster_map::{PlaceInCluster, Rdma};
pub(crate) use file::SettingsError;
pub(crate) use value::{ColorWhen, Field, GpuChoice, MachineSlots, Origin, Sourced};

/// The outside world as settings see it.
#[derive(Debug, Default)]
pub(crate) struct World {
    /// Environment variables.
    pub(crate) variables: Vec<(OsString, OsString)>,
    /// The folder the program was started in.
    pub(crate) folder: PathBuf,
}

/// Every setting, with where its value came from.
#[derive(Debug)]
pub(crate) struct Settings {
    /// When to use colours.
    pub(crate) color: Sourced<ColorWhen>,
    /// GPUs of this machine that jobs may use.
    pub(crate) gpus: Sourced<GpuChoice>,
    /// GPUs of one node, for MPIJob v1alpha1 files that state only a total.
    pub(crate) gpus_per_node: Sourced<NonZeroU32>,
    /// Whether the cluster offers Azure's RDMA devices.
    pub(crate) az_rdma: Sourced<bool>,
    /// The claim of a volume for code that is too large to travel with a job; empty: none.
    pub(crate) code_volume: Sourced<String>,
    /// The context of the kubeconfig; empty: its current one.
    pub(crate) context: Sourced<String>,
    /// The Kubernetes namespace of jobs that name none.
    pub(crate) namespace: Sourced<String>,
    /// The cluster's domain; empty: none.
    pub(crate) cluster_domain: Sourced<String>,
    /// Who runs the job.
    pub(crate) user: Sourced<String>,
    /// Ranks that run on this machine side by side.
    pub(crate) machine_slots: Sourced<MachineSlots>,
    /// Directories of ended runs that stay.
    pub(crate) keep_runs: Sourced<NonZeroU32>,
    /// Days for which directories of ended runs stay.
    pub(crate) keep_days: Sourced<NonZeroU32>,
    /// What names of other systems mean in a cluster.
    pub(crate) cluster_map: ClusterMap,
}

impl World {
    /// This process's environment and working directory.
    pub(crate) fn of_this_process() -> Self {
        Self {
            variables: std::env::vars_os().collect(),
            folder: std::env::current_dir().unwrap_or_default(),
        }
    }

    /// A variable that is text and not empty.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let (_, value) = self.variables.iter().find(|(it, _)| it == name)?;
        value.to_str().filter(|value| !value.is_empty()).map(str::to_owned)
    }

    /// Where runs are kept, by the XDG rules.
    pub(crate) fn runs_folder(&self) -> Option<PathBuf> {
        let base = match self.variable("XDG_STATE_HOME").map(PathBuf::from) {
            Some(folder) if folder.is_absolute() => folder,
            Some(_) | None => PathBuf::from(self.variable("HOME")?).join(".local/state"),
        };
        Some(base.join("unisono/runs"))
    }

    /// Whether anything names a cluster: a kubeconfig, or the account of a pod.
    pub(crate) fn names_a_cluster(&self) -> bool {
        let named = ["KUBECONFIG", "KUBERNETES_SERVICE_HOST"];
        let usual = self.variable("HOME").map(|home| PathBuf::from(home).join(".kube/config"));
        named.iter().any(|name| self.variable(name).is_some())
            || usual.is_some_and(|path| path.is_file())
    }

    /// The user's own settings file, by the XDG rules.
    pub(crate) fn user_file(&self) -> Option<PathBuf> {
        let base = match self.variable("XDG_CONFIG_HOME").map(PathBuf::from) {
            Some(folder) if folder.is_absolute() => folder,
            Some(_) | None => PathBuf::from(self.variable("HOME")?).join(".config"),
        };
        Some(base.join("unisono/config.toml"))
    }
}

/// Every setting with its name, in the order of documentation, of settings that are read or of settings that are written.
macro_rules! named_fields {
    ($settings:expr) => {{
        let Settings {
            az_rdma,
            cluster_domain,
            code_volume,
            color,
            context,
            gpus,
            gpus_per_node,
            keep_days,
            keep_runs,
            machine_slots,
            namespace,
            user,
            cluster_map: _,
        } = $settings;
        [
            ("az_rdma", az_rdma),
            ("cluster_domain", cluster_domain),
            ("code_volume", code_volume),
            ("color", color),
            ("context", context),
            ("gpus", gpus),
            ("gpus_per_node", gpus_per_node),
            ("keep_days", keep_days),
            ("keep_runs", keep_runs),
            ("machine_slots", machine_slots),
            ("namespace", namespace),
            ("user", user),
        ]
    }};
}

impl Settings {
    fn built_in() -> Self {
        Self {
            color: Sourced::built_in(ColorWhen::Auto),
            gpus: Sourced::built_in(GpuChoice::Auto),
            // The published manifests of the v1alpha1 operator set 8.
            gpus_per_node: Sourced::built_in(NonZeroU32::MIN.saturating_add(7)),
            az_rdma: Sourced::built_in(false),
            code_volume: Sourced::built_in(String::new()),
            context: Sourced::built_in(String::new()),
            namespace: Sourced::built_in("default".to_owned()),
            cluster_domain: Sourced::built_in(String::new()),
            user: Sourced::built_in("user".to_owned()),
            machine_slots: Sourced::built_in(MachineSlots::default()),
            keep_runs: Sourced::built_in(NonZeroU32::MIN.saturating_add(99)),
            keep_days: Sourced::built_in(NonZeroU32::MIN.saturating_add(29)),
            cluster_map: ClusterMap::default(),
        }
    }

    /// Reads all layers. The second value is what to warn about.
    pub(crate) fn load(
        world: &World,
        flags: &SettingsArgs,
    ) -> Result<(Self, Vec<String>), SettingsError> {
        let mut settings = Self::built_in();
        let mut warnings = Vec::new();
        if let Some(name) = ["USER", "LOGNAME"].into_iter().find(|it| world.variable(it).is_some())
            && let Some(value) = world.variable(name)
        {
            settings.user = Sourced { value, from: Origin::Variable(name.to_owned()) };
        }
        for path in world.user_file().into_iter().chain([world.folder.join("unisono.toml")]) {
            warnings.extend(file::apply(&path, &mut settings)?);
        }
        settings.apply_environment(world)?;
        settings.apply_flags(flags)?;
        Ok((settings, warnings))
    }

    /// Whether the cluster offers Azure's RDMA devices: the setting says so, or a table says how members get them.
    pub(crate) const fn offers_rdma(&self) -> bool {
        self.az_rdma.value || self.cluster_map.rdma.is_some()
    }

    /// Every setting with its name, in the order of documentation.
    pub(crate) fn fields(&self) -> [(&'static str, &dyn Field); 12] {
        named_fields!(self)
    }

    fn fields_mut(&mut self) -> [(&'static str, &mut dyn Field); 12] {
        named_fields!(self)
    }

    fn apply_environment(&mut self, world: &World) -> Result<(), SettingsError> {
        for (name, field) in self.fields_mut() {
            let variable = format!("UNISONO_{}", name.to_ascii_uppercase());
            if let Some(text) = world.variable(&variable) {
                field.take(name, &text, Origin::Variable(variable))?;
            }
        }
        Ok(())
    }

    fn apply_flags(&mut self, flags: &SettingsArgs) -> Result<(), SettingsError> {
        let SettingsArgs {
            color,
            gpus_per_node,
            az_rdma,
            code_volume,
            context,
            namespace,
            cluster_domain,
            user,
            machine_slots,
            keep_runs,
            keep_days,
        } = flags;
        let given = [
            ("az_rdma", az_rdma.map(|it| it.to_string())),
            ("cluster_domain", cluster_domain.clone()),
            ("code_volume", code_volume.clone()),
            ("color", color.map(|it| it.to_string())),
            ("context", context.clone()),
            // No flag of its own: `run --gpus` is a number of them.
            ("gpus", None),
            ("gpus_per_node", gpus_per_node.map(|it| it.to_string())),
            ("keep_days", keep_days.map(|it| it.to_string())),
            ("keep_runs", keep_runs.map(|it| it.to_string())),
            ("machine_slots", machine_slots.map(|it| it.to_string())),
            ("namespace", namespace.clone()),
            ("user", user.clone()),
        ];
        for ((name, field), (_, text)) in self.fields_mut().into_iter().zip(given) {
            if let Some(text) = text {
                let from = Origin::Flag(format!("--{}", name.replace('_', "-")));
                field.take(name, &text, from)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(folder: &std::path::Path, variables: &[(&str, &str)]) -> World {
        let home = [("HOME", folder.to_str().unwrap())];
        World {
            variables: home
                .iter()
                .chain(variables)
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            folder: folder.to_owned(),
        }
    }

    fn shown(settings: &Settings, name: &str) -> (String, String) {
        let field = settings.fields().into_iter().find(|it| it.0 == name).unwrap().1;
        (field.text(), field.origin().to_string())
    }

    #[test]
    fn later_layers_win_and_every_value_knows_its_origin() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(home.path().join(".config/unisono")).unwrap();
        let user_file = home.path().join(".config/unisono/config.toml");
        std::fs::write(&user_file, "gpus_per_node = 4\naz_rdma = true\nnamespace = \"a\"\n")
            .unwrap();
        std::fs::write(home.path().join("unisono.toml"), "namespace = \"b\"\nuser = \"ada\"\n")
            .unwrap();
        let world = world(home.path(), &[("USER", "eve"), ("UNISONO_NAMESPACE", "c")]);
        let flags = SettingsArgs { color: Some(ColorWhen::Never), ..SettingsArgs::default() };
        let (settings, warnings) = Settings::load(&world, &flags).unwrap();

        assert_eq!(warnings, [""; 0]);
        let at_line = |line: u32| format!("{}:{line}", user_file.display());
        assert_eq!(shown(&settings, "gpus_per_node"), ("4".to_owned(), at_line(1)));
        assert_eq!(shown(&settings, "az_rdma"), ("true".to_owned(), at_line(2)));
        assert_eq!(shown(&settings, "namespace").1, "UNISONO_NAMESPACE");
        assert!(shown(&settings, "user").1.ends_with("unisono.toml:2"));
        assert_eq!(shown(&settings, "color"), ("never".to_owned(), "--color".to_owned()));
        assert_eq!(shown(&settings, "cluster_domain").1, "built in");
    }

    #[test]
    fn wrong_values_and_unknown_keys_are_told_with_their_place() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("unisono.toml");
        let load = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Settings::load(&world(home.path(), &[]), &SettingsArgs::default())
        };
        let told = |text| load(text).unwrap_err().to_string().replace(path.to_str().unwrap(), "F");

        assert_eq!(
            told("gpus_per_node = 0\n"),
            "F:1: gpus_per_node needs a whole number of at least 1, not `0`"
        );
        assert_eq!(told("\naz_rdma = [1]\n"), "F:2: az_rdma needs true or false, not an array");
        assert!(told("color = \n").starts_with("F:1: "));
        let amount = told("[rdma]\nmounts = []\nresources = { \"rdma/hca\" = \"one\" }\n");
        assert!(amount.starts_with("F:3: `one` is not an amount"), "{amount}");
        let (_, warnings) = load("namespce = \"x\"\n").unwrap();
        assert_eq!(
            warnings[0].replace(path.to_str().unwrap(), "F"),
            "F:1: `namespce` is no setting; did you mean `namespace`?"
        );
    }

    #[test]
    fn a_relative_xdg_folder_is_ignored_as_its_standard_says() {
        let world = |value: &str| World {
            variables: vec![("HOME".into(), "/h".into()), ("XDG_CONFIG_HOME".into(), value.into())],
            folder: PathBuf::new(),
        };
        assert_eq!(world("x").user_file(), Some("/h/.config/unisono/config.toml".into()));
        assert_eq!(world("/x").user_file(), Some("/x/unisono/config.toml".into()));
    }
}
