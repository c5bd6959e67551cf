//! The verbs, one file each: `<Verb>Args` is what can be typed, `run` does it.

mod check;
mod completions;
mod config;
mod convert;
mod dialect_name;
mod explain;
mod init;
mod ks;
mod list;
mod logs;
mod man;
#[cfg(feature = "kubernetes")]
mod operator;
mod place;
mod plan;
mod run;
mod status;
mod stop;
mod submit;
mod why;

use clap::Subcommand;

pub(crate) use run::RunOutput;

use crate::Context;
use crate::error::Error;
use crate::exit::Exit;

pub(crate) use explain::codes;

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Check(check::CheckArgs),
    Plan(plan::PlanArgs),
    Convert(convert::ConvertArgs),
    Init(init::InitArgs),
    Ks(ks::KsArgs),
    Explain(explain::ExplainArgs),
    Config(config::ConfigArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
    List(list::ListArgs),
    Logs(logs::LogsArgs),
    Run(run::RunArgs),
    Status(status::StatusArgs),
    Stop(stop::StopArgs),
    Submit(submit::SubmitArgs),
    #[cfg(feature = "kubernetes")]
    Operator(operator::OperatorArgs),
    Why(why::WhyArgs),
}

/// Does it.
pub(crate) fn run(command: &Command, context: &mut Context) -> Result<Exit, Error> {
    match command {
        Command::Check(args) => check::run(args, context),
        Command::Plan(args) => plan::run(args, context),
        Command::Convert(args) => convert::run(args, context),
        Command::Init(args) => init::run(args, context),
        Command::Ks(args) => ks::run(args, context),
        Command::Explain(args) => explain::run(args, context),
        Command::Config(args) => config::run(args, context),
        Command::Completions(args) => completions::run(args, context),
        Command::Man(args) => man::run(args, context),
        Command::List(args) => list::run(args, context),
        Command::Logs(args) => logs::run(args, context),
        Command::Run(args) => run::run(args, context),
        Command::Status(args) => status::run(args, context),
        Command::Stop(args) => stop::run(args, context),
        Command::Submit(args) => submit::run(args, context),
        #[cfg(feature = "kubernetes")]
        Command::Operator(args) => operator::run(args, context),
        Command::Why(args) => why::run(args, context),
    }
}
