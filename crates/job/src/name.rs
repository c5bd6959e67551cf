//! Names: what a job may be called, and names derived from it that always fit.

use std::fmt;

use serde::Serialize;

/// The longest label Kubernetes and host names allow.
pub const MAX_LABEL: usize = 63;

/// The longest name we take; OpenPAI's limit, the largest of all dialects.
const MAX_JOB_NAME: usize = 255;

/// Characters of a shortened name that tell it from its siblings.
const DIGEST_LENGTH: usize = 8;

/// A job's name as its file has it: not empty, at most 255 bytes, no control characters, no path separators.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct JobName(String);

/// Why a name is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing is left of it.
    #[error("the name is empty")]
    Empty,
    /// Too long.
    #[error("the name has more than {MAX_JOB_NAME} bytes")]
    TooLong,
    /// It could leave a directory or garble a terminal.
    #[error("the name holds a slash, a control character or starts with a dot")]
    Unsafe,
}

impl JobName {
    /// Takes a name, or says why not.
    ///
    /// # Errors
    ///
    /// When the name is empty, too long, or could leave a directory.
    pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
        let name = name.into();
        if name.is_empty() {
            Err(NameError::Empty)
        } else if name.len() > MAX_JOB_NAME {
            Err(NameError::TooLong)
        } else if name.starts_with('.')
            || name.chars().any(|it| it == '/' || it == '\\' || it.is_control())
        {
            Err(NameError::Unsafe)
        } else {
            Ok(Self(name))
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JobName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Whether the text is a DNS label (RFC 1123): lower-case letters, digits and inner dashes, at most 63.
pub fn is_dns_label(text: &str) -> bool {
    let inner = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
    !text.is_empty()
        && text.len() <= MAX_LABEL
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// The nearest DNS label: lower case, other characters as dashes, shortened when too long.
///
/// Two texts that differ give labels that differ whenever a change had to be made.
pub fn label_from(text: &str, longest: usize) -> String {
    if is_dns_label(text) && text.len() <= longest {
        return text.to_owned();
    }
    let cleaned: String = text
        .chars()
        .map(|it| it.to_ascii_lowercase())
        .map(|it| if it.is_ascii_lowercase() || it.is_ascii_digit() { it } else { '-' })
        .collect();
    let trimmed = cleaned.trim_matches('-');
    let digest = digest(text);
    let room = longest.saturating_sub(DIGEST_LENGTH + 1);
    let stem = trimmed.get(..room.min(trimmed.len())).unwrap_or(trimmed).trim_end_matches('-');
    if stem.is_empty() { format!("j{digest}") } else { format!("{stem}-{digest}") }
}

/// Whether a text can be the value of a Kubernetes label as it is.
pub fn is_label_value(text: &str) -> bool {
    let is_end = |it: Option<u8>| it.is_some_and(|it| it.is_ascii_alphanumeric());
    text.len() <= MAX_LABEL
        && text.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_.".contains(&it))
        && is_end(text.bytes().next())
        && is_end(text.bytes().next_back())
}

/// The text itself when it fits, else its beginning and a digest of the whole, together `longest` bytes at most.
pub fn shortened(text: &str, longest: usize) -> String {
    if text.len() <= longest {
        return text.to_owned();
    }
    let mut room = longest.saturating_sub(DIGEST_LENGTH + 1);
    while !text.is_char_boundary(room) {
        room -= 1;
    }
    format!("{}-{}", text[..room].trim_end_matches('-'), digest(text))
}

/// Eight hexadecimal digits of the text's FNV-1a hash: short, stable across releases and machines.
fn digest(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{:08x}", (hash >> 32) ^ (hash & 0xffff_ffff))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_leave_a_directory_are_refused() {
        assert_eq!(JobName::new(""), Err(NameError::Empty));
        assert_eq!(JobName::new("../../etc"), Err(NameError::Unsafe));
        assert_eq!(JobName::new("a\nb"), Err(NameError::Unsafe));
        assert_eq!(JobName::new("x".repeat(256)), Err(NameError::TooLong));
        assert!(JobName::new("Ring.test_1~x").is_ok());
    }

    #[test]
    fn a_fitting_label_is_kept_and_a_changed_one_is_told_apart() {
        assert_eq!(label_from("tri-6", 63), "tri-6");
        let (upper, lower) = (label_from("Ring_6", 63), label_from("Ring.6", 63));
        assert!(upper.starts_with("ring-6-") && lower.starts_with("ring-6-"));
        assert_ne!(upper, lower);
    }

    #[test]
    fn every_label_fits_and_is_one() {
        for text in ["", "---", "é", &"x".repeat(300), "A".repeat(62).as_str(), "-a-"] {
            for longest in [20, 40, 63] {
                let label = label_from(text, longest);
                assert!(is_dns_label(&label) && label.len() <= longest, "{text:?} gave {label:?}");
            }
        }
    }

    #[test]
    fn shortening_never_cuts_a_character() {
        let text = "ü".repeat(100);
        assert!(shortened(&text, 50).len() <= 50);
        assert_eq!(shortened("short", 50), "short");
    }
}
