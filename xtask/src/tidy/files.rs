//! Rules over lines: module docs, lengths, words that do not belong.

use super::RepositoryFile;

/// About 400 is the aim; more than this does not fit a head.
const MOST_LINES: usize = 600;

/// What may not stand in a source file, and why. Written in two parts, so that this table is not found by itself.
const FORBIDDEN: [(&str, &str, &str); 4] = [
    ("#[ig", "nore", "a test that does not run tests nothing"),
    ("TO", "DO", "do it, or leave it out"),
    ("FIX", "ME", "fix it"),
    ("/work/sha", "red", "the project stands alone"),
];

pub(super) fn breaches(files: &[RepositoryFile]) -> Vec<String> {
    let mut breaches = Vec::new();
    for file in files {
        breaches.extend(file.is_rust().then(|| of_source(file)).into_iter().flatten());
        breaches.extend(forbidden_words(file));
    }
    breaches
}

fn of_source(file: &RepositoryFile) -> Vec<String> {
    let mut breaches = Vec::new();
    if !file.text.starts_with("//!") && !file.text.starts_with("#![no_main]\n//!") {
        breaches.push(file.breach(1, "begin with a module doc (//!): what enters, what leaves"));
    }
    let lines = file.text.lines().count();
    if lines > MOST_LINES {
        breaches.push(file.breach(lines, &format!("{lines} lines; {MOST_LINES} is the most")));
    }
    breaches
}

fn forbidden_words(file: &RepositoryFile) -> Vec<String> {
    let checked = ["rs", "md", "toml", "sh", "c", "h"];
    let extension = file.path.extension().and_then(|it| it.to_str()).unwrap_or_default();
    if !checked.contains(&extension) {
        return Vec::new();
    }
    let mut breaches = Vec::new();
    for (line, number) in file.text.lines().zip(1..) {
        for (start, rest, why) in FORBIDDEN {
            let is_word =
                |at: usize| !line.as_bytes().get(at).is_some_and(u8::is_ascii_alphanumeric);
            let word = format!("{start}{rest}");
            let found = line
                .match_indices(&word)
                .any(|(at, _)| is_word(at + word.len()) && (at == 0 || is_word(at - 1)));
            if found {
                breaches.push(file.breach(number, &format!("`{word}`: {why}")));
            }
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(path: &str, text: &str) -> Vec<String> {
        breaches(&[RepositoryFile { path: path.into(), text: text.to_owned() }])
    }

    #[test]
    fn each_rule_is_told_with_its_place() {
        assert_eq!(told("a.rs", "//! Fine.\nfn main() {}\n"), [""; 0]);
        assert_eq!(told("a.rs", "fn main() {}\n").len(), 1);
        assert_eq!(told("a.rs", &format!("//! x\n{}", "\n".repeat(600))).len(), 1);
        let mark = ["// TO", "DO: x"].concat();
        assert_eq!(
            told("a.rs", &format!("//! x\n{mark}\n")),
            [format!("a.rs:2: `{}`: do it, or leave it out", ["TO", "DO"].concat())]
        );
        assert_eq!(told("a.rs", &format!("//! x\n{}\n", ["TO", "DOS"].concat())), [""; 0]);
    }
}
