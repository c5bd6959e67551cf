//! Prose for people: text enters, lines of a readable width leave.

/// Wider lines are hard to read, narrower ones waste a terminal.
const WIDTH: usize = 80;

/// The text in lines of at most 80 characters; words are never cut.
pub(crate) fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut used = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > WIDTH {
            lines.push('\n');
            used = 0;
        } else if used > 0 {
            lines.push(' ');
            used += 1;
        }
        lines.push_str(word);
        used += length;
    }
    lines.push('\n');
    lines
}

/// A fragment with a capital letter and a full stop.
pub(crate) fn sentence(fragment: &str) -> String {
    let mut letters = fragment.trim_end_matches('.').chars();
    let first = letters.next().map(|it| it.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words() {
        let text = format!("{} {} b", "a".repeat(40), "x".repeat(50));
        assert_eq!(wrapped(&text), format!("{}\n{} b\n", "a".repeat(40), "x".repeat(50)));
    }
}
