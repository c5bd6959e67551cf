//! Tests that need a cluster: they share one, or start their own, and are reported as ignored, with
//! the reason, on a machine that cannot hold any.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::anyhow;
use libtest_mimic::{Arguments, Completion, Failed, Trial};

use crate::cluster::{Cluster, Options};
use crate::prerequisites;

/// The tests of one test program (`harness = false`).
pub struct Suite {
    shared: Arc<Shared>,
    trials: Vec<Trial>,
    /// Why nothing can run here; empty if everything can.
    missing: String,
}

/// The cluster that tests share, from the first that asks for it to the end of the last.
struct Shared {
    options: Options,
    cluster: Mutex<State>,
}

enum State {
    NotStarted,
    Running(Arc<Cluster>),
    /// Starting once more would only take as long to fail again.
    Failed(String),
}

impl Suite {
    /// An empty suite whose shared cluster starts with these options.
    pub fn new(options: Options) -> Self {
        Self {
            shared: Arc::new(Shared { options, cluster: Mutex::new(State::NotStarted) }),
            trials: Vec::new(),
            missing: prerequisites::missing().join(", "),
        }
    }

    /// Adds a test that uses the shared cluster.
    #[must_use]
    pub fn test(
        self,
        name: &str,
        test: impl FnOnce(&Cluster) -> anyhow::Result<()> + Send + 'static,
    ) -> Self {
        let shared = Arc::clone(&self.shared);
        self.alone(name, move || test(&*shared.cluster()?))
    }

    /// Adds a test that starts clusters itself, if it needs any.
    #[must_use]
    pub fn alone(
        mut self,
        name: &str,
        test: impl FnOnce() -> anyhow::Result<()> + Send + 'static,
    ) -> Self {
        let missing = self.missing.clone();
        self.trials.push(Trial::ignorable_test(name, move || {
            if !missing.is_empty() {
                return Ok(Completion::ignored_with(format!("missing: {missing}")));
            }
            test().map_err(|fault| Failed::from(format!("{fault:?}")))?;
            Ok(Completion::Completed)
        }));
        self
    }

    /// Runs the tests that the command line selects, one after the other.
    #[expect(clippy::print_stderr, reason = "a test program says why it skips tests")]
    pub fn run(self) -> ExitCode {
        let mut arguments = Arguments::from_args();
        // They would change the nodes under one another's feet.
        arguments.test_threads = Some(1);
        if !self.missing.is_empty() && !arguments.list {
            eprintln!("cluster tests are skipped; missing: {}", self.missing);
        }
        let conclusion = libtest_mimic::run(&arguments, self.trials);
        self.shared.end();
        conclusion.exit_code()
    }
}

impl Shared {
    fn cluster(&self) -> anyhow::Result<Arc<Cluster>> {
        let mut state = self.cluster.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::NotStarted = *state {
            *state = match Cluster::start(&self.options) {
                Ok(cluster) => State::Running(Arc::new(cluster)),
                Err(fault) => State::Failed(format!("{fault:?}")),
            };
        }
        match &*state {
            State::Running(cluster) => Ok(Arc::clone(cluster)),
            State::Failed(why) => Err(anyhow!("the shared cluster did not start: {why}")),
            State::NotStarted => Err(anyhow!("the shared cluster has ended")),
        }
    }

    fn end(&self) {
        let mut state = self.cluster.lock().unwrap_or_else(PoisonError::into_inner);
        *state = State::NotStarted;
    }
}
