//! What `ks apply` and `ks delete` give to a cluster: jobs as they are; in place of the old MPI operator, Unisono's.

use std::time::Duration;

use serde_json::Value;
use unisono_dialect::ksonnet::Handover;
use unisono_operator::manifests;

use crate::Context;
use crate::cluster::Session;
use crate::commands::{RunOutput, operator};
use crate::error::Error;
use crate::exit::Exit;

/// How long an operator may take to be ready.
const PATIENCE: Duration = Duration::from_secs(300);

/// Gives the objects to the cluster, or removes them.
pub(super) fn hand_over(handover: &Handover, context: &mut Context) -> Result<Exit, Error> {
    let session = Session::open(&context.settings)?;
    if !handover.server.is_empty() && !session.is_at(&handover.server) {
        context.console.talk(&format!(
            "environment {} names the server {}; the kubeconfig's is used: {}\n",
            handover.environment,
            handover.server,
            session.server()
        ));
    }
    let (operator, others): (Vec<_>, Vec<_>) = handover.objects.iter().partition(|it| !is_job(it));
    if !operator.is_empty() {
        if handover.deletes {
            context.console.talk("Unisono's operator stays, for the other jobs of the cluster; `unisono operator manifests | kubectl delete -f -` removes it\n");
        } else {
            install(&session, &operator, context)?;
        }
    }
    for object in others {
        let done = if handover.deletes {
            let console = &mut context.console;
            session
                .run(|cluster| cluster.remove(object, |text| console.talk(&format!("{text}\n"))))?
        } else {
            Some(session.run(|cluster| cluster.apply(object))?)
        };
        if let Some(done) = done {
            context.console.applied(&done, RunOutput::Text)?;
        }
    }
    Ok(Exit::Fine)
}

/// Whatever else components hold belongs to the old operator.
fn is_job(object: &Value) -> bool {
    object["kind"] == "MPIJob"
}

fn install(session: &Session, old: &[&Value], context: &mut Context) -> Result<(), Error> {
    let options = manifests::Options { arguments: arguments(old), ..manifests::Options::default() };
    context.console.talk("in place of the old MPI operator, Unisono's is installed\n");
    let objects = manifests::objects(&options);
    operator::install_objects(session, &objects, PATIENCE, context)
}

/// What the old operator was told that still means something: the GPUs of a node.
fn arguments(old: &[&Value]) -> Vec<String> {
    let containers =
        old.iter().filter_map(|it| it.pointer("/spec/template/spec/containers/0/args"));
    let words: Vec<&str> =
        containers.filter_map(Value::as_array).flatten().filter_map(Value::as_str).collect();
    let at = words.iter().position(|word| word.trim_start_matches('-') == "gpus-per-node");
    let number = at.and_then(|at| words.get(at + 1));
    number.map(|number| format!("--gpus-per-node={number}")).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_gpus_of_a_node_are_passed_on_to_the_new_operator() {
        let args =
            json!(["-alsologtostderr", "--gpus-per-node", "4", "--kubectl-delivery-image", "x"]);
        let deployment = json!({"spec": {"template": {"spec": {"containers": [{"args": args}]}}}});
        assert_eq!(arguments(&[&json!({"kind": "Role"}), &deployment]), ["--gpus-per-node=4"]);
        assert_eq!(arguments(&[]), [""; 0]);
    }
}
