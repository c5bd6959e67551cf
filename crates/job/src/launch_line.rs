//! Reads what a launch line says about ranks, hosts and MPI flavour, without running it.

use serde::Serialize;

use crate::Flavour;
use crate::words::split_commands;

/// What a launch line says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LaunchLine {
    /// The program that starts the ranks.
    pub launcher: Launcher,
    /// The number of ranks, when the line states it as a number.
    pub ranks: Option<u32>,
    /// Whether the line states a number of ranks that only a shell can know (`-np $N`).
    pub ranks_unreadable: bool,
    /// Ranks on each host, when the line states them (`-ppn`, `-npernode`).
    pub per_host: Option<u32>,
    /// The flavour to which its options belong.
    pub flavour: Option<Flavour>,
    /// Whether the line names its own hosts (`-H`, `--hostfile`), so that ours are not used by default.
    pub names_hosts: bool,
    /// Slots of the hosts that stand in the line itself (`-H a:2,b`); absent when none do, or only a shell knows them.
    pub named_slots: Option<u32>,
    /// Whether it asks for more ranks than slots to be fine (`--oversubscribe`).
    pub oversubscribes: bool,
}

/// A launch line taken apart, by the numbers of its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchParts {
    /// The word that names the launcher; variable assignments may stand before it.
    pub launcher: usize,
    /// The words of each option with its values.
    pub options: Vec<std::ops::Range<usize>>,
    /// The first word of the program that the ranks run.
    pub program: usize,
}

/// Programs that start ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Launcher {
    /// `mpirun`, `mpiexec` and their other names.
    Mpirun,
    /// `horovodrun`.
    Horovodrun,
}

impl LaunchLine {
    /// Reads a line or script for a shell.
    pub fn from_text(text: &str) -> Option<Self> {
        split_commands(text).ok()?.iter().find_map(|words| Self::from_words(words))
    }

    /// Reads program and arguments; looks through `sh -c …`, `env`, `exec` and variable assignments.
    pub fn from_words(words: &[String]) -> Option<Self> {
        let start = words.iter().position(|word| !is_assignment(word))?;
        let (program, arguments) = words.get(start..)?.split_first()?;
        match base_name(program) {
            "sh" | "bash" | "dash" | "zsh" | "ksh" => {
                let script = arguments.iter().position(|word| is_command_option(word))?;
                Self::from_text(arguments.get(script + 1)?)
            }
            "env" | "exec" | "time" | "nohup" | "stdbuf" | "numactl" => {
                let rest = arguments.iter().position(|word| !word.starts_with('-'))?;
                Self::from_words(arguments.get(rest..)?)
            }
            "timeout" => Self::from_words(arguments.get(1..)?),
            "mpirun" | "mpiexec" | "orterun" | "prterun" | "mpirun.openmpi" | "mpiexec.openmpi" => {
                Some(Self::new(Launcher::Mpirun, None).read(arguments))
            }
            "mpiexec.hydra" | "mpirun.mpich" | "mpiexec.mpich" => {
                Some(Self::new(Launcher::Mpirun, Some(Flavour::Mpich)).read(arguments))
            }
            "horovodrun" => Some(Self::new(Launcher::Horovodrun, None).read(arguments)),
            _ => None,
        }
    }

