//! Admission policies: one for each version that refuses what can never run, or warns where its old definition took that, too,
//! and one for each that warns about keys nobody reads. The API server evaluates them by itself; nothing of ours has to be up.

use serde_json::{Value, json};
use unisono_dialect::{Kind, Others, Shape, served_shape};

use crate::resources::{Resource, Rule, Version};

/// The policies of a kind, each with its binding.
pub(super) fn policies(resource: &Resource) -> Vec<Value> {
    resource.versions.iter().flat_map(|version| of_version(resource, version)).collect()
}

fn of_version(resource: &Resource, version: &Version) -> Vec<Value> {
    let name = |what: &str| format!("{}-{}-{what}.unisono.dev", resource.plural, version.name);
    let rules: Vec<Value> = version.rules.iter().map(validation).collect();
    let shape = served_shape(version.dialect);
    let mut keys = Vec::new();
    closed_objects(shape, &Path::root(), &mut keys);
    let broken = if version.refuses { "Deny" } else { "Warn" };
    [("rules", rules, broken), ("keys", keys, "Warn")]
        .into_iter()
        .flat_map(|(what, validations, action)| {
            let policy = policy(&name(what), resource, version, &validations);
            [policy, binding(&name(what), action)]
        })
        .collect()
}

fn policy(name: &str, resource: &Resource, version: &Version, validations: &[Value]) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name, "labels": super::labels()},
        "spec": {
            // What a rule cannot be evaluated on is let in; the operator tells what is wrong with it.
            "failurePolicy": "Ignore",
            "matchConstraints": {
                // Each version has its own rules, and every object is served in every version.
                "matchPolicy": "Exact",
                "resourceRules": [{
                    "apiGroups": [resource.group],
                    "apiVersions": [version.name],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": [resource.plural],
                }],
            },
            "validations": validations,
        },
    })
}

fn binding(name: &str, action: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name, "labels": super::labels()},
        "spec": {"policyName": name, "validationActions": [action]},
    })
}

/// An object that already breaks a rule may still be changed: it may come from another version or an older operator.
fn validation(rule: &Rule) -> Value {
    let of = |object: &str| about(rule.holds, object);
    let expression = if rule.holds.contains("oldObject") {
        rule.holds.to_owned()
    } else {
        format!("{} || request.operation == 'UPDATE' && !({})", of("object"), of("oldObject"))
    };
    json!({"expression": expression, "message": rule.message, "reason": "Invalid"})
}

/// An expression about `it` as one about another variable.
pub(super) fn about(holds: &str, object: &str) -> String {
    let (mut text, mut rest) = (String::new(), holds);
    while let Some(at) = rest.find("it.") {
        let (before, after) = (&rest[..at], &rest[at + "it".len()..]);
        // The end of a longer word is no variable.
        let is_variable = !before.ends_with(|it: char| it.is_ascii_alphanumeric());
        text.extend([before, if is_variable { object } else { "it" }]);
        rest = after;
    }
    text + rest
}

/// Where an object stands: as an expression that gives a list of all objects there, and for people.
struct Path {
    /// An expression for a list of objects.
    all: String,
    shown: String,
}

impl Path {
    fn root() -> Self {
        Self { all: "[object]".to_owned(), shown: String::new() }
    }

    /// The objects under a key of these.
    fn field(&self, key: &str) -> Self {
        let all = format!("{}.filter(it, has(it.{key})).map(it, it.{key})", self.all);
        let dot = if self.shown.is_empty() { "" } else { "." };
        Self { all, shown: format!("{}{dot}{key}", self.shown) }
    }
}

/// Adds a rule for every object whose keys are all known.
fn closed_objects(shape: &'static Shape, path: &Path, rules: &mut Vec<Value>) {
    // The server checks and prunes metadata itself.
    if shape.others == Others::Warn && !path.shown.is_empty() {
        rules.push(known_keys(shape, path));
    }
    for field in shape.fields.iter().filter(|field| field.name != "metadata") {
        match &field.kind {
            Kind::Object(inner) => closed_objects(inner, &path.field(field.name), rules),
            Kind::List(Kind::Object(inner)) | Kind::FilledList(Kind::Object(inner)) => {
                in_lists(inner, &path.field(field.name), rules);
            }
            _ => {}
        }
    }
}

/// The same for every item of lists: one rule for the items, and one for each object inside them.
fn in_lists(shape: &'static Shape, path: &Path, rules: &mut Vec<Value>) {
    if shape.others == Others::Warn {
        rules.push(rule(
            format!("{}.all(list, list.all(it, {}))", path.all, only_known(shape, "it")),
            shape,
            &format!("{}[]", path.shown),
        ));
    }
    for field in shape.fields {
        if let Kind::Object(inner) = &field.kind
            && inner.others == Others::Warn
        {
            let known = only_known(inner, &format!("it.{}", field.name));
            let expression =
                format!("{}.all(list, list.all(it, !has(it.{}) || {known}))", path.all, field.name);
            rules.push(rule(expression, inner, &format!("{}[].{}", path.shown, field.name)));
        }
    }
}

fn known_keys(shape: &'static Shape, path: &Path) -> Value {
    rule(format!("{}.all(it, {})", path.all, only_known(shape, "it")), shape, &path.shown)
}

fn only_known(shape: &Shape, object: &str) -> String {
    let names: Vec<String> = shape.fields.iter().map(|field| format!("'{}'", field.name)).collect();
    format!("{object}.all(key, key in [{}])", names.join(", "))
}

fn rule(expression: String, shape: &Shape, shown: &str) -> Value {
    /// More than these do not fit a line.
    const SHOWN: usize = 8;
    let names: Vec<&str> = shape.fields.iter().map(|field| field.name).collect();
    let message = if names.len() <= SHOWN {
        format!("{shown} has a key that nobody reads; it takes {}", names.join(", "))
    } else {
        format!("{shown} has a key that nobody reads; `unisono check` names it")
    };
    json!({"expression": expression, "message": message})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_about_the_object_and_not_about_words_that_end_alike() {
        let rule = "it.?spec.?limit.hasValue() || !it.a.exists(one, one == it.b)";
        let expected = "x.?spec.?limit.hasValue() || !x.a.exists(one, one == x.b)";
        assert_eq!(about(rule, "x"), expected);
    }
}
