//! The host table: who the hosts of a job are, where they answer and by which key they are known. JSON text goes in and out.
//!
//! It is all that a launcher knows about the world: nothing outside it can be reached, and no name is ever resolved.
//!
//! ```json
//! {"version":1,"identity":"5f6c","attempt":1,"epoch":1,"port":7711,"hosts":[
//!  {"name":"pi-worker-0","address":"10.244.0.7","slots":2,"key":"h0…"},
//!  {"name":"pi-worker-1","address":"10.244.0.8","slots":2,"key":"h1…","port":7712,"aliases":["worker-1"]}]}
//! ```
//!
//! Hosts of one group may share a key. Who writes the table then need not know it: `"key":"@worker"` means the key that stands
//! beside `worker` in a second file, which only the launcher has (`UNISONO_AGENT_HOST_KEYS`).
//!
//! A host takes about 110 bytes, so 1,000 hosts fit in 128 KB. Readers ignore fields they do not know; a change that they must
//! not ignore takes a new version.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs;
use std::io::{self, Read as _};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::keys::{self, KeyError, PublicKey, is_usable_name};

/// Where hosts answer unless told otherwise.
pub const DEFAULT_PORT: u16 = 7711;

/// The only version there is.
const VERSION: u32 = 1;

/// Far above any job; what is longer is not a host table.
const LONGEST: u64 = 16 << 20;

/// The hosts of one attempt of one job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostTable {
    version: u32,
    /// Whose table this is: the launcher's own mark (a pod's UID, a run's id).
    pub identity: String,
    /// The attempt of the job it is for.
    pub attempt: u32,
    /// Counts the tables of one attempt: a replaced host means a new epoch.
    pub epoch: u32,
    /// Where hosts answer that name no port of their own.
    #[serde(default = "default_port")]
    pub port: u16,
    /// In rank order.
    pub hosts: Vec<Host>,
    /// Variables of every command: what could not be known before hosts had addresses.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
    /// Names of variables that hold the address of the host that a command runs on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_address: Vec<String>,
    /// Names of variables that hold the folder that the command behind `ready` starts in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_folder: Vec<String>,
}

/// One host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// What the job calls it.
    pub name: String,
    /// Where its agent listens.
    pub address: IpAddr,
    /// How many ranks it takes; 0 for one that only launches.
    pub slots: u32,
    /// The key its agent must prove.
    pub key: HostKey,
    /// Its own port, when not the table's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Other names it may be asked for by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
}

/// The key that a host must prove: itself, or by the name under which the launcher's own list has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum HostKey {
    /// This one.
    Own(PublicKey),
    /// The one of this name.
    Named(String),
}

/// What a key's name begins with in the table.
const NAME_MARK: char = '@';

impl HostKey {
    /// The key, looked up among the named ones where it is one of them.
    fn resolve(&self, named: &BTreeMap<String, PublicKey>) -> Option<PublicKey> {
        match self {
            Self::Own(key) => Some(*key),
            Self::Named(name) => named.get(name).copied(),
        }
    }
}

impl From<PublicKey> for HostKey {
    fn from(key: PublicKey) -> Self {
        Self::Own(key)
    }
}

impl TryFrom<String> for HostKey {
    type Error = KeyError;

    fn try_from(text: String) -> Result<Self, KeyError> {
        match text.strip_prefix(NAME_MARK) {
            Some(name) => Ok(Self::Named(name.to_owned())),
            None => text.parse().map(Self::Own),
        }
    }
}

impl From<HostKey> for String {
    fn from(key: HostKey) -> Self {
        match key {
            HostKey::Own(key) => key.to_string(),
            HostKey::Named(name) => format!("{NAME_MARK}{name}"),
        }
    }
}

