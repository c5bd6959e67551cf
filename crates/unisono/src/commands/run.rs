//! `unisono run`: a job file or a command enters, the job's output and its exit code leave.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use clap::{Args, ValueEnum};
use unisono_agent::table::DEFAULT_PORT;
use unisono_engine::{Clock as _, SystemClock, mint};
use unisono_job::Job;
use unisono_local::means::Network;
use unisono_local::notes::OTHER_MPI;
use unisono_local::{
    Door, Happening, Limits, LocalEngine, Machine, RunDirectory, RunRecord, Told, drive,
    give_addresses, private_addresses, sweep, usual_slots,
};
use unisono_plan::line::Ticket;
use unisono_plan::{Plan, Status, Time, lay_out};

use super::plan::OverrideArgs;
use crate::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::job_file::{self, FIRST_GENERATION};
use crate::report::RunReport;
use crate::settings::{MachineSlots, Settings};

mod bare;
mod machine;

/// Run a job on this machine, with a real mpirun and one isolated host per worker.
///
/// Hosts have the names, files and variables that the file's own system promises. The job's exit code is passed through.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct RunArgs {
    /// The job file; `-` is standard input. Not needed when a command follows `--`.
    #[arg(value_name = "FILE", required_unless_present = "command", conflicts_with = "command")]
    file: Option<PathBuf>,
    /// The job to run, when the file holds several.
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    #[command(flatten)]
    overrides: OverrideArgs,
    /// The MPI to use: the folder that holds its `bin`.
    #[arg(long, value_name = "DIR")]
    mpi: Option<PathBuf>,
    /// A variable for every host.
    #[arg(long, value_name = "NAME=VALUE", value_parser = bare::variable)]
    env: Vec<(String, String)>,
    /// Give every host a network of its own, joined by one that only the job can see.
    #[arg(long)]
    isolate_network: bool,
    /// Do not keep hosts within the cpu and memory limits of the file.
    #[arg(long)]
    no_limits: bool,
    /// Use at most so many of this machine's GPUs; a job that asks for none gets them spread over its hosts.
    #[arg(long, value_name = "N")]
    gpus: Option<u32>,
    /// Stop the job after this many seconds.
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
    /// Fail when the MPI is not the one the job is for, or ranks did not run where they were planned.
    #[arg(long)]
    strict: bool,
    /// The queue to wait in, instead of the file's.
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,
    /// Larger goes first among runs that wait in line; instead of the file's priority class.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i32>,
    /// Run a job that its file suspends.
    #[arg(long)]
    resume: bool,
    /// Keep the run's directory until it is removed by hand.
    #[arg(long)]
    keep: bool,
    /// The program's bare bytes, without rank and host.
    #[arg(long)]
    raw: bool,
    /// How to print the run.
    #[arg(long, short, value_enum, default_value_t, value_name = "FORM")]
    output: RunOutput,
    /// A launch line, run without any file.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// The forms a run can be printed in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunOutput {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line, for every event and every line of output.
    Jsonl,
}

const EXAMPLES: &str = "\
Examples:
  unisono run job.yaml
  unisono run job.yaml --hosts 2 --slots 1        a large job, shrunk to this machine
  unisono run --hosts 3 --slots 2 -- mpirun ./a   no file at all
  unisono run job.yaml --isolate-network          hosts that see each other and nothing else

Exit codes: the job's own; 124 its deadline passed, 125 Unisono could not run it, 128+n it ended by signal n.";

/// Lines that may wait for the terminal before their writers do.
const WAITING_LINES: usize = 1024;

pub(crate) fn run(args: &RunArgs, context: &mut Context) -> Result<Exit, Error> {
    let Some((job, folder)) = job(args, context)? else {
        return Ok(Exit::COULD_NOT_RUN);
    };
    let runs = context.runs_folder()?;
    let means = machine::look(&machine::program()?, &runs)?;
    let identity = Identity::mint(&job)?;
    let facts = machine::facts(args, context, means, &runs.join(&identity.id));
    let plan = lay_out(&job, &facts, FIRST_GENERATION);
    context.console.plan_notes(&plan.notes);
    let (mut machine, notes) = machine::of(args, context, &plan, means, folder)?;
    if let Some(mpi) = &mut machine.mpi {
        // The other half of it is part of the run's id.
        mpi.mark_tags(u32::try_from(identity.seed >> 32).unwrap_or_default());
    }
    if let Some(note) = notes.iter().find(|note| args.strict && *note.code == OTHER_MPI) {
        let (message, hint) = (note.message.clone(), note.hint.clone());
        return Err(Error::Run { message, hint, source: None });
    }
    context.console.machine_notes(&notes);
    carry_out(args, context, &plan, machine, &identity)
}

/// What a run is known by.
struct Identity {
    id: String,
    seed: u64,
    began: Time,
}

impl Identity {
    fn mint(job: &Job) -> Result<Self, Error> {
        let began = SystemClock.now();
        let seed = mint::bytes::<8>()
            .map(u64::from_le_bytes)
            .map_err(|error| Error::run("cannot make an id for the run", error))?;
        let digits: String = began.to_string().chars().filter(char::is_ascii_digit).collect();
        let name = unisono_job::label_from(job.name.as_str(), 40);
        // Dozens of runs may begin in the same second: four digits would be the same now and then.
        Ok(Self { id: format!("{name}-{digits}-{:08x}", seed & 0xffff_ffff), seed, began })
    }
}

