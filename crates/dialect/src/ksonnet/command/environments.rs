//! `ks env list`, `add`, `set` and `rm`.

use super::super::app::Environment;
use super::super::flags::Line;
use super::super::{Edit, KsError, Outcome};
use super::init::{api_version, check_name, environment_files};
use super::{Folder, printed, table, words};

pub(super) fn list(mut line: Line, folder: Folder<'_>) -> Result<Outcome, KsError> {
    let format = line.take("format");
    let [] = words(line, "ks env list")?;
    let rows: Vec<Vec<String>> = folder
        .app()?
        .environments()
        .into_iter()
        .map(|it| vec![it.name, it.kubernetes_version, it.namespace, it.server])
        .collect();
    if format.as_deref() == Some("json") {
        return Ok(printed(crate::to_json(&rows.into())));
    }
    Ok(printed(table(&["NAME", "KUBERNETES-VERSION", "NAMESPACE", "SERVER"], &rows)))
}

pub(super) fn add(mut line: Line, folder: Folder<'_>) -> Result<Outcome, KsError> {
    let namespace = line.take("namespace").unwrap_or_else(|| "default".to_owned());
    let server = line.take("server").unwrap_or_default();
    let kubernetes_version = api_version(line.take("api-spec"));
    let [name] = words(line, "ks env add NAME [--namespace NAME] [--server ADDRESS]")?;
    check_name(&name)?;
    let mut app = folder.app()?;
    if app.environment(&name).is_some() {
        return Err(exists(&name));
    }
    app.put_environment(&Environment { name: name.clone(), namespace, server, kubernetes_version });
    let files = environment_files(&name).map(|(path, text)| Edit::Write { path, text });
    let app = Edit::Write { path: "app.yaml".to_owned(), text: app.written() };
    Ok(Outcome { edits: std::iter::once(app).chain(files).collect(), ..Outcome::default() })
}

pub(super) fn set(mut line: Line, folder: Folder<'_>) -> Result<Outcome, KsError> {
    let (namespace, server) = (line.take("namespace"), line.take("server"));
    let (new_name, spec) = (line.take("name"), line.take("api-spec"));
    let [name] = words(line, "ks env set NAME [--name NEW] [--namespace NAME] [--server ADDRESS]")?;
    let old = folder.environment(Some(&name))?;
    let mut app = folder.app()?;
    let mut edits = Vec::new();
    let changed = Environment {
        name: new_name.unwrap_or_else(|| name.clone()),
        namespace: namespace.unwrap_or(old.namespace),
        server: server.unwrap_or(old.server),
        kubernetes_version: spec.map_or(old.kubernetes_version, |spec| api_version(Some(spec))),
    };
    if changed.name != name {
        check_name(&changed.name)?;
        if app.environment(&changed.name).is_some() {
            return Err(exists(&changed.name));
        }
        app.remove_environment(&name);
        for (path, text) in files_of(folder, &name) {
            let moved = path.replacen(
                &format!("environments/{name}/"),
                &format!("environments/{}/", changed.name),
                1,
            );
            edits.push(Edit::Write { path: moved, text: text.to_owned() });
            edits.push(Edit::Remove { path: path.to_owned() });
        }
    }
    app.put_environment(&changed);
    edits.insert(0, Edit::Write { path: "app.yaml".to_owned(), text: app.written() });
    Ok(Outcome { edits, ..Outcome::default() })
}

pub(super) fn remove(line: Line, folder: Folder<'_>) -> Result<Outcome, KsError> {
    let [name] = words(line, "ks env rm NAME")?;
    folder.environment(Some(&name))?;
    let mut app = folder.app()?;
    app.remove_environment(&name);
    let write = Edit::Write { path: "app.yaml".to_owned(), text: app.written() };
    let files = files_of(folder, &name).map(|(path, _)| Edit::Remove { path: path.to_owned() });
    Ok(Outcome { edits: std::iter::once(write).chain(files).collect(), ..Outcome::default() })
}

fn files_of<'files>(
    folder: Folder<'files>,
    name: &str,
) -> impl Iterator<Item = (&'files str, &'files str)> {
    let prefix = format!("environments/{name}/");
    let files = folder.0.files.iter();
    files
        .filter(move |(path, _)| path.starts_with(&prefix))
        .map(|(path, text)| (path.as_str(), text.as_str()))
}

fn exists(name: &str) -> KsError {
    KsError::advised(
        format!("environment '{name}' already exists"),
        format!("change it with `ks env set {name}`"),
    )
}
