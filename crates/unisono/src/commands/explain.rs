//! `unisono explain`: the name of a fault, or the path of a field, enters; what it means and what to do leaves.

use std::fmt::Write;

use clap::Args;
use unisono_dialect::{FoundField, Presence, clipped, describe, find_fields, nearest};
use unisono_job::{Code, Dialect, Severity};

use crate::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::report::{Align, Table, aligned, sentence, wrapped};

/// Tell more about a fault, a warning, a note, or a field of a job file.
///
/// Without a name, every code is listed.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// The name in brackets behind `error`, `warning` or `note`; or a field's path or last key.
    #[arg(value_name = "CODE|FIELD")]
    subject: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  unisono explain                        every code
  unisono explain ranks-over-slots       one code, at length
  unisono explain spec.slotsPerWorker    a field, in every dialect that has it";

/// More fields than these are listed by their paths only.
const SHOWN_FIELDS: usize = 6;

/// The same field of one or more dialects.
struct Meaning {
    dialects: Vec<Dialect>,
    found: FoundField,
}

pub(crate) fn run(args: &ExplainArgs, context: &mut Context) -> Result<Exit, Error> {
    let text = match &args.subject {
        None => list(),
        Some(subject) => match codes().find(|code| code.name == subject) {
            Some(code) => explained(code),
            None => fields(subject).ok_or_else(|| unknown(subject))?,
        },
    };
    context.console.data(&text)?;
    Ok(Exit::Fine)
}

/// Every code of every crate.
pub(crate) fn codes() -> impl Iterator<Item = &'static Code> {
    let here = unisono_local::notes::CODES;
    let submit = super::submit::CODES;
    unisono_dialect::CODES.iter().chain(unisono_plan::CODES).chain(here).chain(submit).copied()
}

const fn severity(code: &Code) -> &'static str {
    match code.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
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
    let headline = format!("{}[{}]: {}\n\n", severity(code), code.name, code.summary);
    headline + &wrapped(code.explanation)
}

fn fields(path: &str) -> Option<String> {
    let meanings = meanings(find_fields(path));
    if meanings.is_empty() {
        return None;
    }
    if meanings.len() > SHOWN_FIELDS {
        let mut table = Table::new(&[("FIELD", Align::Left), ("DIALECTS", Align::Left)]);
        for meaning in &meanings {
            table.row([meaning.found.path.clone(), names(&meaning.dialects)]);
        }
        return Some(table.rendered(""));
    }
    let texts: Vec<String> = meanings.iter().map(meaning_text).collect();
    Some(texts.join("\n"))
}

/// Fields that are the same in several dialects become one.
fn meanings(found: Vec<FoundField>) -> Vec<Meaning> {
    let mut meanings: Vec<Meaning> = Vec::new();
    for found in found {
        let same = |it: &&mut Meaning| {
            let (left, right) = (it.found.field, found.field);
            it.found.path == found.path
                && left.doc == right.doc
                && left.default == right.default
                && describe(&left.kind) == describe(&right.kind)
        };
        match meanings.iter_mut().find(same) {
            Some(meaning) => meaning.dialects.push(found.dialect),
            None => meanings.push(Meaning { dialects: vec![found.dialect], found }),
        }
    }
    meanings
}

fn meaning_text(meaning: &Meaning) -> String {
    let field = meaning.found.field;
    let mut rows = vec![
        ("dialects".to_owned(), names(&meaning.dialects)),
        ("takes".to_owned(), describe(&field.kind)),
    ];
    match field.presence {
        Presence::Required => rows.push(("needed".to_owned(), "yes".to_owned())),
        Presence::Optional if field.default.is_empty() => {}
        Presence::Optional => rows.push(("default".to_owned(), field.default.to_owned())),
    }
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _written = write!(
        text,
        "{}\n{}\n{}",
        meaning.found.path,
        aligned(&rows, "  "),
        wrapped(&sentence(field.doc))
    );
    text
}

fn names(dialects: &[Dialect]) -> String {
    let names: Vec<&str> = dialects.iter().map(|dialect| dialect.name()).collect();
    names.join(", ")
}

fn unknown(subject: &str) -> Error {
    let hint = match nearest(subject, codes().map(|code| code.name)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            "`unisono explain` lists every code; fields are in docs/reference/fields".to_owned()
        }
    };
    Error::usage(format!("`{}` is neither a code nor a field", clipped(subject)), hint)
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
            let fits = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
            assert!(code.name.bytes().all(fits), "{}", code.name);
            assert!(code.explanation.ends_with('.'), "{}", code.name);
            assert!(!code.summary.ends_with('.'), "{}", code.name);
        }
    }
}
