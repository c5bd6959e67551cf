//! `app.yaml`: environments and installed packages, read and written without touching what else stands there.

use serde_json::{Map, Value, json};

use crate::{Schema, Source, scalar, to_yaml, yaml};

/// Why the file is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("app.yaml: {0}")]
pub struct AppError(String);

/// The file's content.
#[derive(Clone, Debug)]
pub(super) struct App(Map<String, Value>);

/// An environment: where a component goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Environment {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) server: String,
    pub(super) kubernetes_version: String,
}

/// An installed package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Library {
    pub(super) registry: String,
    pub(super) name: String,
    pub(super) version: String,
}

impl App {
    pub(super) fn new(name: &str) -> Self {
        let app = json!({
            "apiVersion": "0.3.0", "kind": "ksonnet.io/app", "name": name, "version": "0.0.1",
            "environments": {}, "libraries": {}, "registries": {},
        });
        Self(app.as_object().cloned().unwrap_or_default())
    }

    pub(super) fn read(text: &str) -> Result<Self, AppError> {
        let fault = |note: &unisono_job::Note| {
            let line = note.place.as_ref().and_then(|place| place.span);
            let line = line.map(|span| format!("line {}: ", span.start.line)).unwrap_or_default();
            AppError(format!("{line}{}", note.message))
        };
        let source = Source::new(text.as_bytes()).map_err(|note| fault(&note))?;
        let document = yaml::read(&source).into_iter().next();
        let document = document.ok_or_else(|| AppError("the file is empty".to_owned()))?;
        if let Some(note) = document.faults.iter().find(|note| note.is_fault()) {
            return Err(fault(note));
        }
        let Some(mut root) = document.root else {
            return Err(AppError("the file is empty".to_owned()));
        };
        scalar::resolve(&mut root, Schema::Yaml11);
        match root.to_json() {
            Value::Object(fields) => Ok(Self(fields)),
            _ => Err(AppError("it is not a map of keys and values".to_owned())),
        }
    }

    pub(super) fn written(&self) -> String {
        to_yaml(&Value::Object(self.0.clone()))
    }

    pub(super) fn environments(&self) -> Vec<Environment> {
        let mut environments: Vec<_> =
            self.part("environments").map(|(name, it)| environment(name, it)).collect();
        environments.sort_by(|left, right| left.name.cmp(&right.name));
        environments
    }

    pub(super) fn environment(&self, name: &str) -> Option<Environment> {
        self.environments().into_iter().find(|environment| environment.name == name)
    }

    /// Adds the environment, or changes the one of that name and keeps what else it says.
    pub(super) fn put_environment(&mut self, environment: &Environment) {
        let environments = self.part_mut("environments");
        let entry = environments.entry(environment.name.clone()).or_insert_with(|| json!({}));
        entry["destination"] =
            json!({"namespace": environment.namespace, "server": environment.server});
        entry["k8sVersion"] = environment.kubernetes_version.clone().into();
        entry["path"] = environment.name.clone().into();
    }

    pub(super) fn remove_environment(&mut self, name: &str) {
        self.part_mut("environments").shift_remove(name);
    }

    pub(super) fn libraries(&self) -> Vec<Library> {
        let library = |(key, it): (&String, &Value)| {
            let text = |field| it.get(field).and_then(Value::as_str).map(str::to_owned);
            let git = it.pointer("/gitVersion/refSpec").and_then(Value::as_str).map(str::to_owned);
            let name =
                text("name").unwrap_or_else(|| key.rsplit('/').next().unwrap_or(key).to_owned());
            Library {
                registry: text("registry").unwrap_or_default(),
                name,
                version: text("version").or(git).unwrap_or_default(),
            }
        };
        self.part("libraries").map(library).collect()
    }

    pub(super) fn put_library(&mut self, library: &Library) {
        let entry = json!({
            "name": library.name, "registry": library.registry, "version": library.version,
        });
        let key = format!("{}/{}", library.registry, library.name);
        self.part_mut("libraries").insert(key, entry);
    }

    fn part(&self, name: &str) -> impl Iterator<Item = (&String, &Value)> {
        self.0.get(name).and_then(Value::as_object).into_iter().flatten()
    }

    fn part_mut(&mut self, name: &str) -> &mut Map<String, Value> {
        let part = self.0.entry(name).or_insert_with(|| json!({}));
        if !part.is_object() {
            *part = json!({});
        }
        // It has just been made one.
        match part {
            Value::Object(fields) => fields,
            _ => unreachable!("the part is an object"),
        }
    }
}

fn environment(name: &str, value: &Value) -> Environment {
    let text =
        |pointer| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let namespace = match text("/destination/namespace") {
        namespace if namespace.is_empty() => "default".to_owned(),
        namespace => namespace,
    };
    Environment {
        name: name.to_owned(),
        namespace,
        server: text("/destination/server"),
        kubernetes_version: text("/k8sVersion"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "apiVersion: 0.1.0\nkind: ksonnet.io/app\nname: lab\nversion: 0.0.1\nlicense: none\nenvironments:\n  default:\n    destination: {namespace: ml, server: 'https://10.0.0.1'}\n    k8sVersion: v1.7.0\n    path: default\n    targets: [/]\nlibraries:\n  mpi-job: {name: mpi-job, registry: kubeflow, gitVersion: {refSpec: master, commitSha: abc}}\n";

    #[test]
    fn what_ksonnet_wrote_is_read_and_kept() {
        let mut app = App::read(TEXT).unwrap();
        assert_eq!(app.environment("default").unwrap().namespace, "ml");
        assert_eq!(app.libraries()[0].version, "master");
        let mut changed = app.environment("default").unwrap();
        changed.namespace = "lab".into();
        app.put_environment(&changed);
        let again = App::read(&app.written()).unwrap();
        assert_eq!(again.environment("default"), Some(changed));
        assert!(app.written().contains("license: none") && app.written().contains("targets:"));
    }

    #[test]
    fn what_is_no_application_is_told() {
        assert!(App::read("a: [").unwrap_err().to_string().starts_with("app.yaml: "));
        assert!(App::read("- 1\n").is_err());
        assert!(App::read("").is_err());
    }
}
