//! What kube-batch put into every pod of an `MPI`, under the names that Hydra had then.

use super::literals;
use crate::files::KUBE_EXEC;
use crate::{Facts, Variable};

/// Hydra asks for its newer names first, and those name our way to reach hosts, which needs no shell.
pub(super) fn shared(facts: &Facts) -> Vec<Variable> {
    literals(&[("HYDRA_BOOTSTRAP", "rsh"), ("HYDRA_BOOTSTRAP_EXEC", &facts.path(KUBE_EXEC))])
}
