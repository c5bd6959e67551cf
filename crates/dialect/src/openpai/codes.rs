//! What reading an OpenPAI job can tell beyond what every dialect tells.

use crate::codes::codes;

codes! {
    RDMA_OFF = "rdma-off", Warning, "the job asks for Azure's RDMA, which is switched off",
        "`jobEnvs.paiAzRDMA: true` asks for the RDMA devices of Azure machines. It has an effect only where the setting `az_rdma` says that the machines have them; without it the job runs over ordinary network.";
    RDMA_NOT_TRUE = "rdma-not-true", Warning, "`paiAzRDMA` is written, but not as a truth value",
        "OpenPAI acts on `paiAzRDMA` only when it is the JSON value `true`; text such as \"true\" or a number only becomes an ordinary variable.";
    DUPLICATE_ROLE = "duplicate-role", Error, "two task roles have the same name",
        "OpenPAI builds a map of its task roles, so of two with one name the second silently replaces the first. Give each a name of its own.";
    ROLE_NAME = "role-name-in-variables", Warning, "a role's name gives variables that no shell can read",
        "Names of roles become parts of names of variables (`PAI_HOST_IP_ROLE_0`, …). A shell cannot read variables whose name holds `.` or `~`. Use letters, digits and `_`.";
    UNKNOWN_PREREQUISITE = "unknown-prerequisite", Error, "a role refers to a prerequisite that the file does not have",
        "`dockerImage`, `data`, `output` and `script` of a task role name an entry of `prerequisites` of that type.";
    UNRESOLVED_REFERENCE = "unresolved-reference", Warning, "a reference that nothing in the file answers",
        "References such as `<% $parameters.NAME %>` are replaced by values of the same file. One that has no value is left in its place, as OpenPAI leaves it, and most likely makes the command fail.";
    BUILT_IN = "built-in", Note, "what the plugin does is built in",
        "Unisono starts a task's command when every host of the job answers, and gives every host a way to reach every other by name; the ssh plugin's keys and barrier are not needed.";
}
