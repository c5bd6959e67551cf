//! Jsonnet text into tokens, with comments dropped and every kind of string decoded.

use std::ops::Range;

use super::literal::LiteralError;

/// One word or sign of the text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    /// Where it stands, in bytes.
    pub(super) span: Range<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    Word(String),
    Number(String),
    Text(String),
    Sign(char),
}

/// Splits a text into tokens.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, LiteralError> {
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens = Vec::new();
    while let Some(token) = lexer.next()? {
        tokens.push(token);
    }
    Ok(tokens)
}

struct Lexer<'text> {
    text: &'text str,
    at: usize,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn next(&mut self) -> Result<Option<Token>, LiteralError> {
        self.skip_blanks()?;
        let start = self.at;
        let Some(first) = self.rest().chars().next() else { return Ok(None) };
        let kind = match first {
            '"' | '\'' => TokenKind::Text(self.quoted(first)?),
            '@' if self.rest().starts_with("@\"") || self.rest().starts_with("@'") => {
                self.at += 1;
                TokenKind::Text(self.verbatim()?)
            }
            '|' if self.rest().starts_with("|||") => TokenKind::Text(self.block()?),
            digit if digit.is_ascii_digit() => TokenKind::Number(self.take_while(is_in_number)),
            letter if letter.is_ascii_alphabetic() || letter == '_' => {
                TokenKind::Word(self.take_while(|_, it| it.is_ascii_alphanumeric() || it == '_'))
            }
            sign => {
                self.at += sign.len_utf8();
                TokenKind::Sign(sign)
            }
        };
        Ok(Some(Token { kind, span: start..self.at }))
    }

    fn skip_blanks(&mut self) -> Result<(), LiteralError> {
        loop {
            let rest = self.rest();
            let blanks = rest.len() - rest.trim_start().len();
            if blanks > 0 {
                self.at += blanks;
            } else if rest.starts_with('#') || rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                let end = rest.find("*/").ok_or_else(|| self.open("comment"))?;
                self.at += end + 2;
            } else {
                return Ok(());
            }
        }
    }

    fn take_while(&mut self, belongs: fn(Option<char>, char) -> bool) -> String {
        let mut before = None;
        let end = self.rest().find(|it| {
            let ends = !belongs(before, it);
            before = Some(it);
            ends
        });
        let word =
            self.rest().get(..end.unwrap_or(self.rest().len())).unwrap_or_default().to_owned();
        self.at += word.len();
        word
    }

    /// A string with escapes, up to the same quote.
    fn quoted(&mut self, quote: char) -> Result<String, LiteralError> {
        let open = self.open("string");
        let mut decoded = String::new();
        let mut characters = self.rest().char_indices().skip(1);
        while let Some((index, character)) = characters.next() {
            match character {
                '\\' => {
                    let (_, escape) = characters.next().ok_or_else(|| open.clone())?;
                    match escape {
                        'n' => decoded.push('\n'),
                        't' => decoded.push('\t'),
                        'r' => decoded.push('\r'),
                        'b' => decoded.push('\u{8}'),
                        'f' => decoded.push('\u{c}'),
                        'u' => {
                            let digits: String =
                                characters.by_ref().take(4).map(|(_, it)| it).collect();
                            let code = u32::from_str_radix(&digits, 16).ok();
                            decoded.push(code.and_then(char::from_u32).unwrap_or('\u{fffd}'));
                        }
                        other => decoded.push(other),
                    }
                }
                end if end == quote => {
                    self.at += index + 1;
                    return Ok(decoded);
                }
                other => decoded.push(other),
            }
        }
        Err(open)
    }

    /// `@"…"`: nothing is escaped but the quote, by doubling it.
    fn verbatim(&mut self) -> Result<String, LiteralError> {
        let open = self.open("string");
        let quote = self.rest().chars().next().unwrap_or('"');
        let mut decoded = String::new();
        let mut characters = self.rest().char_indices().skip(1).peekable();
        while let Some((index, character)) = characters.next() {
            if character != quote {
                decoded.push(character);
            } else if characters.peek().is_some_and(|(_, next)| *next == quote) {
                characters.next();
                decoded.push(quote);
            } else {
                self.at += index + 1;
                return Ok(decoded);
            }
        }
        Err(open)
    }

    /// `|||`: the lines that are indented as the first one is, without that indentation.
    fn block(&mut self) -> Result<String, LiteralError> {
        let open = self.open("text block");
        let rest = self.rest();
        let body = rest.find('\n').ok_or_else(|| open.clone())? + 1;
        let lines = rest.get(body..).unwrap_or_default();
        let indent: String = lines.chars().take_while(|it| matches!(it, ' ' | '\t')).collect();
        let mut decoded = String::new();
        let mut offset = body;
        for line in lines.split_inclusive('\n') {
            match line.strip_prefix(indent.as_str()) {
                Some(inner) if !indent.is_empty() => decoded.push_str(inner),
                _ if line.trim().is_empty() => decoded.push('\n'),
                _ => {
                    let lead = line.len() - line.trim_start().len();
                    if !line.trim_start().starts_with("|||") || indent.is_empty() {
                        return Err(open);
                    }
                    self.at += offset + lead + 3;
                    return Ok(decoded);
                }
            }
            offset += line.len();
        }
        Err(open)
    }

    fn open(&self, what: &'static str) -> LiteralError {
        LiteralError::Open { what, at: self.at }
    }
}

fn is_in_number(before: Option<char>, character: char) -> bool {
    character.is_ascii_digit()
        || matches!(character, '.' | 'e' | 'E')
        || (matches!(character, '+' | '-') && matches!(before, Some('e' | 'E')))
}
