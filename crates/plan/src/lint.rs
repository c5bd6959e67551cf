//! The plan linter: what must be true of every plan, whatever job it was made from. Run on every plan in tests.

use std::collections::BTreeSet;

use unisono_job::{MAX_LABEL, System, is_dns_label};

use crate::{Argv, FileContent, Host, HostRuns, Plan};

/// Everything that is wrong with a plan, as sentences; empty for a sound one.
pub fn lint(plan: &Plan) -> Vec<String> {
    let mut faults = Vec::new();
    check_hosts(plan, &mut faults);
    check_objects(plan, &mut faults);
    check_launch(plan, &mut faults);
    for program in &plan.programs {
        let paths: Vec<&str> = program.files.iter().map(|it| it.path.as_str()).collect();
        check_unique("file", paths.iter().copied(), &mut faults);
        check_unique(
            "added variable",
            program.added_env.iter().map(|it| it.name.as_str()),
            &mut faults,
        );
        let relative = paths.iter().filter(|path| !path.starts_with('/'));
        faults.extend(relative.map(|path| format!("file path {path} is relative")));
    }
    faults
}

fn check_hosts(plan: &Plan, faults: &mut Vec<String>) {
    check_unique("host", plan.hosts.iter().map(|it| it.name.as_str()), faults);
    let aliases = plan.job.dialect.system() == System::OpenPai;
    for host in &plan.hosts {
        let name = &host.name;
        if name.len() > MAX_LABEL || !(aliases || is_dns_label(name)) {
            faults.push(format!("host name {name:?} is no label"));
        }
        if plan.host(host.member) != Some(host) {
            faults.push(format!("host {name} is not found by its member"));
        }
        if plan.programs.get(host.program).is_none() {
            faults.push(format!("host {name} has no program"));
        }
        check_runs(plan, host, faults);
    }
    if u64::try_from(plan.hosts.len()) != Ok(plan.job.host_count()) {
        faults.push("the plan has another number of hosts than the job".to_owned());
    }
    if plan.slot_count() != plan.job.slot_count() {
        faults.push("the plan has another number of slots than the job".to_owned());
    }
}

fn check_runs(plan: &Plan, host: &Host, faults: &mut Vec<String>) {
    let argv = &plan.program_of(host).argv;
    let sound = match host.runs {
        HostRuns::Launch => host.slots == 0 && *argv != Argv::Nothing,
        HostRuns::LaunchAndRanks | HostRuns::Command => *argv != Argv::Nothing,
        HostRuns::Ranks => true,
    };
    if !sound {
        let what = host.runs.name();
        faults.push(format!("host {} cannot run {what} with {argv:?}", host.name));
    }
}

fn check_objects(plan: &Plan, faults: &mut Vec<String>) {
    let names = &plan.names;
    for name in [
        names.launcher_job(),
        names.config_map(),
        names.data_config_map(),
        names.service(),
        names.ssh_secret(),
        names.pod_group(),
    ] {
        if !is_dns_label(&name) {
            faults.push(format!("object name {name:?} is no label"));
        }
    }
    let pods: Vec<String> = plan.hosts.iter().map(|host| plan.pod_name(host, 0)).collect();
    check_unique("pod", pods.iter().map(String::as_str), faults);
    let bad = pods.iter().filter(|name| !is_dns_label(name));
    faults.extend(bad.map(|name| format!("pod name {name:?} is no label")));
}

fn check_launch(plan: &Plan, faults: &mut Vec<String>) {
    let launching: Vec<&Host> = plan.hosts.iter().filter(|host| host.runs.launches()).collect();
    match (launching.as_slice(), plan.launch_on) {
        ([], _) => {}
        ([only], Some(member)) if only.member == member => {}
        (several, on) => faults.push(format!("{} hosts launch, {on:?} is meant to", several.len())),
    }
    let Some(host) = plan.launch_host() else {
        if plan.launch_on.is_some() || plan.ranks.is_some() {
            faults.push("ranks start on a host that the plan does not have".to_owned());
        }
        return;
    };
    if !plan.may_launch(host.member) {
        faults.push(format!("host {} launches and may not", host.name));
    }
    let files = &plan.program_of(host).files;
    let has_hostfile =
        files.iter().any(|file| file.content == FileContent::Hostfile(plan.hostfile_form));
    if !has_hostfile {
        faults.push(format!("host {} launches without a host file", host.name));
    }
}

fn check_unique<'name>(
    what: &str,
    names: impl Iterator<Item = &'name str>,
    faults: &mut Vec<String>,
) {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            faults.push(format!("{what} {name} stands twice"));
        }
    }
}
