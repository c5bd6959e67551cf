//! What happens to a job from outside, and where it leads.

use serde_json::{Value, json};

use super::jobs::Kind;
use crate::marks;

/// A job's life: what happens to it, one after the other.
pub(super) struct Life {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) acts: Vec<Act>,
}

/// Something that happens to a job, and its stage when nothing moves any more after it.
#[derive(Debug)]
pub(super) struct Act {
    pub(super) what: What,
    pub(super) leads_to: &'static str,
}

#[derive(Debug)]
pub(super) enum What {
    /// Its user submits it, with these values at these places.
    Submit(Vec<(&'static str, Value)>),
    /// Its user changes values.
    Edit(Vec<(&'static str, Value)>),
    /// The command that runs ends with this code.
    End(i32),
    /// All workers end with this code.
    EndWorkers(i32),
    /// The node of the last worker is lost.
    LoseWorker,
    /// The last worker is gone without a trace.
    RemoveWorker,
    /// Its user deletes it.
    Delete,
    /// Several things, before anybody looks.
    AtOnce(Vec<Self>),
}

impl What {
    const fn then(self, leads_to: &'static str) -> Act {
        Act { what: self, leads_to }
    }
}

const ENDED: &str = "ended";
const RUNNING: &str = "running";
const SUSPENDED: &str = "suspended";
const GONE: &str = "gone";

impl Kind {
    /// All lives of a job of this kind.
    pub(super) fn lives(self) -> Vec<Life> {
        let submit = || What::Submit(Vec::new()).then(RUNNING);
        let over = || What::End(0).then(ENDED);
        let sized = |size: u32| self.sizes.iter().map(|at| (*at, json!(size))).collect();
        let suspend = |is_suspended: bool| (self.suspend, json!(is_suspended));
        let stop = ("/metadata/annotations", json!({marks::STOP: "true"}));
        let image = (self.image, json!("lab/pi:2"));
        let told = [
            ("succeeds", vec![submit(), over()]),
            ("is retried", vec![submit(), What::End(3).then(RUNNING), over()]),
            ("fails", vec![submit(), What::End(3).then(RUNNING), What::End(4).then(ENDED)]),
            (
                "is suspended",
                vec![
                    submit(),
                    What::Edit(vec![suspend(true)]).then(SUSPENDED),
                    What::Edit(vec![image]).then(SUSPENDED),
                    What::Edit(vec![suspend(false)]).then(RUNNING),
                    over(),
                ],
            ),
            (
                "waits at first",
                vec![
                    What::Submit(vec![suspend(true)]).then(SUSPENDED),
                    What::Edit(vec![suspend(false)]).then(RUNNING),
                ],
            ),
            (
                "grows and shrinks",
                vec![
                    submit(),
                    What::Edit(sized(3)).then(RUNNING),
                    What::Edit(sized(1)).then(RUNNING),
                    over(),
                ],
            ),
            ("loses a worker", vec![submit(), What::LoseWorker.then(RUNNING), over()]),
            (
                "shrinks and loses a worker at once",
                vec![
                    submit(),
                    What::AtOnce(vec![What::RemoveWorker, What::Edit(sized(1))]).then(RUNNING),
                    over(),
                ],
            ),
            (
                "ends all at once",
                vec![submit(), What::AtOnce(vec![What::EndWorkers(0), What::End(0)]).then(ENDED)],
            ),
            ("is stopped", vec![submit(), What::Edit(vec![stop]).then(ENDED)]),
            ("is deleted", vec![submit(), What::Delete.then(GONE)]),
            (
                "is replaced",
                vec![
                    submit(),
                    What::AtOnce(vec![What::Delete, What::Submit(Vec::new())]).then(RUNNING),
                ],
            ),
            (
                "expires",
                vec![
                    What::Submit(vec![(self.ttl, json!(60))]).then(RUNNING),
                    What::End(0).then(GONE),
                ],
            ),
        ];
        let name = |what: &str| format!("a {} job that {what}", self.name);
        told.into_iter()
            .map(|(what, acts)| Life { name: name(what), kind: self.clone(), acts })
            .collect()
    }
}
