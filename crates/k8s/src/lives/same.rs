//! Whether two worlds are the same, but for what no two lives have in common.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::world::{BEGINNING, Memory, World};

/// A world as far as two lives can have it in common, and all that decides how it goes on.
#[derive(Clone)]
pub(super) struct State {
    /// What is stored, as it is and as it is compared.
    objects: BTreeMap<String, (Arc<Value>, Arc<Value>)>,
    memory: Memory,
}

impl State {
    pub(super) fn of(world: &World) -> Self {
        let none = Self { objects: BTreeMap::new(), memory: world.memory.clone() };
        none.now(world)
    }

    /// The state of a world that was in this one before: what has not changed since is not looked at again.
    pub(super) fn now(&self, world: &World) -> Self {
        let stored = world.server.store();
        let compared = |path: &String, object: &Arc<Value>| match self.objects.get(path) {
            Some((known, compared)) if Arc::ptr_eq(known, object) => Arc::clone(compared),
            _ => Arc::new(comparable(object)),
        };
        let all = stored.all().iter();
        let objects =
            all.map(|(path, object)| (path.clone(), (Arc::clone(object), compared(path, object))));
        Self { objects: objects.collect(), memory: world.memory.clone() }
    }

    /// Whether a world in the other state goes on as one in this state does.
    pub(super) fn is(&self, other: &Self) -> bool {
        let is_same = |path: &String, one: &Arc<Value>| {
            other.objects.get(path).is_some_and(|it| Arc::ptr_eq(&it.1, one) || it.1 == *one)
        };
        self.memory == other.memory
            && self.objects.len() == other.objects.len()
            && self.objects.iter().all(|(path, (_, compared))| is_same(path, compared))
    }

    /// The first thing that is stored otherwise in the other state; none where everything is the same.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        let expected = |path: &String| self.objects.get(path).map(|it| &*it.1);
        let found = |path: &String| other.objects.get(path).map(|it| &*it.1);
        let mut paths = self.objects.keys().chain(other.objects.keys());
        let path = paths.find(|path| expected(path) != found(path))?;
        Some(match (expected(path), found(path)) {
            (Some(expected), Some(found)) => {
                let (at, expected, found) = inside(String::new(), expected, found);
                format!("{path} {at}: {found} and not {expected}")
            }
            (None, _) => format!("{path} is left"),
            (_, None) => format!("{path} is missing"),
        })
    }
}

fn comparable(object: &Value) -> Value {
    let mut object = object.clone();
    object["metadata"]["resourceVersion"] = Value::Null;
    // Keys are minted anew where a Secret is.
    let secrets = object.get_mut("stringData").and_then(Value::as_object_mut);
    secrets.into_iter().flatten().for_each(|(_, secret)| *secret = json!("minted"));
    without_times(&mut object);
    object
}

fn without_times(value: &mut Value) {
    match value {
        Value::Object(map) => map.values_mut().for_each(without_times),
        Value::Array(list) => list.iter_mut().for_each(without_times),
        Value::Number(number) if number.as_u64().is_some_and(|it| it >= BEGINNING) => {
            *value = json!("a time");
        }
        Value::String(text) if text.parse().is_ok_and(|it: u64| it >= BEGINNING) => {
            *value = json!("a time");
        }
        Value::String(text) if text.contains("2026-01-0") => {
            let words = text.split(' ').map(|it| match it.starts_with("2026-01-0") {
                true => "a-time",
                false => it,
            });
            *value = json!(words.collect::<Vec<_>>().join(" "));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The innermost place at which two values differ, and how.
fn inside(at: String, expected: &Value, found: &Value) -> (String, String, String) {
    let names: Vec<String> = match (expected, found) {
        (Value::Object(one), Value::Object(other)) => {
            one.keys().chain(other.keys()).cloned().collect()
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            (0..one.len()).map(|nth| nth.to_string()).collect()
        }
        _ => Vec::new(),
    };
    let none = Value::Null;
    for name in names {
        let of = |value: &'_ Value| match value {
            Value::Array(list) => name.parse().ok().and_then(|nth: usize| list.get(nth)).cloned(),
            value => value.get(&name).cloned(),
        };
        let (one, other) = (of(expected), of(found));
        if one != other {
            let at = format!("{at}/{name}");
            return inside(at, one.as_ref().unwrap_or(&none), other.as_ref().unwrap_or(&none));
        }
    }
    (at, clipped(expected), clipped(found))
}

fn clipped(value: &Value) -> String {
    value.to_string().chars().take(300).collect()
}
