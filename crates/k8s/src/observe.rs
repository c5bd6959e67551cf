//! From children to what is seen. Pure: a function of the objects alone.

use std::cell::OnceCell;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time as ApiTime;
use unisono_job::Quantity;
use unisono_plan::{
    Cause, Ended, Host, Incarnation, NoImage, Observed, Plan, Seen, SeenState, Time,
};

use crate::acts::addresses;
use crate::children::{Children, incarnation};
use crate::last_words::told;
use crate::marks;
use crate::object::JobObject;
use crate::render::everybody_launches;
use crate::slim::{ContainerState, ContainerStatus, Job, Pod, Terminated};

/// What a kubelet says of an image that it does not have and cannot get.
const NO_IMAGE: [&str; 6] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "ImageInspectError",
    "RegistryUnavailable",
    HOPELESS[0],
    HOPELESS[1],
];

/// Among those: no image can have the name, or nobody may pull it.
const HOPELESS: [&str; 2] = ["InvalidImageName", "ErrImageNeverPull"];

/// The exit code of what was killed: 128 and SIGKILL.
const KILLED: i32 = 137;

/// Looks at everything that exists of a job.
pub fn observe(plan: &Plan, object: &JobObject, children: &Children) -> Observed {
    let foreign_job = children.jobs.iter().find(|job| !job.is_ours());
    let mut odd_spread: Option<(Incarnation, String)> = None;
    let held = OnceCell::new();
    let mut seen = Vec::with_capacity(children.pods.len());
    for pod in &children.pods {
        let Some(incarnation) = incarnation(plan, pod) else { continue };
        let host = plan.host(incarnation.member);
        let adopted = pod.is_adopted();
        let mut state = match (host, foreign_job) {
            // Its own controller starts this launcher's pods again: how it fares stands on the Job.
            (Some(host), Some(job)) if adopted && host.runs.launches() => of_foreign_job(job, pod),
            _ => placed(plan, host, pod, state(host, pod, adopted)),
        };
        match &mut state {
            SeenState::Ended(ended) => {
                let odd = explain(plan, children, pod, ended);
                let is_later = |(other, _): &(Incarnation, String)| *other <= incarnation;
                if odd.is_some() && odd_spread.as_ref().is_none_or(is_later) {
                    odd_spread = odd.map(|odd| (incarnation, odd));
                }
            }
            SeenState::NoPlace(reason) if pod.spec.node_name.is_none() => {
                let held = held.get_or_init(|| held_by_others(plan, children));
                reason.extend(held.as_deref());
            }
            _ => {}
        }
        let address = pod.status.pod_ip.as_ref().and_then(|text| text.parse().ok());
        seen.push(Seen { incarnation, state, address });
    }
    // Its own controller removes a launcher's pod when it gives up; the Job still tells how that ended.
    let is_seen = |host: &Host| seen.iter().any(|it| it.incarnation.member == host.member);
    if let Some(host) = plan.launch_host().filter(|host| !is_seen(host))
        && let Some(state) = foreign_job.and_then(|job| over_by_job(job))
    {
        let incarnation = Incarnation { member: host.member, epoch: 0 };
        seen.push(Seen { incarnation, state, address: None });
    }
    let (stop_requested, odd_spread) = (object.asks_to_stop(), odd_spread.map(|(_, odd)| odd));
    let refused = children.refused.clone();
    Observed { seen, stop_requested, odd_spread, refused, ..Observed::default() }
}

/// Completes an end with what the container said last; what is odd about where its ranks ran leaves.
fn explain(plan: &Plan, children: &Children, pod: &Pod, ended: &mut Ended) -> Option<String> {
    let message = main_container(pod)?.terminated.as_ref()?.message.as_deref()?;
    let told = told(plan, &|| addresses(plan, children), ended.code, message);
    (ended.rank, ended.last_lines) = (told.rank, told.last_lines);
    if ended.cause == Cause::Exited {
        ended.code = told.code;
    }
    told.odd_spread
}

