//! Puts values of the file in the place of `<% $parameters.NAME %>` and `<% $secrets.NAME %>`.

use unisono_job::Secrets;

use crate::tree::Node;

/// What replacing references has found on its way.
#[derive(Default)]
pub(super) struct Found {
    /// References without a value, each once.
    pub(super) unresolved: Vec<String>,
    /// Values of `secrets` that now stand in the text.
    pub(super) secrets: Secrets,
}

/// The text with every reference that the file answers replaced.
pub(super) fn substitute(text: &str, root: &Node, found: &mut Found) -> String {
    let mut done = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("<%") {
        let Some(length) = rest[start..].find("%>") else { break };
        let end = start + length + 2;
        let written = &rest[start..end];
        done.push_str(&rest[..start]);
        let reference = rest[start + 2..end - 2].trim();
        match value(reference, root) {
            Some(value) => {
                done.push_str(&value);
                if reference.starts_with("$secrets.") {
                    found.secrets.add(written, value);
                }
            }
            None => {
                done.push_str(written);
                if !found.unresolved.iter().any(|it| it == written) {
                    found.unresolved.push(written.to_owned());
                }
            }
        }
        rest = &rest[end..];
    }
    done.push_str(rest);
    done
}

fn value(reference: &str, root: &Node) -> Option<String> {
    let (map, path) = reference.strip_prefix('$')?.split_once('.')?;
    if !matches!(map, "parameters" | "secrets") {
        return None;
    }
    let values = root.at(&[map])?;
    // A name may itself hold dots; only then is it a path.
    let node = values.get(path).or_else(|| values.at(&path.split('.').collect::<Vec<_>>()))?;
    node.scalar_text()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document_from_object;

    #[test]
    fn known_references_are_replaced_and_others_stay() {
        let document = document_from_object(&serde_json::json!({
            "parameters": {"lr": 0.1, "a.b": "dotted", "deep": {"er": true}, "list": [1]},
            "secrets": {"key": "s3"},
        }));
        let mut found = Found::default();
        let text = "x <% $parameters.lr %> <%$secrets.key%> <% $parameters.a.b %> <% $parameters.deep.er %> <% $data.x %> <% $parameters.list %> <% $data.x %> <% open";
        assert_eq!(
            substitute(text, &document.root, &mut found),
            "x 0.1 s3 dotted true <% $data.x %> <% $parameters.list %> <% $data.x %> <% open"
        );
        assert_eq!(found.unresolved, ["<% $data.x %>", "<% $parameters.list %>"]);
        assert_eq!(found.secrets.hidden("x s3"), "x <%$secrets.key%>");
    }
}
