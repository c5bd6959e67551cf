//! Fields that another version of `MPIJob` has, or has elsewhere: what to write instead.

use unisono_job::Dialect;

use super::{api_version, shape};
use crate::shape::Kind;

/// What to do about a key of `spec` that this version does not have.
pub(super) fn hint(dialect: Dialect, path: &str) -> Option<String> {
    let key = path.strip_prefix("spec.")?;
    let replaced = match (key, dialect) {
        ("mpiDistribution", Dialect::KubeflowV2beta1) => Some("mpiImplementation"),
        ("mpiImplementation", Dialect::KubeflowV1alpha2) => Some("mpiDistribution"),
        ("processingUnits" | "gpus" | "replicas", _) => Some("mpiReplicaSpecs.Worker.replicas"),
        ("template", _) => Some("mpiReplicaSpecs.Worker.template"),
        _ => None,
    };
    if let Some(other) = replaced {
        return Some(format!("write it as `spec.{other}`"));
    }
    if has(dialect, &["spec", "runPolicy", key]) {
        return Some(format!("write it as `spec.runPolicy.{key}`"));
    }
    if key == "mainContainer" && dialect == Dialect::KubeflowV2beta1 {
        return Some("v2beta1 takes the first container: put that one first".to_owned());
    }
    let others = [
        Dialect::KubeflowV2beta1,
        Dialect::KubeflowV1,
        Dialect::KubeflowV1alpha2,
        Dialect::KubeflowV1alpha1,
    ];
    let keys: Vec<&str> = path.split('.').collect();
    let other = others.into_iter().find(|other| has(*other, &keys))?;
    Some(format!("it is a field of {}", api_version(other)))
}

/// Whether a version has a field.
fn has(dialect: Dialect, path: &[&str]) -> bool {
    let mut fields = Some(shape(dialect));
    path.iter().all(|key| {
        let field = fields.and_then(|shape| shape.field(key));
        fields = field.and_then(|field| match field.kind {
            Kind::Object(shape) => Some(shape),
            _ => None,
        });
        field.is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_other_versions_are_known_here() {
        let told = |dialect, path| hint(dialect, path).unwrap_or_default();
        use Dialect::{KubeflowV1 as V1, KubeflowV1alpha2 as V1alpha2, KubeflowV2beta1 as V2beta1};
        assert_eq!(told(V2beta1, "spec.backoffLimit"), "write it as `spec.runPolicy.backoffLimit`");
        assert_eq!(told(V2beta1, "spec.mpiDistribution"), "write it as `spec.mpiImplementation`");
        assert_eq!(told(V1, "spec.mpiImplementation"), "it is a field of kubeflow.org/v2beta1");
        assert_eq!(
            told(V1alpha2, "spec.runPolicy.suspend"),
            "it is a field of kubeflow.org/v2beta1"
        );
        assert_eq!(told(V1, "spec.gpus"), "write it as `spec.mpiReplicaSpecs.Worker.replicas`");
        assert_eq!(hint(V1, "spec.speed"), None);
        assert_eq!(hint(V1, "metadata.lables"), None);
    }
}