/// What the job's own hosts hold while another one finds no place: the job may be in its own way.
fn held_by_others(plan: &Plan, children: &Children) -> Option<String> {
    let is_placed = |pod: &&Arc<Pod>| {
        let over = matches!(pod.status.phase.as_str(), "Failed" | "Succeeded");
        pod.spec.node_name.is_some() && !over
    };
    let placed: Vec<&Host> = children
        .pods
        .iter()
        .filter(is_placed)
        .filter_map(|pod| plan.host(incarnation(plan, pod)?.member))
        .collect();
    let first = placed.first()?;
    let who = match placed.len() - 1 {
        0 => format!("{} holds", first.name),
        others => format!("{} and {others} more hosts of this job hold", first.name),
    };
    let milli: u64 = placed
        .iter()
        .filter_map(|host| {
            let resources = &plan.group_of(host).resources;
            resources.requests.get("cpu").or(resources.limits.get("cpu"))
        })
        .map(Quantity::milli)
        .sum();
    Some(match milli {
        0 => format!("; {who} a place"),
        1000 => format!("; {who} 1 CPU"),
        whole if whole % 1000 == 0 => format!("; {who} {} CPUs", whole / 1000),
        part => format!("; {who} {part}m of CPU"),
    })
}

/// What to wait for when all that is left is that containers start.
const STARTS: &str = "its containers are being started";

/// A pod that only has to start its containers is as good as there once it has its address: the launcher's `ready` waits
/// for the handshake, and sees it long before the kubelet says so. A launcher that hosts no ranks needs no address: nobody
/// asks for it, and its table may be there before it is. An image's own sshd is waited for by nobody. Where everybody launches, each
/// asks the others only once, because quick tasks may have ended by then: there all must be up before.
fn placed(plan: &Plan, host: Option<&Host>, pod: &Pod, state: SeenState) -> SeenState {
    let only_launches = host.is_some_and(|host| host.runs.launches() && host.slots == 0);
    match state {
        SeenState::Coming(reason)
            if !pod.is_going() && !plan.reaches_by_ssh() && !everybody_launches(plan) =>
        {
            let is_addressed = reason == STARTS && pod.status.pod_ip.is_some();
            if only_launches || is_addressed {
                SeenState::Placed(reason)
            } else {
                SeenState::Coming(reason)
            }
        }
        other => other,
    }
}

/// How far a pod is.
fn state(host: Option<&Host>, pod: &Pod, adopted: bool) -> SeenState {
    let main = main_container(pod);
    let runs_command = host.is_some_and(|host| host.runs.runs_command());
    if let Some(terminated) = main.and_then(|main| main.terminated.as_ref()) {
        return SeenState::Ended(ended(pod, terminated, runs_command));
    }
    if let Some(cause) = gone_without_a_word(pod) {
        return SeenState::Ended(ended_at(pod, KILLED, cause));
    }
    if let Some(running) = main.and_then(|main| main.running.as_ref()) {
        let began = running.started_at.as_ref().map(time);
        return match released(pod) {
            Some(released) if runs_command => {
                SeenState::Running { since: began.map_or(released, |began| began.max(released)) }
            }
            None if runs_command && adopted => {
                SeenState::Running { since: began.unwrap_or_default() }
            }
            Some(_) | None => SeenState::Up,
        };
    }
    if waits_in_init(pod) {
        return SeenState::Up;
    }
    coming(pod)
}

/// The state of the container that counts: the one that logs are about.
fn main_container(pod: &Pod) -> Option<&ContainerState> {
    let statuses = &pod.status.container_statuses;
    let named = pod.annotation(marks::DEFAULT_CONTAINER);
    let main = named.and_then(|name| statuses.iter().find(|status| status.name == name));
    main.or(statuses.first()).map(|status| &status.state)
}

/// Whether something runs on in a pod whose command has ended: a mesh's proxy, a shipper of logs. The kubelet waits for it for ever.
pub(crate) fn runs_on(pod: &Pod) -> bool {
    main_container(pod).is_some_and(|main| main.terminated.is_some())
        && pod.status.container_statuses.iter().any(|it| it.state.running.is_some())
}

/// When its command was let go.
pub(crate) fn released(pod: &Pod) -> Option<Time> {
    pod.annotation(marks::RELEASED)?.parse().ok().map(Time)
}

