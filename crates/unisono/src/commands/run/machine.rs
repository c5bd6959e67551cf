//! What a run finds on this machine, and what it makes of it: flags, settings and a plan enter, a machine and notes leave.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use unisono_job::{Job, MpiFrom, Note};
use unisono_local::host::Isolation;
use unisono_local::means::{self, ControlGroups, Means};
use unisono_local::{Machine, RunDirectory, gpus, mpi, open_files};
use unisono_plan::{EngineKind, Facts, Plan};

use super::{RunArgs, RunOutput};
use crate::Context;
use crate::error::Error;
use crate::job_file;
use crate::settings::GpuChoice;

/// This program, which is also every part of a host.
pub(super) fn program() -> Result<PathBuf, Error> {
    std::env::current_exe().map_err(|error| Error::run("cannot find the program itself", error))
}

/// What this machine allows.
pub(super) fn look(program: &Path, runs: &Path) -> Result<Means, Error> {
    RunDirectory::make_folder(runs)
        .map_err(|error| Error::run("cannot make the folder of runs", error))?;
    Ok(means::look(program, runs))
}

/// What a plan needs to know beside the job. Hosts without namespaces have their files in the run's folder.
pub(super) fn facts(args: &RunArgs, context: &Context, means: Means, run: &Path) -> Facts {
    let overrides = args.overrides.overrides();
    let facts = job_file::facts(&context.settings, EngineKind::Local, overrides);
    if means.isolation != Isolation::Processes {
        return facts;
    }
    let root = run.join("root");
    let home = root.join("opt/unisono").display().to_string();
    let remote_shell = format!("{home}/bin/ssh");
    let file_root = root.display().to_string();
    Facts { home, remote_shell, file_root, hosts_are_apart: false, ..facts }
}

/// The machine as hosts of this plan find it, with what there is to tell about it.
pub(super) fn of(
    args: &RunArgs,
    context: &Context,
    plan: &Plan,
    means: Means,
    folder: PathBuf,
) -> Result<(Machine, Vec<Note>), Error> {
    let stated = stated_folders(plan)?;
    let mut notes = means.notes(args.isolate_network);
    let network = means
        .network(args.isolate_network)
        .map_err(|error| Error::run("cannot give the hosts a network of their own", error))?;
    let variables = variables(context);
    let mpi = find_mpi(args, plan, &variables)?;
    notes.extend(mpi.as_ref().and_then(|mpi| mpi::mismatch(plan.job.mpi, mpi)));
    let limits = (!args.no_limits).then(ControlGroups::find);
    notes.extend(limits.as_ref().and_then(|groups| means::unkept_limits(plan, groups)));
    let available = gpus(&context.settings.gpus.value, &variables);
    let (gpus, gpu_notes) = gpus::share_out(plan, &available, args.gpus);
    notes.extend(gpu_notes);
    let program = program()?;
    let working_dir = working_dir(plan, &folder, &context.world.folder);
    let machine = Machine {
        in_use: in_use(&program, &working_dir, folder, &variables, mpi.as_ref())
            .chain(stated.into_iter().filter(|it| is_in_tmp(it)))
            .collect(),
        isolation: means.isolation,
        network,
        limits,
        gpus,
        environment: variables.into_iter().collect(),
        stage: PathBuf::new(),
        working_dir,
        mpi,
        program,
        tag_ranks: !args.raw,
        open_files: open_files::raise(),
        at_once: at_once(args),
        passes_stdin: !io::stdin().is_terminal() && args.file.as_deref() != Some(Path::new("-")),
    };
    Ok((machine, notes))
}

/// On which streams progress is shown as it is drawn: a file or another program is better served by whole lines.
fn at_once(args: &RunArgs) -> [bool; 2] {
    let is_terminal = [io::stdout().is_terminal(), io::stderr().is_terminal()];
    is_terminal.map(|it| args.output == RunOutput::Text && (args.raw || it))
}

/// The user's own variables, as far as they are text.
fn variables(context: &Context) -> BTreeMap<String, String> {
    let text = |(name, value): &(std::ffi::OsString, std::ffi::OsString)| {
        Some((name.to_str()?.to_owned(), value.to_str()?.to_owned()))
    };
    context.world.variables.iter().filter_map(text).collect()
}

