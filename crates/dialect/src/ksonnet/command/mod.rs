//! The commands of `ks`, one file for each noun.

mod components;
mod environments;
mod init;
mod packages;
mod parameters;
mod prototypes;
mod show;

#[cfg(test)]
mod tests;

use super::app::{App, Environment};
use super::flags::Line;
use super::literal::LiteralError;
use super::params::{self, Level};
use super::prototype::Prototype;
use super::{Application, KsError, Outcome, component};

/// Finds the command and does it.
pub(super) fn run(
    arguments: &[String],
    application: Option<&Application>,
) -> Result<Outcome, KsError> {
    let mut line = Line::read(arguments)?;
    let wants_help = line.take("help").is_some();
    let noun = next_word(&mut line).unwrap_or_default();
    if wants_help || matches!(noun.as_str(), "" | "help") {
        return Ok(printed(HELP));
    }
    let verb = match noun.as_str() {
        "env" | "pkg" | "prototype" | "param" | "component" => {
            next_word(&mut line).unwrap_or_default()
        }
        _ => String::new(),
    };
    let here = || application.map(Folder).ok_or(KsError::NoApplication);
    match (noun.as_str(), verb.as_str()) {
        ("init", _) => init::init(line),
        ("generate", _) | ("prototype", "use") => components::generate(line, here()?),
        ("prototype", "list") => prototypes::list(line),
        ("prototype", "describe") => prototypes::describe(line),
        ("prototype", "search") => prototypes::search(line),
        ("prototype", "preview") => prototypes::preview(line),
        ("pkg", "install") => packages::install(line, here()?),
        ("pkg", "list") => packages::list(line, here()?),
        ("env", "list") => environments::list(line, here()?),
        ("env", "add") => environments::add(line, here()?),
        ("env", "set") => environments::set(line, here()?),
        ("env", "rm") => environments::remove(line, here()?),
        ("param", "set") => parameters::set(line, here()?),
        ("param", "list") => parameters::list(line, here()?),
        ("param", "delete") => parameters::delete(line, here()?),
        ("component", "list") => components::list(line, here()?),
        ("component", "rm") => components::remove(line, here()?),
        ("show", _) => show::show(line, here()?),
        ("apply", _) => show::hand_over(line, here()?, false),
        ("delete", _) => show::hand_over(line, here()?, true),
        (noun, verb) => Err(unknown(noun, verb)),
    }
}

const HELP: &str = "\
Commands of ksonnet for the package mpi-job, without ksonnet

  ks init NAME [--namespace NAME] [--env NAME]      make an application in the folder NAME
  ks pkg install kubeflow/mpi-job[@VERSION]         note the package in app.yaml (it is built in)
  ks pkg list
  ks prototype list | search TEXT | describe NAME   what components can be made from
  ks generate PROTOTYPE NAME [--PARAMETER VALUE]    make a component
  ks param set COMPONENT PARAMETER VALUE [--env ENV]
  ks param list [COMPONENT] [--env ENV]
  ks param delete COMPONENT PARAMETER [--env ENV]
  ks component list | rm NAME
  ks env list | add NAME | set NAME | rm NAME       [--namespace NAME] [--server ADDRESS]
  ks show ENV [-c COMPONENT] [-o yaml|json]         print the objects
  ks apply ENV [-c COMPONENT]                       give them to the cluster
  ks delete ENV [-c COMPONENT]                      remove them from the cluster

Example:
  ks init lab && cd lab
  ks generate mpi-job-simple ring --gpus 16 --image lab/ring:2 --command mpirun,/opt/ring
  ks show default -c ring | unisono plan -
";

fn unknown(noun: &str, verb: &str) -> KsError {
    const COMMANDS: [&str; 10] = [
        "init",
        "generate",
        "prototype",
        "pkg",
        "env",
        "param",
        "component",
        "show",
        "apply",
        "delete",
    ];
    let typed = [noun, verb].join(" ");
    let message = format!("unknown command \"{}\" for \"ks\"", crate::clipped(typed.trim()));
    let hint = match crate::nearest(noun, COMMANDS.into_iter()) {
        Some(near) if near != noun => format!("did you mean `ks {near}`?"),
        _ => "`ks help` lists the commands".to_owned(),
    };
    KsError::advised(message, hint)
}

fn next_word(line: &mut Line) -> Option<String> {
    (!line.words.is_empty()).then(|| line.words.remove(0))
}

