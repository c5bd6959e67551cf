//! Reads the one form of command that launchers send (assignments, exports, one command) without a shell, for images that have none.
//!
//! Text and an environment go in, variables to set and an argument list come out. Anything a shell would do beyond that (pipes,
//! redirections, patterns, command substitution) is refused by name: running half of it would be worse than nothing.

use std::collections::BTreeMap;

use thiserror::Error;

/// What to run and what to set for it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Simple {
    /// Set for the command, over what it inherits.
    pub(crate) variables: BTreeMap<String, String>,
    /// The command and its arguments.
    pub(crate) arguments: Vec<String>,
}

/// What this reader does not do.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum WordsError {
    #[error("there is no shell on this host, and `{0}` needs one")]
    NeedsShell(char),
    #[error("there is no shell on this host, and more than one command needs one")]
    SeveralCommands,
    #[error("a quote is not closed")]
    OpenQuote,
    #[error("there is no command in it")]
    NoCommand,
}

/// Reads the text. `inherited` answers for variables the text does not set itself.
pub(crate) fn read(
    text: &str,
    inherited: impl Fn(&str) -> Option<String>,
) -> Result<Simple, WordsError> {
    let mut reader =
        Reader { rest: text.chars().peekable(), variables: BTreeMap::new(), inherited };
    let mut arguments: Vec<String> = Vec::new();
    while reader.rest.peek().is_some() {
        let mut words = reader.statement()?;
        if words.is_empty() {
            continue;
        }
        if !arguments.is_empty() {
            return Err(WordsError::SeveralCommands);
        }
        if words.first().is_some_and(|word| word == "export") {
            for word in words.iter().skip(1) {
                reader.assign(word);
            }
            continue;
        }
        if words.first().is_some_and(|word| word == "exec") {
            words.remove(0);
        }
        arguments = words;
    }
    if arguments.is_empty() {
        return Err(WordsError::NoCommand);
    }
    Ok(Simple { variables: reader.variables, arguments })
}

struct Reader<'text, Inherited> {
    rest: std::iter::Peekable<std::str::Chars<'text>>,
    variables: BTreeMap<String, String>,
    inherited: Inherited,
}

impl<Inherited: Fn(&str) -> Option<String>> Reader<'_, Inherited> {
    /// The words up to the next `;` or line end; leading assignments are done, not returned.
    fn statement(&mut self) -> Result<Vec<String>, WordsError> {
        let mut words = Vec::new();
        loop {
            match self.rest.peek() {
                None => return Ok(words),
                Some(';' | '\n') => {
                    self.rest.next();
                    return Ok(words);
                }
                Some(' ' | '\t' | '\r') => {
                    self.rest.next();
                }
                Some(_) => {
                    let (word, quoted_from) = self.word()?;
                    let is_assignment =
                        words.is_empty() && word.find('=').is_some_and(|at| at < quoted_from);
                    if !(is_assignment && self.assign(&word)) {
                        words.push(word);
                    }
                }
            }
        }
    }

    /// Sets a variable if the word is an assignment of one.
    fn assign(&mut self, word: &str) -> bool {
        match word.split_once('=') {
            Some((name, value)) if is_variable_name(name) => {
                self.variables.insert(name.to_owned(), value.to_owned());
                true
            }
            _ => false,
        }
    }

    /// One word with its quotes taken off, and where in it the first quoted part begins.
    fn word(&mut self) -> Result<(String, usize), WordsError> {
        let mut word = String::new();
        let mut quoted_from = usize::MAX;
        while let Some(&next) = self.rest.peek() {
            match next {
                ' ' | '\t' | '\r' | '\n' | ';' => break,
                '\'' | '"' | '\\' => {
                    quoted_from = quoted_from.min(word.len());
                    self.rest.next();
                    self.quoted(next, &mut word)?;
                }
                '$' => {
                    self.rest.next();
                    word += &self.expansion()?;
                }
                '|' | '&' | '<' | '>' | '(' | ')' | '`' | '*' | '?' | '[' | '~' | '#' | '!'
                | '{' | '}' => {
                    return Err(WordsError::NeedsShell(next));
                }
                plain => {
                    self.rest.next();
                    word.push(plain);
                }
            }
        }
        Ok((word, quoted_from))
    }

    fn quoted(&mut self, quote: char, word: &mut String) -> Result<(), WordsError> {
        if quote == '\\' {
            word.push(self.rest.next().ok_or(WordsError::OpenQuote)?);
            return Ok(());
        }
        loop {
            match self.rest.next().ok_or(WordsError::OpenQuote)? {
                end if end == quote => return Ok(()),
                '\\' if quote == '"' => match self.rest.next().ok_or(WordsError::OpenQuote)? {
                    escaped @ ('"' | '\\' | '$' | '`') => word.push(escaped),
                    '\n' => {}
                    other => word.extend(['\\', other]),
                },
                '$' if quote == '"' => *word += &self.expansion()?,
                '`' if quote == '"' => return Err(WordsError::NeedsShell('`')),
                plain => word.push(plain),
            }
        }
    }

    /// `$NAME`, `${NAME}` and `${NAME:-word}`; the dollar sign is already read.
    fn expansion(&mut self) -> Result<String, WordsError> {
        match self.rest.peek() {
            Some('{') => {
                self.rest.next();
                let mut inside = String::new();
                loop {
                    match self.rest.next().ok_or(WordsError::OpenQuote)? {
                        '}' => break,
                        '$' | '`' => return Err(WordsError::NeedsShell('{')),
                        plain => inside.push(plain),
                    }
                }
                let (name, default) = inside.split_once(":-").unwrap_or((&inside, ""));
                if !is_variable_name(name) {
                    return Err(WordsError::NeedsShell('{'));
                }
                let value = self.value(name);
                Ok(if value.is_empty() { default.to_owned() } else { value })
            }
            Some(first) if *first == '_' || first.is_ascii_alphabetic() => {
                let mut name = String::new();
                while let Some(&next) = self.rest.peek()
                    && (next == '_' || next.is_ascii_alphanumeric())
                {
                    name.push(next);
                    self.rest.next();
                }
                Ok(self.value(&name))
            }
            Some('(' | '$' | '?' | '!' | '#' | '@' | '*' | '-' | '0'..='9') => {
                Err(WordsError::NeedsShell('$'))
            }
            Some(_) | None => Ok("$".to_owned()),
        }
    }

    fn value(&self, name: &str) -> String {
        self.variables.get(name).cloned().or_else(|| (self.inherited)(name)).unwrap_or_default()
    }
}

