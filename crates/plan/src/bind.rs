//! Addresses enter: from a plan and where its hosts are to the host table and the texts of all files.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::IpAddr;

use serde::Serialize;

use crate::hostfile::{self, promised_name};
use crate::{FileContent, Host, Member, Plan};

/// Where each host is.
pub type Addresses = BTreeMap<Member, IpAddr>;

/// What a plan becomes once its hosts have addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Bound {
    /// Every host with its names and its address, in the plan's order.
    pub table: Vec<TableEntry>,
    /// Files by path, each text once however many hosts get it.
    pub files: BTreeMap<String, BoundFile>,
}

/// One host of the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TableEntry {
    /// Every name it answers to, its own first.
    pub names: Vec<String>,
    /// Where it is.
    pub address: IpAddr,
    /// How many ranks it is meant to run.
    pub slots: u32,
    /// Whether it may start processes on other hosts.
    pub may_launch: bool,
}

/// A file's text and permissions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BoundFile {
    /// Its permissions.
    pub mode: u32,
    /// What it holds.
    pub text: String,
}

/// How host files call hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalledBy {
    /// As the dialect promises.
    Promised,
    /// By the host's own name: Open MPI takes a host for its own only by that.
    Name,
    /// By address, where names need not resolve.
    Address,
}

/// Why a plan cannot be bound yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("host {host} has no address yet")]
pub struct Unbound {
    /// The first host without an address.
    pub host: String,
}

/// Makes the host table and every file's text.
///
/// # Errors
///
/// When a host has no address.
pub fn bind(plan: &Plan, addresses: &Addresses, called: CalledBy) -> Result<Bound, Unbound> {
    let table = plan
        .hosts
        .iter()
        .map(|host| {
            let address =
                addresses.get(&host.member).ok_or_else(|| Unbound { host: host.name.clone() })?;
            Ok(TableEntry {
                names: hostfile::aliases(plan, host),
                address: *address,
                slots: host.slots,
                may_launch: plan.may_launch(host.member),
            })
        })
        .collect::<Result<_, Unbound>>()?;
    let name = |host: &'_ Host| -> Cow<'_, str> {
        match called {
            CalledBy::Promised => promised_name(plan, host).into_owned().into(),
            CalledBy::Name => host.name.clone().into(),
            CalledBy::Address => {
                addresses.get(&host.member).map(ToString::to_string).unwrap_or_default().into()
            }
        }
    };
    Ok(Bound { table, files: texts(plan, &name) })
}

/// Every file's text with hosts called as the dialect promises, which needs no addresses.
pub fn promised_files(plan: &Plan) -> BTreeMap<String, BoundFile> {
    texts(plan, &|host| promised_name(plan, host))
}

fn texts<'plan>(
    plan: &'plan Plan,
    name: &impl Fn(&'plan Host) -> Cow<'plan, str>,
) -> BTreeMap<String, BoundFile> {
    let mut files = BTreeMap::new();
    for file in plan.programs.iter().flat_map(|program| &program.files) {
        files.entry(file.path.clone()).or_insert_with(|| BoundFile {
            mode: file.mode,
            text: text_of(plan, &file.content, name),
        });
    }
    files
}

fn text_of<'plan>(
    plan: &'plan Plan,
    content: &FileContent,
    name: &impl Fn(&'plan Host) -> Cow<'plan, str>,
) -> String {
    match content {
        FileContent::Hostfile(form) => hostfile::text(plan, *form, name),
        FileContent::Text(text) => text.clone(),
        FileContent::DiscoverHosts { with_slots } => {
            let mut text = "#!/bin/sh\n".to_owned();
            for host in plan.rank_hosts() {
                let name = name(host);
                // Writing to a String cannot fail.
                let _written = match with_slots {
                    true => writeln!(text, "echo {name}:{}", host.slots),
                    false => writeln!(text, "echo {name}"),
                };
            }
            text
        }
    }
}
