//! The list of codes: what `unisono explain` says, as one page.

use std::cmp::Reverse;
use std::fmt::Write;

use unisono_job::Severity;

pub(crate) fn page() -> String {
    let mut page =
        "# Faults, warnings and notes\n\nWritten by `cargo xtask generate` from the code. \
         `unisono explain CODE` prints one of them.\n"
            .to_owned();
    let mut codes: Vec<_> = unisono::codes().collect();
    codes.sort_by_key(|code| (Reverse(code.severity), code.name));
    for of_one_severity in codes.chunk_by(|left, right| left.severity == right.severity) {
        let Some(first) = of_one_severity.first() else {
            continue;
        };
        let title = match first.severity {
            Severity::Error => "Faults: the job cannot run",
            Severity::Warning => "Warnings: probably not what was meant",
            Severity::Note => "Notes: worth knowing",
        };
        // Writing to a String cannot fail.
        let _written = write!(page, "\n## {title}\n");
        for code in of_one_severity {
            let _written =
                write!(page, "\n### {}\n\n*{}*\n\n{}\n", code.name, code.summary, code.explanation);
        }
    }
    page
}
