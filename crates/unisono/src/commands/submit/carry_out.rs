//! Gives a submission to a cluster: objects are applied or made, code goes with its job, and what cannot be done leaves
//! nothing behind.

use std::path::Path;

use base64ct::{Base64, Encoding as _};
use serde_json::{Value, json};

use super::SubmitArgs;
use super::prepare::{Item, Submission, prepare};
use super::{dry_run, follow};
use crate::Context;
use crate::cluster::{Applied, Cluster, Session};
use crate::error::Error;
use crate::exit::Exit;
use crate::job_file::{self, JobFile};

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
    if args.dry_run {
        let (engine, namespace) = (engine(context), context.settings.namespace.value.clone());
        context.console.data(&dry_run::text(&submission, &engine, &namespace))?;
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
    let mut job = None;
    for item in &submission.items {
        let applied = session.run(|cluster| give(cluster, item, args.replace))?;
        context.console.applied(&applied, args.output)?;
        if item.job.is_some() {
            job = Some(applied);
        }
    }
    match job {
        Some(job) if args.follow => follow::job(&session, &job, args.output, args.raw, context),
        Some(job) => {
            context.console.submitted(&job, session.namespace());
            Ok(Exit::Fine)
        }
        None => Ok(Exit::Fine),
    }
}

fn submission(args: &SubmitArgs, file: &JobFile, context: &Context) -> Result<Submission, Error> {
    let here = &context.world.folder;
    let beside = args.file.parent().filter(|_| args.file != Path::new("-"));
    let folder = beside.map_or_else(|| here.clone(), |it| here.join(it));
    prepare(file, args.job.as_deref(), &folder, &context.settings)
}

/// What objects are rendered with when nobody asks the operator of a cluster.
fn engine(context: &Context) -> unisono_k8s::Settings {
    let domain = &context.settings.cluster_domain.value;
    unisono_k8s::Settings {
        cluster_domain: (!domain.is_empty()).then(|| domain.clone()),
        ..unisono_k8s::Settings::new(unisono_operator::manifests::default_image())
    }
}

/// Gives one object to the cluster, and what goes with it.
pub(crate) async fn give(cluster: &Cluster, item: &Item, replace: bool) -> Result<Applied, Error> {
    if replace && item.job.is_some() {
        cluster.remove(&item.object).await?;
    }
    if !item.is_made {
        return cluster.apply(&item.object).await;
    }
    let job = cluster.create(&item.object).await?;
    for (name, parcel) in &item.parcels {
        for (at, piece) in parcel.pieces.iter().enumerate() {
            let map = config_map(name, at, &job.object, piece);
            if let Err(error) = cluster.apply(&map).await {
                // Without its code the job would wait for ever; what it owns goes with it.
                cluster.remove(&job.object).await?;
                return Err(error);
            }
        }
    }
    Ok(job)
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
