//! Puts literal inputs in the place of `${{inputs.NAME}}` (and of the preview's `{inputs.NAME}`).

use crate::tree::Node;

/// A command with literals put in.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Substituted {
    /// The command.
    pub(super) text: String,
    /// Placeholders that stay, each once, in their order.
    pub(super) unresolved: Vec<String>,
}

/// Puts in every input that is a single value.
pub(super) fn substitute(command: &str, inputs: Option<&Node>) -> Substituted {
    let mut done =
        Substituted { text: String::with_capacity(command.len()), unresolved: Vec::new() };
    let mut rest = command;
    while let Some(start) = rest.find('{') {
        let Some(found) = placeholder(rest, start) else {
            done.text.push_str(&rest[..=start]);
            rest = &rest[start + 1..];
            continue;
        };
        done.text.push_str(&rest[..found.start]);
        let written = &rest[found.start..found.end];
        let input = found.name.strip_prefix("inputs.").and_then(|name| inputs?.get(name));
        match input.and_then(Node::scalar_text) {
            Some(literal) => done.text.push_str(&literal),
            None => {
                done.text.push_str(written);
                if !done.unresolved.iter().any(|it| it == written) {
                    done.unresolved.push(written.to_owned());
                }
            }
        }
        rest = &rest[found.end..];
    }
    done.text.push_str(rest);
    done
}

struct Placeholder<'text> {
    start: usize,
    end: usize,
    name: &'text str,
}

/// The placeholder whose first brace stands at `brace`.
fn placeholder(text: &str, brace: usize) -> Option<Placeholder<'_>> {
    let doubled = text[brace..].starts_with("{{") && text[..brace].ends_with('$');
    let (open, close) = if doubled { (brace + 2, "}}") } else { (brace + 1, "}") };
    let length = text[open..].find(close)?;
    let name = text[open..open + length].trim();
    let (kind, key) = name.split_once('.')?;
    let is_name = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-' | '.');
    // Single braces are also a shell's: there only what the preview wrote is taken.
    let known = matches!(kind, "inputs" | "outputs") || (doubled && !kind.is_empty());
    let start = if doubled { brace - 1 } else { brace };
    (known && !key.is_empty() && name.chars().all(is_name)).then_some(Placeholder {
        start,
        end: open + length + close.len(),
        name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document_from_object;

    fn with_inputs(command: &str) -> Substituted {
        let inputs =
            serde_json::json!({"rate": 0.5, "name": "x y", "data": {"path": "azureml:d:1"}});
        substitute(command, Some(&document_from_object(&inputs).root))
    }

    #[test]
    fn literals_are_put_in_and_the_rest_stays() {
        let done = with_inputs(
            "p --r ${{inputs.rate}} ${{ inputs.name }} {inputs.rate} ${{inputs.data}} ${{outputs.o}} ${{inputs.data}}",
        );
        assert_eq!(done.text, "p --r 0.5 x y 0.5 ${{inputs.data}} ${{outputs.o}} ${{inputs.data}}");
        assert_eq!(done.unresolved, ["${{inputs.data}}", "${{outputs.o}}"]);
    }

    #[test]
    fn braces_of_a_shell_are_left_alone() {
        for text in
            ["echo ${HOME} {a,b} {", "awk '{print $1}'", "${{", "${{x}}", "${{inputs.}}", "é{ü.x}"]
        {
            assert_eq!(
                with_inputs(text),
                Substituted { text: text.into(), unresolved: vec![] },
                "{text}"
            );
        }
    }
}
