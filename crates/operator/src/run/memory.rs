//! What is remembered of a job between two looks.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use unisono_k8s::slim::Pod;
use unisono_k8s::{Before, Children, KubernetesEngine};

use super::known::Known;

/// How long to wait for the watches to show what was just written.
pub(super) const CATCH_UP: Duration = Duration::from_secs(10);

/// What is remembered of a job between two looks. Nothing is lost with it but a few requests.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// The uid of the object that it is about: the next one of the same name is another job.
    pub(super) uid: String,
    /// Looks in a row that failed.
    pub(crate) failures: u32,
    /// When the status was last written.
    pub(super) written: Option<Instant>,
    /// What the watches must show before another look makes sense.
    pub(super) expected: Option<Expected>,
    /// Whether the last look panicked, and nobody was told yet.
    pub(super) panicked: bool,
    /// Whether what another operator began was looked for.
    pub(super) adopted: bool,
    /// What is in the way, as it was last told.
    pub(super) trouble: Option<String>,
    /// The name of the launcher under which metrics know the job.
    pub(super) launcher: Option<String>,
    /// Whether the last tick went through.
    pub(super) is_settled: bool,
    /// The job object, as it was read last.
    pub(crate) known: Option<Arc<Known>>,
}

/// What was just written, and is not seen yet.
#[derive(Debug)]
pub(super) struct Expected {
    /// The version of the object that was written over.
    pub(super) old_version: Option<String>,
    /// The uids of pods that were made, or of what was marked.
    pub(super) uids: Vec<String>,
    /// Pods that were changed or deleted.
    pub(super) changed: Vec<Before>,
    pub(super) until: Instant,
}

impl Memory {
    /// What is remembered of the object with this uid. Of an earlier one of the same name only metrics know something, by that name.
    pub(crate) fn about(self, uid: &str) -> Self {
        if self.uid == uid {
            return self;
        }
        Self { uid: uid.to_owned(), launcher: self.launcher, ..Self::default() }
    }

    /// What is left of it when a look takes it along and does not come back.
    pub(crate) fn after_failure(&self) -> Self {
        let (uid, launcher) = (self.uid.clone(), self.launcher.clone());
        Self { uid, failures: self.failures + 1, launcher, ..Self::default() }
    }

    /// The memory of a look that panicked, from what was left of it. The first of several in a row is told.
    pub(crate) fn after_panic(self) -> Self {
        Self { panicked: self.failures == 1, ..self }
    }

    /// When to look again, where the watches do not show yet what was written.
    pub(super) fn not_caught_up(
        &mut self,
        version: Option<&str>,
        children: &Children,
    ) -> Option<Instant> {
        let expected = self.expected.as_ref()?;
        let is_old = expected.old_version.is_some() && expected.old_version.as_deref() == version;
        let lags = is_old || !children.have(&expected.uids) || children.show_any(&expected.changed);
        // A watch that shows something brings the job here again before that.
        if lags && Instant::now() < expected.until {
            return Some(expected.until);
        }
        self.expected = None;
        None
    }

    /// Remembers what a look has written.
    pub(super) fn expect(
        &mut self,
        engine: &KubernetesEngine,
        old_version: Option<String>,
        old_pods: &[Arc<Pod>],
        unchanged: bool,
    ) {
        let now = Instant::now();
        let old: HashSet<&String> =
            old_pods.iter().filter_map(|pod| pod.metadata.uid.as_ref()).collect();
        let now_there = engine.children().pods.iter().filter_map(|pod| pod.metadata.uid.as_ref());
        let uids: Vec<String> = now_there.filter(|uid| !old.contains(uid)).cloned().collect();
        let rewritten = engine.object().resource_version() != old_version.as_deref();
        let old_version = old_version.filter(|_| rewritten);
        if !unchanged {
            self.written = Some(now);
        }
        let changed = engine.changed().to_vec();
        if old_version.is_some() || !uids.is_empty() || !changed.is_empty() {
            self.expected = Some(Expected { old_version, uids, changed, until: now + CATCH_UP });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_look_that_does_not_come_back_leaves_what_metrics_need_to_forget_the_job() {
        let memory = Memory { launcher: Some("pi-launcher".to_owned()), ..Memory::default() };
        let lost = memory.after_failure();
        assert_eq!((lost.failures, lost.launcher.as_deref()), (1, Some("pi-launcher")));
        let panicked = lost.after_failure().after_panic();
        assert!(!panicked.panicked, "the first of several in a row is told");
        assert!(memory.after_failure().after_panic().panicked);
        assert_eq!(panicked.launcher.as_deref(), Some("pi-launcher"));
    }

    #[test]
    fn nothing_is_remembered_of_an_earlier_job_of_the_same_name() {
        let launcher = Some("pi-launcher".to_owned());
        let expected = Expected {
            old_version: None,
            uids: Vec::new(),
            changed: Vec::new(),
            until: Instant::now(),
        };
        let memory = Memory {
            launcher: launcher.clone(),
            failures: 7,
            expected: Some(expected),
            trouble: Some("exceeded quota".to_owned()),
            is_settled: true,
            ..Memory::default()
        };
        let same = memory.about("").about("");
        assert_eq!((same.failures, same.is_settled), (7, true));
        let after = same.about("2");
        assert!(after.failures == 0 && after.expected.is_none() && after.trouble.is_none());
        assert!(!after.is_settled);
        assert_eq!(after.launcher, launcher, "metrics know it by its name");
        let failed = after.after_failure();
        assert_eq!(failed.about("2").failures, 1);
    }

    #[test]
    fn a_look_waits_until_the_watches_show_what_the_last_one_changed() {
        let pod = |version: &str| -> Arc<Pod> {
            let metadata = json!({"name": "pi-launcher", "uid": "1", "resourceVersion": version});
            Arc::new(serde_json::from_value(json!({"metadata": metadata})).unwrap())
        };
        let until = Instant::now() + CATCH_UP;
        let changed = vec![Before::of(&pod("7"))];
        let expected = Expected { old_version: None, uids: Vec::new(), changed, until };
        let mut memory = Memory { expected: Some(expected), ..Memory::default() };
        let seen = |pods| Children { pods, ..Children::default() };
        assert_eq!(memory.not_caught_up(None, &seen(vec![pod("7")])), Some(until));
        assert_eq!(memory.not_caught_up(None, &seen(vec![pod("8")])), None);
        assert!(memory.expected.is_none(), "it is not waited for again");
    }
}