    /// Takes one launch line apart. Wrappers are not looked through, and a line of several programs is not one.
    pub fn parts(words: &[String]) -> Option<LaunchParts> {
        let launcher = words.iter().position(|word| !is_assignment(word))?;
        Self::from_words(words.get(launcher..)?).filter(|_| is_launcher(&words[launcher]))?;
        let mut options = Vec::new();
        let mut at = launcher + 1;
        while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
            let values = match word.split_once('=') {
                Some(_) => 0,
                None => value_count(word.trim_start_matches('-')),
            };
            options.push(at..at + 1 + values);
            at += 1 + values;
        }
        let single = words.get(at..)?.iter().all(|word| word != ":");
        (at < words.len() && single).then_some(LaunchParts { launcher, options, program: at })
    }

    const fn new(launcher: Launcher, flavour: Option<Flavour>) -> Self {
        Self {
            launcher,
            ranks: None,
            ranks_unreadable: false,
            per_host: None,
            flavour,
            names_hosts: false,
            named_slots: None,
            oversubscribes: false,
        }
    }

    /// Reads options up to the program; after a lone `:` the options of the next program (MPMD) follow.
    fn read(mut self, arguments: &[String]) -> Self {
        let mut rest = arguments.iter();
        let mut in_options = true;
        while let Some(word) = rest.next() {
            if word == ":" {
                in_options = true;
                continue;
            }
            if !in_options {
                continue;
            }
            if !word.starts_with('-') {
                in_options = false;
                continue;
            }
            let (option, attached) = match word.split_once('=') {
                Some((option, value)) => (option, Some(value)),
                None => (word.as_str(), None),
            };
            // `-np` and `--np` are the same option to every launcher.
            let option = option.trim_start_matches('-');
            let values = value_count(option);
            let value = match attached {
                Some(value) => Some(value.to_owned()),
                None if values > 0 => rest.next().cloned(),
                None => None,
            };
            for _ in 1..values {
                rest.next();
            }
            self.take(option, value.as_deref().unwrap_or_default());
        }
        self
    }

    fn take(&mut self, option: &str, value: &str) {
        match option {
            "np" | "n" | "c" => match value.parse::<u32>() {
                Ok(count) => self.ranks = Some(self.ranks.unwrap_or(0).saturating_add(count)),
                Err(_) => self.ranks_unreadable = true,
            },
            "ppn" | "perhost" | "npernode" | "N" => self.per_host = value.parse().ok(),
            "map-by" => self.take_mapping(value),
            "H" | "host" | "hosts" => {
                self.names_hosts = true;
                self.named_slots = slots_of_hosts(value);
            }
            "hostfile" | "machinefile" | "f" => self.names_hosts = true,
            "oversubscribe" => self.oversubscribes = true,
            _ => {}
        }
        if self.flavour.is_none() || value.starts_with("I_MPI_") {
            self.flavour = flavour_of(option, value).or(self.flavour);
        }
    }

    /// `ppr:2:node` states ranks on each host; `…:oversubscribe` allows more ranks than slots.
    fn take_mapping(&mut self, value: &str) {
        let lower = value.to_ascii_lowercase();
        let parts: Vec<&str> = lower.split(':').collect();
        if let ["ppr", count, "node", ..] = parts.as_slice() {
            self.per_host = count.parse().ok();
        }
        self.oversubscribes |= parts.contains(&"oversubscribe");
    }
}

/// Slots of a list of hosts: `a,b:2` has three.
fn slots_of_hosts(list: &str) -> Option<u32> {
    list.split(',').try_fold(0_u32, |sum, host| {
        let (name, count) = host.split_once(':').unwrap_or((host, "1"));
        let known = !name.is_empty() && !name.contains(['$', '`']);
        sum.checked_add(count.parse().ok().filter(|_| known)?)
    })
}

/// The flavour that alone has this option.
fn flavour_of(option: &str, value: &str) -> Option<Flavour> {
    match option {
        "x" | "mca" | "gmca" | "prtemca" | "pmixmca" | "allow-run-as-root" | "oversubscribe"
        | "npernode" | "tag-output" | "am" | "tune" | "report-bindings" => Some(Flavour::OpenMpi),
        "genv" | "genvlist" | "env" | "envlist" if value.starts_with("I_MPI_") => {
            Some(Flavour::Intel)
        }
        "bootstrap" | "bootstrap-exec" | "perhost" => Some(Flavour::Intel),
        "genv" | "genvall" | "genvnone" | "genvlist" | "env" | "envall" | "envlist" | "ppn"
        | "launcher" | "launcher-exec" | "iface" | "rmk" | "f" | "hosts" => Some(Flavour::Mpich),
        _ => None,
    }
}

/// How many words an option takes. An option that is not listed takes none: a wrong guess loses a count, never invents one.
fn value_count(option: &str) -> usize {
    match option {
        "mca" | "gmca" | "prtemca" | "pmixmca" | "genv" | "env" => 2,
        "np"
        | "n"
        | "c"
        | "N"
        | "H"
        | "host"
        | "hosts"
        | "hostfile"
        | "machinefile"
        | "f"
        | "x"
        | "wdir"
        | "wd"
        | "path"
        | "prefix"
        | "bind-to"
        | "map-by"
        | "rank-by"
        | "npernode"
        | "npersocket"
        | "ppn"
        | "perhost"
        | "output-filename"
        | "report-uri"
        | "timeout"
        | "stdin"
        | "app"
        | "configfile"
        | "am"
        | "tune"
        | "personality"
        | "iface"
        | "launcher"
        | "launcher-exec"
        | "bootstrap"
        | "bootstrap-exec"
        | "rmk"
        | "genvlist"
        | "envlist"
        | "outfile-pattern"
        | "errfile-pattern"
        | "cpu-set"
        | "cpu-list"
        | "display"
        | "output"
        | "p"
        | "ssh-port"
        | "i"
        | "ssh-identity-file"
        | "start-timeout"
        | "network-interface"
        | "network-interfaces"
        | "min-np"
        | "max-np"
        | "slots-per-host"
        | "mpi-args"
        | "config-file"
        | "log-level"
        | "fusion-threshold-mb"
        | "cycle-time-ms"
        | "cache-capacity"
        | "timeline-filename"
        | "host-discovery-script"
        | "binding-args" => 1,
        _ => 0,
    }
}

