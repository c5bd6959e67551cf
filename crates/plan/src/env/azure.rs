//! What Azure ML and its ancestors promise: the host file's path, and who the head node is.

use super::HostfilePaths;
use crate::azure_word::WORD;
use crate::bind::Addresses;
use crate::{Host, Plan, Variable};

/// The port scripts expect rank 0 to meet them on; a convention of that platform.
const MASTER_PORT: u16 = 6105;

pub(super) fn shared(paths: &HostfilePaths) -> Vec<Variable> {
    [WORD, "AZ_BATCHAI_MPI_HOST_FILE"]
        .map(|name| Variable::new(name, paths.promised.clone()))
        .into()
}

pub(super) fn of_host(plan: &Plan, host: &Host) -> Vec<Variable> {
    vec![
        Variable::new("AZ_BATCHAI_TASK_INDEX", host.member.index.to_string()),
        Variable::new("AZ_BATCHAI_NUM_GPUS", plan.group_of(host).resources.gpus().to_string()),
    ]
}

pub(super) fn with_addresses(plan: &Plan, addresses: &Addresses) -> Vec<Variable> {
    let listed: Vec<String> = plan
        .rank_hosts()
        .filter_map(|host| addresses.get(&host.member))
        .map(ToString::to_string)
        .collect();
    let mut variables = Vec::new();
    if let Some(first) = listed.first() {
        variables.push(Variable::new("AZ_BATCH_MASTER_NODE", format!("{first}:{MASTER_PORT}")));
        variables.push(Variable::new("AZ_BATCHAI_MPI_MASTER_NODE", first));
    }
    variables.push(Variable::new("AZ_BATCH_HOST_LIST", listed.join(",")));
    variables.push(Variable::new("AZ_BATCH_NODE_LIST", listed.join(";")));
    variables
}
