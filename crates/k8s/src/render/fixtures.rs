//! Plans for tests, made from job files by the readers.

use serde_json::json;
use unisono_dialect::{Options, read};
use unisono_plan::{Plan, lay_out};

use super::Owner;
use crate::object::JobObject;
use crate::settings::Settings;
use crate::target::Resource;

/// One job of each version: what goes in stands in `fixtures`, what comes out in `snapshots`.
pub(crate) const JOBS: [(&str, &str); 12] = [
    ("v1alpha1", include_str!("../../tests/fixtures/v1alpha1.yaml")),
    ("v1alpha2", include_str!("../../tests/fixtures/v1alpha2.yaml")),
    ("v1", include_str!("../../tests/fixtures/v1.yaml")),
    ("v2beta1", include_str!("../../tests/fixtures/v2beta1.yaml")),
    ("v2beta1-solo", include_str!("../../tests/fixtures/v2beta1-solo.yaml")),
    ("v2beta1-entry", include_str!("../../tests/fixtures/v2beta1-entry.yaml")),
    ("v2beta1-ssh", include_str!("../../tests/fixtures/v2beta1-ssh.yaml")),
    ("v2beta1-host-network", include_str!("../../tests/fixtures/v2beta1-host-network.yaml")),
    ("unisono", include_str!("../../tests/fixtures/unisono.yaml")),
    ("unisono-openpai", include_str!("../../tests/fixtures/unisono-openpai.yaml")),
    ("kube-batch", include_str!("../../tests/fixtures/kube-batch.yaml")),
    ("kube-batch-spec", include_str!("../../tests/fixtures/kube-batch-spec.yaml")),
];

pub(crate) fn plan(text: &str) -> Plan {
    let reading = read(text.as_bytes(), &Options::default()).remove(0);
    let job = reading.job.unwrap_or_else(|| panic!("the fixture is not read: {:?}", reading.notes));
    lay_out(&job, &settings().facts("lab"), 1)
}

pub(crate) fn settings() -> Settings {
    Settings::new("example.org/unisono:1")
}

pub(crate) fn owner(plan: &Plan) -> Owner {
    let metadata = json!({
        "name": plan.job.name.to_string(),
        "namespace": plan.namespace(),
        "uid": "11111111-2222-3333-4444-555555555555",
        "labels": plan.job.labels,
    });
    let object = JobObject::new(json!({"metadata": metadata})).unwrap();
    Owner::of(&object, Resource::of(plan.job.dialect).unwrap_or(Resource::UNISONO))
}
