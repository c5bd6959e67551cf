//! Gives a submission to a cluster: objects are applied or made, code goes with its job, and what cannot be done leaves
//! nothing behind.

use std::path::Path;

use base64ct::{Base64, Encoding as _};
use serde_json::{Value, json};

use super::SubmitArgs;
use super::code::megabytes;
use super::prepare::{Item, Parcel, Submission, prepare};
use super::{dry_run, follow};
use crate::Context;
use crate::cluster::{Applied, Change, Cluster, Interrupt, Interrupts, Session};
use crate::error::Error;
use crate::exit::Exit;
use crate::job_file::{self, JobFile};
use crate::report::counted;
use crate::settings::{Origin, Sourced};

pub(crate) fn run(args: &SubmitArgs, context: &mut Context) -> Result<Exit, Error> {
    let mut file = job_file::read(&args.file, &context.settings)?;
    if let Some(name) = &args.job {
        file.choose(name)?;
    }
    context.console.notes(&file, file.notes());
    if file.has_faults() {
        return Ok(Exit::Faults);
    }
    let mut submission = submission(args, &file, context)?;
    context.console.notes(&file, &submission.notes);
    if submission.has_faults() {
        return Ok(Exit::Faults);
    }
    stay_in_the_namespace(&submission, &context.settings.namespace)?;
    if args.dry_run {
        let preview = dry_run::preview(&submission, &context.settings);
        context.console.data(&preview.text)?;
        if preview.asks_for_gang {
            context.console.talk(
                "a PodGroup is not shown: whether and how the operator makes one follows from its flag --gang\n",
            );
        }
        return Ok(Exit::Fine);
    }
    let jobs: Vec<&str> = submission.jobs().map(|job| job.name.as_str()).collect();
    if args.follow && jobs.len() != 1 {
        let message = format!("one job can be followed, and the file holds {}", jobs.len());
        return Err(Error::usage(message, format!("choose one with --job: {}", jobs.join(", "))));
    }
    if args.follow && !args.raw {
        submission.tag_lines();
    }
    let session = Session::open(&context.settings)?;
    let (mut job, mut ended_before) = (None, Vec::new());
    for item in &submission.items {
        let console = &mut context.console;
        let mut talk = |text: &str| console.talk(&format!("{text}\n"));
        let applied = match session.run(|cluster| give(cluster, item, args.replace, &mut talk))? {
            Given::Taken(applied) => applied,
            Given::Interrupted(interrupt) => return Ok(Exit::Job(interrupt.code())),
        };
        context.console.applied(&applied, args.output)?;
        if item.job.is_some() {
            let found = session.job_of(&applied)?;
            if applied.change != Change::Created && found.status.is_terminal() {
                ended_before.push(format!("{} {}", applied.kind, applied.name));
            }
            job = Some((applied, found));
        }
    }
    if !ended_before.is_empty() {
        return Err(Error::Run {
            message: format!("{} ended before: nothing new runs", ended_before.join(", ")),
            hint: Some("--replace removes and runs it again; or give it another name".to_owned()),
            source: None,
        });
    }
    let Some((job, found)) = job else { return Ok(Exit::Fine) };
    if args.follow {
        return follow::follow(&session, &found, args.output, args.raw, context);
    }
    // A run of this machine by that name may be meant as well.
    let is_ambiguous = context.find_run(Some(&job.name)).is_ok();
    context.console.submitted(&job, session.namespace(), is_ambiguous);
    Ok(Exit::Fine)
}

fn submission(args: &SubmitArgs, file: &JobFile, context: &Context) -> Result<Submission, Error> {
    let here = &context.world.folder;
    let beside = args.file.parent().filter(|_| args.file != Path::new("-"));
    let folder = beside.map_or_else(|| here.clone(), |it| here.join(it));
    prepare(file, args.job.as_deref(), &folder, &context.settings)
}

/// Refuses an object that names another namespace than the command line: it cannot be told which one is meant.
fn stay_in_the_namespace(submission: &Submission, wanted: &Sourced<String>) -> Result<(), Error> {
    if !matches!(wanted.from, Origin::Flag(_)) {
        return Ok(());
    }
    for item in &submission.items {
        let text = |key: &str| item.object.pointer(key).and_then(Value::as_str);
        let (kind, name) =
            (text("/kind"), text("/metadata/name").or(text("/metadata/generateName")));
        if let Some(named) = text("/metadata/namespace").filter(|it| *it != wanted.value) {
            let object = [kind, name].into_iter().flatten().collect::<Vec<_>>().join(" ");
            return Err(Error::usage(
                format!("{object} is for namespace {named}, not {}", wanted.value),
                format!("--namespace {named}, or leave --namespace out"),
            ));
        }
    }
    Ok(())
}