/// Why a table cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TableError {
    /// It could not be read.
    #[error("cannot read the host table {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is not a host table.
    #[error("not a host table")]
    Malformed(#[from] serde_json::Error),
    /// A later Unisono wrote it.
    #[error(
        "the host table has version {0}; this agent reads version {VERSION}: use the agent that belongs to the table's writer"
    )]
    UnknownVersion(u32),
    /// A name that cannot stand in a hostfile.
    #[error("`{}` is no host name: use letters, digits, `-`, `_` and `.`", .0.escape_default())]
    UnusableName(String),
    /// Two hosts share a name.
    #[error("two hosts are called `{0}`")]
    SameName(String),
    /// Two hosts share a place.
    #[error("two hosts are at {0}")]
    SamePlace(SocketAddr),
    /// The list of named keys could not be read.
    #[error("read the keys of hosts")]
    Keys(#[from] KeyError),
    /// A key's name that the launcher's list does not have.
    #[error("host {host} is known by the key of `{}`, which is not in the launcher's list", name.escape_default())]
    UnknownKey {
        /// The host.
        host: String,
        /// The key's name.
        name: String,
    },
}

/// Why a host was not found.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum LookupError {
    /// Nobody is called so.
    #[error("`{}` is not a host of this job; its hosts are {hosts}", asked.escape_default())]
    Unknown {
        /// What was asked for.
        asked: String,
        /// The first few that there are.
        hosts: String,
    },
    /// An address that several hosts share.
    #[error("several hosts of this job are at {0}: use a name")]
    Ambiguous(IpAddr),
}

impl HostTable {
    /// Makes a table, checked.
    pub fn new(
        identity: String,
        attempt: u32,
        epoch: u32,
        hosts: Vec<Host>,
    ) -> Result<Self, TableError> {
        let table = Self {
            version: VERSION,
            identity,
            attempt,
            epoch,
            port: DEFAULT_PORT,
            hosts,
            variables: BTreeMap::new(),
            own_address: Vec::new(),
            own_folder: Vec::new(),
        };
        table.check()?;
        Ok(table)
    }

    /// Reads the text that `Display` writes.
    pub fn parse(text: &[u8]) -> Result<Self, TableError> {
        let table: Self = serde_json::from_slice(text)?;
        table.check()?;
        Ok(table)
    }

    /// Reads a file, and looks keys up that it only names in the list of named ones.
    pub fn read(path: &Path, named_keys: &Path) -> Result<Self, TableError> {
        let mut text = Vec::new();
        fs::File::open(path)
            .and_then(|file| file.take(LONGEST).read_to_end(&mut text))
            .map_err(|source| TableError::Read { path: path.to_owned(), source })?;
        let table = Self::parse(&text)?;
        if table.hosts.iter().all(|host| matches!(host.key, HostKey::Own(_))) {
            return Ok(table);
        }
        table.resolved(&keys::read_named(named_keys)?)
    }

    fn resolved(mut self, named: &BTreeMap<String, PublicKey>) -> Result<Self, TableError> {
        for host in &mut self.hosts {
            match (host.key.resolve(named), &host.key) {
                (Some(key), _) => host.key = HostKey::Own(key),
                (None, HostKey::Named(name)) => {
                    let (host, name) = (host.name.clone(), name.clone());
                    return Err(TableError::UnknownKey { host, name });
                }
                (None, HostKey::Own(_)) => {}
            }
        }
        Ok(self)
    }

    /// Where this host's agent listens.
    pub fn place(&self, host: &Host) -> SocketAddr {
        SocketAddr::new(host.address, host.port.unwrap_or(self.port))
    }

    /// Finds a host by name, alias, address, or by a longer name that begins with its name (`worker-0.job.namespace.svc`).
    pub fn find(&self, asked: &str) -> Result<&Host, LookupError> {
        let bare = asked.strip_suffix('.').unwrap_or(asked);
        if let Some(host) = self.hosts.iter().find(|host| host.is_called(bare)) {
            return Ok(host);
        }
        if let Ok(address) = bare.trim_matches(['[', ']']).parse::<IpAddr>() {
            let mut there = self.hosts.iter().filter(|host| host.address == address);
            return match (there.next(), there.next()) {
                (Some(host), None) => Ok(host),
                (Some(_), Some(_)) => Err(LookupError::Ambiguous(address)),
                (None, _) => Err(self.unknown(asked)),
            };
        }
        // The longest name that is a whole-label prefix wins, so that `a.b` is preferred to `a` for `a.b.c`.
        let longer = |host: &&Host| {
            let (start, rest) = (bare.get(..host.name.len()), bare.get(host.name.len()..));
            start.is_some_and(|start| start.eq_ignore_ascii_case(&host.name))
                && rest.is_some_and(|rest| rest.starts_with('.'))
        };
        self.hosts
            .iter()
            .filter(longer)
            .max_by_key(|host| host.name.len())
            .ok_or_else(|| self.unknown(asked))
    }