fn printed(text: impl Into<String>) -> Outcome {
    Outcome { output: text.into(), ..Outcome::default() }
}

/// The application's files, as commands ask for them.
#[derive(Clone, Copy)]
struct Folder<'files>(&'files Application);

const COMPONENT_PARAMS: &str = "components/params.libsonnet";

impl<'files> Folder<'files> {
    fn text(self, path: &str) -> Option<&'files str> {
        self.0.files.get(path).map(String::as_str)
    }

    fn app(self) -> Result<App, KsError> {
        Ok(App::read(self.text("app.yaml").ok_or(KsError::NoApplication)?)?)
    }

    /// The environment of that name; when none is named, the only one.
    fn environment(self, name: Option<&str>) -> Result<Environment, KsError> {
        let environments = self.app()?.environments();
        let names: Vec<&str> = environments.iter().map(|it| it.name.as_str()).collect();
        let list = format!("the environments are: {}", names.join(", "));
        let found = match (name, environments.as_slice()) {
            (None, [only]) => only,
            (None, _) => return Err(KsError::advised("an environment has to be named", list)),
            (Some(name), all) => all.iter().find(|it| it.name == name).ok_or_else(|| {
                let message = format!("environment '{}' was not found", crate::clipped(name));
                KsError::advised(message, list)
            })?,
        };
        // Names become paths, and app.yaml may hold anything.
        init::check_name(&found.name)?;
        Ok(found.clone())
    }

    /// Names of the components, sorted.
    fn components(self) -> Vec<&'files str> {
        let name = |path: &'files String| {
            path.strip_prefix("components/")?
                .strip_suffix(".jsonnet")
                .filter(|it| !it.contains('/'))
        };
        self.0.files.keys().filter_map(name).collect()
    }

    /// The prototype of a component; none when it is somebody's own Jsonnet.
    fn prototype(self, name: &str) -> Result<Option<&'static Prototype>, KsError> {
        let text = self.text(&component_path(name)).ok_or_else(|| no_component(name, self))?;
        Ok(component::prototype_of(text))
    }

    fn component_params(self) -> &'files str {
        self.text(COMPONENT_PARAMS).unwrap_or(params::EMPTY_COMPONENTS)
    }

    /// The parameters of every component in an environment, or without one.
    fn params(
        self,
        environment: Option<&str>,
    ) -> Result<serde_json::Map<String, serde_json::Value>, KsError> {
        let path = environment.map(environment_params);
        let text = path.as_deref().and_then(|path| self.text(path));
        params::all(self.component_params(), text).map_err(|(level, error)| match level {
            Level::Components => literal_fault(COMPONENT_PARAMS, self.component_params(), error),
            Level::Environment => {
                literal_fault(path.as_deref().unwrap_or_default(), text.unwrap_or_default(), error)
            }
        })
    }
}

fn literal_fault(path: &str, text: &str, error: LiteralError) -> KsError {
    KsError::literal(path, text, error)
}

fn component_path(name: &str) -> String {
    format!("components/{name}.jsonnet")
}

fn environment_params(name: &str) -> String {
    format!("environments/{name}/params.libsonnet")
}

fn no_component(name: &str, folder: Folder<'_>) -> KsError {
    let names = folder.components();
    let hint = match crate::nearest(name, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if names.is_empty() => "make one with `ks generate PROTOTYPE NAME`".to_owned(),
        None => format!("the components are: {}", names.join(", ")),
    };
    KsError::advised(format!("component '{}' was not found", crate::clipped(name)), hint)
}

/// Exactly these words, or how the command is used.
fn words<const N: usize>(line: Line, usage: &str) -> Result<[String; N], KsError> {
    let words = line.finish()?;
    words
        .try_into()
        .map_err(|_| KsError::advised("wrong number of arguments", format!("usage: {usage}")))
}

/// A table as ksonnet printed it: names underlined, one blank between columns.
fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let widths: Vec<usize> = head
        .iter()
        .enumerate()
        .map(|(column, name)| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0).max(name.len())
        })
        .collect();
    let line = |cells: Vec<String>| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        format!("{}\n", padded.collect::<Vec<_>>().join(" ").trim_end())
    };
    let names = head.iter().map(|name| (*name).to_owned()).collect();
    let rule = head.iter().map(|name| "=".repeat(name.len())).collect();
    let lines = [names, rule].into_iter().chain(rows.iter().cloned());
    lines.map(line).collect()
}
