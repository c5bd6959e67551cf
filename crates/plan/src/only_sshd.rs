//! Commands that do nothing but run an ssh server, as images for the MPI operator do. Here the agent serves instead: a real
//! sshd would want the machine's own port.

use unisono_job::{Command, split_words};

use crate::{Argv, EngineKind, Facts};

/// Whether the engine leaves this command out, because it is only an ssh server.
pub(crate) fn is_skipped(facts: &Facts, command: &Command) -> bool {
    facts.engine == EngineKind::Local && is_only_sshd(command)
}

/// What a task whose ssh server is left out does in its place: nothing, for as long as it would have served.
pub(crate) fn wait() -> Argv {
    Argv::Words(["sleep", "infinity"].map(str::to_owned).into())
}

fn is_only_sshd(command: &Command) -> bool {
    match command {
        Command::Words(words) => is_sshd(words),
        Command::Line { text, .. } => is_sshd_line(text),
        Command::ImageEntry(_) => false,
    }
}

/// One command for a shell: its operators and line ends would make it more than that.
fn is_sshd_line(text: &str) -> bool {
    let text = text.trim();
    !text.contains([';', '&', '|', '\n']) && split_words(text).is_ok_and(|words| is_sshd(&words))
}

/// Whether these words do nothing but run an ssh server, also behind a shell's `-c`.
pub fn is_sshd(words: &[String]) -> bool {
    let words = words.strip_prefix(&["exec".to_owned()]).unwrap_or(words);
    let (Some(program), rest) = (words.first(), words.get(1..).unwrap_or_default()) else {
        return false;
    };
    match (program.rsplit('/').next().unwrap_or(program), rest) {
        ("sshd", _) => true,
        ("sh" | "bash", [option, script]) if option.starts_with('-') && option.ends_with('c') => {
            is_sshd_line(script)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_alone_is_known_in_every_way_it_is_written() {
        let words = |text: &str| Command::Words(split_words(text).unwrap());
        for text in [
            "/usr/sbin/sshd -De",
            "/usr/sbin/sshd -De -f /home/mpiuser/.sshd_config",
            "sh -c '/usr/sbin/sshd -D'",
            "bash -lc 'exec sshd -D'",
        ] {
            assert!(is_only_sshd(&words(text)), "{text}");
            assert!(is_only_sshd(&Command::bash(text)), "{text}");
        }
    }

    #[test]
    fn whatever_does_more_is_kept() {
        for text in
            ["sshd -D; ./train", "sshd\n./a", "sshd -D && ./a", "sleep 9", "./sshd.sh", "", "sh -c"]
        {
            assert!(!is_only_sshd(&Command::bash(text)), "{text}");
        }
    }
}
