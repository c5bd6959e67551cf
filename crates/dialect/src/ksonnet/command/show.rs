//! `ks show`, and what `ks apply` and `ks delete` give to a cluster.

use serde_json::Value;

use super::super::app::Environment;
use super::super::flags::Line;
use super::super::objects::objects;
use super::super::{Handover, KsError, Outcome};
use super::{Folder, printed};

pub(super) fn show(mut line: Line, folder: Folder<'_>) -> Result<Outcome, KsError> {
    let format = line.take("format").unwrap_or_else(|| "yaml".to_owned());
    let Chosen { objects, remarks, .. } = chosen(line, folder, "ks show ENV [-c COMPONENT]")?;
    let text: String = match format.as_str() {
        "yaml" => objects.iter().map(|it| format!("---\n{}", crate::to_yaml(it))).collect(),
        "json" if objects.len() == 1 => objects.iter().map(crate::to_json).collect(),
        // ksonnet put `---` between objects, which no reader of JSON takes.
        "json" => crate::to_json(
            &serde_json::json!({"apiVersion": "v1", "kind": "List", "items": objects}),
        ),
        other => {
            let message = format!("Unknown --format: {}", crate::clipped(other));
            return Err(KsError::advised(message, "the formats are yaml and json"));
        }
    };
    Ok(Outcome { remarks, ..printed(text) })
}

pub(super) fn hand_over(
    mut line: Line,
    folder: Folder<'_>,
    deletes: bool,
) -> Result<Outcome, KsError> {
    for flag in ["create", "skip-gc", "gc-tag", "dry-run", "grace-period"] {
        line.take(flag);
    }
    let usage =
        if deletes { "ks delete ENV [-c COMPONENT]" } else { "ks apply ENV [-c COMPONENT]" };
    let Chosen { environment, objects, remarks } = chosen(line, folder, usage)?;
    let handover =
        Handover { deletes, environment: environment.name, server: environment.server, objects };
    Ok(Outcome { remarks, handover: Some(handover), ..Outcome::default() })
}

struct Chosen {
    environment: Environment,
    objects: Vec<Value>,
    remarks: Vec<String>,
}

/// The objects of the components that are named, or of all of them.
fn chosen(mut line: Line, folder: Folder<'_>, usage: &str) -> Result<Chosen, KsError> {
    let named: Vec<String> =
        line.take_all("component").iter().flat_map(|it| it.split(',')).map(str::to_owned).collect();
    let words = line.finish()?;
    let name = match words.as_slice() {
        [] => None,
        [name] => Some(name.as_str()),
        _ => return Err(KsError::advised("wrong number of arguments", format!("usage: {usage}"))),
    };
    let environment = folder.environment(name)?;
    let params = folder.params(Some(&environment.name))?;
    let every: Vec<String> = folder.components().into_iter().map(str::to_owned).collect();
    let mut remarks = Vec::new();
    let mut shown = Vec::new();
    for component in if named.is_empty() { &every } else { &named } {
        let Some(prototype) = folder.prototype(component)? else {
            let message = format!(
                "component '{component}' is Jsonnet of your own, which Unisono does not run"
            );
            if named.is_empty() {
                remarks.push(format!("{message}: left out"));
                continue;
            }
            return Err(KsError::advised(
                message,
                "print it with jsonnet or ksonnet and pass the result to `unisono plan -`",
            ));
        };
        let Some(Value::Object(params)) = params.get(component.as_str()) else {
            return Err(KsError::advised(
                format!("component '{component}' has no parameters"),
                format!("remove it with `ks component rm {component}` and make it again"),
            ));
        };
        let made = objects(prototype, params, &environment.namespace)
            .map_err(|missing| KsError::Params { component: component.clone(), missing })?;
        shown.extend(made);
    }
    Ok(Chosen { environment, objects: shown, remarks })
}
