//! Enters: the API server's audit log. Leaves: how many requests whom, how, about what.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek, SeekFrom};

use anyhow::Context;
use serde::Deserialize;

use crate::namespaces::Walls;

/// Where the API server writes one line a request, as the cluster's processes see it.
pub(crate) const LOG: &str = "/mnt/log/audit.jsonl";

/// A moment in the audit log, from which requests are counted.
#[derive(Clone, Copy, Debug)]
pub struct Mark(u64);

impl Mark {
    /// The moment the cluster began.
    pub const BEGINNING: Self = Self(0);
}

/// What a request was: who asked to do what with which kind of object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    /// The user's name, as `system:serviceaccount:NAMESPACE:NAME` for a service account.
    pub user: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: String,
    /// The resource with its group and subresource, as in `jobs.batch/status` or `pods`.
    pub resource: String,
    /// The namespace; empty where there is none.
    pub namespace: String,
}

/// Numbers of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(BTreeMap<Request, u64>);

impl Counts {
    /// How many requests fit the description.
    pub fn count(&self, fits: impl Fn(&Request) -> bool) -> u64 {
        self.iter().filter(|(request, _)| fits(request)).map(|(_, count)| count).sum()
    }

    /// Only the requests of one user.
    #[must_use]
    pub fn of_user(&self, user: &str) -> Self {
        let own = self.0.iter().filter(|(request, _)| request.user == user);
        Self(own.map(|(request, count)| (request.clone(), *count)).collect())
    }

    /// Only the requests about one namespace.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Self {
        let own = self.0.iter().filter(|(request, _)| request.namespace == namespace);
        Self(own.map(|(request, count)| (request.clone(), *count)).collect())
    }

    /// Every kind of request with its number, by user, verb, resource and namespace.
    pub fn iter(&self) -> impl Iterator<Item = (&Request, u64)> {
        self.0.iter().map(|(request, count)| (request, *count))
    }
}

/// The present end of the log.
pub(crate) fn mark(walls: Walls) -> anyhow::Result<Mark> {
    let log = std::fs::metadata(walls.path(LOG)).context("look at the audit log")?;
    Ok(Mark(log.len()))
}

/// Counts what was answered since the mark.
pub(crate) fn since(walls: Walls, mark: Mark) -> anyhow::Result<Counts> {
    count(&written_since(walls, mark)?)
}

/// What was written since the mark.
fn written_since(walls: Walls, mark: Mark) -> anyhow::Result<String> {
    let mut log = File::open(walls.path(LOG)).context("open the audit log")?;
    // One more, to see whether a line begins there.
    let from = mark.0.saturating_sub(1);
    log.seek(SeekFrom::Start(from)).context("go to a mark")?;
    let mut written = Vec::new();
    log.read_to_end(&mut written).context("read the audit log")?;
    if mark.0 == 0 {
        written.insert(0, b'\n');
    }
    String::from_utf8(whole_lines(&written).to_vec()).context("read the audit log")
}

/// All lines of a text that begin and end in it: the API server is still writing the rest.
fn whole_lines(text: &[u8]) -> &[u8] {
    let is_end = |byte: &u8| *byte == b'\n';
    let begin = text.iter().position(is_end).map_or(text.len(), |at| at + 1);
    let end = text.iter().rposition(is_end).map_or(begin, |at| at + 1);
    text.get(begin..end).unwrap_or_default()
}

/// When the last request since the mark that fits the description was answered, in seconds after the first one that fits the other.
pub(crate) fn span(
    walls: Walls,
    mark: Mark,
    from: impl Fn(&Request) -> bool,
    to: impl Fn(&Request) -> bool,
) -> anyhow::Result<f64> {
    let (mut first, mut last) = (None, None);
    for line in written_since(walls, mark)?.lines() {
        let event: Event = serde_json::from_str(line).context("read a line of the audit log")?;
        let at = seconds(&event.stage_timestamp).context("read a moment of the audit log")?;
        let request = event.request();
        if from(&request) && first.is_none() {
            first = Some(at);
        }
        if to(&request) {
            last = Some(at);
        }
    }
    let (first, last) = first.zip(last).context("no such requests")?;
    // A day may have ended between.
    Ok((last - first).rem_euclid(86_400.0))
}

