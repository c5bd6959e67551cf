//! Field tables into words: the field reference in Markdown, and the fields that a path names.

use std::fmt::Write;

use unisono_job::Dialect;

use crate::check::describe;
use crate::schema::job_schema;
use crate::shape::{Field, Kind, Presence, Shape};
use crate::to_json;

/// A field that was asked for.
#[derive(Clone, Debug)]
pub struct FoundField {
    /// The dialect that has it.
    pub dialect: Dialect,
    /// Its whole path, such as `spec.groups[].replicas`.
    pub path: String,
    /// The field.
    pub field: &'static Field,
}

/// The field table of a dialect.
pub fn shape_of(dialect: Dialect) -> &'static Shape {
    match dialect {
        Dialect::AzureMpiJob | Dialect::AzureFlat | Dialect::AzureCommand => {
            crate::azureml::shape(dialect)
        }
        Dialect::OpenPaiV1 | Dialect::OpenPaiV2 => crate::openpai::shape(dialect),
        Dialect::KubeflowV1alpha1
        | Dialect::KubeflowV1alpha2
        | Dialect::KubeflowV1
        | Dialect::KubeflowV2beta1 => crate::kubeflow::shape(dialect),
        Dialect::KubeBatch => crate::kube_batch::shape(),
        Dialect::Unisono => crate::unisono::shape(),
    }
}

/// The field table of a dialect's objects as an API server serves them: where the dialect has two shapes, of either.
pub fn served_shape(dialect: Dialect) -> &'static Shape {
    match dialect {
        Dialect::KubeBatch => crate::kube_batch::served_shape(),
        other => shape_of(other),
    }
}

/// The fields with that path, in every dialect: whole paths (`spec.slotsPerWorker`) first, else paths that end in it (`slotsPerWorker`).
///
/// Numbers in brackets do not matter: `groups[0].name`, `groups[].name` and `groups.name` are the same.
pub fn find_fields(path: &str) -> Vec<FoundField> {
    let wanted = keys(path);
    if wanted.is_empty() {
        return Vec::new();
    }
    let all: Vec<FoundField> = Dialect::ALL.into_iter().flat_map(fields_of).collect();
    let (whole, ending): (Vec<_>, Vec<_>) = all
        .into_iter()
        .filter(|found| keys(&found.path).ends_with(&wanted))
        .partition(|found| keys(&found.path).len() == wanted.len());
    if whole.is_empty() { ending } else { whole }
}

/// Every file of the repository that follows from the field tables: its path and its text.
pub fn generated_files() -> Vec<(String, String)> {
    let schema = ("schemas/unisonojob.json".to_owned(), to_json(&job_schema()));
    let pages = Dialect::ALL.into_iter().map(|dialect| {
        let name = dialect.name().replace('/', "-");
        (format!("docs/reference/fields/{name}.md"), field_reference(dialect))
    });
    std::iter::once(schema).chain(pages).collect()
}

/// The reference of a dialect, in Markdown.
fn field_reference(dialect: Dialect) -> String {
    let mut page = format!(
        "# Fields of `{dialect}`\n\nWritten by `cargo xtask generate` from the tables that check job files. `unisono explain PATH` shows one field.\n"
    );
    section(shape_of(dialect), "", &mut page);
    page
}

/// A text with a capital letter and a full stop.
pub(crate) fn sentence(text: &str) -> String {
    let mut letters = text.trim_end_matches('.').chars();
    let first = letters.next().map(|it| it.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

fn section(shape: &'static Shape, path: &str, page: &mut String) {
    let title = if path.is_empty() { shape.name.to_owned() } else { format!("`{path}`") };
    // Writing to a String cannot fail.
    let _written = writeln!(
        page,
        "\n## {title}\n\n| field | takes | default | what it is for |\n|---|---|---|---|"
    );
    for field in shape.fields {
        let default = match field.presence {
            Presence::Required => "**needed**",
            Presence::Optional => field.default,
        };
        let cells = [&describe(&field.kind), default, &sentence(field.doc)].map(escaped);
        let _written = writeln!(page, "| `{}` | {} |", field.name, cells.join(" | "));
    }
    for field in shape.fields {
        for (suffix, inner) in shapes_in(&field.kind) {
            section(inner, &format!("{}{suffix}", joined(path, field.name)), page);
        }
    }
}

/// A text that stays in its table cell.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn fields_of(dialect: Dialect) -> Vec<FoundField> {
    let mut found = Vec::new();
    collect(dialect, shape_of(dialect), "", &mut found);
    found
}

fn collect(dialect: Dialect, shape: &'static Shape, path: &str, found: &mut Vec<FoundField>) {
    for field in shape.fields {
        let path = joined(path, field.name);
        found.push(FoundField { dialect, path: path.clone(), field });
        for (suffix, inner) in shapes_in(&field.kind) {
            collect(dialect, inner, &format!("{path}{suffix}"), found);
        }
    }
}

/// The objects that a field can hold, each with what its path gets behind the field's own.
fn shapes_in(kind: &'static Kind) -> Vec<(String, &'static Shape)> {
    let inside = |inner: &'static Kind, mark: &str| {
        shapes_in(inner)
            .into_iter()
            .map(|(suffix, shape)| (format!("{mark}{suffix}"), shape))
            .collect()
    };
    match kind {
        Kind::Object(shape) => vec![(String::new(), shape)],
        Kind::List(inner) | Kind::FilledList(inner) => inside(inner, "[]"),
        Kind::Map(inner) => inside(inner, ".NAME"),
        Kind::Nullable(inner) => shapes_in(inner),
        Kind::Either(kinds) => kinds.iter().flat_map(shapes_in).collect(),
        Kind::Text
        | Kind::FilledText
        | Kind::Form(_)
        | Kind::Integer { .. }
        | Kind::Boolean
        | Kind::Quantity
        | Kind::Scalar
        | Kind::OneOf(_)
        | Kind::OneOfAnyCase(_)
        | Kind::Any => Vec::new(),
    }
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// The keys of a path, without brackets.
fn keys(path: &str) -> Vec<String> {
    let bare = |part: &str| part.split('[').next().unwrap_or_default().to_owned();
    path.split('.').map(bare).filter(|key| !key.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(path: &str) -> Vec<(&'static str, String)> {
        find_fields(path).into_iter().map(|it| (it.dialect.name(), it.path)).collect()
    }

    #[test]
    fn a_whole_path_wins_over_paths_that_end_in_it() {
        let found = paths("spec.groups[1].name");
        assert_eq!(found, [("unisono", "spec.groups[].name".to_owned())]);
        let found = paths("spec.slotsPerWorker");
        assert!(found.contains(&("kubeflow/v2beta1", "spec.slotsPerWorker".to_owned())));
        assert!(found.iter().all(|(_, path)| path == "spec.slotsPerWorker"));
    }

    #[test]
    fn the_last_key_alone_finds_a_field() {
        assert!(
            paths("launcherStart").contains(&("unisono", "spec.policies.launcherStart".to_owned()))
        );
        assert_eq!(paths("noSuchField"), []);
        assert_eq!(paths(""), []);
        assert_eq!(paths("[0]"), []);
    }

    #[test]
    fn every_field_has_a_description() {
        for dialect in Dialect::ALL {
            for found in fields_of(dialect) {
                let doc = found.field.doc;
                assert!(!doc.trim().is_empty() && !doc.contains('\n'), "{dialect} {}", found.path);
            }
        }
    }
}
