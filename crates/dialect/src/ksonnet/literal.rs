//! Reads the part of Jsonnet that parameter files are written in: literal objects, with the place of every field.

use std::ops::Range;

use serde_json::{Map, Number, Value};

use super::lexer::{Token, TokenKind, tokens};

/// Why a text is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LiteralError {
    /// A string, comment or text block has no end.
    #[error("a {what} is opened and never closed")]
    Open {
        /// What is open.
        what: &'static str,
        /// Where it begins, in bytes.
        at: usize,
    },
    /// Something else stands where a value should.
    #[error(
        "{found} stands where {wanted} is needed; Unisono reads literal values, it does not run Jsonnet"
    )]
    Unexpected {
        /// What stands there.
        found: String,
        /// What should.
        wanted: &'static str,
        /// Where, in bytes.
        at: usize,
    },
    /// A field twice in one object.
    #[error("the field `{key}` stands here a second time")]
    Duplicate {
        /// The field.
        key: String,
        /// Where, in bytes.
        at: usize,
    },
    /// Nested too deep.
    #[error("values are nested more than {MAX_DEPTH} deep")]
    TooDeep {
        /// Where, in bytes.
        at: usize,
    },
}

/// No parameter file is deeper; walking one never runs out of stack.
const MAX_DEPTH: usize = 64;

impl LiteralError {
    /// Where the fault is, in bytes.
    pub const fn at(&self) -> usize {
        match self {
            Self::Open { at, .. }
            | Self::Unexpected { at, .. }
            | Self::Duplicate { at, .. }
            | Self::TooDeep { at } => *at,
        }
    }
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Literal {
    Scalar(Value),
    List(Vec<Self>),
    Object(Object),
}

/// An object, with where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Object {
    pub(super) fields: Vec<Field>,
    /// From brace to brace.
    pub(super) span: Range<usize>,
}

/// A field of an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    pub(super) key: String,
    /// Whether it is added to the field it overrides (`+:`).
    pub(super) adds: bool,
    pub(super) value: Literal,
    /// From the key to the end of the value.
    pub(super) span: Range<usize>,
    pub(super) value_span: Range<usize>,
}

impl Object {
    pub(super) fn field(&self, key: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.key == key)
    }

    /// The object under a key.
    pub(super) fn object(&self, key: &str) -> Option<&Self> {
        match &self.field(key)?.value {
            Literal::Object(object) => Some(object),
            Literal::Scalar(_) | Literal::List(_) => None,
        }
    }

    /// Puts the object over another, as Jsonnet's `+` does.
    pub(super) fn put_over(&self, base: &mut Map<String, Value>) {
        for field in &self.fields {
            let below = base.get_mut(&field.key).filter(|_| field.adds);
            if let (Some(Value::Object(below)), Literal::Object(object)) = (below, &field.value) {
                object.put_over(below);
            } else {
                base.insert(field.key.clone(), field.value.to_json());
            }
        }
    }
}

impl Literal {
    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::Scalar(value) => value.clone(),
            Self::List(items) => items.iter().map(Self::to_json).collect(),
            Self::Object(object) => {
                let mut map = Map::new();
                object.put_over(&mut map);
                map.into()
            }
        }
    }
}

/// The object of a text that is one.
pub(super) fn object(text: &str) -> Result<Object, LiteralError> {
    let tokens = tokens(text)?;
    let mut reader = Reader { tokens: &tokens, at: 0, end: text.len() };
    let object = reader.whole_object()?;
    match reader.tokens.get(reader.at) {
        None => Ok(object),
        Some(_) => Err(reader.unexpected("the end of the file")),
    }
}

/// The object that a text adds to `params`: what stands behind `params +`, or the whole text when it is an object.
pub(super) fn overrides(text: &str) -> Result<Object, LiteralError> {
    let tokens = tokens(text)?;
    let is = |index: usize, sign: char| {
        tokens.get(index).is_some_and(|token| token.kind == TokenKind::Sign(sign))
    };
    let added = (0..tokens.len()).find(|index| {
        let word = tokens.get(*index).map(|token| &token.kind);
        word == Some(&TokenKind::Word("params".to_owned()))
            && is(index + 1, '+')
            && is(index + 2, '{')
    });
    let at = match added {
        Some(index) => index + 2,
        None => 0,
    };
    Reader { tokens: &tokens, at, end: text.len() }.whole_object()
}

