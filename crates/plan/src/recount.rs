//! Changes the number of ranks that a launch line states, without touching anything else in it.
//!
//! Every candidate change is read back by the same reader that reads launch lines: only one that then states exactly the
//! wanted number is taken.

use unisono_job::Command;

/// Options that state a count of ranks.
const COUNT_OPTIONS: [&str; 5] = ["-np", "--np", "-n", "--n", "-c"];

/// Programs that take such an option.
const LAUNCHERS: [&str; 7] =
    ["mpirun", "mpiexec", "orterun", "prterun", "mpiexec.hydra", "mpirun.openmpi", "horovodrun"];

/// The command with `ranks` as its count; none when no such command can be made.
pub(crate) fn with_ranks(command: &Command, ranks: u32) -> Option<Command> {
    if command.launch_line()?.ranks_unreadable {
        return None;
    }
    let right =
        |candidate: &Command| candidate.launch_line().is_some_and(|line| line.ranks == Some(ranks));
    match command {
        Command::Line { shell, text } => texts(text, ranks)
            .into_iter()
            .map(|text| Command::Line { shell: *shell, text })
            .find(right),
        Command::Words(words) => {
            words_with(words, ranks).into_iter().map(Command::Words).find(right)
        }
        Command::ImageEntry(words) => {
            words_with(words, ranks).into_iter().map(Command::ImageEntry).find(right)
        }
    }
}

/// Texts in which one count is changed, then texts in which one launcher is given a count.
fn texts(text: &str, ranks: u32) -> Vec<String> {
    let spans = word_spans(text);
    let mut changed = Vec::new();
    let mut given = Vec::new();
    for (at, (start, end)) in spans.iter().copied().enumerate() {
        let word = &text[start..end];
        let after_option = at
            .checked_sub(1)
            .and_then(|before| spans.get(before))
            .is_some_and(|(start, end)| COUNT_OPTIONS.contains(&&text[*start..*end]));
        if after_option && is_number(word) {
            changed.push(format!("{}{ranks}{}", &text[..start], &text[end..]));
        } else if let Some((option, value)) = word.split_once('=')
            && COUNT_OPTIONS.contains(&option)
            && is_number(value)
        {
            changed.push(format!("{}{option}={ranks}{}", &text[..start], &text[end..]));
        } else if is_launcher(word) {
            given.push(format!("{} -np {ranks}{}", &text[..end], &text[end..]));
        }
    }
    changed.append(&mut given);
    changed
}

fn words_with(words: &[String], ranks: u32) -> Vec<Vec<String>> {
    let with = |at: usize, word: String| {
        let mut copy = words.to_vec();
        copy[at] = word;
        copy
    };
    let mut candidates = Vec::new();
    let mut given = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let after_option = at > 0 && COUNT_OPTIONS.contains(&words[at - 1].as_str());
        if after_option && is_number(word) {
            candidates.push(with(at, ranks.to_string()));
        } else if is_launcher(word) {
            let mut copy = words.to_vec();
            copy.splice(at + 1..at + 1, ["-np".to_owned(), ranks.to_string()]);
            given.push(copy);
        } else {
            // A script of `sh -c`, or `--np=4`.
            candidates.extend(texts(word, ranks).into_iter().map(|text| with(at, text)));
        }
    }
    candidates.append(&mut given);
    candidates
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|it| it.is_ascii_digit())
}

fn is_launcher(word: &str) -> bool {
    word.rsplit('/').next().is_some_and(|name| LAUNCHERS.contains(&name))
}

/// Where words that are split by blanks and shell operators begin and end.
fn word_spans(text: &str) -> Vec<(usize, usize)> {
    let divides = |it: char| it.is_whitespace() || ";&|()".contains(it);
    let mut spans = Vec::new();
    let mut start = None;
    for (at, character) in text.char_indices() {
        match (start, divides(character)) {
            (None, false) => start = Some(at),
            (Some(from), true) => {
                spans.push((from, at));
                start = None;
            }
            (None, true) | (Some(_), false) => {}
        }
    }
    spans.extend(start.map(|from| (from, text.len())));
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str, ranks: u32) -> Option<String> {
        with_ranks(&Command::bash(text), ranks).map(|command| command.display())
    }

    #[test]
    fn the_launchers_count_is_changed_and_the_programs_is_not() {
        assert_eq!(
            line("cd /x; mpirun -np 64 ./solver -n 64", 4).unwrap(),
            "cd /x; mpirun -np 4 ./solver -n 64"
        );
        assert_eq!(line("mpiexec --np=8 ./a", 2).unwrap(), "mpiexec --np=2 ./a");
    }

    #[test]
    fn a_launcher_without_a_count_is_given_one() {
        assert_eq!(line("/usr/bin/mpirun ./a", 3).unwrap(), "/usr/bin/mpirun -np 3 ./a");
    }

    #[test]
    fn words_and_scripts_inside_words_are_changed_alike() {
        let words =
            |it: &[&str]| Command::Words(it.iter().map(|word| (*word).to_owned()).collect());
        assert_eq!(
            with_ranks(&words(&["mpirun", "-n", "6", "hostname"]), 2),
            Some(words(&["mpirun", "-n", "2", "hostname"]))
        );
        assert_eq!(
            with_ranks(&words(&["sh", "-c", "mpirun -n 6 hostname"]), 2),
            Some(words(&["sh", "-c", "mpirun -n 2 hostname"]))
        );
    }

    #[test]
    fn what_cannot_be_changed_for_sure_is_left() {
        assert_eq!(line("mpirun -np $N ./a", 2), None);
        assert_eq!(line("./train.sh", 2), None);
    }
}
