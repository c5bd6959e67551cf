//! The words that `UnisonoJob` uses for each choice of the neutral model: one table for reader, writer and schema.

use unisono_job::{CleanUp, Dialect, Flavour, LaunchRights, LauncherStart, RestartPolicy, Shell};

type Words<T, const N: usize> = [(&'static str, T); N];

pub(super) const MPI: Words<Flavour, 3> =
    [("OpenMPI", Flavour::OpenMpi), ("Intel", Flavour::Intel), ("MPICH", Flavour::Mpich)];
pub(super) static MPI_NAMES: [&str; 3] = names(&MPI);

pub(super) const LAUNCH_RIGHTS: Words<LaunchRights, 2> =
    [("Launcher", LaunchRights::Launcher), ("Everybody", LaunchRights::Everybody)];
pub(super) static LAUNCH_RIGHTS_NAMES: [&str; 2] = names(&LAUNCH_RIGHTS);

pub(super) const SHELL: Words<Shell, 3> =
    [("Sh", Shell::Sh), ("Bash", Shell::Bash), ("StrictBash", Shell::StrictBash)];
pub(super) static SHELL_NAMES: [&str; 3] = names(&SHELL);

pub(super) const RESTART: Words<RestartPolicy, 4> = [
    ("Never", RestartPolicy::Never),
    ("OnFailure", RestartPolicy::OnFailure),
    ("Always", RestartPolicy::Always),
    ("ExitCode", RestartPolicy::ExitCode),
];
pub(super) static RESTART_NAMES: [&str; 4] = names(&RESTART);

pub(super) const CLEAN_UP: Words<CleanUp, 3> =
    [("None", CleanUp::None), ("Running", CleanUp::Running), ("All", CleanUp::All)];
pub(super) static CLEAN_UP_NAMES: [&str; 3] = names(&CLEAN_UP);

pub(super) const LAUNCHER_START: Words<LauncherStart, 2> =
    [("AtOnce", LauncherStart::AtOnce), ("AfterWorkers", LauncherStart::AfterWorkers)];
pub(super) static LAUNCHER_START_NAMES: [&str; 2] = names(&LAUNCHER_START);

pub(super) static DIALECT_NAMES: [&str; Dialect::ALL.len()] = dialect_names();

/// The choice that a word stands for.
pub(super) fn meaning<T: Copy>(words: &[(&'static str, T)], word: &str) -> Option<T> {
    words.iter().find(|(name, _)| *name == word).map(|(_, value)| *value)
}

/// The word for a choice. Every table is complete, so there always is one.
pub(super) fn word<T: Copy + PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    words.iter().find(|(_, candidate)| *candidate == value).map_or("", |(name, _)| name)
}

const fn names<T: Copy, const N: usize>(words: &Words<T, N>) -> [&'static str; N] {
    let mut names = [""; N];
    let mut index = 0;
    while index < N {
        names[index] = words[index].0;
        index += 1;
    }
    names
}

const fn dialect_names() -> [&'static str; Dialect::ALL.len()] {
    let mut names = [""; Dialect::ALL.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = Dialect::ALL[index].name();
        index += 1;
    }
    names
}