    /// The variables of a command on the host at that address.
    pub(crate) fn variables_at(&self, address: Option<IpAddr>) -> BTreeMap<String, String> {
        let own = address.map(|it| it.to_string());
        let of_host =
            own.iter().flat_map(|own| self.own_address.iter().map(move |name| (name, own)));
        of_host.chain(&self.variables).map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    fn unknown(&self, asked: &str) -> LookupError {
        const SHOWN: usize = 8;
        let mut hosts: Vec<&str> =
            self.hosts.iter().take(SHOWN).map(|host| host.name.as_str()).collect();
        if self.hosts.len() > SHOWN {
            hosts.push("…");
        }
        LookupError::Unknown { asked: asked.chars().take(80).collect(), hosts: hosts.join(", ") }
    }

    fn check(&self) -> Result<(), TableError> {
        if self.version != VERSION {
            return Err(TableError::UnknownVersion(self.version));
        }
        let mut owners = HashMap::new();
        let mut places = HashMap::new();
        for (index, host) in self.hosts.iter().enumerate() {
            for name in host.aliases.iter().chain([&host.name]) {
                if !is_usable_name(name) {
                    return Err(TableError::UnusableName(name.clone()));
                }
                if owners
                    .insert(name.to_ascii_lowercase(), index)
                    .is_some_and(|owner| owner != index)
                {
                    return Err(TableError::SameName(name.clone()));
                }
            }
            let place = self.place(host);
            if places.insert(place, index).is_some() {
                return Err(TableError::SamePlace(place));
            }
        }
        Ok(())
    }
}

impl fmt::Display for HostTable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl Host {
    /// The key it must prove; an error as long as only its name is known.
    pub(crate) fn public_key(&self) -> Result<PublicKey, TableError> {
        match &self.key {
            HostKey::Own(key) => Ok(*key),
            HostKey::Named(name) => {
                Err(TableError::UnknownKey { host: self.name.clone(), name: name.clone() })
            }
        }
    }

