//! Values that stand in a job's commands and are not to be shown to anybody.

use std::fmt;

/// Secret values, each with the reference that the file has in its place. Its debug form tells none of them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(Vec<Secret>);

#[derive(Clone, PartialEq, Eq)]
struct Secret {
    reference: String,
    value: String,
}

impl Secrets {
    /// Remembers a value that was put in the place of a reference.
    pub fn add(&mut self, reference: impl Into<String>, value: impl Into<String>) {
        let value = value.into();
        if !value.is_empty() && !self.0.iter().any(|known| known.value == value) {
            self.0.push(Secret { reference: reference.into(), value });
            // Of two values the longer is looked for first: the shorter may be a part of it.
            self.0.sort_by_key(|it| std::cmp::Reverse(it.value.len()));
        }
    }

    /// Whether there is nothing to hide.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text with the references in the place of the values.
    pub fn hidden(&self, text: &str) -> String {
        let mut shown = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            match self.0.iter().find(|secret| rest.starts_with(&secret.value)) {
                Some(secret) => {
                    shown.push_str(&secret.reference);
                    rest = &rest[secret.value.len()..];
                }
                None => {
                    shown.push(next);
                    rest = &rest[next.len_utf8()..];
                }
            }
        }
        shown
    }
}

/// The references, never the values.
impl fmt::Display for Secrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let references: Vec<&str> = self.0.iter().map(|it| it.reference.as_str()).collect();
        formatter.write_str(&references.join(", "))
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Secrets({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_hidden_behind_their_references_longest_first() {
        let mut secrets = Secrets::default();
        secrets.add("<% a %>", "pass");
        secrets.add("<% b %>", "password");
        secrets.add("<% c %>", "");
        assert_eq!(secrets.hidden("x password pass p\u{e4}ss"), "x <% b %> <% a %> p\u{e4}ss");
        assert_eq!(secrets.to_string(), "<% b %>, <% a %>");
        let shown = format!("{secrets:?}");
        assert!(shown.contains("<% a %>") && !shown.contains("pass"), "{shown}");
    }
}
