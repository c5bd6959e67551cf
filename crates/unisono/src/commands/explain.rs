//! `unisono explain`: the name of a fault or note enters, what it means and what to do leaves.

use std::fmt::Write;

use clap::Args;
use unisono_dialect::nearest;
use unisono_job::{Code, Severity};

use crate::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::report::{Align, Table, wrapped};

/// Tell more about a fault, a warning or a note.
///
/// Without a name, all of them are listed.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// The name in brackets behind `error`, `warning` or `note`.
    #[arg(value_name = "CODE")]
    subject: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  unisono explain                     every code
  unisono explain ranks-over-slots    one code, at length";

pub(crate) fn run(args: &ExplainArgs, context: &mut Context) -> Result<Exit, Error> {
    let text = match &args.subject {
        None => list(),
        Some(subject) => match codes().find(|code| code.name == subject) {
            Some(code) => explained(code),
            None => return Err(unknown(subject)),
        },
    };
    context.console.data(&text)?;
    Ok(Exit::Fine)
}

/// Every code of every crate.
fn codes() -> impl Iterator<Item = &'static Code> {
    unisono_dialect::CODES.iter().chain(unisono_plan::CODES).copied()
}

fn list() -> String {
    let columns = [("CODE", Align::Left), ("SEVERITY", Align::Left), ("SUMMARY", Align::Left)];
    let mut table = Table::new(&columns);
    let mut codes: Vec<_> = codes().collect();
    codes.sort_by_key(|code| (std::cmp::Reverse(code.severity), code.name));
    for code in codes {
        let cells = [code.name, severity(code), code.summary];
        table.row(cells.map(str::to_owned));
    }
    table.rendered("")
}

fn explained(code: &Code) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _written = writeln!(text, "{}[{}]: {}\n", severity(code), code.name, code.summary);
    text.push_str(&wrapped(code.explanation));
    text
}

const fn severity(code: &Code) -> &'static str {
    match code.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

fn unknown(subject: &str) -> Error {
    let hint = match nearest(subject, codes().map(|code| code.name)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`unisono explain` lists every code".to_owned(),
    };
    Error::usage(format!("`{}` is no code", unisono_dialect::clipped(subject)), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_one_name_in_small_letters_and_an_explanation() {
        let mut names: Vec<_> = codes().map(|code| code.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count, "a name is taken twice");
        for code in codes() {
            assert!(
                code.name.bytes().all(|it| it.is_ascii_lowercase() || it == b'-'),
                "{}",
                code.name
            );
            assert!(code.explanation.ends_with('.') && code.explanation.len() > code.summary.len());
            assert!(!code.summary.ends_with('.'), "{}", code.name);
        }
    }
}
