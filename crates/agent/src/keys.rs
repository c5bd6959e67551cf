//! One job's key material: Ed25519 pairs go in and out as short lines of text, secret ones in files only their owner can read.
//!
//! A *launcher* key may start commands on every host that lists its public half; a *host* key only proves which host answers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use base64ct::{Base64UrlUnpadded, Encoding as _};
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use zeroize::Zeroizing;

/// Ed25519 seeds and public keys are 32 bytes long.
const KEY_BYTES: usize = 32;

/// First word of a secret key file, so that a public key given by mistake is told apart from a damaged secret one.
const SECRET_WORD: &str = "unisono-secret-key-1";

/// A file with keys is never longer than this; what is longer is not such a file.
const LONGEST_FILE: u64 = 4 << 20;

/// Why key material could not be made, read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The kernel gave no random bytes.
    #[error("the system has no random numbers to make a key from")]
    NoRandomness,
    /// The text is no public key.
    #[error("not a public key: expected 43 characters of URL-safe base64")]
    MalformedPublic,
    /// The text is no secret key.
    #[error(
        "not a secret key: expected the word `{SECRET_WORD}` and 43 characters of URL-safe base64"
    )]
    MalformedSecret,
    /// A member's name cannot be a file name.
    #[error(
        "`{0}` cannot name a member: use letters, digits, `-`, `_` and `.`, and begin with a letter or digit"
    )]
    UnusableName(String),
    /// A file could not be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file does not hold what it should.
    #[error("{} is not usable", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<Self>,
    },
    /// A launchers file without a key would let nobody in, which is never what was meant.
    #[error("there is no public key in it: no launcher could ever reach this host")]
    NoLaunchers,
}

/// The public half of a key: what hosts and launchers know about each other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublicKey([u8; KEY_BYTES]);

impl PublicKey {
    /// The key as rustls sees it on the wire: a DER `SubjectPublicKeyInfo`, whose first bytes are fixed for Ed25519 (RFC 8410).
    pub(crate) fn to_spki(self) -> Vec<u8> {
        const PREFIX: [u8; 12] =
            [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
        [&PREFIX[..], &self.0[..]].concat()
    }

    /// The bare 32 bytes.
    pub fn as_bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&Base64UrlUnpadded::encode_string(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let mut bytes = [0; KEY_BYTES];
        match Base64UrlUnpadded::decode(text, &mut bytes) {
            Ok(decoded) if decoded.len() == KEY_BYTES => Ok(Self(bytes)),
            _ => Err(KeyError::MalformedPublic),
        }
    }
}

impl TryFrom<String> for PublicKey {
    type Error = KeyError;

    fn try_from(text: String) -> Result<Self, KeyError> {
        text.parse()
    }
}

impl From<PublicKey> for String {
    fn from(key: PublicKey) -> Self {
        key.to_string()
    }
}

/// The secret half of a key. It is wiped from memory when dropped and never printed.
pub struct SecretKey {
    seed: Zeroizing<[u8; KEY_BYTES]>,
    public: PublicKey,
}

impl SecretKey {
    /// Makes a new key from the system's random numbers.
    pub fn mint() -> Result<Self, KeyError> {
        let mut seed = Zeroizing::new([0; KEY_BYTES]);
        SystemRandom::new().fill(seed.as_mut_slice()).map_err(|_| KeyError::NoRandomness)?;
        Self::of(seed)
    }

    /// Makes the key of a seed, for callers that own their randomness.
    pub fn from_seed(seed: [u8; KEY_BYTES]) -> Result<Self, KeyError> {
        Self::of(Zeroizing::new(seed))
    }

    fn of(seed: Zeroizing<[u8; KEY_BYTES]>) -> Result<Self, KeyError> {
        let public = signing_pair(&seed)?
            .public_key()
            .as_ref()
            .try_into()
            .map_err(|_| KeyError::MalformedSecret)?;
        Ok(Self { seed, public: PublicKey(public) })
    }

    /// The half that may be told to everybody.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    /// The key pair that signs.
    pub(crate) fn pair(&self) -> Result<Ed25519KeyPair, KeyError> {
        signing_pair(&self.seed)
    }

    /// The one line of text that [`SecretKey::parse`] reads back; wiped when dropped.
    pub fn to_text(&self) -> Zeroizing<String> {
        let encoded = Zeroizing::new(Base64UrlUnpadded::encode_string(self.seed.as_slice()));
        Zeroizing::new([SECRET_WORD, " ", encoded.as_str(), "\n"].concat())
    }

