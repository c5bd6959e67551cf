//! From a job to a plan: every host, name, rank, variable, file and command that can be known before anything runs.

use unisono_job::{Command, Group, Job, Runs, System};

use crate::azure_word;
use crate::env::{self, HostfilePaths};
use crate::expand::{expand, lookup};
use crate::hostfile::Form;
use crate::{
    Argv, EngineKind, Facts, Host, HostRuns, Member, Names, Plan, Program, Variable, files,
    folders, notes, only_sshd, overrides, ranks,
};

/// Lays a job out. Pure and total: what is odd becomes a note in the plan.
///
/// Linear in the number of hosts, and stable under growth: member *i* of a group keeps its name.
pub fn lay_out(job: &Job, facts: &Facts, generation: u64) -> Plan {
    let (mut job, mut notes) = overrides::apply(job, &facts.overrides);
    folders::resolve(&mut job, &facts.user);
    let launch = ranks::launch_command(&job);
    let ranks = ranks::count(&job, launch.as_ref());
    let launch_on = launch.as_ref().and_then(|launch| {
        let group = u32::try_from(launch.group).ok()?;
        Some(Member { group, index: 0 })
    });
    notes.extend(notes::of(&job, facts, launch.as_ref(), ranks));

    let names = Names::of(&job);
    let mut plan = Plan {
        facts: facts.clone(),
        generation,
        hosts: Vec::with_capacity(usize::try_from(job.host_count()).unwrap_or(0)),
        programs: Vec::with_capacity(job.groups.len() + 1),
        ranks,
        launch_on,
        hostfile_form: Form::promised(&job),
        notes,
        first_of_group: Vec::with_capacity(job.groups.len()),
        names,
        job,
    };
    for group in 0..plan.job.groups.len() {
        add_group(&mut plan, group);
    }
    plan
}

fn add_group(plan: &mut Plan, at: usize) {
    let group = &plan.job.groups[at];
    plan.first_of_group.push(plan.hosts.len());
    let first_launches = group.runs.launch_line().is_some();
    let first_program = plan.programs.len();
    plan.programs.push(program(&plan.job, &plan.facts, group, first_launches));
    let rest_differs = matches!(group.runs, Runs::LaunchOnFirst(_)) && group.replicas > 1;
    if rest_differs {
        plan.programs.push(program(&plan.job, &plan.facts, group, false));
    }
    let number = u32::try_from(at).unwrap_or(u32::MAX);
    for index in 0..group.replicas {
        let first = index == 0;
        plan.hosts.push(Host {
            name: plan.names.host(&plan.job, &group.name, index),
            member: Member { group: number, index },
            slots: group.slots.count,
            runs: runs(group, first),
            program: first_program + usize::from(rest_differs && !first),
        });
    }
}

const fn runs(group: &Group, first: bool) -> HostRuns {
    match group.runs {
        Runs::Launch(_) if group.slots.count == 0 => HostRuns::Launch,
        Runs::Launch(_) => HostRuns::LaunchAndRanks,
        Runs::LaunchOnFirst(_) if first => HostRuns::LaunchAndRanks,
        Runs::LaunchOnFirst(_) | Runs::Ranks(_) => HostRuns::Ranks,
        Runs::Own(_) => HostRuns::Command,
    }
}

fn program(job: &Job, facts: &Facts, group: &Group, launches: bool) -> Program {
    let added_env = env::shared(job, facts, group, launches);
    // A kubelet expands by itself, and must not find text that was expanded before.
    let expands = job.dialect.is_kubernetes_object() && facts.engine == EngineKind::Local;
    let user_env = user_env(group, expands);
    let argv = match &group.runs {
        Runs::LaunchOnFirst(_) if !launches => Argv::Nothing,
        Runs::Ranks(Some(command)) if only_sshd::is_skipped(facts, command) => Argv::Nothing,
        Runs::Own(command) if only_sshd::is_skipped(facts, command) => only_sshd::wait(),
        Runs::Launch(command) | Runs::LaunchOnFirst(command) | Runs::Own(command) => {
            argv(job, facts, command)
        }
        Runs::Ranks(Some(command)) => argv(job, facts, command),
        Runs::Ranks(None) => Argv::Nothing,
    };
    let value = |name: &str| lookup(&added_env, name).or_else(|| lookup(&user_env, name));
    Program {
        argv: if expands { argv.map(|word| expand(&word, value)) } else { argv },
        files: files::planned(job, facts, launches),
        working_dir: group.working_dir.clone(),
        user_env,
        added_env,
    }
}

/// The file's variables; each may use those before it. What only Kubernetes can tell is left out.
fn user_env(group: &Group, expands: bool) -> Vec<Variable> {
    let mut variables: Vec<Variable> = Vec::with_capacity(group.env.len());
    for variable in &group.env {
        let Some(value) = &variable.value else {
            continue;
        };
        let value =
            if expands { expand(value, |name| lookup(&variables, name)) } else { value.clone() };
        variables.push(Variable::new(&variable.name, value));
    }
    variables
}

fn argv(job: &Job, facts: &Facts, command: &Command) -> Argv {
    let path = HostfilePaths::of(job, facts).promised;
    let azure = job.dialect.system() == System::AzureMl;
    match command {
        Command::Line { shell, text } if azure => {
            let text = azure_word::in_line(text, &path);
            words(&Command::Line { shell: *shell, text })
        }
        Command::Words(given) if azure => {
            let mut given = given.clone();
            azure_word::in_words(&mut given, &path);
            Argv::Words(given)
        }
        Command::Line { .. } | Command::Words(_) | Command::ImageEntry(_) => words(command),
    }
}

fn words(command: &Command) -> Argv {
    match (command.argv(), command) {
        (Some(words), _) => Argv::Words(words),
        (None, Command::ImageEntry(arguments)) => Argv::ImageEntry(arguments.clone()),
        (None, Command::Words(_) | Command::Line { .. }) => Argv::Nothing,
    }
}

impl Argv {
    fn map(self, change: impl Fn(String) -> String) -> Self {
        match self {
            Self::Words(words) => Self::Words(words.into_iter().map(change).collect()),
            Self::ImageEntry(words) => Self::ImageEntry(words.into_iter().map(change).collect()),
            Self::Nothing => Self::Nothing,
        }
    }
}
