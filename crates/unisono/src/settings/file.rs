//! Settings files: TOML enters, settings are changed, warnings about unknown keys leave.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::cluster_map::TABLES;
use crate::settings::{Origin, Settings};

/// No settings file needs more; a larger one is something else.
const MAX_BYTES: u64 = 64 * 1024;

/// Why settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    /// The file cannot be read.
    #[error("cannot read the settings file {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file is no TOML.
    #[error("{}:{line}: {message}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The line in it.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// A value does not fit its setting.
    #[error("{from}: {name} needs {wanted}, not {given}")]
    Value {
        /// The setting.
        name: &'static str,
        /// What it takes.
        wanted: &'static str,
        /// What was given.
        given: String,
        /// Where.
        from: Origin,
    },
}

impl SettingsError {
    /// What to do about it.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Unreadable { .. } => None,
            Self::Syntax { .. } => Some("write one `name = value` a line".to_owned()),
            Self::Value { .. } => Some("`unisono config show` lists the settings".to_owned()),
        }
    }
}

/// Applies a file, if it exists. What leaves is what to warn about.
pub(super) fn apply(path: &Path, settings: &mut Settings) -> Result<Vec<String>, SettingsError> {
    let Some(text) = read(path)? else {
        return Ok(Vec::new());
    };
    let line_at =
        |offset: usize| text.as_bytes().iter().take(offset).filter(|it| **it == b'\n').count() + 1;
    let table = DeTable::parse(&text).map_err(|error| SettingsError::Syntax {
        path: path.to_owned(),
        line: line_at(error.span().map_or(0, |span| span.start)),
        message: error.message().to_owned(),
    })?;
    let tables = toml::from_str(&text).map_err(|error| SettingsError::Syntax {
        path: path.to_owned(),
        line: line_at(error.span().map_or(0, |span| span.start)),
        message: error.message().to_owned(),
    })?;
    let origin = |offset| Origin::File { path: path.to_owned(), line: line_at(offset) };
    settings.cluster_map.take(tables, origin);
    let mut warnings = Vec::new();
    let is_setting = |key: &str| !TABLES.contains(&key);
    for (key, value) in table.get_ref().iter().filter(|(key, _)| is_setting(key.get_ref())) {
        let line = line_at(key.span().start);
        let from = Origin::File { path: path.to_owned(), line };
        if let Some(warning) = set(settings, key.get_ref(), value, &from)? {
            warnings.push(format!("{from}: {warning}"));
        }
    }
    Ok(warnings)
}

fn read(path: &Path) -> Result<Option<String>, SettingsError> {
    let unreadable = |source| SettingsError::Unreadable { path: path.to_owned(), source };
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    let mut text = String::new();
    let read = file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
    if read as u64 > MAX_BYTES {
        return Err(unreadable(io::Error::other(format!("it has more than {MAX_BYTES} bytes"))));
    }
    Ok(Some(text))
}

/// Sets one setting; what leaves is a warning.
fn set(
    settings: &mut Settings,
    key: &str,
    value: &Spanned<DeValue<'_>>,
    from: &Origin,
) -> Result<Option<String>, SettingsError> {
    let mut fields = settings.fields_mut();
    let names = fields.each_ref().map(|(name, _)| *name);
    let Some((name, field)) = fields.iter_mut().find(|(name, _)| *name == key) else {
        let advice = match unisono_dialect::nearest(key, names.into_iter().chain(TABLES)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                format!("settings are {}; tables {}", names.join(", "), TABLES.join(", "))
            }
        };
        let key = unisono_dialect::clipped(key);
        return Ok(Some(format!("`{key}` is no setting; {advice}")));
    };
    let text = match value.get_ref() {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Boolean(truth) => truth.to_string(),
        DeValue::Float(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => {
            let kind = value.get_ref().type_str();
            let article = if kind.starts_with('a') { "an" } else { "a" };
            return Err(SettingsError::Value {
                name,
                wanted: field.wanted(),
                given: format!("{article} {kind}"),
                from: from.clone(),
            });
        }
    };
    field.take(name, &text, from.clone())?;
    Ok(None)
}
