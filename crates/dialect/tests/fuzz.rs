//! Every reader against 100,000 damaged files: no panic, and always either a job or faults that say why not.
//!
//! The damage is drawn from a fixed seed, so a failure comes back: the panic tells the dialect and the number of the case.

mod support;

use std::path::Path;

use serde_json::Value;
use unisono_dialect::{Options, Reading, read, write};
use unisono_job::{Dialect, Job, Note, Origins};

use support::files;

/// Damaged files for each reader.
const CASES: usize = 100_000;

/// More than anybody reads; a file must not be able to flood a terminal.
const MOST_NOTES: usize = 512;

macro_rules! readers {
    ($($test:ident => $dialect:ident,)*) => {
        $(#[test] fn $test() { damage_files_of(Dialect::$dialect); })*
    };
}

readers! {
    azure_mpijob_survives_damage => AzureMpiJob,
    azure_flat_survives_damage => AzureFlat,
    azure_command_survives_damage => AzureCommand,
    openpai_v1_survives_damage => OpenPaiV1,
    openpai_v2_survives_damage => OpenPaiV2,
    kubeflow_v1alpha1_survives_damage => KubeflowV1alpha1,
    kubeflow_v1alpha2_survives_damage => KubeflowV1alpha2,
    kubeflow_v1_survives_damage => KubeflowV1,
    kubeflow_v2beta1_survives_damage => KubeflowV2beta1,
    kube_batch_survives_damage => KubeBatch,
    unisono_survives_damage => Unisono,
}

fn damage_files_of(dialect: Dialect) {
    let options = Options::default();
    let corpus: Vec<Vec<u8>> = files(Path::new("tests"))
        .iter()
        .map(|path| std::fs::read(path).expect("a fixture can be read"))
        .filter(|bytes| read(bytes, &options).iter().any(|it| it.dialect == Some(dialect)))
        .collect();
    assert!(!corpus.is_empty(), "no fixture is written in {dialect}");
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15 ^ dialect.name().len() as u64);
    let mut reached = 0;
    for case in 0..CASES {
        let told = Told { dialect, case };
        let mut bytes = corpus[chance.below(corpus.len())].clone();
        let acts = 1 + chance.below(3);
        match serde_json::from_slice(&bytes) {
            // Almost any damage to the text of JSON ends in a syntax error, so half of it is done to its values.
            Ok(mut value) if chance.below(2) == 0 => {
                (0..acts).for_each(|_| damage_value(&mut value, &mut chance));
                bytes = value.to_string().into_bytes();
            }
            _ => (0..acts).for_each(|_| damage(&mut bytes, &corpus, &mut chance)),
        }
        let readings = read(&bytes, &options);
        reached += usize::from(readings.iter().any(|it| it.dialect == Some(dialect)));
        check(&readings, &bytes);
        if case % 16 == 0 {
            readings.into_iter().filter_map(|it| it.job).for_each(check_writing);
        }
        std::mem::forget(told);
    }
    assert!(
        reached > CASES / 5,
        "only {reached} damaged files still reached the reader of {dialect}"
    );
}

/// What holds for every file whatsoever.
fn check(readings: &[Reading], bytes: &[u8]) {
    assert!(!readings.is_empty(), "a file gives at least one reading");
    for reading in readings {
        assert_ne!(
            reading.job.is_some(),
            reading.has_faults(),
            "a job, or faults: {:?}",
            reading.notes
        );
        assert!(reading.notes.len() <= MOST_NOTES, "{} notes", reading.notes.len());
        for note in &reading.notes {
            check_note(note, bytes.len());
        }
    }
}

/// What a damaged file's job is written as can be read, and is the same job again when nothing was lost.
fn check_writing(job: Job) {
    for target in [Dialect::AzureCommand, Dialect::OpenPaiV2] {
        let written = write(&job, target).expect("jobs can be written in it");
        let again = read(written.text.as_bytes(), &Options::default()).remove(0);
        let found = again.job.unwrap_or_else(|| panic!("{}\n{:#?}", written.text, again.notes));
        if job.dialect == target && written.notes.is_empty() {
            let placeless = |job: Job| Job { origins: Origins::default(), ..job };
            assert_eq!(placeless(found), placeless(job.clone()), "{}", written.text);
        }
    }
}

fn check_note(note: &Note, length: usize) {
    assert!(!note.message.is_empty() && note.message.len() < 2000, "{note:?}");
    if let Some(span) = note.place.as_ref().and_then(|place| place.span) {
        assert!(span.start.offset <= span.end.offset && span.end.offset <= length, "{note:?}");
        assert!(span.start.line >= 1 && span.start.column >= 1, "{note:?}");
    }
}