fn is_variable_name(name: &str) -> bool {
    name.starts_with(|first: char| first == '_' || first.is_ascii_alphabetic())
        && name.chars().all(|each| each == '_' || each.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Parts = (Vec<(String, String)>, Vec<String>);

    fn simple(text: &str) -> Result<Parts, WordsError> {
        let inherited = |name: &str| (name == "PATH").then(|| "/bin".to_owned());
        read(text, inherited).map(|it| (it.variables.into_iter().collect(), it.arguments))
    }

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn open_mpi_4_form() {
        let text = "  PATH=/usr/bin:$PATH ; export PATH ; LD_LIBRARY_PATH=/usr/lib:${LD_LIBRARY_PATH:-} ; \
                    export LD_LIBRARY_PATH ;   /usr/bin/orted -mca ess \"env\" -mca orte_hnp_uri \"1;tcp://10.0.0.1:5\"";
        let (variables, arguments) = simple(text).unwrap();
        assert_eq!(
            variables,
            pairs(&[("LD_LIBRARY_PATH", "/usr/lib:"), ("PATH", "/usr/bin:/bin")])
        );
        assert_eq!(
            arguments,
            ["/usr/bin/orted", "-mca", "ess", "env", "-mca", "orte_hnp_uri", "1;tcp://10.0.0.1:5"]
        );
    }

    #[test]
    fn open_mpi_5_form() {
        let text = "PRTE_PREFIX=/opt/p;export PRTE_PREFIX;/opt/p/bin/prted --prtemca ess_base_jobid \"prterun-n1-30@0\"";
        let (variables, arguments) = simple(text).unwrap();
        assert_eq!(variables, pairs(&[("PRTE_PREFIX", "/opt/p")]));
        assert_eq!(
            arguments,
            ["/opt/p/bin/prted", "--prtemca", "ess_base_jobid", "prterun-n1-30@0"]
        );
    }

    #[test]
    fn hydra_form() {
        let (_, arguments) =
            simple("\"/opt/bin/hydra_pmi_proxy\" --control-port n1:4000 --rmk user").unwrap();
        assert_eq!(
            arguments,
            ["/opt/bin/hydra_pmi_proxy", "--control-port", "n1:4000", "--rmk", "user"]
        );
    }

    #[test]
    fn quotes_as_in_a_shell() {
        let (_, arguments) = simple(r#"run 'a $b' "c \"d\" \x" e\ f '' "$PATH""#).unwrap();
        assert_eq!(arguments, ["run", "a $b", r#"c "d" \x"#, "e f", "", "/bin"]);
    }

    #[test]
    fn a_quoted_equals_sign_is_no_assignment() {
        assert_eq!(simple("'A=b' c").unwrap().1, ["A=b", "c"]);
        assert_eq!(simple("env A=b c").unwrap().1, ["env", "A=b", "c"]);
    }

    #[test]
    fn what_needs_a_shell_is_refused_by_name() {
        for (text, needs) in [
            ("a | b", '|'),
            ("a && b", '&'),
            ("a > f", '>'),
            ("a `b`", '`'),
            ("a \"`b`\"", '`'),
            ("a $(b)", '$'),
            ("a *", '*'),
            ("cd ~", '~'),
        ] {
            assert_eq!(simple(text), Err(WordsError::NeedsShell(needs)), "{text}");
        }
        assert_eq!(simple("a; b"), Err(WordsError::SeveralCommands));
        assert_eq!(simple("A=1; export A"), Err(WordsError::NoCommand));
        assert_eq!(simple("a 'b"), Err(WordsError::OpenQuote));
    }
}
