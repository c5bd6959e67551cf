//! A plan as one JSON document.

use serde::Serialize;
use unisono_job::{MpiChoice, Policies};
use unisono_plan::View;
use unisono_plan::view::{HostView, LaunchView};

use crate::report::note::NoteView;
use crate::report::plan::PlanReport;

/// The document of one job. Fields that a fault keeps from being known are null or empty.
#[derive(Serialize)]
pub(super) struct Document<'report> {
    job: Option<unisono_plan::view::JobView<'report>>,
    hosts: Vec<HostView<'report>>,
    ranks: Option<u32>,
    hostfile: String,
    launch: Option<LaunchView<'report>>,
    mpi: Option<MpiChoice>,
    policies: Option<&'report Policies>,
    notes: Vec<NoteView<'report>>,
}

/// The document of a file with several jobs.
#[derive(Serialize)]
pub(super) struct Several<'report> {
    jobs: Vec<Document<'report>>,
}

pub(super) fn of<'report>(report: &'report PlanReport<'_>) -> Document<'report> {
    let notes = report.notes().map(NoteView::of).collect();
    match &report.plan {
        Some(plan) => {
            let View { job, hosts, ranks, hostfile, launch } = View::of(plan);
            let (mpi, policies) = (Some(plan.job.mpi), Some(&plan.job.policies));
            Document { job: Some(job), hosts, ranks, hostfile, launch, mpi, policies, notes }
        }
        None => Document {
            job: None,
            hosts: Vec::new(),
            ranks: None,
            hostfile: String::new(),
            launch: None,
            mpi: None,
            policies: None,
            notes,
        },
    }
}

pub(super) fn of_several<'report>(reports: &'report [PlanReport<'_>]) -> Several<'report> {
    Several { jobs: reports.iter().map(of).collect() }
}