/// The time of day of `2026-01-31T23:59:59.123456Z`.
fn seconds(moment: &str) -> Option<f64> {
    let clock = moment.split_once('T')?.1.strip_suffix('Z')?;
    clock.split(':').try_fold(0.0, |sum, part| Some(sum * 60.0 + part.parse::<f64>().ok()?))
}

fn count(log: &str) -> anyhow::Result<Counts> {
    let mut counts = Counts::default();
    for line in log.lines() {
        let event: Event = serde_json::from_str(line).context("read a line of the audit log")?;
        *counts.0.entry(event.request()).or_default() += 1;
    }
    Ok(counts)
}

/// The parts of an audit event that are counted.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    verb: String,
    user: User,
    object_ref: Option<Object>,
    #[serde(rename = "requestURI")]
    uri: String,
    #[serde(default)]
    stage_timestamp: String,
}

#[derive(Deserialize)]
struct User {
    /// Nobody's where the API server did not believe who asked.
    #[serde(default)]
    username: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Object {
    #[serde(default)]
    resource: String,
    #[serde(default)]
    api_group: String,
    #[serde(default)]
    subresource: String,
    #[serde(default)]
    namespace: String,
}

impl Event {
    fn request(self) -> Request {
        let namespace = self.object_ref.as_ref().map(|it| it.namespace.clone()).unwrap_or_default();
        let resource = match self.object_ref {
            Some(object) if !object.resource.is_empty() => object.name(),
            // Discovery, health, metrics: no object, only a path.
            _ => self.uri.split('?').next().unwrap_or_default().to_owned(),
        };
        Request { user: self.user.username, verb: self.verb, resource, namespace }
    }
}

impl Object {
    fn name(self) -> String {
        let mut name = self.resource;
        for (separator, more) in [('.', self.api_group), ('/', self.subresource)] {
            if !more.is_empty() {
                name.push(separator);
                name.push_str(&more);
            }
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_user_verb_and_resource() {
        let log = concat!(
            r#"{"verb":"create","user":{"username":"a"},"objectRef":{"resource":"pods"},"requestURI":"/api/v1/pods"}"#,
            "\n",
            r#"{"verb":"create","user":{"username":"a"},"objectRef":{"resource":"pods"},"requestURI":"/api/v1/pods"}"#,
            "\n",
            r#"{"verb":"patch","user":{"username":"b"},"objectRef":{"resource":"jobs","apiGroup":"batch","subresource":"status","namespace":"lab"},"requestURI":"/x"}"#,
            "\n",
            r#"{"verb":"get","user":{"username":"b"},"requestURI":"/readyz?verbose"}"#,
            "\n",
            r#"{"verb":"get","user":{},"requestURI":"/api"}"#,
        );
        let counts = count(log).unwrap();
        assert_eq!(counts.count(|request| request.verb == "create"), 2);
        assert_eq!(counts.count(|request| request.resource == "jobs.batch/status"), 1);
        assert_eq!(counts.of_user("b").count(|request| request.resource == "/readyz"), 1);
        assert_eq!(counts.of_user("c").iter().count(), 0);
        assert_eq!(counts.of_user("").count(|request| request.resource == "/api"), 1);
        assert_eq!(counts.in_namespace("lab").iter().count(), 1);
    }

    #[test]
    fn lines_that_are_still_being_written_are_left_for_later() {
        let whole = |text: &'static str| std::str::from_utf8(whole_lines(text.as_bytes())).unwrap();
        assert_eq!(whole("\na\nb\n"), "a\nb\n");
        assert_eq!(whole("rest\na\nbeg"), "a\n");
        assert_eq!([whole(""), whole("\n"), whole("rest"), whole("\nbeg")], [""; 4]);
    }

    #[test]
    fn moments_are_read_to_the_microsecond() {
        assert_eq!(seconds("2026-01-31T01:00:02.500000Z"), Some(3602.5));
        assert_eq!(seconds("yesterday"), None);
    }
}