fn ended(pod: &Pod, terminated: &Terminated, runs_command: bool) -> Ended {
    let began = terminated.started_at.as_ref().map(time);
    let started = released(pod).map(|released| began.map_or(released, |it| it.max(released)));
    // Kubernetes keeps whole seconds: a command of half a second must not end before it began.
    let at = terminated.finished_at.as_ref().map(time).or(began).unwrap_or_default();
    Ended {
        started,
        at: started.map_or(at, |started| at.max(started)),
        code: terminated.exit_code,
        cause: cause(pod, terminated, runs_command),
        rank: None,
        last_lines: Vec::new(),
    }
}

fn cause(pod: &Pod, terminated: &Terminated, runs_command: bool) -> Cause {
    // What ended well is over, whatever happened to its pod in the same moment.
    if terminated.exit_code == 0 && runs_command {
        return Cause::Exited;
    }
    if let Some(cause) = disruption(pod).or_else(|| by_reason(pod)) {
        return cause;
    }
    match terminated.reason.as_deref() {
        Some("OOMKilled") => Cause::OutOfMemory,
        Some("StartError" | "ContainerCannotRun") => Cause::CannotStart,
        Some("ContainerStatusUnknown") => Cause::NodeLost,
        _ if pod.is_going() => Cause::Deleted,
        _ => Cause::Exited,
    }
}

/// Who disrupted a pod, as whoever did it wrote down.
fn disruption(pod: &Pod) -> Option<Cause> {
    let target = pod.status.conditions.iter().find(|it| it.kind == "DisruptionTarget")?;
    if target.status != "True" {
        return None;
    }
    Some(match target.reason.as_deref() {
        Some("PreemptionByScheduler") => Cause::Preempted,
        Some("DeletionByTaintManager" | "DeletionByPodGC") => Cause::NodeLost,
        _ => Cause::Evicted,
    })
}

/// What a failed pod's own reason tells.
fn by_reason(pod: &Pod) -> Option<Cause> {
    match pod.status.reason.as_deref()? {
        "Preempting" => Some(Cause::Preempted),
        "NodeLost" => Some(Cause::NodeLost),
        // The kubelet had no room after all, or its node was shut down.
        "Evicted"
        | "Shutdown"
        | "NodeShutdown"
        | "Terminated"
        | "NodeAffinity"
        | "UnexpectedAdmissionError" => Some(Cause::Evicted),
        reason if reason.starts_with("OutOf") => Some(Cause::Evicted),
        _ => None,
    }
}

/// Why a pod is over that has no ended container: nobody is there to say so, or it ended before it began.
fn gone_without_a_word(pod: &Pod) -> Option<Cause> {
    let status = &pod.status;
    if is_beyond_reach(pod) {
        return Some(Cause::NodeLost);
    }
    match status.phase.as_str() {
        "Failed" | "Succeeded" => {
            let deleted = pod.is_going().then_some(Cause::Deleted);
            Some(
                disruption(pod)
                    .or_else(|| by_reason(pod))
                    .or(deleted)
                    .unwrap_or(Cause::CannotStart),
            )
        }
        _ => None,
    }
}

/// Whether a pod is on a node that does not answer any more: it was deleted because of that, and nobody is there to end it.
pub(crate) fn is_beyond_reach(pod: &Pod) -> bool {
    let not_ready =
        pod.status.conditions.iter().any(|it| it.kind == "Ready" && it.status != "True");
    let lost = pod.status.reason.as_deref() == Some("NodeLost");
    pod.is_going() && not_ready && (lost || disruption(pod) == Some(Cause::NodeLost))
}

fn ended_at(pod: &Pod, code: i32, cause: Cause) -> Ended {
    let changed = pod.status.conditions.iter().filter_map(|it| it.last_transition_time.as_ref());
    let at = changed.map(time).max().or(pod.status.start_time.as_ref().map(time));
    let failed_init = pod.status.init_container_statuses.iter().find_map(failure);
    let message = failed_init.and_then(|it| it.message.as_deref());
    let message = message.or(pod.status.message.as_deref());
    Ended {
        started: None,
        at: at.unwrap_or_default(),
        code: failed_init.map_or(code, |it| it.exit_code),
        cause,
        rank: None,
        last_lines: message
            .map(|text| text.lines().map(str::to_owned).collect())
            .unwrap_or_default(),
    }
}

fn failure(status: &ContainerStatus) -> Option<&Terminated> {
    status.state.terminated.as_ref().filter(|it| it.exit_code != 0)
}

