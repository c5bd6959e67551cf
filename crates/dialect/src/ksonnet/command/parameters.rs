//! `ks param set`, `list` and `delete`.

use serde_json::Value;

use super::super::flags::Line;
use super::super::params::{self, EMPTY_ENVIRONMENT, Level};
use super::super::{Edit, KsError, Outcome, literal};
use super::{COMPONENT_PARAMS, Folder, environment_params, literal_fault, printed, table, words};

pub(super) fn set(mut line: Line, folder: Folder<'_>) -> Result<Outcome, KsError> {
    let as_text = line.take("as-string").is_some();
    let environment = line.take("env");
    let [component, key, value] =
        words(line, "ks param set COMPONENT PARAMETER VALUE [--env ENV]")?;
    folder.prototype(&component)?;
    let value = if as_text {
        Value::from(value)
    } else {
        literal::value(&value).unwrap_or_else(|_| value.into())
    };
    let (path, text, level) = file(folder, environment)?;
    let text = params::with_param(text, level, &component, &key, &value)
        .map_err(|error| literal_fault(&path, text, error))?;
    Ok(Outcome { edits: vec![Edit::Write { path, text }], ..Outcome::default() })
}

pub(super) fn delete(mut line: Line, folder: Folder<'_>) -> Result<Outcome, KsError> {
    let environment = line.take("env");
    let [component, key] = words(line, "ks param delete COMPONENT PARAMETER [--env ENV]")?;
    folder.prototype(&component)?;
    let (path, text, level) = file(folder, environment)?;
    let without = params::without_param(text, level, &component, &key)
        .map_err(|error| literal_fault(&path, text, error))?;
    let Some(text) = without else {
        let message = format!("'{component}' has no parameter '{key}' in {path}");
        return Err(KsError::advised(message, format!("`ks param list {component}` shows them")));
    };
    Ok(Outcome { edits: vec![Edit::Write { path, text }], ..Outcome::default() })
}

pub(super) fn list(mut line: Line, folder: Folder<'_>) -> Result<Outcome, KsError> {
    let environment = line.take("env").map(|name| folder.environment(Some(&name))).transpose()?;
    let format = line.take("format");
    let only = match line.finish()?.as_slice() {
        [] => None,
        [name] => {
            folder.prototype(name)?;
            Some(name.clone())
        }
        _ => {
            return Err(KsError::usage(
                "'param list' takes at most one argument, the name of a component",
            ));
        }
    };
    let all = folder.params(environment.as_ref().map(|it| it.name.as_str()))?;
    let shown = all.into_iter().filter(|(name, _)| only.as_ref().is_none_or(|only| only == name));
    let mut rows = Vec::new();
    for (name, params) in shown {
        let Value::Object(params) = params else { continue };
        rows.extend(
            params.into_iter().map(|(key, value)| vec![name.clone(), key, value.to_string()]),
        );
    }
    rows.sort();
    if format.as_deref() == Some("json") {
        return Ok(printed(crate::to_json(&rows.into())));
    }
    Ok(printed(table(&["COMPONENT", "PARAM", "VALUE"], &rows)))
}

/// The file that holds the parameters: of the environment when one is named, else of the components.
fn file<'files>(
    folder: Folder<'files>,
    environment: Option<String>,
) -> Result<(String, &'files str, Level), KsError> {
    let Some(name) = environment else {
        return Ok((COMPONENT_PARAMS.to_owned(), folder.component_params(), Level::Components));
    };
    let path = environment_params(&folder.environment(Some(&name))?.name);
    let text = folder.text(&path).unwrap_or(EMPTY_ENVIRONMENT);
    Ok((path, text, Level::Environment))
}