fn is_launcher(program: &str) -> bool {
    let name = base_name(program);
    name == "horovodrun"
        || ["mpirun", "mpiexec", "orterun", "prterun"].iter().any(|it| name.starts_with(it))
}

fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// `-c`, also among other one-letter options (`-lc`, `-exc`).
fn is_command_option(word: &str) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.ends_with('c')
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && !name.starts_with(|it: char| it.is_ascii_digit())
            && name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> LaunchLine {
        LaunchLine::from_text(text).unwrap_or_else(|| panic!("no launch line in {text:?}"))
    }

    #[test]
    fn counts_of_the_program_are_not_counts_of_the_launcher() {
        let line = read("mpirun -np 6 -x PATH ./solver -n 1000 --np=3");
        assert_eq!(line.ranks, Some(6));
        assert_eq!(line.flavour, Some(Flavour::OpenMpi));
    }

    #[test]
    fn a_line_without_a_count_states_none() {
        let line = read("mpirun --allow-run-as-root python fashion.py");
        assert_eq!((line.ranks, line.ranks_unreadable), (None, false));
    }

    #[test]
    fn a_count_only_a_shell_knows_is_marked() {
        let line = read("mpiexec -n $RANKS ./a");
        assert_eq!((line.ranks, line.ranks_unreadable), (None, true));
    }

    #[test]
    fn several_programs_add_up() {
        assert_eq!(read("mpirun -np 2 ./a : -np 3 ./b x").ranks, Some(5));
    }

    #[test]
    fn shells_assignments_and_wrappers_are_looked_through() {
        let words = ["/bin/bash", "-lc", "cd /x; FOO=1 exec mpirun -n 3 ./a && echo ok"];
        let line = LaunchLine::from_words(&words.map(str::to_owned)).unwrap();
        assert_eq!(line.ranks, Some(3));
    }

    #[test]
    fn flavours_are_known_by_their_options() {
        assert_eq!(read("mpirun -ppn 2 ./a").flavour, Some(Flavour::Mpich));
        assert_eq!(read("mpirun -genv I_MPI_DEBUG 5 -n 2 ./a").flavour, Some(Flavour::Intel));
        assert_eq!(read("mpirun -mca btl ^openib ./a").flavour, Some(Flavour::OpenMpi));
        assert_eq!(read("mpirun -n 2 ./a").flavour, None);
        assert_eq!(read("mpiexec.hydra -n 2 ./a").flavour, Some(Flavour::Mpich));
    }

    #[test]
    fn ranks_on_each_host_and_own_hosts_are_seen() {
        let line = read("horovodrun -np 4 -H a:2,b:2 python x.py");
        assert_eq!((line.launcher, line.names_hosts), (Launcher::Horovodrun, true));
        assert_eq!(read("mpirun --map-by ppr:2:node ./a").per_host, Some(2));
    }

    #[test]
    fn hosts_in_the_line_tell_their_slots_unless_only_a_shell_knows_them() {
        assert_eq!(read("mpirun -H a,b ./a").named_slots, Some(2));
        assert_eq!(read("mpirun --host a:3,b,c:2 ./a").named_slots, Some(6));
        for text in ["mpirun -H a,$B ./a", "mpirun -H a:x ./a", "mpirun -H a, ./a", "mpirun ./a"] {
            assert_eq!(read(text).named_slots, None, "{text}");
        }
    }

    #[test]
    fn a_line_is_taken_apart_at_its_program() {
        let words = |text: &str| crate::split_words(text).unwrap();
        let line = words("A=1 mpirun -np 4 -mca btl ^openib --tag-output -x=B ./a -np 3");
        let parts = LaunchLine::parts(&line).unwrap();
        assert_eq!((parts.launcher, parts.program), (1, 9));
        assert_eq!(parts.options, [2..4, 4..7, 7..8, 8..9]);
        for text in
            ["mpirun -n 2 ./a : -n 3 ./b", "exec mpirun ./a", "mpirun -np 2", "python a.py", ""]
        {
            assert_eq!(LaunchLine::parts(&words(text)), None, "{text}");
        }
    }

    #[test]
    fn what_starts_no_ranks_is_no_launch_line() {
        for text in ["sleep infinity", "python mpirun.py", "echo mpirun -n 3", "", "mpirun 'open"] {
            assert_eq!(LaunchLine::from_text(text), None, "{text:?}");
        }
    }
}
