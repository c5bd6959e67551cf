//! Numbers for whoever watches the operator. The names that begin with `mpi_operator` are those of the operators before
//! this one: dashboards know them.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use unisono_plan::{Status, Verdict};

/// Which job a series is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct JobInfo {
    launcher: String,
    namespace: String,
}

/// Every number.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    created: Counter,
    successful: Counter,
    failed: Counter,
    restarted: Counter,
    info: Family<JobInfo, Gauge>,
    first_rank: Histogram,
    reconcile: Histogram,
    pub(crate) errors: Counter,
    pub(crate) queue_depth: Gauge,
    pub(crate) jobs: Gauge,
    pub(crate) leader: Gauge,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let seconds =
            [0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0];
        let fractions = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
        let mut metrics = Self {
            registry: Registry::default(),
            created: Counter::default(),
            successful: Counter::default(),
            failed: Counter::default(),
            restarted: Counter::default(),
            info: Family::default(),
            first_rank: Histogram::new(seconds),
            reconcile: Histogram::new(fractions),
            errors: Counter::default(),
            queue_depth: Gauge::default(),
            jobs: Gauge::default(),
            leader: Gauge::default(),
        };
        metrics.register();
        metrics
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        let mpi = registry.sub_registry_with_prefix("mpi_operator");
        mpi.register("jobs_created", "MPI jobs created", self.created.clone());
        mpi.register("jobs_successful", "MPI jobs that ended well", self.successful.clone());
        mpi.register("jobs_failed", "MPI jobs that failed", self.failed.clone());
        mpi.register("jobs_restarted", "Starts of a launcher again", self.restarted.clone());
        mpi.register("job_info", "Jobs that exist, and their launchers", self.info.clone());
        let own = registry.sub_registry_with_prefix("unisono_operator");
        let name = "time_to_first_rank_seconds";
        own.register(name, "From a job's creation to its first command", self.first_rank.clone());
        own.register("reconcile_seconds", "Time of one look at a job", self.reconcile.clone());
        own.register("reconcile_errors", "Looks at a job that failed", self.errors.clone());
        own.register("queue_depth", "Jobs that are due for a look", self.queue_depth.clone());
        own.register("jobs", "Jobs that exist", self.jobs.clone());
        own.register("leader", "Whether this operator is the one that works", self.leader.clone());
    }

    /// Takes down that a job exists.
    pub(crate) fn exists(&self, namespace: &str, launcher: &str) {
        self.info.get_or_create(&info(namespace, launcher)).set(1);
    }

    /// Forgets a job: nobody asks for series of what is gone.
    pub(crate) fn gone(&self, namespace: &str, launcher: &str) {
        self.info.remove(&info(namespace, launcher));
    }

    /// Counts what happened to a job between two statuses.
    pub(crate) fn count(&self, prior: &Status, status: &Status) {
        if prior.created.is_none() && status.created.is_some() {
            self.created.inc();
        }
        let restarts = status.failed_launches.saturating_sub(prior.failed_launches);
        if restarts > 0 && !status.is_terminal() {
            self.restarted.inc_by(restarts.into());
        }
        // A job that ran before an operator of an earlier version knew when it first did so is not counted.
        if let (None, None, Some(first), Some(created)) =
            (prior.first_ran, prior.running_since, status.first_ran, status.created)
        {
            self.first_rank.observe(first.since(created).as_secs_f64());
        }
        if let (None, Some(end)) = (prior.end(), status.end()) {
            match end.verdict {
                Verdict::Succeeded => self.successful.inc(),
                Verdict::Failed | Verdict::Stopped => self.failed.inc(),
            };
        }
    }

    pub(crate) fn reconciled_in(&self, duration: Duration) {
        self.reconcile.observe(duration.as_secs_f64());
    }

    /// All numbers, in the text form of OpenMetrics.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _written = encode(&mut text, &self.registry);
        text
    }
}

fn info(namespace: &str, launcher: &str) -> JobInfo {
    JobInfo { launcher: launcher.to_owned(), namespace: namespace.to_owned() }
}

#[cfg(test)]
mod tests {
    use unisono_plan::{End, EndReason, Stage, Time};

    use super::*;

    fn has(metrics: &Metrics, lines: &[&str]) {
        let text = metrics.text();
        for line in lines {
            assert!(text.lines().any(|it| it == *line), "no {line} in {text}");
        }
    }

    #[test]
    fn starts_again_and_ends_are_counted_and_only_the_first_rank_of_all() {
        let metrics = Metrics::new();
        let created = Status { created: Some(Time(1_000)), ..Status::default() };
        metrics.count(&Status::default(), &created);
        let at = Some(Time(4_000));
        let runs = Status { running_since: at, first_ran: at, ..created };
        metrics.count(&Status { running_since: None, first_ran: None, ..runs.clone() }, &runs);
        // A worker is lost, and all ranks start again.
        let lost = Status { running_since: None, failed_launches: 1, ..runs.clone() };
        metrics.count(&runs, &lost);
        let again = Status { running_since: Some(Time(9_000)), ..lost.clone() };
        metrics.count(&lost, &again);
        has(
            &metrics,
            &[
                "mpi_operator_jobs_created_total 1",
                "mpi_operator_jobs_restarted_total 1",
                "mpi_operator_jobs_failed_total 0",
                "unisono_operator_time_to_first_rank_seconds_sum 3.0",
                "unisono_operator_time_to_first_rank_seconds_count 1",
            ],
        );
        let (verdict, reason) = (Verdict::Failed, EndReason::RetriesExhausted);
        let end = End { verdict, reason, by: None, code: 1, cause: None };
        let failed = Status { stage: Stage::Ended(end), failed_launches: 2, ..again.clone() };
        metrics.count(&again, &failed);
        metrics.count(&failed, &failed);
        has(
            &metrics,
            &[
                "mpi_operator_jobs_restarted_total 1",
                "mpi_operator_jobs_failed_total 1",
                "mpi_operator_jobs_successful_total 0",
            ],
        );
    }

    #[test]
    fn the_names_that_dashboards_know_are_there_and_series_go_with_their_jobs() {
        let metrics = Metrics::new();
        metrics.exists("lab", "x-launcher");
        let created = Status { created: Some(Time(0)), ..Status::default() };
        let runs = Status { first_ran: Some(Time(3_000)), ..created };
        metrics.count(&Status::default(), &runs);
        let text = metrics.text();
        for line in [
            "mpi_operator_jobs_created_total 1",
            "mpi_operator_jobs_successful_total 0",
            "mpi_operator_jobs_failed_total 0",
            "mpi_operator_job_info{launcher=\"x-launcher\",namespace=\"lab\"} 1",
            "unisono_operator_time_to_first_rank_seconds_bucket{le=\"3.0\"} 1",
        ] {
            assert!(text.contains(line), "no {line} in {text}");
        }
        metrics.gone("lab", "x-launcher");
        assert!(!metrics.text().contains("x-launcher"));
    }
}
