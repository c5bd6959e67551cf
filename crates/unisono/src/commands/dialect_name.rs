//! Dialects as they are typed: `kubeflow/v2beta1`, or the system alone for its newest.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use unisono_job::Dialect;

/// Takes one of these dialects.
pub(super) fn parser(
    dialects: impl IntoIterator<Item = Dialect>,
) -> impl TypedValueParser<Value = Dialect> {
    let values = dialects.into_iter().map(|dialect| {
        let value = PossibleValue::new(dialect.name());
        match system_alone(dialect) {
            Some(alias) => value.alias(alias),
            None => value,
        }
    });
    PossibleValuesParser::new(values).try_map(|name| {
        let newest = || Dialect::ALL.into_iter().find(|it| system_alone(*it) == Some(&name));
        Dialect::from_name(&name).or_else(newest).ok_or("unknown dialect")
    })
}

/// The system's name, for the dialect that its users write today.
const fn system_alone(dialect: Dialect) -> Option<&'static str> {
    match dialect {
        Dialect::AzureCommand => Some("azureml"),
        Dialect::OpenPaiV2 => Some("openpai"),
        Dialect::KubeflowV2beta1 => Some("kubeflow"),
        Dialect::AzureMpiJob
        | Dialect::AzureFlat
        | Dialect::OpenPaiV1
        | Dialect::KubeflowV1alpha1
        | Dialect::KubeflowV1alpha2
        | Dialect::KubeflowV1
        | Dialect::KubeBatch
        | Dialect::Unisono => None,
    }
}