/// The MPI that the job is for, if it is here, else the one that is.
fn find_mpi(
    args: &RunArgs,
    plan: &Plan,
    variables: &BTreeMap<String, String>,
) -> Result<Option<mpi::Mpi>, Error> {
    let path = variables.get("PATH").map_or("", String::as_str);
    let wanted = wanted_flavour(&plan.job);
    let found = mpi::find(args.mpi.as_deref(), path, wanted);
    if found.is_none() && plan.launch_on.is_some() {
        let hint = format!("{}, or name its folder with --mpi DIR", mpi::how_to_install(wanted));
        return Err(Error::Run {
            message: "no MPI was found: there is no mpirun on the PATH".to_owned(),
            hint: Some(hint),
            source: None,
        });
    }
    Ok(found)
}

/// A default that the file does not state is no wish.
fn wanted_flavour(job: &Job) -> Option<unisono_job::Flavour> {
    let is_wish = matches!(job.mpi.from, MpiFrom::Stated | MpiFrom::LaunchLine);
    job.mpi.flavour.filter(|_| is_wish)
}

/// The GPUs that jobs may use: those of the setting, else those of the machine that the user's own shell may use.
fn gpus(choice: &GpuChoice, variables: &BTreeMap<String, String>) -> Vec<u32> {
    let GpuChoice::Auto = choice else {
        return choice.numbers().to_vec();
    };
    let mut present = gpus::present(Path::new("/dev"));
    let visible = variables.get("CUDA_VISIBLE_DEVICES");
    let listed = visible.and_then(|list| list.parse::<GpuChoice>().ok());
    if let Some(listed @ GpuChoice::These(_)) = listed {
        present.retain(|number| listed.numbers().contains(number));
    }
    present
}

/// Where commands run when the file does not say: the job's own folder, if it is here, else the user's.
fn working_dir(plan: &Plan, folder: &Path, here: &Path) -> PathBuf {
    let host = plan.launch_host().or(plan.hosts.first());
    let code = host.and_then(|host| plan.group_of(host).code.as_ref());
    code.map(|code| folder.join(&code.path))
        .filter(|it| it.is_dir())
        .unwrap_or_else(|| here.to_owned())
}

/// The working folders that the file states. One that is not there would keep its host from starting, again and again.
fn stated_folders(plan: &Plan) -> Result<BTreeSet<PathBuf>, Error> {
    let stated = plan.hosts.iter().filter_map(|host| plan.program_of(host).working_dir.as_ref());
    let folders: BTreeSet<PathBuf> = stated.map(PathBuf::from).collect();
    let refused = |message: String, hint: &str| {
        Err(Error::Run { message, hint: Some(hint.to_owned()), source: None })
    };
    for folder in &folders {
        let shown = folder.display();
        if folder.is_relative() {
            let hint = "write the whole path, from / on";
            return refused(format!("the working folder `{shown}` is relative"), hint);
        }
        if !folder.is_dir() {
            let hint = "hosts see this machine's folders, not those of the image: make it, or state another one";
            return refused(format!("the working folder `{shown}` is not on this machine"), hint);
        }
    }
    Ok(folders)
}

/// Folders that stay visible although every host has a `/tmp` of its own.
fn in_use(
    program: &Path,
    working_dir: &Path,
    folder: PathBuf,
    variables: &BTreeMap<String, String>,
    mpi: Option<&mpi::Mpi>,
) -> impl Iterator<Item = PathBuf> {
    let candidates = [
        Some(working_dir.to_owned()),
        Some(folder),
        program.parent().map(Path::to_owned),
        variables.get("VIRTUAL_ENV").map(PathBuf::from),
        variables.get("HOME").map(PathBuf::from),
        mpi.and_then(mpi::Mpi::prefix),
    ];
    candidates.into_iter().flatten().filter(|it| is_in_tmp(it))
}

fn is_in_tmp(path: &Path) -> bool {
    path.starts_with("/tmp") && path != Path::new("/tmp") && path.is_dir()
}