/// Tells which case was being read when a test fails: it is only ever dropped by a panic.
struct Told {
    dialect: Dialect,
    case: usize,
}

impl Drop for Told {
    #[expect(clippy::print_stdout, reason = "a failing test shows what it printed")]
    fn drop(&mut self) {
        println!("failed in case {} of {}", self.case, self.dialect);
    }
}

/// Words that mean something to one reader or another.
const WORDS: [&str; 40] = [
    "null",
    "~",
    "-1",
    "0",
    "1",
    "2147483648",
    "99999999999999999999999",
    "1e999",
    ".nan",
    "true",
    "\"\"",
    "''",
    "[]",
    "{}",
    "{",
    "}",
    "[",
    "]",
    ":",
    ": ",
    ", ",
    "\n",
    "\n  ",
    "\n- ",
    "\t",
    "#",
    "&a ",
    "*a",
    "<<: *a\n",
    "!!int ",
    "|\n",
    ">-\n",
    "---\n",
    "\u{feff}",
    "ü",
    "\\",
    "$(X)",
    "<% $parameters.x %>",
    "${{inputs.x}}",
    "mpirun -np 7 ",
];

/// One act of damage.
fn damage(bytes: &mut Vec<u8>, corpus: &[Vec<u8>], chance: &mut Chance) {
    let at = chance.below(bytes.len() + 1);
    let end = (at + 1 + chance.below(12)).min(bytes.len());
    match chance.below(10) {
        0 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
        1 => drop(bytes.drain(at..end)),
        2 => bytes.truncate(at),
        3 | 4 => {
            let word = WORDS[chance.below(WORDS.len())];
            drop(bytes.splice(at..at, word.bytes()));
        }
        5 | 6 => {
            let (start, end) = value_around(bytes, at);
            let word = WORDS[chance.below(WORDS.len())];
            drop(bytes.splice(start..end, word.bytes()));
        }
        7 => {
            let (start, end) = line_around(bytes, at);
            drop(bytes.drain(start..end));
        }
        8 => {
            let (start, end) = line_around(bytes, at);
            let line = bytes[start..end].to_vec();
            drop(bytes.splice(start..start, line));
        }
        _ => {
            let other = &corpus[chance.below(corpus.len())];
            let (start, end) = line_around(other, chance.below(other.len()));
            drop(bytes.splice(at..at, other[start..end].iter().copied()));
        }
    }
}

/// Replaces, removes or renames one value somewhere in a tree.
fn damage_value(value: &mut Value, chance: &mut Chance) {
    match value {
        Value::Object(map) if !map.is_empty() && chance.below(8) > 0 => {
            let key = map.keys().nth(chance.below(map.len())).expect("it is one of them").clone();
            match chance.below(8) {
                0 => drop(map.shift_remove(&key)),
                1 => {
                    let inner = map.shift_remove(&key).unwrap_or_default();
                    let cut = key.chars().skip(1).collect();
                    map.insert(cut, inner);
                }
                _ => damage_value(map.get_mut(&key).expect("it is one of them"), chance),
            }
        }
        Value::Array(items) if !items.is_empty() && chance.below(8) > 0 => {
            let at = chance.below(items.len());
            match chance.below(8) {
                0 => drop(items.remove(at)),
                1 => items.push(items[at].clone()),
                _ => damage_value(&mut items[at], chance),
            }
        }
        _ => {
            let word = WORDS[chance.below(WORDS.len())];
            *value = serde_json::from_str(word).unwrap_or_else(|_| word.into());
        }
    }
}

/// The stretch between the separators around a place: most often one value.
fn value_around(bytes: &[u8], at: usize) -> (usize, usize) {
    let separates =
        |byte: &u8| matches!(byte, b' ' | b'\n' | b',' | b':' | b'{' | b'}' | b'[' | b']');
    let start = bytes[..at].iter().rposition(separates).map_or(0, |it| it + 1);
    let end = bytes[at..].iter().position(separates).map_or(bytes.len(), |it| at + it);
    (start, end)
}

fn line_around(bytes: &[u8], at: usize) -> (usize, usize) {
    let start = bytes[..at].iter().rposition(|it| *it == b'\n').map_or(0, |it| it + 1);
    let end = bytes[at..].iter().position(|it| *it == b'\n').map_or(bytes.len(), |it| at + it + 1);
    (start, end)
}

/// Numbers that look drawn by chance and are the same every time (splitmix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % limit.max(1) as u64).expect("it is below a usize")
    }
}
