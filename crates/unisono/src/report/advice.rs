//! What to do about a failure: its exit code and its last lines enter, a sentence and a hint leave.

use unisono_local::{Unrunnable, unrunnable};

/// What is known about a failure beyond its exit code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Advice {
    /// What is wrong.
    pub(crate) message: String,
    /// What to do.
    pub(crate) hint: String,
}

/// Packages that bring a program, by the program's name.
const BROUGHT_BY: [(&str, &str); 9] = [
    ("mpirun", "`apt install openmpi-bin`, or name an MPI's folder with --mpi DIR"),
    ("mpiexec", "`apt install openmpi-bin`, or name an MPI's folder with --mpi DIR"),
    ("orterun", "`apt install openmpi-bin`"),
    ("mpiexec.hydra", "`apt install mpich`, or name an MPI's folder with --mpi DIR"),
    ("python", "`apt install python-is-python3`, or write python3"),
    ("python3", "`apt install python3`"),
    ("pip", "`apt install python3-pip`"),
    ("horovodrun", "`pip install horovod`"),
    ("nvidia-smi", "the driver of your GPU"),
];

/// What to do about a command that ended with this code on that host.
pub(crate) fn advice(code: i32, host: &str, last_lines: &[String]) -> Option<Advice> {
    if !matches!(code, 126 | 127) {
        return None;
    }
    let Unrunnable { program, host: told, is_there } = unrunnable(last_lines)?;
    let host = told.as_deref().unwrap_or(host);
    if is_there || code == 126 {
        return Some(Advice {
            message: format!("`{program}` cannot be executed on {host}"),
            hint: format!("`chmod +x {program}`; a script needs a first line such as #!/bin/sh"),
        });
    }
    let name = program.rsplit('/').next().unwrap_or_default();
    let hint = match BROUGHT_BY.iter().find(|(known, _)| *known == name) {
        Some((_, package)) => format!("install it on this machine: {package}"),
        None if program.contains('/') => format!(
            "hosts see this machine's files, not those of the image: is there a `{program}`, and is it executable?"
        ),
        None => format!(
            "hosts use this machine's programs, not those of the image: install `{program}`, or put its folder on the PATH"
        ),
    };
    Some(Advice { message: format!("there is no program `{program}` on {host}"), hint })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(code: i32, line: &str) -> Option<(String, String)> {
        let advice = advice(code, "w-0", &[line.to_owned()])?;
        Some((advice.message, advice.hint))
    }

    #[test]
    fn a_missing_program_is_named_with_what_to_install() {
        let (message, hint) = told(127, "/bin/sh: 1: horovodrun: not found").unwrap();
        assert_eq!(message, "there is no program `horovodrun` on w-0");
        assert!(hint.contains("pip install horovod"), "{hint}");
        let (_, hint) = told(127, "bash: line 1: lmp: command not found").unwrap();
        assert!(hint.contains("not those of the image"), "{hint}");
    }

    #[test]
    fn a_file_that_is_no_program_is_told_apart() {
        let (message, hint) = told(126, "/bin/sh: 1: ./train.sh: Permission denied").unwrap();
        assert_eq!(message, "`./train.sh` cannot be executed on w-0");
        assert!(hint.contains("chmod +x ./train.sh"), "{hint}");
    }

    #[test]
    fn other_ends_need_no_advice() {
        assert_eq!(told(1, "/bin/sh: 1: x: not found"), None);
        assert_eq!(told(127, "my own words"), None);
    }
}