    /// Reads what [`SecretKey::to_text`] wrote.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let mut words = text.split_ascii_whitespace();
        let (Some(SECRET_WORD), Some(encoded), None) = (words.next(), words.next(), words.next())
        else {
            return Err(KeyError::MalformedSecret);
        };
        let mut seed = Zeroizing::new([0; KEY_BYTES]);
        match Base64UrlUnpadded::decode(encoded, seed.as_mut_slice()) {
            Ok(decoded) if decoded.len() == KEY_BYTES => Self::of(seed),
            _ => Err(KeyError::MalformedSecret),
        }
    }

    /// Reads a key file. Its mode is not judged: a Secret volume of Kubernetes decides that for itself.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let text = read_bounded(path)?;
        Self::parse(&text).map_err(|source| malformed(path, source))
    }

    /// Writes a new key file that only its owner may read (0400). An existing file is an error: keys are never replaced in place.
    pub fn write(&self, path: &Path) -> Result<(), KeyError> {
        write_new(path, 0o400, self.to_text().as_bytes())
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SecretKey(of {})", self.public())
    }
}

/// The public keys that may launch on a host: one per line, `#` begins a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launchers(BTreeSet<PublicKey>);

impl Launchers {
    /// Makes the list; an empty one is refused.
    pub fn new(keys: impl IntoIterator<Item = PublicKey>) -> Result<Self, KeyError> {
        let keys: BTreeSet<_> = keys.into_iter().collect();
        if keys.is_empty() {
            return Err(KeyError::NoLaunchers);
        }
        Ok(Self(keys))
    }

    /// Reads the file's text.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let keys: Result<Vec<PublicKey>, KeyError> = text
            .lines()
            .filter_map(|line| line.split('#').next())
            .map(str::trim)
            .filter(|key| !key.is_empty())
            .map(str::parse)
            .collect();
        Self::new(keys?)
    }

    /// Reads the file.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        Self::parse(&read_bounded(path)?).map_err(|source| malformed(path, source))
    }

    /// Whether this key may launch.
    pub fn contains(&self, key: &PublicKey) -> bool {
        self.0.contains(key)
    }

    /// The keys, in order.
    pub fn iter(&self) -> impl Iterator<Item = &PublicKey> {
        self.0.iter()
    }
}

impl fmt::Display for Launchers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|key| writeln!(formatter, "{key}"))
    }
}

/// Every key of one job, by member name: minted once, never changed while the job runs.
#[derive(Debug)]
pub struct JobKeys {
    /// Of those who may launch.
    pub launchers: BTreeMap<String, SecretKey>,
    /// Of those who are launched on. A member may be in both, with two keys.
    pub hosts: BTreeMap<String, SecretKey>,
}

impl JobKeys {
    /// Mints a key for each name.
    pub fn mint<'name>(
        launchers: impl IntoIterator<Item = &'name str>,
        hosts: impl IntoIterator<Item = &'name str>,
    ) -> Result<Self, KeyError> {
        Ok(Self { launchers: mint_each(launchers)?, hosts: mint_each(hosts)? })
    }

    /// The list that each host needs.
    pub fn launcher_list(&self) -> Result<Launchers, KeyError> {
        Launchers::new(self.launchers.values().map(SecretKey::public))
    }

    /// The public halves of the hosts' keys, as the lines of `hosts`.
    pub fn host_list(&self) -> String {
        self.hosts.iter().map(|(name, key)| format!("{name} {}\n", key.public())).collect()
    }

    /// Writes `launchers` (public), `launcher/NAME.key` and `host/NAME.key` (0400 in folders that are 0700), and `hosts` (`NAME PUBLIC-KEY` lines).
    pub fn write(&self, folder: &Path) -> Result<(), KeyError> {
        for (kind, keys) in [("launcher", &self.launchers), ("host", &self.hosts)] {
            let folder = folder.join(kind);
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&folder)
                .map_err(|source| KeyError::Write { path: folder.clone(), source })?;
            for (name, key) in keys {
                key.write(&folder.join(format!("{name}.key")))?;
            }
        }
        write_new(&folder.join("hosts"), 0o444, self.host_list().as_bytes())?;
        write_new(&folder.join("launchers"), 0o444, self.launcher_list()?.to_string().as_bytes())
    }
}