/// Whether the pod's last init container waits for the other hosts: the pod is up as far as it can be.
fn waits_in_init(pod: &Pod) -> bool {
    let mut statuses = pod.status.init_container_statuses.iter();
    statuses.any(|it| it.name == marks::READY && it.state.running.is_some())
}

/// The image that a pod waits for, where it cannot be had.
pub(crate) fn no_image(pod: &Pod) -> Option<NoImage> {
    let status = &pod.status;
    let all = status.init_container_statuses.iter().chain(&status.container_statuses);
    let (container, waiting) = all
        .filter_map(|it| Some((it, it.state.waiting.as_ref()?)))
        .find(|(_, it)| it.reason.as_deref().is_some_and(|it| NO_IMAGE.contains(&it)))?;
    // Nobody asks for an image before the init containers that come first have ended.
    let before = status.init_container_statuses.iter();
    let before = before.filter_map(|it| it.state.terminated.as_ref()?.finished_at.as_ref());
    let since = before.chain(&status.start_time).map(time).max()?;
    Some(NoImage {
        container: container.name.clone(),
        image: container.image.clone(),
        said: waiting.message.clone().or_else(|| waiting.reason.clone()),
        since,
        is_hopeless: waiting.reason.as_deref().is_some_and(|it| HOPELESS.contains(&it)),
    })
}

/// Why a pod is not up yet, for people, and whether that passes by itself.
fn coming(pod: &Pod) -> SeenState {
    let scheduled = pod.status.conditions.iter().find(|it| it.kind == "PodScheduled");
    if let Some(condition) = scheduled.filter(|it| it.status == "False") {
        let message = condition.message.as_deref().unwrap_or("no reason is given");
        return match condition.reason.as_deref() {
            Some("SchedulingGated") => {
                SeenState::Coming(format!("it waits at a scheduling gate: {message}"))
            }
            _ => SeenState::NoPlace(format!("it cannot be scheduled: {message}")),
        };
    }
    if pod.spec.node_name.is_none() {
        return SeenState::Coming("it waits for the scheduler".to_owned());
    }
    if let Some(waiting) = no_image(pod) {
        return SeenState::NoImage(waiting);
    }
    let all = pod.status.init_container_statuses.iter().chain(&pod.status.container_statuses);
    for status in all {
        let Some(waiting) = &status.state.waiting else { continue };
        let message = waiting.message.as_deref().map(|it| format!(": {it}")).unwrap_or_default();
        match waiting.reason.as_deref() {
            Some("ContainerCreating" | "PodInitializing") | None => {}
            Some(reason) => {
                return SeenState::Stuck(format!("{} waits, {reason}{message}", status.name));
            }
        }
    }
    SeenState::Coming(STARTS.to_owned())
}

/// How a launcher fares whose Job the built-in controller manages.
fn of_foreign_job(job: &Job, pod: &Pod) -> SeenState {
    if let Some(over) = over_by_job(job) {
        return over;
    }
    let running = main_container(pod).and_then(|main| main.running.as_ref());
    // Between two tries of its own controller it is as good as running: it is not ours to start.
    let since = running.and_then(|it| it.started_at.as_ref()).or(job.status.start_time.as_ref());
    SeenState::Running { since: since.map(time).unwrap_or_default() }
}

/// How such a launcher ended, once its Job says so.
fn over_by_job(job: &Job) -> Option<SeenState> {
    let status = &job.status;
    let holds =
        |kind: &str| status.conditions.iter().find(|it| it.kind == kind && it.status == "True");
    let began = status.start_time.as_ref().map(time);
    let over = |code, at: Option<&ApiTime>| {
        SeenState::Ended(Ended {
            started: began,
            at: at.map(time).or(began).unwrap_or_default(),
            code,
            cause: Cause::Exited,
            rank: None,
            last_lines: Vec::new(),
        })
    };
    if holds("Complete").is_some() {
        return Some(over(0, status.completion_time.as_ref()));
    }
    holds("Failed").map(|failed| over(1, failed.last_transition_time.as_ref()))
}

/// A moment of the API's as one of ours.
pub(crate) fn time(time: &ApiTime) -> Time {
    Time(u64::try_from(time.0.as_millisecond()).unwrap_or(0))
}

#[cfg(test)]
mod tests;