/// The job to run, and the folder its paths are relative to; none when the file has faults, which are told.
fn job(args: &RunArgs, context: &mut Context) -> Result<Option<(Job, PathBuf)>, Error> {
    let here = context.world.folder.clone();
    let Some(path) = &args.file else {
        let overrides = args.overrides.overrides();
        let job = bare::job(&args.command, overrides.hosts, overrides.slots);
        return Ok(Some((bare::with(job, args), here)));
    };
    let mut file = job_file::read(path, &context.settings)?;
    if let Some(name) = &args.job {
        file.choose(name)?;
    }
    context.console.notes(&file, file.notes());
    if file.has_faults() {
        return Ok(None);
    }
    let jobs: Vec<&Job> = file.jobs().collect();
    let [job] = jobs.as_slice() else {
        let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
        let message = format!("the file holds {} jobs", jobs.len());
        return Err(Error::usage(message, format!("choose one with --job: {}", names.join(", "))));
    };
    let folder = path
        .parent()
        .filter(|_| path != Path::new("-"))
        .map_or_else(|| here.clone(), |it| here.join(it));
    Ok(Some((bare::with((*job).clone(), args), folder)))
}

fn carry_out(
    args: &RunArgs,
    context: &mut Context,
    plan: &Plan,
    mut machine: Machine,
    identity: &Identity,
) -> Result<Exit, Error> {
    let could_not = |what: &str| {
        let what = what.to_owned();
        move |error| Error::run(what, error)
    };
    let record = record(args, plan, identity);
    let runs = context.runs_folder()?;
    let (directory, lock) = RunDirectory::create(&runs, &record)
        .map_err(could_not("cannot make the run's directory"))?;
    let limits = Limits {
        runs: context.settings.keep_runs.value.get(),
        days: context.settings.keep_days.value.get(),
    };
    // What cannot be removed now is removed another time.
    let _swept = sweep(&runs, limits, identity.began);
    machine.stage = directory.path().join("stage");
    let addresses = match machine.network {
        Network::Shared => give_addresses(plan, DEFAULT_PORT, identity.seed),
        Network::Private => private_addresses(plan),
    };
    let addresses = addresses.map_err(could_not("cannot give the hosts addresses"))?;
    let (sender, happenings) = sync_channel(WAITING_LINES);
    listen_for_interrupts(sender.clone()).map_err(could_not("cannot listen for Ctrl-C"))?;
    let mpi = machine.mpi.as_ref().map(|mpi| match mpi.is_allowed_as_root() {
        true => format!("{} (allowed to run as root)", mpi.version),
        false => mpi.version.clone(),
    });
    let mut report = RunReport::new(plan, &record, args.output, args.raw, mpi, directory.clone());
    context.console.run_begins(&mut report)?;
    let engine =
        LocalEngine::new(plan, machine, directory.clone(), addresses, sender, || SystemClock.now());
    let mut engine = engine.map_err(|error| Error::run("cannot set up the run", error))?;
    engine.wait_at(Door::new(runs.clone(), record.id.clone(), machine_slots(&context.settings)));
    let console = &mut context.console;
    let outcome = drive(&mut engine, plan, &happenings, &mut |told: Told<'_>| {
        console.run_goes_on(&mut report, &told, SystemClock.now())
    });
    let status = outcome.map_err(|error| Error::run("cannot run the job", error))?;
    let status = report.finish(status, SystemClock.now(), args.strict);
    context.console.run_ends(&report, &status);
    drop(lock);
    // A job may want to be removed as soon as it has ended.
    let _swept = sweep(&runs, limits, SystemClock.now());
    Ok(exit(&status))
}

fn record(args: &RunArgs, plan: &Plan, identity: &Identity) -> RunRecord {
    RunRecord {
        id: identity.id.clone(),
        job: plan.job.name.to_string(),
        dialect: plan.job.dialect.to_string(),
        file: args.file.as_ref().map(|it| it.display().to_string()).unwrap_or_default(),
        experiment: plan.job.experiment.clone(),
        hosts: plan.hosts.len(),
        ranks: plan.ranks,
        process: std::process::id(),
        began: identity.began.0,
        ticket: Some(Ticket::of(plan)),
        ttl_seconds: plan.job.policies.ttl_seconds,
        keep: args.keep,
    }
}

fn machine_slots(settings: &Settings) -> u32 {
    match settings.machine_slots.value {
        MachineSlots::Auto => usual_slots(),
        MachineSlots::Stated(slots) => slots.get(),
    }
}

/// First Ctrl-C stops the job, the second kills it, the third leaves.
fn listen_for_interrupts(happenings: SyncSender<Happening>) -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::spawn(move || {
        for (count, signal) in signals.forever().enumerate() {
            if count >= 2 {
                // The default action is what the user asks for by now; the hosts end with us.
                let _ended = signal_hook::low_level::emulate_default_handler(signal);
            }
            // Where nobody reads what the job writes, this waits, and must not keep us from hearing the next one.
            let happenings = happenings.clone();
            thread::spawn(move || happenings.send(Happening::Interrupted));
        }
    });
    Ok(())
}

/// The job's own code.
fn exit(status: &Status) -> Exit {
    let code = status.end().map_or(125, |end| end.code);
    Exit::Job(u8::try_from(code).unwrap_or(u8::MAX))
}
