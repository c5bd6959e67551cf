//! `unisono ks`: reads the application folder, lets the library decide, writes what it says.

#[cfg(feature = "kubernetes")]
mod hand_over;

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use clap::Args;
use tempfile::NamedTempFile;
use unisono_dialect::ksonnet::{self, Application, Edit, Outcome};

use crate::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::input;

/// Do what ksonnet's `ks` did for the package mpi-job.
///
/// `unisono ks help` lists the commands. The program does the same when it is called by the name `ks`.
#[derive(Debug, Args)]
#[command(disable_help_flag = true, after_long_help = EXAMPLES)]
pub(crate) struct KsArgs {
    /// What would be typed behind `ks`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
    words: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  unisono ks init lab                                   a new application in the folder lab
  unisono ks generate mpi-job-simple ring --gpus 16     a component of it
  unisono ks show default -c ring | unisono plan -      what would run, where
  unisono ks apply default -c ring                      run it in the cluster of the kubeconfig";

pub(crate) fn run(args: &KsArgs, context: &mut Context) -> Result<Exit, Error> {
    let here = std::env::current_dir()?;
    let root = here.ancestors().find(|folder| folder.join("app.yaml").is_file());
    let application = root.map(|root| load(root, &args.words)).transpose()?;
    let outcome = ksonnet::run(&args.words, application.as_ref())?;
    write(&outcome, &here, root)?;
    for remark in &outcome.remarks {
        context.console.talk(&format!("{remark}\n"));
    }
    context.console.data(&outcome.output)?;
    match outcome.handover {
        None => Ok(Exit::Fine),
        #[cfg(feature = "kubernetes")]
        Some(handover) => hand_over::hand_over(&handover, context),
        #[cfg(not(feature = "kubernetes"))]
        Some(handover) => {
            let verb = if handover.deletes { "ks delete" } else { "ks apply" };
            Err(Error::without_kubernetes(verb))
        }
    }
}

/// The texts of an application that commands look at.
fn load(root: &Path, words: &[String]) -> Result<Application, Error> {
    let mut files = BTreeMap::new();
    files.insert("app.yaml".to_owned(), text(&root.join("app.yaml"))?);
    let mut folders = vec![root.join("components"), root.join("environments")];
    while let Some(folder) = folders.pop() {
        // An application without components has no such folder.
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
            let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            if kind.is_dir() && !hidden {
                folders.push(path);
            } else if kind.is_file() && is_jsonnet(&path) {
                let inside = path.strip_prefix(root).unwrap_or(&path);
                files.insert(inside.to_string_lossy().into_owned(), text(&path)?);
            }
        }
    }
    let values_file = ksonnet::values_file(words).map(|path| text(Path::new(&path))).transpose()?;
    Ok(Application { files, values_file })
}

fn is_jsonnet(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "jsonnet" || extension == "libsonnet")
}

fn text(path: &Path) -> Result<String, Error> {
    let bytes = input::read(path)?.bytes;
    String::from_utf8(bytes).map_err(|_| {
        Error::usage(format!("{} is not UTF-8 text", input::display(path)), "save it as UTF-8")
    })
}

/// Writes everything next to where it belongs, and only then puts it there: a failure changes nothing.
fn write(outcome: &Outcome, here: &Path, root: Option<&Path>) -> Result<(), Error> {
    if let Some(folder) = &outcome.new_folder
        && here.join(folder).join("app.yaml").exists()
    {
        return Err(Error::usage(
            format!("there is an application in the folder `{folder}` already"),
            "choose another name, or work inside that folder",
        ));
    }
    let base = if outcome.new_folder.is_some() { here } else { root.unwrap_or(here) };
    let mut written = Vec::new();
    for edit in &outcome.edits {
        if let Edit::Write { path, text } = edit {
            let path = inside(base, path)?;
            written.push((prepared(&path, text)?, path));
        }
    }
    for (file, path) in written {
        file.persist(&path).map_err(|error| unwritable(&path, error.error))?;
    }
    for edit in &outcome.edits {
        if let Edit::Remove { path } = edit {
            remove(&inside(base, path)?, base)?;
        }
    }
    Ok(())
}

/// The path, which may not lead out of the folder.
fn inside(base: &Path, path: &str) -> Result<PathBuf, Error> {
    let stays = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    if stays {
        return Ok(base.join(path));
    }
    Err(Error::usage(format!("`{path}` leads out of the folder"), "choose another name"))
}

fn prepared(path: &Path, text: &str) -> Result<NamedTempFile, Error> {
    let folder = path.parent().unwrap_or(path);
    let new_file = || {
        fs::create_dir_all(folder)?;
        let mut file = tempfile::Builder::new()
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)?;
        file.write_all(text.as_bytes())?;
        Ok(file)
    };
    new_file().map_err(|error| unwritable(path, error))
}

/// Removes a file, and the folders that are empty without it.
fn remove(path: &Path, base: &Path) -> Result<(), Error> {
    fs::remove_file(path).map_err(|error| unwritable(path, error))?;
    for folder in path.ancestors().skip(1).take_while(|folder| folder.parent() != Some(base)) {
        if folder == base || fs::remove_dir(folder).is_err() {
            break;
        }
    }
    Ok(())
}

fn unwritable(path: &Path, source: std::io::Error) -> Error {
    Error::Unwritable { path: path.to_owned(), source }
}
