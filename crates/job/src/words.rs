//! Splits a line into words and commands as a POSIX shell would, without expanding anything; and quotes words back.

/// Why a text cannot be split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SplitError {
    /// A quote is opened and never closed.
    #[error("a quote is opened and never closed")]
    OpenQuote,
    /// A backslash stands at the very end.
    #[error("a backslash stands at the very end")]
    OpenEscape,
}

/// Splits one command into its words; operators such as `;` and `&&` end up inside words.
///
/// # Errors
///
/// When a quote or an escape is left open.
pub fn split_words(text: &str) -> Result<Vec<String>, SplitError> {
    let commands = split(text, false)?;
    Ok(commands.into_iter().flatten().collect())
}

/// Splits a script into commands at unquoted `;`, `&`, `|`, parentheses and line ends, each into its words.
pub(crate) fn split_commands(text: &str) -> Result<Vec<Vec<String>>, SplitError> {
    split(text, true)
}

/// The words on one line, quoted so that a shell reads the same words back.
pub fn quote(words: &[String]) -> String {
    let plain = |it: char| it.is_ascii_alphanumeric() || "_@%+=:,./-^".contains(it);
    words
        .iter()
        .map(|word| {
            if !word.is_empty() && word.chars().all(plain) {
                word.clone()
            } else {
                format!("'{}'", word.replace('\'', r"'\''"))
            }
        })
        .collect::<Vec<_>>()
        .join(" ")
}

fn split(text: &str, at_operators: bool) -> Result<Vec<Vec<String>>, SplitError> {
    let mut splitter = Splitter::default();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\'' => splitter.take_until_single_quote(&mut characters)?,
            '"' => splitter.take_until_double_quote(&mut characters)?,
            '\\' => match characters.next() {
                Some('\n') => {}
                Some(escaped) => splitter.push(escaped),
                None => return Err(SplitError::OpenEscape),
            },
            '\n' | ';' | '&' | '|' | '(' | ')' if at_operators => splitter.end_command(),
            '#' if at_operators && splitter.word.is_none() => {
                while characters.peek().is_some_and(|it| *it != '\n') {
                    characters.next();
                }
            }
            space if space.is_whitespace() => splitter.end_word(),
            other => splitter.push(other),
        }
    }
    splitter.end_command();
    Ok(splitter.commands)
}

#[derive(Default)]
struct Splitter {
    commands: Vec<Vec<String>>,
    command: Vec<String>,
    word: Option<String>,
}

type Characters<'text> = std::iter::Peekable<std::str::Chars<'text>>;

impl Splitter {
    fn push(&mut self, character: char) {
        self.word.get_or_insert_default().push(character);
    }

    fn end_word(&mut self) {
        self.command.extend(self.word.take());
    }

    fn end_command(&mut self) {
        self.end_word();
        if !self.command.is_empty() {
            self.commands.push(std::mem::take(&mut self.command));
        }
    }

    fn take_until_single_quote(
        &mut self,
        characters: &mut Characters<'_>,
    ) -> Result<(), SplitError> {
        let word = self.word.get_or_insert_default();
        for character in characters {
            if character == '\'' {
                return Ok(());
            }
            word.push(character);
        }
        Err(SplitError::OpenQuote)
    }

    fn take_until_double_quote(
        &mut self,
        characters: &mut Characters<'_>,
    ) -> Result<(), SplitError> {
        let word = self.word.get_or_insert_default();
        while let Some(character) = characters.next() {
            match character {
                '"' => return Ok(()),
                '\\' => match characters.next() {
                    Some('\n') => {}
                    Some(escaped @ ('"' | '\\' | '$' | '`')) => word.push(escaped),
                    Some(other) => word.extend(['\\', other]),
                    None => return Err(SplitError::OpenEscape),
                },
                other => word.push(other),
            }
        }
        Err(SplitError::OpenQuote)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_escapes_hold_words_together() {
        let words = split_words(r#"a 'b c' "d \"e\" $F" g\ h '' "i\n""#).unwrap();
        assert_eq!(words, ["a", "b c", r#"d "e" $F"#, "g h", "", r"i\n"]);
    }

    #[test]
    fn open_quotes_are_told() {
        assert_eq!(split_words("a 'b"), Err(SplitError::OpenQuote));
        assert_eq!(split_words("a \"b"), Err(SplitError::OpenQuote));
        assert_eq!(split_words("a \\"), Err(SplitError::OpenEscape));
    }

    #[test]
    fn a_script_is_cut_at_operators_but_not_inside_quotes() {
        let commands =
            split_commands("cd /x && mpirun -n 2 './a;b' | tee log # done; really\nexit").unwrap();
        assert_eq!(
            commands,
            [
                vec!["cd", "/x"],
                vec!["mpirun", "-n", "2", "./a;b"],
                vec!["tee", "log"],
                vec!["exit"],
            ]
        );
    }

    #[test]
    fn quoting_is_undone_by_splitting() {
        let words =
            ["plain", "", "two words", "it's", "a\nb", "$HOME", "^openib"].map(str::to_owned);
        assert_eq!(split_words(&quote(&words)).unwrap(), words);
    }
}