    fn is_called(&self, name: &str) -> bool {
        self.aliases.iter().chain([&self.name]).any(|own| own.eq_ignore_ascii_case(name))
    }
}

fn default_port() -> u16 {
    DEFAULT_PORT
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::keys::SecretKey;

    pub(crate) fn host(name: &str, address: &str, slots: u32) -> Host {
        Host {
            name: name.to_owned(),
            address: address.parse().unwrap(),
            slots,
            key: SecretKey::from_seed([1; 32]).unwrap().public().into(),
            port: None,
            aliases: Vec::new(),
        }
    }

    fn table() -> HostTable {
        let mut first = host("worker-0", "10.0.0.1", 2);
        first.aliases = vec!["executor".to_owned()];
        let hosts = vec![first, host("worker-1", "10.0.0.2", 2), host("worker-10", "fd00::1", 2)];
        HostTable::new("job".to_owned(), 1, 1, hosts).unwrap()
    }

    #[test]
    fn hosts_are_found_by_every_name_they_have() {
        let table = table();
        for (asked, name) in [
            ("worker-0", "worker-0"),
            ("WORKER-0", "worker-0"),
            ("executor", "worker-0"),
            ("10.0.0.2", "worker-1"),
            ("[fd00::1]", "worker-10"),
            ("worker-1.pi.default.svc.cluster.local.", "worker-1"),
            ("worker-10.pi", "worker-10"),
        ] {
            assert_eq!(table.find(asked).unwrap().name, name, "{asked}");
        }
    }

    #[test]
    fn what_is_not_in_the_table_is_not_found() {
        let table = table();
        for asked in [
            "",
            "worker",
            "worker-2",
            "worker-0x",
            "10.0.0.9",
            "localhost",
            "worker-0\n",
            "-oProxyCommand=x",
        ] {
            assert!(matches!(table.find(asked), Err(LookupError::Unknown { .. })), "{asked:?}");
        }
    }

    #[test]
    fn text_is_read_back() {
        let table = table();
        assert_eq!(HostTable::parse(table.to_string().as_bytes()).unwrap(), table);
    }

    #[test]
    fn a_key_that_is_only_named_is_looked_up_in_the_launchers_own_list() {
        let folder = tempfile::tempdir().unwrap();
        let (file, list) = (folder.path().join("table"), folder.path().join("hosts"));
        let mut named = host("worker-0", "10.0.0.1", 1);
        named.key = HostKey::Named("worker".to_owned());
        let table = HostTable::new(String::new(), 1, 1, vec![named]).unwrap();
        fs::write(&file, table.to_string()).unwrap();
        assert!(table.to_string().contains(r#""key":"@worker""#));

        let key = SecretKey::from_seed([3; 32]).unwrap().public();
        fs::write(&list, format!("launcher {}\nworker {key}\n", table_key(9))).unwrap();
        let read = HostTable::read(&file, &list).unwrap();
        assert_eq!(read.hosts[0].public_key().unwrap(), key);

        fs::write(&list, format!("other {key}\n")).unwrap();
        let fault = HostTable::read(&file, &list).unwrap_err();
        assert!(matches!(fault, TableError::UnknownKey { .. }), "{fault}");
    }

    fn table_key(seed: u8) -> PublicKey {
        SecretKey::from_seed([seed; 32]).unwrap().public()
    }

    #[test]
    fn a_thousand_hosts_fit_in_an_annotation() {
        let hosts = (0..1000)
            .map(|index| {
                host(
                    &format!("bert-large-worker-{index}"),
                    &format!("10.244.{}.{}", 100 + index / 200, 10 + index % 200),
                    8,
                )
            })
            .collect();
        let uid = "5f6c0a5e-3a5c-4a37-9d5c-0b8f4f2f9d11".to_owned();
        let table = HostTable::new(uid, 1, 1, hosts).unwrap();
        assert!(table.to_string().len() <= 128 << 10, "{}", table.to_string().len());
    }

    #[test]
    fn doubles_and_hostile_names_are_refused() {
        let twice = vec![host("a", "10.0.0.1", 1), host("A", "10.0.0.2", 1)];
        assert!(matches!(HostTable::new(String::new(), 1, 1, twice), Err(TableError::SameName(_))));
        let place = vec![host("a", "10.0.0.1", 1), host("b", "10.0.0.1", 1)];
        assert!(matches!(
            HostTable::new(String::new(), 1, 1, place),
            Err(TableError::SamePlace(_))
        ));
        for name in ["-oProxyCommand=x", "a b", "a\nb", ""] {
            let hosts = vec![host(name, "10.0.0.1", 1)];
            assert!(
                matches!(
                    HostTable::new(String::new(), 1, 1, hosts),
                    Err(TableError::UnusableName(_))
                ),
                "{name:?}"
            );
        }
    }

    #[test]
    fn an_address_of_two_hosts_is_ambiguous() {
        let mut second = host("b", "10.0.0.1", 1);
        second.port = Some(9);
        let table =
            HostTable::new(String::new(), 1, 1, vec![host("a", "10.0.0.1", 1), second]).unwrap();
        assert!(matches!(table.find("10.0.0.1"), Err(LookupError::Ambiguous(_))));
        assert_eq!(table.find("b").unwrap().name, "b");
    }

    #[test]
    fn a_later_version_is_refused() {
        let later = table().to_string().replace("\"version\":1", "\"version\":2");
        assert!(matches!(HostTable::parse(later.as_bytes()), Err(TableError::UnknownVersion(2))));
    }

    #[test]
    fn variables_are_the_same_on_all_hosts_but_for_their_own_address() {
        let mut table = table();
        table.variables = BTreeMap::from([("PEERS".to_owned(), "2".to_owned())]);
        table.own_address = vec!["SELF".to_owned()];
        let back = HostTable::parse(table.to_string().as_bytes()).unwrap();
        let at = back.variables_at(Some([10, 0, 0, 9].into()));
        assert_eq!((at["PEERS"].as_str(), at["SELF"].as_str()), ("2", "10.0.0.9"));
        assert!(!back.variables_at(None).contains_key("SELF"));
    }
}