/// What became of an object on its way to the cluster.
enum Given {
    /// The cluster has it.
    Taken(Applied),
    /// Somebody did not want it any more.
    Interrupted(Interrupt),
}

/// Gives one object to the cluster, and what goes with it.
async fn give(
    cluster: &Cluster,
    item: &Item,
    replace: bool,
    talk: &mut impl FnMut(&str),
) -> Result<Given, Error> {
    // From the first time on that somebody listens, nobody else ends the program by Ctrl-C.
    let mut interrupts = Interrupts::listen()?;
    if replace && item.job.is_some() && has_name(&item.object) {
        tokio::select! {
            biased;
            interrupt = interrupts.next() => return Ok(Given::Interrupted(interrupt)),
            removed = cluster.remove(&item.object, &mut *talk) => drop(removed?),
        }
    }
    if !item.parcels.is_empty() {
        return give_with_code(cluster, item, &mut interrupts, talk).await;
    }
    let taking = async {
        match item.is_made {
            true => cluster.create(&item.object).await,
            false => cluster.apply(&item.object).await,
        }
    };
    tokio::select! {
        biased;
        interrupt = interrupts.next() => Ok(Given::Interrupted(interrupt)),
        taken = taking => taken.map(Given::Taken),
    }
}

fn has_name(object: &Value) -> bool {
    object["metadata"]["name"].is_string()
}

/// Gives a job and its code to the cluster. The job is suspended until its last piece is there: it holds no place in the
/// meantime, and no pod looks in vain for what is still under way.
async fn give_with_code(
    cluster: &Cluster,
    item: &Item,
    interrupts: &mut Interrupts,
    talk: &mut impl FnMut(&str),
) -> Result<Given, Error> {
    for Parcel { packed, .. } in &item.parcels {
        let (files, size) = (counted(packed.files, "file"), megabytes(packed.bytes));
        talk(&format!("{files} of code travel with the job, {size}"));
    }
    let mut object = item.object.clone();
    object["spec"]["policies"]["suspend"] = true.into();
    let job = cluster.create(&object).await?;
    let wanted = item.object.pointer("/spec/policies/suspend").cloned();
    let loading = async {
        for Parcel { name, packed } in &item.parcels {
            for (at, piece) in packed.pieces.iter().enumerate() {
                cluster.create_owned(&config_map(name, at, &job.object, piece)).await?;
            }
        }
        let resumed = json!({"spec": {"policies": {"suspend": wanted.unwrap_or_default()}}});
        cluster.merge(&job.object, &resumed).await
    };
    let loaded = tokio::select! {
        biased;
        interrupt = interrupts.next() => Err(Ok(interrupt)),
        loaded = loading => loaded.map_err(Err),
    };
    let why = match loaded {
        Ok(resumed) => return Ok(Given::Taken(Applied { change: job.change, ..resumed })),
        Err(why) => why,
    };
    // Without its code the job is of no use; what it owns goes with it.
    let removed = tokio::select! {
        removed = cluster.remove(&job.object, &mut *talk) => removed.map_err(|it| it.to_string()),
        _ = interrupts.next() => Err("it was still being removed".to_owned()),
    };
    talk(&match removed {
        Ok(_) => format!("{} {} is not submitted: its code is not there", job.kind, job.name),
        Err(error) => format!("{} {} stays behind, suspended: {error}", job.kind, job.name),
    });
    why.map(Given::Interrupted)
}

/// One piece of a job's code. It belongs to the job, and goes with it.
pub(super) fn config_map(name: &str, at: usize, job: &Value, piece: &[u8]) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": format!("{name}-{at}"),
            "namespace": job["metadata"]["namespace"],
            "ownerReferences": [{
                "apiVersion": job["apiVersion"],
                "kind": job["kind"],
                "name": job["metadata"]["name"],
                "uid": job["metadata"]["uid"],
            }],
        },
        "immutable": true,
        "binaryData": {"piece": Base64::encode_string(piece)},
    })
}
