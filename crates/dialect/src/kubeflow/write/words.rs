//! Words of a launch line that mean something only in the system it was written for.

use unisono_job::{Command, System};

use super::Writer;

/// Where every version of the operator puts the host file.
const HOST_FILE: &str = "/etc/mpi/hostfile";

/// Ways to name the host file elsewhere, longer ones first.
const HOST_FILES: [(System, &str); 4] = [
    (System::AzureMl, "${AZUREML_MPI_HOSTFILE}"),
    (System::AzureMl, "$AZUREML_MPI_HOSTFILE"),
    (System::AzureMl, "AZUREML_MPI_HOSTFILE"),
    (System::KubeBatch, "/mpi/hostfile"),
];

/// Beginnings of variables that only one system sets.
const VARIABLES: [(System, &str); 2] = [(System::AzureMl, "AZUREML_"), (System::OpenPai, "PAI_")];

/// The command with the host file called as an MPIJob calls it; other words of its system are told.
pub(super) fn spoken_here(writer: &mut Writer<'_>, command: &Command) -> Command {
    let system = writer.job.dialect.system();
    let renamed = renamed(system, command);
    if renamed != *command {
        writer.converted(format!("the launch line finds its host file at {HOST_FILE}"));
    }
    for (owner, beginning) in VARIABLES {
        if owner == system && renamed.display().contains(beginning) {
            writer.lost(
                format!(
                    "the launch line uses {beginning}… variables, which an MPIJob does not set"
                ),
                "set them in `env`, or change the command",
            );
        }
    }
    renamed
}

fn renamed(system: System, command: &Command) -> Command {
    let rename = |text: &String| {
        let names = HOST_FILES.iter().filter(|(owner, name)| {
            *owner == system && text.contains(name) && !text.contains(HOST_FILE)
        });
        names.fold(text.clone(), |text, (_, name)| text.replace(name, HOST_FILE))
    };
    match command {
        Command::Words(words) => Command::Words(words.iter().map(rename).collect()),
        Command::ImageEntry(words) => Command::ImageEntry(words.iter().map(rename).collect()),
        Command::Line { shell, text } => Command::Line { shell: *shell, text: rename(text) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_file_is_called_as_it_is_called_here() {
        let line = |text: &str| Command::bash(text);
        let azure = renamed(
            System::AzureMl,
            &line("mpirun --hostfile $AZUREML_MPI_HOSTFILE a; cat AZUREML_MPI_HOSTFILE"),
        );
        assert_eq!(azure, line("mpirun --hostfile /etc/mpi/hostfile a; cat /etc/mpi/hostfile"));
        let batch = renamed(System::KubeBatch, &line("mpirun -f /mpi/hostfile a"));
        assert_eq!(batch, line("mpirun -f /etc/mpi/hostfile a"));
        let other = line("mpirun -f /mpi/hostfile $AZUREML_MPI_HOSTFILE");
        assert_eq!(renamed(System::OpenPai, &other), other);
    }
}