/// Public keys by name, from lines of a name and a key, as [`JobKeys::write`] writes them into `hosts`.
pub(crate) fn read_named(path: &Path) -> Result<BTreeMap<String, PublicKey>, KeyError> {
    let text = read_bounded(path)?;
    let line = |line: &str| {
        let (name, key) = line.split_once(' ').ok_or(KeyError::MalformedPublic)?;
        Ok((name.to_owned(), key.trim().parse()?))
    };
    let filled = text.lines().filter(|line| !line.trim().is_empty());
    filled.map(line).collect::<Result<_, KeyError>>().map_err(|source| malformed(path, source))
}

/// Whether a member may be called this: it becomes a file name, a word of a hostfile and an argument.
pub(crate) fn is_usable_name(name: &str) -> bool {
    name.len() <= 253
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|each| each.is_ascii_alphanumeric() || matches!(each, '-' | '_' | '.' | '~'))
}

fn signing_pair(seed: &[u8; KEY_BYTES]) -> Result<Ed25519KeyPair, KeyError> {
    Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| KeyError::MalformedSecret)
}

fn mint_each<'name>(
    names: impl IntoIterator<Item = &'name str>,
) -> Result<BTreeMap<String, SecretKey>, KeyError> {
    names
        .into_iter()
        .map(|name| {
            if !is_usable_name(name) {
                return Err(KeyError::UnusableName(name.to_owned()));
            }
            Ok((name.to_owned(), SecretKey::mint()?))
        })
        .collect()
}

fn malformed(path: &Path, source: KeyError) -> KeyError {
    KeyError::Malformed { path: path.to_owned(), source: Box::new(source) }
}

fn read_bounded(path: &Path) -> Result<Zeroizing<String>, KeyError> {
    use std::io::Read as _;
    let mut text = Zeroizing::new(String::new());
    fs::File::open(path)
        .and_then(|file| file.take(LONGEST_FILE).read_to_string(&mut text))
        .map_err(|source| KeyError::Read { path: path.to_owned(), source })?;
    Ok(text)
}

fn write_new(path: &Path, mode: u32, content: &[u8]) -> Result<(), KeyError> {
    fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)
        .and_then(|mut file| file.write_all(content))
        .map_err(|source| KeyError::Write { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn key_of(seed: u8) -> SecretKey {
        SecretKey::from_seed([seed; 32]).unwrap()
    }

    #[test]
    fn secret_text_is_read_back() {
        let key = key_of(7);
        let again = SecretKey::parse(&key.to_text()).unwrap();
        assert_eq!(again.public(), key.public());
    }

    #[test]
    fn public_text_is_43_characters_and_read_back() {
        let public = SecretKey::mint().unwrap().public();
        assert_eq!(public.to_string().len(), 43);
        assert_eq!(public.to_string().parse::<PublicKey>().unwrap(), public);
    }

    #[test]
    fn two_minted_keys_differ() {
        assert_ne!(SecretKey::mint().unwrap().public(), SecretKey::mint().unwrap().public());
    }

    #[test]
    fn public_key_given_as_secret_is_told_apart() {
        let public = key_of(7).public().to_string();
        assert!(matches!(SecretKey::parse(&public), Err(KeyError::MalformedSecret)));
    }

    #[test]
    fn debug_shows_no_secret() {
        let key = key_of(7);
        let text = key.to_text();
        let encoded = text.split_whitespace().last().unwrap();
        assert!(!format!("{key:?}").contains(encoded));
    }

    #[test]
    fn launchers_skip_comments_and_blank_lines() {
        let key = key_of(1).public();
        let list = Launchers::parse(&format!("# job\n\n{key} # launcher\n")).unwrap();
        assert!(list.contains(&key));
        assert!(!list.contains(&key_of(2).public()));
    }

    #[test]
    fn launchers_without_a_key_are_refused() {
        assert!(matches!(Launchers::parse("# nobody\n"), Err(KeyError::NoLaunchers)));
    }

    #[test]
    fn job_keys_are_written_for_their_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        JobKeys::mint(["launcher"], ["worker-0"]).unwrap().write(folder.path()).unwrap();
        for secret in ["launcher/launcher.key", "host/worker-0.key"] {
            let mode = fs::metadata(folder.path().join(secret)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o400, "{secret}");
        }
    }

    #[test]
    fn names_that_leave_the_folder_are_refused() {
        for name in ["../x", "", "-x", "a/b", ".hidden"] {
            assert!(matches!(JobKeys::mint([name], []), Err(KeyError::UnusableName(_))), "{name}");
        }
    }
}
