//! Values that all three forms have: the name, counts, limits, code folder and variables.

use std::collections::BTreeMap;

use unisono_job::{CodeFolder, EnvVar, JobName, Note, Quantity, Resources};

use crate::notebook::Notebook;
use crate::tree::Node;
use crate::{Options, codes};

/// The job's name, or the file's where the form does not need one.
pub(super) fn name(root: &Node, options: &Options, notebook: &mut Notebook<'_>) -> Option<JobName> {
    let Some(node) = root.at(&["name"]) else {
        let fallback = JobName::new(&options.fallback_name).or_else(|_| JobName::new("job"));
        return fallback.ok();
    };
    notebook.origin("name", Some(node));
    match JobName::new(node.text()?) {
        Ok(name) => Some(name),
        Err(error) => {
            notebook.tell(Note::new(&codes::BAD_FORM, error.to_string()), node);
            None
        }
    }
}

/// The one count that several fields state; two that differ are a fault.
pub(super) fn count<'tree>(
    candidates: &[Option<&'tree Node>],
    what: &str,
    notebook: &mut Notebook<'_>,
) -> Option<(u32, &'tree Node)> {
    let mut stated = candidates.iter().flatten().filter_map(|node| Some((node.integer()?, *node)));
    let (first, node): (u32, _) = stated.next()?;
    for (other, other_node) in stated.filter(|(other, _)| *other != first) {
        let message = format!("the file states {what} twice: {first} and {other}");
        notebook.tell(
            Note::new(&codes::INVALID, message).hint("keep one of the two fields"),
            other_node,
        );
    }
    Some((first, node))
}

/// Limits by resource name; `gpu` is short for `nvidia.com/gpu`.
pub(super) fn limits(candidates: &[Option<&Node>], notebook: &mut Notebook<'_>) -> Resources {
    let mut stated = candidates.iter().flatten();
    let mut limits = BTreeMap::new();
    for entry in stated.next().map_or(&[][..], |node| node.entries()) {
        let amount = entry.node.scalar_text().and_then(|text| Quantity::parse(&text).ok());
        let name = if entry.key == "gpu" { "nvidia.com/gpu" } else { &entry.key };
        let Some(amount) = amount else { continue };
        if limits.get(name).is_some_and(|before| *before != amount) {
            let message = "`gpu` is short for `nvidia.com/gpu`: the file states two limits for it";
            notebook
                .tell(Note::new(&codes::INVALID, message).hint("keep one of the two"), &entry.node);
        }
        limits.insert(name.to_owned(), amount);
    }
    for second in stated {
        let note = Note::new(&codes::INVALID, "limits stand both inside `spec` and beside it")
            .hint("keep those inside `spec`");
        notebook.tell(note, second);
    }
    Resources { limits, requests: BTreeMap::new() }
}

/// The folder with the program: plain text, or a map in one of three spellings.
pub(super) fn code(node: Option<&Node>, notebook: &mut Notebook<'_>) -> Option<CodeFolder> {
    let node = node?;
    if let Some(path) = node.text() {
        return Some(CodeFolder { path: path.to_owned() });
    }
    let spellings = ["path", "local_path", "directory"];
    let mut stated = spellings.iter().filter_map(|key| node.at(&[key]));
    let path = stated.next();
    if let Some(second) = stated.next() {
        notebook.tell(
            Note::new(&codes::INVALID, "the code folder stands here twice")
                .hint("keep `path` alone"),
            second,
        );
    }
    Some(CodeFolder { path: path?.text()?.to_owned() })
}

/// Variables of every process, in the order of the file.
pub(super) fn variables(node: Option<&Node>, notebook: &mut Notebook<'_>) -> Vec<EnvVar> {
    let mut variables = Vec::new();
    for entry in node.map_or(&[][..], Node::entries) {
        if entry.key.is_empty() || entry.key.contains('=') {
            let message =
                format!("`{}` cannot be the name of a variable", crate::clipped(&entry.key));
            notebook.tell_key(Note::new(&codes::BAD_FORM, message), entry);
            continue;
        }
        let value = entry.node.scalar_text().unwrap_or_default();
        variables.push(EnvVar { name: entry.key.clone(), value: Some(value) });
    }
    variables
}

/// A cluster's name without the `azureml:` that CLI v2 puts before it.
pub(super) fn cluster_reference(target: &str) -> String {
    if target.starts_with("azureml:") || target == "local" {
        target.to_owned()
    } else {
        format!("azureml:{target}")
    }
}
