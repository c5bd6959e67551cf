//! `ks pkg install` and `list`. The one package is built in: installing it only notes it in `app.yaml`.

use super::super::app::Library;
use super::super::flags::Line;
use super::super::{Edit, KsError, Outcome};
use super::{Folder, printed, table, words};

const REGISTRY: &str = "kubeflow";
const PACKAGE: &str = "mpi-job";

pub(super) fn install(mut line: Line, folder: Folder<'_>) -> Result<Outcome, KsError> {
    let _environment = line.take("env");
    let _name = line.take("name");
    let _force = line.take("force");
    let [package] = words(line, "ks pkg install kubeflow/mpi-job[@VERSION]")?;
    let (path, version) = package.split_once('@').unwrap_or((&package, "master"));
    let (registry, name) = path.split_once('/').unwrap_or((REGISTRY, path));
    if (registry, name) != (REGISTRY, PACKAGE) {
        return Err(KsError::advised(
            format!("package '{}' is not to be had", crate::clipped(path)),
            "Unisono brings one package of ksonnet: `ks pkg install kubeflow/mpi-job@master`",
        ));
    }
    let mut app = folder.app()?;
    if let Some(old) = app.libraries().into_iter().find(|it| it.name == PACKAGE)
        && old.version == version
    {
        let remark = format!("package {path}@{version} is already installed");
        return Ok(Outcome { remarks: vec![remark], ..Outcome::default() });
    }
    app.put_library(&Library {
        registry: REGISTRY.into(),
        name: PACKAGE.into(),
        version: version.into(),
    });
    Ok(Outcome {
        edits: vec![Edit::Write { path: "app.yaml".to_owned(), text: app.written() }],
        remarks: vec![format!("package {path} is built in; its version `{version}` is only noted")],
        ..Outcome::default()
    })
}

pub(super) fn list(mut line: Line, folder: Folder<'_>) -> Result<Outcome, KsError> {
    let _installed = line.take("installed");
    let [] = words(line, "ks pkg list")?;
    let mut rows: Vec<Vec<String>> = folder
        .app()?
        .libraries()
        .into_iter()
        .map(|it| vec![it.registry, it.name, it.version, "*".to_owned()])
        .collect();
    if !rows.iter().any(|row| row.get(1).is_some_and(|name| name == PACKAGE)) {
        rows.push(vec![
            REGISTRY.to_owned(),
            PACKAGE.to_owned(),
            "master".to_owned(),
            String::new(),
        ]);
    }
    rows.sort();
    Ok(printed(table(&["REGISTRY", "NAME", "VERSION", "INSTALLED"], &rows)))
}
