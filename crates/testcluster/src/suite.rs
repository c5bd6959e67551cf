//! Tests that need a cluster: they share one, or start their own, and are reported as ignored, with
//! the reason, on a machine that cannot hold any.
//!
//! Most tests wait for the cluster most of their time, so several run at once; those that harm what
//! others use run after them, one after the other, in the order in which they were added.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use libtest_mimic::{Arguments, Completion, Failed, Trial};

use crate::ahead::Ahead;
use crate::cluster::{Cluster, Options};
use crate::prerequisites;

/// How many tests run at once. More would only wait for two cores.
const AT_ONCE: usize = 3;

/// How many of the slowest tests are named at the end.
const NAMED: usize = 8;

/// The tests of one test program (`harness = false`).
pub struct Suite {
    shared: Arc<Shared>,
    peaceful: Vec<Trial>,
    exclusive: Vec<Trial>,
    /// Why nothing can run here; empty if everything can.
    missing: String,
    times: Times,
}

/// How long each test took.
type Times = Arc<Mutex<Vec<(Duration, String)>>>;

/// The cluster that tests share, from the first that asks for it to the end of the last.
struct Shared {
    options: Options,
    cluster: Mutex<State>,
}

enum State {
    NotStarted,
    Running {
        cluster: Arc<Cluster>,
        _ahead: Ahead,
    },
    /// Starting once more would only take as long to fail again.
    Failed(String),
}

impl Suite {
    /// An empty suite whose shared cluster starts with these options.
    pub fn new(options: Options) -> Self {
        Self {
            shared: Arc::new(Shared { options, cluster: Mutex::new(State::NotStarted) }),
            peaceful: Vec::new(),
            exclusive: Vec::new(),
            missing: prerequisites::missing().join(", "),
            times: Times::default(),
        }
    }

    /// Adds a test that shares the cluster with others at the same time: what it makes has names of its
    /// own, and it harms no node and no part of the control plane.
    #[must_use]
    pub fn test(
        mut self,
        name: &str,
        test: impl FnOnce(&Cluster) -> anyhow::Result<()> + Send + 'static,
    ) -> Self {
        let shared = Arc::clone(&self.shared);
        let trial = self.trial(name, move || test(&*shared.cluster()?));
        self.peaceful.push(trial);
        self
    }

    /// Adds a test that has the shared cluster to itself.
    #[must_use]
    pub fn exclusive(
        self,
        name: &str,
        test: impl FnOnce(&Cluster) -> anyhow::Result<()> + Send + 'static,
    ) -> Self {
        let shared = Arc::clone(&self.shared);
        self.alone(name, move || test(&*shared.cluster()?))
    }

    /// Adds a test that starts clusters itself, if it needs any. Nothing else runs meanwhile.
    #[must_use]
    pub fn alone(
        mut self,
        name: &str,
        test: impl FnOnce() -> anyhow::Result<()> + Send + 'static,
    ) -> Self {
        let trial = self.trial(name, test);
        self.exclusive.push(trial);
        self
    }

    fn trial(
        &self,
        name: &str,
        test: impl FnOnce() -> anyhow::Result<()> + Send + 'static,
    ) -> Trial {
        let (missing, times, known) =
            (self.missing.clone(), Arc::clone(&self.times), name.to_owned());
        Trial::ignorable_test(name, move || {
            if !missing.is_empty() {
                return Ok(Completion::ignored_with(format!("missing: {missing}")));
            }
            let begun = Instant::now();
            let tested = test();
            times.lock().unwrap_or_else(PoisonError::into_inner).push((begun.elapsed(), known));
            tested.map_err(|fault| Failed::from(format!("{fault:?}")))?;
            Ok(Completion::Completed)
        })
    }

    /// Runs the tests that the command line selects: first those that share, some at once, then the others.
    #[expect(
        clippy::print_stderr,
        reason = "a test program says why it skips tests, and what takes long"
    )]
    pub fn run(self) -> ExitCode {
        let arguments = Arguments::from_args();
        if !self.missing.is_empty() && !arguments.list {
            eprintln!("cluster tests are skipped; missing: {}", self.missing);
        }
        let at_once = arguments.test_threads.unwrap_or(AT_ONCE);
        let rounds = [(self.peaceful, at_once), (self.exclusive, 1)];
        let failed = rounds.into_iter().filter(|(trials, _)| !trials.is_empty()).fold(
            false,
            |failed, (trials, at_once)| {
                let arguments = Arguments { test_threads: Some(at_once), ..arguments.clone() };
                libtest_mimic::run(&arguments, trials).has_failed() || failed
            },
        );
        self.shared.end();
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.sort_by(|one, other| other.cmp(one));
        for (time, name) in times.iter().take(NAMED) {
            eprintln!("{:4} s  {name}", time.as_secs());
        }
        if failed { ExitCode::from(101) } else { ExitCode::SUCCESS }
    }
}

impl Shared {
    fn cluster(&self) -> anyhow::Result<Arc<Cluster>> {
        let mut state = self.cluster.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::NotStarted = *state {
            *state = match Cluster::start(&self.options) {
                Ok(cluster) => {
                    State::Running { cluster: Arc::new(cluster), _ahead: Ahead::begin() }
                }
                Err(fault) => State::Failed(format!("{fault:?}")),
            };
        }
        match &*state {
            State::Running { cluster, .. } => Ok(Arc::clone(cluster)),
            State::Failed(why) => Err(anyhow!("the shared cluster did not start: {why}")),
            State::NotStarted => Err(anyhow!("the shared cluster has ended")),
        }
    }

    fn end(&self) {
        let mut state = self.cluster.lock().unwrap_or_else(PoisonError::into_inner);
        *state = State::NotStarted;
    }
}
