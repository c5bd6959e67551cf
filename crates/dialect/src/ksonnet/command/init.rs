//! `ks init`: the folder of a new application.

use super::super::app::{App, Environment};
use super::super::flags::Line;
use super::super::params::{EMPTY_COMPONENTS, EMPTY_ENVIRONMENT};
use super::super::{Edit, KsError, Outcome};
use super::{environment_params, words};

pub(super) fn init(mut line: Line) -> Result<Outcome, KsError> {
    let environment = Environment {
        name: line.take("env").unwrap_or_else(|| "default".to_owned()),
        namespace: line.take("namespace").unwrap_or_else(|| "default".to_owned()),
        server: line.take("server").unwrap_or_default(),
        kubernetes_version: api_version(line.take("api-spec")),
    };
    let folder = line.take("dir");
    let [name] = words(line, "ks init NAME")?;
    check_name(&name)?;
    let folder = folder.unwrap_or_else(|| name.clone());
    let mut app = App::new(&name);
    app.put_environment(&environment);
    let mut files = vec![
        ("app.yaml".to_owned(), app.written()),
        (super::COMPONENT_PARAMS.to_owned(), EMPTY_COMPONENTS.to_owned()),
        ("environments/base.libsonnet".to_owned(), BASE.to_owned()),
    ];
    files.extend(environment_files(&environment.name));
    let edits = files
        .into_iter()
        .map(|(path, text)| Edit::Write { path: format!("{folder}/{path}"), text })
        .collect();
    let remark = format!("the application is in the folder `{folder}`: `cd {folder}`");
    Ok(Outcome { edits, remarks: vec![remark], new_folder: Some(folder), ..Outcome::default() })
}

/// The files of an environment that overrides nothing.
pub(super) fn environment_files(name: &str) -> [(String, String); 3] {
    [
        (format!("environments/{name}/globals.libsonnet"), "{\n}\n".to_owned()),
        (format!("environments/{name}/main.jsonnet"), MAIN.to_owned()),
        (environment_params(name), EMPTY_ENVIRONMENT.to_owned()),
    ]
}

/// `--api-spec=version:v1.7.0`
pub(super) fn api_version(flag: Option<String>) -> String {
    let flag = flag.unwrap_or_else(|| "version:v1.7.0".to_owned());
    flag.strip_prefix("version:").unwrap_or(&flag).to_owned()
}

/// Refuses names that would leave the folder or are no folder.
pub(super) fn check_name(name: &str) -> Result<(), KsError> {
    let fits = !name.is_empty()
        && !name.starts_with(['.', '-', '/'])
        && !name.split('/').any(|part| part.is_empty() || part.starts_with('.'))
        && name.chars().all(|it| it.is_ascii_alphanumeric() || "-_./".contains(it));
    if fits {
        return Ok(());
    }
    Err(KsError::advised(
        format!("'{}' cannot be a name here", crate::clipped(name)),
        "use letters, digits, dashes, underscores and dots",
    ))
}

const BASE: &str = "\
local components = std.extVar(\"__ksonnet/components\");
components + {
  // What is the same in every environment.
}
";

const MAIN: &str = "\
local base = import \"base.libsonnet\";
base + {
  // What is different in this environment.
}
";
