//! A launch line as text, taken apart without losing quotes and variables that only a shell can read.

use unisono_job::{Command, LaunchLine, quote, split_words};

/// A line that does nothing but start ranks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LaunchText {
    /// Variable assignments and the launcher.
    pub(crate) head: String,
    /// Each option with its values, as text.
    pub(crate) options: Vec<String>,
    /// What every rank runs, as text for a shell.
    pub(crate) program: String,
}

impl LaunchText {
    /// Takes a command apart; none when it does more than start ranks, or something we cannot read.
    pub(crate) fn of(command: &Command) -> Option<Self> {
        match command {
            Command::Words(words) => Self::parse(&quote(words)),
            Command::Line { text, .. } => Self::parse(text.trim()),
            Command::ImageEntry(_) => None,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let spans = plain_words(text)?;
        let words = split_words(text).ok().filter(|words| words.len() == spans.len())?;
        let parts = LaunchLine::parts(&words)?;
        let between = |first: usize, end: usize| {
            let (start, _) = spans.get(first)?;
            let (_, stop) = spans.get(end.checked_sub(1)?)?;
            text.get(*start..*stop).map(str::to_owned)
        };
        let options = parts.options.iter().map(|it| between(it.start, it.end));
        Some(Self {
            head: between(0, parts.launcher + 1)?,
            options: options.collect::<Option<_>>()?,
            program: between(parts.program, words.len())?,
        })
    }

    /// The line with these options in the place of its own.
    pub(crate) fn with_options(&self, options: &[String]) -> String {
        let mut parts = vec![self.head.as_str()];
        parts.extend(options.iter().map(String::as_str));
        parts.push(&self.program);
        parts.join(" ")
    }
}

/// An option's name without dashes, and its first value.
pub(crate) fn option_and_value(option: &str) -> (String, Option<String>) {
    let words = split_words(option).unwrap_or_default();
    let mut words = words.into_iter();
    let word = words.next().unwrap_or_default();
    let word = word.trim_start_matches('-');
    match word.split_once('=') {
        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
        None => (word.to_owned(), words.next()),
    }
}

/// Where each word begins and ends; none when a shell would do more with the line than run one command.
fn plain_words(text: &str) -> Option<Vec<(usize, usize)>> {
    let mut spans = Vec::new();
    let mut start = None;
    let mut quoted = None;
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        match (quoted, character) {
            _ if escaped => escaped = false,
            (None | Some('"'), '\\') => {
                escaped = true;
                start.get_or_insert(at);
            }
            (Some(quote), other) if quote == other => quoted = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => {
                quoted = Some(character);
                start.get_or_insert(at);
            }
            (None, ';' | '&' | '|' | '<' | '>' | '(' | ')' | '`' | '#' | '\n') => return None,
            (None, space) if space.is_whitespace() => {
                spans.extend(start.take().map(|start| (start, at)));
            }
            (None, _) => {
                start.get_or_insert(at);
            }
        }
    }
    spans.extend(start.map(|start| (start, text.len())));
    quoted.is_none().then_some(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_variables_of_the_program_stay() {
        let line = Command::bash("A='1 2' mpirun -np 4  --tag-output python  \"$X y\" 'z w'");
        let text = LaunchText::of(&line).expect("it only starts ranks");
        assert_eq!(text.head, "A='1 2' mpirun");
        assert_eq!(text.options, ["-np 4", "--tag-output"]);
        assert_eq!(text.program, "python  \"$X y\" 'z w'");
        assert_eq!(text.with_options(&[]), "A='1 2' mpirun python  \"$X y\" 'z w'");
    }

    #[test]
    fn lines_that_do_more_are_left_alone() {
        for text in [
            "cd x && mpirun ./a",
            "mpirun ./a > log",
            "mpirun ./a | tee x",
            "mpirun 'a",
            "./a",
            "mpirun $(x) ./a",
        ] {
            assert_eq!(LaunchText::of(&Command::bash(text)), None, "{text}");
        }
    }

    #[test]
    fn options_are_known_by_name_and_value() {
        assert_eq!(option_and_value("--np=4"), ("np".into(), Some("4".into())));
        assert_eq!(option_and_value("-x 'A=b c'"), ("x".into(), Some("A=b c".into())));
        assert_eq!(option_and_value("--tag-output"), ("tag-output".into(), None));
    }
}
