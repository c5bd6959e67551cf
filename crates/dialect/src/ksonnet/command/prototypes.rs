//! `ks prototype list`, `search`, `describe` and `preview`.

use super::super::flags::Line;
use super::super::prototype::{PROTOTYPES, Param, ParamKind, Prototype, find};
use super::super::{KsError, Outcome, component};
use super::{printed, table, words};

pub(super) fn list(mut line: Line) -> Result<Outcome, KsError> {
    let _format = line.take("format");
    let [] = words(line, "ks prototype list")?;
    Ok(printed(listed(PROTOTYPES.iter())))
}

pub(super) fn search(mut line: Line) -> Result<Outcome, KsError> {
    let _format = line.take("format");
    let [query] = words(line, "ks prototype search TEXT")?;
    let found: Vec<_> = PROTOTYPES.iter().filter(|it| it.name.contains(&query)).collect();
    if found.is_empty() {
        return Err(KsError::advised(
            format!("failed to find any search results for query '{}'", crate::clipped(&query)),
            "`ks prototype list` shows what there is",
        ));
    }
    Ok(printed(listed(found.into_iter())))
}

pub(super) fn describe(line: Line) -> Result<Outcome, KsError> {
    let [query] = words(line, "ks prototype describe PROTOTYPE")?;
    let prototype = find(&query)?;
    let (needed, optional): (Vec<&Param>, Vec<&Param>) =
        prototype.params.iter().partition(|param| param.default.is_none());
    let lines = |params: &[&Param]| params.iter().map(|it| described(it)).collect::<String>();
    Ok(printed(format!(
        "PROTOTYPE NAME:\n{}\n\nDESCRIPTION:\n{}.\n\nREQUIRED PARAMETERS:\n{}\nOPTIONAL PARAMETERS:\n{}\nTEMPLATE TYPES AVAILABLE:\n  [jsonnet]\n",
        prototype.name,
        prototype.summary,
        lines(&needed),
        lines(&optional),
    )))
}

pub(super) fn preview(mut line: Line) -> Result<Outcome, KsError> {
    line.flags.clear();
    let [query] = words(line, "ks prototype preview PROTOTYPE")?;
    Ok(printed(component::text(find(&query)?, "preview")))
}

fn described(param: &Param) -> String {
    let kind = match param.kind {
        ParamKind::Text => "string",
        ParamKind::Number => "number",
    };
    let default = match (param.name, param.default) {
        (_, Some(default)) => format!("default: {default}, "),
        ("name", None) => "default: the component's name, ".to_owned(),
        (_, None) => String::new(),
    };
    format!("  --{0}=<{0}> {1} [{default}type: {kind}]\n", param.name, param.doc)
}

fn listed(prototypes: impl Iterator<Item = &'static Prototype>) -> String {
    let rows: Vec<_> =
        prototypes.map(|it| vec![it.name.to_owned(), it.summary.to_owned()]).collect();
    table(&["NAME", "DESCRIPTION"], &rows)
}
