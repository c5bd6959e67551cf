//! Plans: tables for people, one document for programs.

mod document;
mod hosts;
mod rules;
mod text;

use std::io;

use unisono_dialect::Reading;
use unisono_job::Note;
use unisono_plan::Plan;

use crate::job_file::JobFile;
use crate::report::{Console, Output};

/// A document of a file and its plan; without one when faults stand in the way.
pub(crate) struct PlanReport<'file> {
    /// The document.
    pub(crate) reading: &'file Reading,
    /// Its plan.
    pub(crate) plan: Option<Plan>,
}

impl PlanReport<'_> {
    /// Everything there is to tell, the file's first.
    fn notes(&self) -> impl Iterator<Item = &Note> {
        self.reading.notes.iter().chain(self.plan.iter().flat_map(|plan| &plan.notes))
    }
}

impl Console {
    /// Prints plans as data. For people, what there is to tell about the file goes beside them, as talk.
    pub(crate) fn plans(
        &mut self,
        file: &JobFile,
        reports: &[PlanReport<'_>],
        output: Output,
    ) -> io::Result<()> {
        match output {
            Output::Json => match reports {
                [only] => self.json(&document::of(only)),
                several => self.json(&document::of_several(several)),
            },
            Output::Text => {
                let plans = reports.iter().filter_map(|report| report.plan.as_ref());
                let texts: Vec<String> = plans.map(text::of).collect();
                self.data(&texts.join("\n"))?;
                if !texts.is_empty() && reports.iter().any(|it| it.notes().next().is_some()) {
                    self.talk("\n");
                }
                self.notes(file, reports.iter().flat_map(PlanReport::notes));
                Ok(())
            }
        }
    }
}
