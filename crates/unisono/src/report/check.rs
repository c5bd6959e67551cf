//! What `check` found: notes with their lines, a table of files, and totals.

use std::fmt::Write;
use std::io;

use serde::Serialize;
use unisono_job::Severity;

use crate::job_file::JobFile;
use crate::report::note::{NoteView, rendered};
use crate::report::table::{Align, Table, counted};
use crate::report::{Console, Output};

/// Every file that was looked at.
#[derive(Debug, Default)]
pub(crate) struct CheckReport {
    files: Vec<JobFile>,
}

#[derive(Serialize)]
struct Document<'report> {
    files: Vec<FileView<'report>>,
    summary: Summary,
}

#[derive(Serialize)]
struct FileView<'report> {
    file: &'report str,
    jobs: Vec<JobView<'report>>,
    notes: Vec<NoteView<'report>>,
}

#[derive(Serialize)]
struct JobView<'report> {
    name: &'report str,
    dialect: &'static str,
}

/// Totals.
#[derive(Default, Serialize)]
struct Summary {
    files: usize,
    jobs: usize,
    errors: usize,
    warnings: usize,
    notes: usize,
}

impl CheckReport {
    /// Adds a file.
    pub(crate) fn add(&mut self, file: JobFile) {
        self.files.push(file);
    }

    /// Faults over all files.
    pub(crate) fn errors(&self) -> usize {
        self.files.iter().map(|file| count(file, Severity::Error)).sum()
    }

    fn summary(&self) -> Summary {
        self.files.iter().fold(Summary::default(), |sum, file| Summary {
            files: sum.files + 1,
            jobs: sum.jobs + jobs(file).count(),
            errors: sum.errors + count(file, Severity::Error),
            warnings: sum.warnings + count(file, Severity::Warning),
            notes: sum.notes + count(file, Severity::Note),
        })
    }

    fn document(&self) -> Document<'_> {
        let files = self.files.iter().map(|file| FileView {
            file: &file.name,
            jobs: jobs(file).collect(),
            notes: file.notes().map(NoteView::of).collect(),
        });
        Document { files: files.collect(), summary: self.summary() }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for file in &self.files {
            for note in file.notes() {
                text.push_str(&rendered(note, &file.name, &file.text));
                text.push('\n');
            }
        }
        text.push_str(&self.table().rendered(""));
        let sum = self.summary();
        let totals = [
            counted(sum.jobs, "job"),
            counted(sum.errors, "error"),
            counted(sum.warnings, "warning"),
            counted(sum.notes, "note"),
        ];
        // Writing to a String cannot fail.
        let _written = writeln!(text, "{}: {}", counted(sum.files, "file"), totals.join(", "));
        text
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&[
            ("FILE", Align::Left),
            ("DIALECT", Align::Left),
            ("JOB", Align::Left),
            ("ERRORS", Align::Right),
            ("WARNINGS", Align::Right),
            ("NOTES", Align::Right),
        ]);
        for file in &self.files {
            if file.readings.is_empty() {
                let cells = ["-", "(no MPI job)", "0", "0", "0"].map(str::to_owned);
                table.row([file.name.clone()].into_iter().chain(cells));
            }
            for reading in &file.readings {
                let count = |severity| {
                    let of_that = reading.notes.iter().filter(|note| note.severity() == severity);
                    of_that.count().to_string()
                };
                table.row([
                    file.name.clone(),
                    reading.dialect.map_or("-", |dialect| dialect.name()).to_owned(),
                    reading.job.as_ref().map_or("-", |job| job.name.as_str()).to_owned(),
                    count(Severity::Error),
                    count(Severity::Warning),
                    count(Severity::Note),
                ]);
            }
        }
        table
    }
}

impl Console {
    /// Prints what `check` found.
    pub(crate) fn check(&mut self, report: &CheckReport, output: Output) -> io::Result<()> {
        match output {
            Output::Json => self.json(&report.document()),
            Output::Text if report.files.is_empty() => Ok(()),
            Output::Text => self.data(&report.text()),
        }
    }
}

fn jobs(file: &JobFile) -> impl Iterator<Item = JobView<'_>> {
    file.readings.iter().filter_map(|reading| {
        let job = reading.job.as_ref()?;
        Some(JobView { name: job.name.as_str(), dialect: job.dialect.name() })
    })
}

fn count(file: &JobFile, severity: Severity) -> usize {
    file.notes().filter(|note| note.severity() == severity).count()
}
