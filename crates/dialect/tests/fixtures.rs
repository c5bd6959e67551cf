//! Every file below `tests/fixtures`, read as a user would have it read: its dialect, its job and everything told about
//! it, as a reviewed snapshot. A new corner of a dialect is a new file there.

use std::fmt::Write as _;

use unisono_dialect::{Options, Reading, read};
use unisono_job::{Note, Severity};

#[test]
fn every_fixture_is_read_as_reviewed() {
    insta::glob!("fixtures/**/*.*", |path| {
        let bytes = std::fs::read(path).expect("a fixture can be read");
        let stem = path.file_stem().expect("a fixture has a name").to_string_lossy().into_owned();
        let options = Options { fallback_name: stem, ..Options::default() };
        let readings: Vec<String> = read(&bytes, &options).iter().map(shown).collect();
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!("read", readings.join("\n====\n"));
        });
    });
}

/// One reading as text that a person can review.
fn shown(reading: &Reading) -> String {
    let dialect = reading.dialect.map_or("none", |dialect| dialect.name());
    let mut text = format!("dialect: {dialect}\n");
    for note in &reading.notes {
        text.push_str(&shown_note(note));
    }
    match &reading.job {
        Some(job) => {
            let json = serde_json::to_value(job).expect("a job is plain data");
            text + "---\n" + &unisono_dialect::to_yaml(&json)
        }
        None => text + "--- no job\n",
    }
}

fn shown_note(note: &Note) -> String {
    let severity = match note.severity() {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let mut text = format!("{severity}[{}]", note.code.name);
    if let Some(place) = &note.place {
        if let Some(span) = place.span {
            write!(text, " {}", span.start).expect("text grows");
        }
        write!(text, " {}", if place.path.is_empty() { "(top)" } else { &place.path })
            .expect("text grows");
    }
    write!(text, "\n    {}\n", note.message).expect("text grows");
    if let Some(hint) = &note.hint {
        writeln!(text, "    hint: {hint}").expect("text grows");
    }
    text
}
