//! What must be true of every write.

use std::collections::BTreeSet;

use http::Method;
use serde_json::Value;
use unisono_plan::Status;

use super::cluster::PODS;
use super::world::FOREIGN;
use crate::fake::Asked;
use crate::marks;

/// Watches over what is written.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Watch {
    /// Incarnations whose pods were made.
    made: BTreeSet<String>,
    pub(super) violations: Vec<String>,
}

impl Watch {
    /// Looks at a write that was carried out, and at the object whose status it changed, as that was before.
    pub(super) fn written(&mut self, asked: &Asked, before: Option<&Value>) {
        let Asked { method, path, body, .. } = asked;
        if path.contains(FOREIGN) {
            self.violations.push(format!("{method} {path}: it is somebody else's"));
        }
        if *method == Method::POST && path == PODS {
            let labels = &body["metadata"]["labels"];
            let [job, member, epoch] =
                [marks::JOB_UID, marks::MEMBER, marks::EPOCH].map(|it| &labels[it]);
            let incarnation = format!("{member} of epoch {epoch} of {job}");
            if !self.made.insert(incarnation.clone()) {
                self.violations.push(format!("a second pod is made for {incarnation}"));
            }
        }
        if let (Some(before), Some(changes)) = (before, body["status"].get("unisono")) {
            self.check_status(before["status"]["unisono"].clone(), changes);
        }
    }

    fn check_status(&mut self, before: Value, changes: &Value) {
        let before: Status = serde_json::from_value(before).unwrap_or_default();
        let number = |key: &str, or: u32| changes[key].as_u64().map_or(u64::from(or), |it| it);
        let attempt = (number("attempt", before.attempt), number("epoch", before.epoch));
        if attempt < (before.attempt.into(), before.epoch.into()) {
            self.violations.push(format!("attempts shrink to {attempt:?}"));
        }
        if before.is_terminal() && !changes["stage"].is_null() {
            self.violations.push(format!("an end is left for {}", changes["stage"]));
        }
    }
}
