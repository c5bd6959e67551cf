//! `unisono init`: the name of a dialect enters, a small job in it leaves.

use clap::Args;
use unisono_job::Dialect;

use crate::Context;
use crate::commands::dialect_name;
use crate::error::Error;
use crate::exit::Exit;

/// Print a job file to start from.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct InitArgs {
    /// The dialect to write it in.
    #[arg(long, value_name = "DIALECT", value_parser = dialect_name::parser(Dialect::ALL))]
    dialect: Dialect,
}

const EXAMPLES: &str = "\
Examples:
  unisono init --dialect unisono > job.yaml
  unisono init --dialect kubeflow | unisono plan -";

pub(crate) fn run(args: &InitArgs, context: &mut Context) -> Result<Exit, Error> {
    context.console.data(template(args.dialect))?;
    Ok(Exit::Fine)
}

const fn template(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::AzureMpiJob => include_str!("../../templates/azureml-mpijob.yaml"),
        Dialect::AzureFlat => include_str!("../../templates/azureml-flat.yaml"),
        Dialect::AzureCommand => include_str!("../../templates/azureml-v2.yaml"),
        Dialect::OpenPaiV1 => include_str!("../../templates/openpai-v1.json"),
        Dialect::OpenPaiV2 => include_str!("../../templates/openpai-v2.yaml"),
        Dialect::KubeflowV1alpha1 => include_str!("../../templates/kubeflow-v1alpha1.yaml"),
        Dialect::KubeflowV1alpha2 => include_str!("../../templates/kubeflow-v1alpha2.yaml"),
        Dialect::KubeflowV1 => include_str!("../../templates/kubeflow-v1.yaml"),
        Dialect::KubeflowV2beta1 => include_str!("../../templates/kubeflow-v2beta1.yaml"),
        Dialect::KubeBatch => include_str!("../../templates/kube-batch.yaml"),
        Dialect::Unisono => include_str!("../../templates/unisono.yaml"),
    }
}

#[cfg(test)]
mod tests {
    use unisono_dialect::{Options, read};
    use unisono_plan::{EngineKind, Facts, lay_out};

    use super::*;

    #[test]
    fn every_template_is_a_job_of_its_dialect_with_nothing_to_tell() {
        for dialect in Dialect::ALL {
            let readings = read(template(dialect).as_bytes(), &Options::default());
            let [reading] = readings.as_slice() else {
                panic!("{dialect}: {} documents", readings.len());
            };
            assert_eq!(reading.dialect, Some(dialect));
            assert_eq!(reading.notes, [], "{dialect}");
            let job = reading.job.as_ref().unwrap();
            let facts = Facts { engine: EngineKind::Kubernetes, ..Facts::default() };
            let plan = lay_out(job, &facts, 1);
            assert_eq!(plan.notes, [], "{dialect}");
            assert_eq!(plan.ranks, Some(4), "{dialect}");
            assert!((2..=4).contains(&plan.hosts.len()), "{dialect}");
        }
    }
}