/// A value on its own.
pub(super) fn value(text: &str) -> Result<Value, LiteralError> {
    let tokens = tokens(text)?;
    let mut reader = Reader { tokens: &tokens, at: 0, end: text.len() };
    let (literal, _) = reader.value(0)?;
    match reader.tokens.get(reader.at) {
        None => Ok(literal.to_json()),
        Some(_) => Err(reader.unexpected("the end of the value")),
    }
}

struct Reader<'tokens> {
    tokens: &'tokens [Token],
    at: usize,
    end: usize,
}

impl Reader<'_> {
    fn whole_object(&mut self) -> Result<Object, LiteralError> {
        match self.value(0)? {
            (Literal::Object(object), _) => Ok(object),
            (Literal::Scalar(_) | Literal::List(_), span) => Err(LiteralError::Unexpected {
                found: "a single value or a list".to_owned(),
                wanted: "an object",
                at: span.start,
            }),
        }
    }

    fn value(&mut self, depth: usize) -> Result<(Literal, Range<usize>), LiteralError> {
        let Some(token) = self.tokens.get(self.at) else { return Err(self.unexpected("a value")) };
        if depth > MAX_DEPTH {
            return Err(LiteralError::TooDeep { at: token.span.start });
        }
        let literal = match &token.kind {
            TokenKind::Sign('{') => {
                let object = self.object(depth)?;
                let span = object.span.clone();
                return Ok((Literal::Object(object), span));
            }
            TokenKind::Sign('[') => return self.list(depth),
            TokenKind::Sign('-') => return self.negative(),
            TokenKind::Text(text) => Value::from(text.clone()),
            TokenKind::Number(text) => self.number(text)?,
            TokenKind::Word(word) => match word.as_str() {
                "true" => true.into(),
                "false" => false.into(),
                "null" => Value::Null,
                _ => return Err(self.unexpected("a value")),
            },
            TokenKind::Sign(_) => return Err(self.unexpected("a value")),
        };
        self.at += 1;
        Ok((Literal::Scalar(literal), token.span.clone()))
    }

    fn number(&self, text: &str) -> Result<Value, LiteralError> {
        let whole = text.parse::<i64>().ok().map(Number::from);
        let number = whole.or_else(|| text.parse::<f64>().ok().and_then(Number::from_f64));
        number.map(Value::Number).ok_or_else(|| self.unexpected("a number"))
    }

    fn negative(&mut self) -> Result<(Literal, Range<usize>), LiteralError> {
        let start = self.tokens.get(self.at).map_or(self.end, |token| token.span.start);
        self.at += 1;
        let Some(Token { kind: TokenKind::Number(text), span }) = self.tokens.get(self.at) else {
            return Err(self.unexpected("a number"));
        };
        let value = self.number(&format!("-{text}"))?;
        self.at += 1;
        Ok((Literal::Scalar(value), start..span.end))
    }

    fn list(&mut self, depth: usize) -> Result<(Literal, Range<usize>), LiteralError> {
        let start = self.sign('[', "a list")?.start;
        let mut items = Vec::new();
        while !self.is_sign(']') {
            items.push(self.value(depth + 1)?.0);
            if !self.is_sign(']') {
                self.sign(',', "a comma or `]`")?;
            }
        }
        let end = self.sign(']', "`]`")?.end;
        Ok((Literal::List(items), start..end))
    }

    fn object(&mut self, depth: usize) -> Result<Object, LiteralError> {
        let start = self.sign('{', "an object")?.start;
        let mut fields: Vec<Field> = Vec::new();
        while !self.is_sign('}') {
            let field = self.field(depth)?;
            if fields.iter().any(|other| other.key == field.key) {
                return Err(LiteralError::Duplicate { key: field.key, at: field.span.start });
            }
            fields.push(field);
            if !self.is_sign('}') {
                self.sign(',', "a comma or `}`")?;
            }
        }
        let end = self.sign('}', "`}`")?.end;
        Ok(Object { fields, span: start..end })
    }

    fn field(&mut self, depth: usize) -> Result<Field, LiteralError> {
        let Some(Token { kind: TokenKind::Word(key) | TokenKind::Text(key), span }) =
            self.tokens.get(self.at)
        else {
            return Err(self.unexpected("a field name"));
        };
        let (key, start) = (key.clone(), span.start);
        self.at += 1;
        let adds = self.is_sign('+');
        self.at += usize::from(adds);
        self.sign(':', "`:`")?;
        // `::` and `:::` only say whether a field is shown.
        while self.is_sign(':') {
            self.at += 1;
        }
        let (value, value_span) = self.value(depth + 1)?;
        Ok(Field { key, adds, value, span: start..value_span.end, value_span })
    }

    fn is_sign(&self, sign: char) -> bool {
        self.tokens.get(self.at).is_some_and(|token| token.kind == TokenKind::Sign(sign))
    }

    fn sign(&mut self, sign: char, wanted: &'static str) -> Result<Range<usize>, LiteralError> {
        match self.tokens.get(self.at) {
            Some(token) if token.kind == TokenKind::Sign(sign) => {
                self.at += 1;
                Ok(token.span.clone())
            }
            _ => Err(self.unexpected(wanted)),
        }
    }

    fn unexpected(&self, wanted: &'static str) -> LiteralError {
        let token = self.tokens.get(self.at);
        let found = match token.map(|token| &token.kind) {
            None => "the end of the file".to_owned(),
            Some(TokenKind::Word(word)) => format!("`{}`", crate::clipped(word)),
            Some(TokenKind::Number(number)) => format!("`{}`", crate::clipped(number)),
            Some(TokenKind::Text(_)) => "a string".to_owned(),
            Some(TokenKind::Sign(sign)) => format!("`{sign}`"),
        };
        let at = token.map_or(self.end, |token| token.span.start);
        LiteralError::Unexpected { found, wanted, at }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Value {
        Literal::Object(object(text).unwrap_or_else(|error| panic!("{text}: {error}"))).to_json()
    }

    #[test]
    fn everything_a_parameter_file_may_hold_is_read() {
        let text = "
            { // a comment
              a: 1, 'b-c': -2.5e3, # another
              \"d\": \"x\\n\\u00e9\\\"\", e: 'it\\'s', /* a third */
              f: @'c:\\x''y', g: [1, 'two', null, true,], h: {},
              i: |||
                one
                  two

                three
              |||,
              j:: 3,
            }";
        assert_eq!(
            read(text),
            json!({"a": 1, "b-c": -2500.0, "d": "x\né\"", "e": "it's", "f": "c:\\x'y",
                "g": [1, "two", null, true], "h": {}, "i": "one\n  two\n\nthree\n", "j": 3})
        );
    }

    #[test]
    fn adding_keeps_what_is_below() {
        let mut base = json!({"a": {"x": 1, "y": 2}, "b": {"x": 1}}).as_object().unwrap().clone();
        object("{a+: {y: 3}, b: {z: 1}, c+: {n: 1}}").unwrap().put_over(&mut base);
        assert_eq!(Value::from(base), json!({"a": {"x": 1, "y": 3}, "b": {"z": 1}, "c": {"n": 1}}));
    }

    #[test]
    fn overrides_are_found_behind_params() {
        let old = "local params = import '../../components/params.libsonnet';\nparams + {components+: {a: {n: 1}}}";
        let new = "local params = std.extVar(\"__ksonnet/params\");\nlocal globals = import \"globals.libsonnet\";\nlocal envParams = params + {\n  components +: {\n a +: { n: 1 } },\n};\n{ components: { [x]: envParams.components[x] + globals, for x in std.objectFields(envParams.components) } }";
        for text in [old, new, "{components: {a: {n: 1}}}"] {
            let found = overrides(text).unwrap();
            assert_eq!(Literal::Object(found).to_json(), json!({"components": {"a": {"n": 1}}}));
        }
    }

    #[test]
    fn what_would_have_to_be_run_is_refused_with_its_place() {
        for (text, at) in [
            ("{a: 1 + 2}", 6),
            ("{a: std.length('x')}", 4),
            ("{a: 1} x", 7),
            ("{a: 1, a: 2}", 7),
            ("{a: 'open}", 4),
            ("{a", 2),
            ("", 0),
            ("[1]", 0),
            ("{[x]: 1}", 1),
            ("/* open", 0),
            ("{a: |||\nx\n|||}", 4),
        ] {
            assert_eq!(object(text).map_err(|error| error.at()), Err(at), "{text}");
        }
        let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
        assert!(matches!(value(&deep), Err(LiteralError::TooDeep { .. })));
    }
}
