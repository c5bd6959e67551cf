//! `$(NAME)` in commands and variables, expanded as Kubernetes does it: unknown names stay, `$$` is one dollar.

use crate::Variable;

/// Expands every `$(NAME)` of a text for which `value` has an answer.
pub(crate) fn expand<'value>(text: &str, value: impl Fn(&str) -> Option<&'value str>) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, from_dollar) = rest.split_at(at);
        expanded.push_str(before);
        let after = &from_dollar[1..];
        if let Some(after_escape) = after.strip_prefix('$') {
            expanded.push('$');
            rest = after_escape;
        } else if let Some((name, after_name)) =
            after.strip_prefix('(').and_then(|inside| inside.split_once(')'))
        {
            match value(name) {
                Some(value) => expanded.push_str(value),
                None => {
                    expanded.push_str("$(");
                    expanded.push_str(name);
                    expanded.push(')');
                }
            }
            rest = after_name;
        } else {
            expanded.push('$');
            rest = after;
        }
    }
    expanded.push_str(rest);
    expanded
}

/// The value of the last variable of that name, as an environment holds it.
pub(crate) fn lookup<'variables>(
    variables: &'variables [Variable],
    name: &str,
) -> Option<&'variables str> {
    variables
        .iter()
        .rev()
        .find(|variable| variable.name == name)
        .map(|variable| variable.value.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> String {
        let variables = [Variable::new("A", "1"), Variable::new("EMPTY", "")];
        expand(text, |name| lookup(&variables, name))
    }

    #[test]
    fn known_names_are_replaced_and_unknown_ones_stay() {
        assert_eq!(expanded("x$(A)y$(B)z$(EMPTY)"), "x1y$(B)z");
    }

    #[test]
    fn two_dollars_are_one_and_stop_the_expansion() {
        assert_eq!(expanded("$$(A) $$$(A)"), "$(A) $1");
    }

    #[test]
    fn what_is_no_reference_stays() {
        assert_eq!(expanded("$A ${A} $( 5$"), "$A ${A} $( 5$");
    }
}
