//! A key for ssh, in the form that MPIJob v2beta1 promises: an elliptic curve key of 521 bits, as PEM, and its public half as
//! a line of `authorized_keys`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use p521::SecretKey;
use p521::elliptic_curve::sec1::ToEncodedPoint as _;
use p521::elliptic_curve::zeroize::Zeroizing;
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
        let point = secret.public_key().to_encoded_point(false);
        let private = private_pem(number, point.as_bytes());
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

/// The private half as PEM of SEC 1, with the curve named: without that OpenSSH does not know which one it is.
fn private_pem(number: &[u8], point: &[u8]) -> Zeroizing<String> {
    // Every length is fixed by the curve, so what stands between the two numbers is, too: an outer sequence, version 1, the
    // number; the curve's name, 1.3.132.0.35; the point.
    const BEFORE_NUMBER: [u8; 8] = [0x30, 0x81, 0xdc, 0x02, 0x01, 0x01, 0x04, 0x42];
    const CURVE: [u8; 9] = [0xa0, 0x07, 0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x23];
    const BEFORE_POINT: [u8; 7] = [0xa1, 0x81, 0x89, 0x03, 0x81, 0x86, 0x00];
    let der = Zeroizing::new([&BEFORE_NUMBER, number, &CURVE, &BEFORE_POINT, point].concat());
    let text = Zeroizing::new(STANDARD.encode(der.as_slice()));
    let mut pem = Zeroizing::new("-----BEGIN EC PRIVATE KEY-----\n".to_owned());
    for line in text.as_bytes().chunks(64) {
        pem.extend(line.iter().map(|byte| char::from(*byte)));
        pem.push('\n');
    }
    pem.push_str("-----END EC PRIVATE KEY-----\n");
    pem
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
        let text: String =
            key.private_pem().lines().filter(|line| !line.starts_with('-')).collect();
        let der = STANDARD.decode(text).unwrap();
        // The sequence says how long it is.
        assert_eq!((der.len(), der[1], usize::from(der[2])), (223, 0x81, 223 - 3));
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
