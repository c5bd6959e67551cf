//! Where randomness comes from: the only place that asks the system for any.

use std::fmt::Write;

/// Why nothing could be minted.
pub use getrandom::Error as MintError;

/// Bytes nobody can guess.
///
/// # Errors
///
/// When the system gives none.
pub fn bytes<const COUNT: usize>() -> Result<[u8; COUNT], MintError> {
    let mut bytes = [0; COUNT];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// A name that no other job has: 32 hexadecimal digits.
///
/// # Errors
///
/// When the system gives no random bytes.
pub fn id() -> Result<String, MintError> {
    let mut id = String::with_capacity(32);
    for byte in bytes::<16>()? {
        // Writing to a String cannot fail.
        let _written = write!(id, "{byte:02x}");
    }
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_and_are_plain() {
        let (one, other) = (id().unwrap(), id().unwrap());
        assert_ne!(one, other);
        assert!(one.len() == 32 && one.bytes().all(|it| it.is_ascii_hexdigit()));
    }
}
