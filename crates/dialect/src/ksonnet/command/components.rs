//! `ks generate`, `ks component list`, `ks component rm`.

use serde_json::Value;

use super::super::flags::Line;
use super::super::params::{self, Level};
use super::super::{Edit, KsError, Outcome, component, literal, prototype};
use super::{
    COMPONENT_PARAMS, Folder, component_path, environment_params, init, literal_fault, printed,
    table, words,
};

pub(super) fn generate(mut line: Line, folder: Folder<'_>) -> Result<Outcome, KsError> {
    folder.app()?;
    let _read_by_the_caller = line.take("values-file");
    if let Some(module) = line.take("module").filter(|it| !it.is_empty() && it != "/") {
        return Err(KsError::advised(
            format!("modules are not supported: '{}'", crate::clipped(&module)),
            "leave `--module` out: the component goes into `components`",
        ));
    }
    let everywhere = |name: &str| Line::is_everywhere(name);
    let (kept, given) =
        std::mem::take(&mut line.flags).into_iter().partition(|it| everywhere(&it.0));
    line.flags = kept;
    let [query, name] = words(line, "ks generate PROTOTYPE NAME [--PARAMETER VALUE]")?;
    let prototype = prototype::find(&query)?;
    init::check_name(&name)?;
    if name.contains('/') || name == "params" {
        return Err(KsError::advised(
            format!("'{name}' cannot be the name of a component"),
            "use letters, digits and dashes",
        ));
    }
    if folder.text(&component_path(&name)).is_some() {
        return Err(KsError::advised(
            format!("create component: component '{name}' already exists"),
            format!(
                "change it with `ks param set {name} PARAMETER VALUE`, or remove it with `ks component rm {name}`"
            ),
        ));
    }
    let mut all_given = from_values_file(folder)?;
    all_given.extend::<Vec<(String, String)>>(given);
    let values = prototype.values(&name, &all_given)?;
    let text = folder.component_params();
    let params = params::with_component(text, &name, &values)
        .map_err(|error| literal_fault(COMPONENT_PARAMS, text, error))?;
    Ok(Outcome {
        edits: vec![
            Edit::Write { path: component_path(&name), text: component::text(prototype, &name) },
            Edit::Write { path: COMPONENT_PARAMS.to_owned(), text: params },
        ],
        remarks: vec![format!("component `{name}` is in `{}`", component_path(&name))],
        ..Outcome::default()
    })
}

/// Parameters of the file that `--values-file` names; flags win over them.
fn from_values_file(folder: Folder<'_>) -> Result<Vec<(String, String)>, KsError> {
    let Some(text) = &folder.0.values_file else { return Ok(Vec::new()) };
    let object =
        literal::object(text).map_err(|error| literal_fault("the values file", text, error))?;
    let as_text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Ok(object.fields.into_iter().map(|field| (field.key, as_text(field.value.to_json()))).collect())
}

pub(super) fn list(mut line: Line, folder: Folder<'_>) -> Result<Outcome, KsError> {
    let format = line.take("format");
    let [] = words(line, "ks component list")?;
    let names = folder.components();
    if format.as_deref() == Some("json") {
        return Ok(printed(crate::to_json(&names.into())));
    }
    let rows: Vec<_> =
        names.iter().map(|it| vec![(*it).to_owned(), "jsonnet".to_owned()]).collect();
    Ok(printed(table(&["COMPONENT", "TYPE"], &rows)))
}

/// Removes the component, and its parameters here and in every environment.
pub(super) fn remove(line: Line, folder: Folder<'_>) -> Result<Outcome, KsError> {
    let [name] = words(line, "ks component rm NAME")?;
    folder.prototype(&name)?;
    let mut edits = vec![Edit::Remove { path: component_path(&name) }];
    let environments = folder.app()?.environments();
    let files = environments.iter().map(|it| (environment_params(&it.name), Level::Environment));
    for (path, level) in
        std::iter::once((COMPONENT_PARAMS.to_owned(), Level::Components)).chain(files)
    {
        let Some(text) = folder.text(&path) else { continue };
        let without = params::without_component(text, level, &name)
            .map_err(|error| literal_fault(&path, text, error))?;
        if without != text {
            edits.push(Edit::Write { path, text: without });
        }
    }
    Ok(Outcome { edits, ..Outcome::default() })
}
