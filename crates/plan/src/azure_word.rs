//! Azure's bare word `AZUREML_MPI_HOSTFILE`: early samples write it without a dollar where they mean the path.

/// The variable, and the bare word.
pub(crate) const WORD: &str = "AZUREML_MPI_HOSTFILE";

/// Words after which the bare word is the variable's name, not its value.
const TAKES_A_NAME: [&str; 9] =
    ["-x", "--x", "export", "unset", "printenv", "-genvlist", "-envlist", "declare", "readonly"];

/// A line for a shell with every bare word replaced by the path. `$AZUREML_MPI_HOSTFILE` is left to the shell.
pub(crate) fn in_line(text: &str, path: &str) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(WORD) {
        let (before, from_word) = rest.split_at(at);
        let after = &from_word[WORD.len()..];
        replaced.push_str(before);
        let (left, right) = (replaced.chars().next_back(), after.chars().next());
        if stands_alone(left, right) && !names_a_variable(&replaced) {
            replaced.push_str(path);
        } else {
            replaced.push_str(WORD);
        }
        rest = after;
    }
    replaced.push_str(rest);
    replaced
}

/// Words run without a shell: both spellings mean the path.
pub(crate) fn in_words(words: &mut [String], path: &str) {
    for at in 0..words.len() {
        let after_name = at > 0 && TAKES_A_NAME.contains(&words[at - 1].as_str());
        let word = &mut words[at];
        if word == WORD && !after_name {
            path.clone_into(word);
        } else if let Some(option) = word.strip_suffix(WORD).and_then(|it| it.strip_suffix('=')) {
            *word = format!("{option}={path}");
        }
        for spelling in ["$AZUREML_MPI_HOSTFILE", "${AZUREML_MPI_HOSTFILE}"] {
            if word.ends_with(spelling) {
                *word = word.replace(spelling, path);
            }
        }
    }
}

fn stands_alone(before: Option<char>, after: Option<char>) -> bool {
    let begins = before.is_none_or(|it| it.is_whitespace() || "='\";&|(".contains(it));
    let ends = after.is_none_or(|it| it.is_whitespace() || "'\";&|)".contains(it));
    begins && ends
}

fn names_a_variable(before: &str) -> bool {
    before
        .trim_end_matches(['\'', '"'])
        .split_whitespace()
        .next_back()
        .is_some_and(|word| before.ends_with(char::is_whitespace) && TAKES_A_NAME.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bare_word_becomes_the_path_and_the_variable_stays() {
        let line = "mpirun --hostfile AZUREML_MPI_HOSTFILE -f $AZUREML_MPI_HOSTFILE ./a";
        assert_eq!(in_line(line, "/h"), "mpirun --hostfile /h -f $AZUREML_MPI_HOSTFILE ./a");
        assert_eq!(in_line("m --f=AZUREML_MPI_HOSTFILE", "/h"), "m --f=/h");
        assert_eq!(in_line("AZUREML_MPI_HOSTFILE", "/h"), "/h");
    }

    #[test]
    fn a_name_of_the_variable_stays_a_name() {
        for line in [
            "mpirun -x AZUREML_MPI_HOSTFILE ./a",
            "export AZUREML_MPI_HOSTFILE=/x",
            "echo ${AZUREML_MPI_HOSTFILE}",
            "echo MY_AZUREML_MPI_HOSTFILE AZUREML_MPI_HOSTFILE_2",
        ] {
            assert_eq!(in_line(line, "/h"), line);
        }
    }

    #[test]
    fn words_without_a_shell_know_both_spellings() {
        let mut words = [
            "mpirun",
            "-x",
            "AZUREML_MPI_HOSTFILE",
            "--hostfile",
            "AZUREML_MPI_HOSTFILE",
            "--f=$AZUREML_MPI_HOSTFILE",
        ]
        .map(str::to_owned);
        in_words(&mut words, "/h");
        assert_eq!(words[2..], ["AZUREML_MPI_HOSTFILE", "--hostfile", "/h", "--f=/h"]);
    }
}
