//! A key for ssh, in the form that MPIJob v2beta1 promises: an elliptic curve key of 521 bits, as PEM, and its public half as
//! a line of `authorized_keys`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use p521::SecretKey;
use p521::elliptic_curve::sec1::ToEncodedPoint as _;
use p521::elliptic_curve::zeroize::Zeroizing;
use p521::pkcs8::LineEnding;
use unisono_engine::mint::{self, MintError};

/// The bytes of a number below the curve's order.
const BYTES: usize = 66;

/// A freshly minted key.
pub(crate) struct SshKey {
    private: Zeroizing<String>,
    public: String,
}

impl SshKey {
    /// Mints a key.
    pub(crate) fn mint() -> Result<Self, MintError> {
        loop {
            let mut number = Zeroizing::new(mint::bytes::<BYTES>()?);
            // 521 bits: all but one of the first byte's are surplus. What is then not below the order is thrown away.
            if let Some(first) = number.first_mut() {
                *first &= 1;
            }
            if let Some(key) = Self::of(number.as_slice()) {
                return Ok(key);
            }
        }
    }

    fn of(number: &[u8]) -> Option<Self> {
        let secret = SecretKey::from_slice(number).ok()?;
        let private = secret.to_sec1_pem(LineEnding::LF).ok()?;
        let point = secret.public_key().to_encoded_point(false);
        Some(Self { private, public: authorized_key(point.as_bytes()) })
    }

    /// The private half, as PEM.
    pub(crate) fn private_pem(&self) -> &str {
        &self.private
    }

    /// The public half, as a line of `authorized_keys`.
    pub(crate) fn authorized_key(&self) -> &str {
        &self.public
    }
}

/// A point of the curve as ssh writes a public key: type, curve and point, each with its length before it (RFC 5656).
fn authorized_key(point: &[u8]) -> String {
    const TYPE: &str = "ecdsa-sha2-nistp521";
    let mut blob = Vec::new();
    for part in [TYPE.as_bytes(), b"nistp521", point] {
        blob.extend(u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes());
        blob.extend(part);
    }
    format!("{TYPE} {}\n", STANDARD.encode(blob))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_halves_have_the_promised_forms() {
        let key = SshKey::mint().unwrap();
        assert!(key.private_pem().starts_with("-----BEGIN EC PRIVATE KEY-----\n"));
        let words: Vec<&str> = key.authorized_key().split_whitespace().collect();
        let blob = STANDARD.decode(words[1]).unwrap();
        // Type, curve, and an uncompressed point of two coordinates.
        assert_eq!((words[0], blob.len()), ("ecdsa-sha2-nistp521", 4 + 19 + 4 + 8 + 4 + 133));
        assert_ne!(SshKey::mint().unwrap().authorized_key(), key.authorized_key());
    }

    #[test]
    fn what_is_not_below_the_order_is_no_key() {
        let mut largest = [0xff; BYTES];
        largest[0] = 1;
        assert!(SshKey::of(&largest).is_none());
        assert!(SshKey::of(&[0; BYTES]).is_none());
    }
}
