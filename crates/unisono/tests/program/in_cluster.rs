//! What the program says to an API server, and what it makes of answers that a healthy one seldom gives.

use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::desk::{Desk, JOBS, PIECE, RING, WITH_CODE, plain, pod, signal, until};
use crate::environment::Ended;
use crate::server::{Answer, Request, Server, refusal, told_refusal};

fn is_piece(request: &Request) -> bool {
    request.method == "POST" && request.path.ends_with("/configmaps")
}

#[test]
fn a_job_waits_suspended_until_its_last_piece_of_code_is_there() {
    let desk = Desk::usual(WITH_CODE);
    let ended = desk.run(&["submit", "job.yaml"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("1 file of code travel"), "{}", ended.stderr);
    let writes = desk.server.writes();
    let order: Vec<(&str, &str)> =
        writes.iter().map(|it| (it.method.as_str(), it.path.as_str())).collect();
    let maps = "/api/v1/namespaces/lab/configmaps";
    assert_eq!(order, [("POST", JOBS), ("POST", maps), ("PATCH", RING)]);
    assert_eq!(writes[0].body["spec"]["policies"]["suspend"], true);
    assert!(desk.server.object(RING).unwrap().pointer("/spec/policies/suspend").is_none());
}

#[test]
fn a_config_map_of_somebody_else_is_not_touched() {
    let desk = Desk::usual(WITH_CODE);
    let theirs = json!({"metadata": {"name": "ring-code-0"}, "data": {"precious": "x"}});
    desk.server.put(PIECE, theirs);
    let before = desk.server.object(PIECE);
    let ended = desk.run(&["submit", "job.yaml"]);
    assert_eq!(ended.code, 125, "{}", ended.stderr);
    for part in ["ConfigMap ring-code-0 in namespace lab is there already", "another name"] {
        assert!(ended.stderr.contains(part), "{}", ended.stderr);
    }
    assert_eq!(desk.server.object(PIECE), before);
    assert_eq!(desk.server.object(RING), None, "the job was left behind");
}

#[test]
fn what_an_earlier_job_of_the_same_name_left_makes_way() {
    let desk = Desk::usual(WITH_CODE);
    let owner = json!({"apiVersion": "unisono.dev/v1alpha1", "kind": "UnisonoJob", "name": "ring", "uid": "old"});
    desk.server
        .put(PIECE, json!({"metadata": {"name": "ring-code-0", "ownerReferences": [owner]}}));
    let ended = desk.run(&["submit", "job.yaml"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let piece = desk.server.object(PIECE).unwrap();
    let job = desk.server.object(RING).unwrap();
    assert_eq!(piece["metadata"]["ownerReferences"][0]["uid"], job["metadata"]["uid"]);
}

#[test]
fn code_that_is_refused_takes_its_job_along_and_the_reason_is_told() {
    let desk = Desk::new(WITH_CODE, |request, _| {
        is_piece(request).then(|| told_refusal(403, "Forbidden", "exceeded quota: few"))
    });
    let ended = desk.run(&["submit", "job.yaml"]);
    assert_eq!(ended.code, 125);
    assert!(ended.stderr.contains("exceeded quota: few"), "{}", ended.stderr);
    assert_eq!(desk.server.object(RING), None, "the job was left behind");
}

#[test]
fn a_job_that_cannot_be_removed_does_not_hide_why_it_should_be() {
    let desk = Desk::new(WITH_CODE, |request, _| match request.method.as_str() {
        "DELETE" => Some(told_refusal(403, "Forbidden", "no right to delete")),
        _ => is_piece(request).then(|| told_refusal(403, "Forbidden", "exceeded quota: few")),
    });
    let ended = desk.run(&["submit", "job.yaml"]);
    assert_eq!(ended.code, 125);
    for part in ["exceeded quota: few", "UnisonoJob ring stays behind", "no right to delete"] {
        assert!(ended.stderr.contains(part), "no {part:?} in {}", ended.stderr);
    }
}

#[test]
fn ctrl_c_while_code_is_under_way_leaves_nothing_behind() {
    let desk =
        Desk::new(WITH_CODE, |request, _| is_piece(request).then(|| Answer::Stuck(Vec::new())));
    let mut child = desk.command(&["submit", "job.yaml"]).stderr(Stdio::piped()).spawn().unwrap();
    until("the upload", || desk.server.writes().iter().any(is_piece));
    signal(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(desk.server.object(RING), None, "the job was left behind");
}

#[test]
fn fields_of_somebody_else_are_not_taken_over() {
    let desk = Desk::new(&plain(), |request, _| {
        let conflict = "Apply failed with 1 conflict: conflict with \"kueue\" using unisono.dev/v1alpha1: .spec.policies.suspend";
        (request.method == "PATCH").then(|| told_refusal(409, "Conflict", conflict))
    });
    let ended = desk.run(&["submit", "job.yaml"]);
    assert_eq!(ended.code, 125);
    for part in ["conflict with \"kueue\"", "--force-conflicts", "--replace"] {
        assert!(ended.stderr.contains(part), "no {part:?} in {}", ended.stderr);
    }
    assert!(desk.server.writes().iter().all(|it| !it.query.contains("force")));
}

#[test]
fn a_job_that_has_ended_is_not_taken_for_a_new_one() {
    let desk = Desk::usual(&plain());
    desk.has_job("Succeeded");
    let ended = desk.run(&["submit", "job.yaml", "--follow"]);
    assert_eq!(ended.code, 125, "{}", ended.stderr);
    for part in ["UnisonoJob ring ended before", "--replace"] {
        assert!(ended.stderr.contains(part), "no {part:?} in {}", ended.stderr);
    }
}

#[test]
fn a_job_that_takes_its_time_to_go_is_waited_for_with_a_word() {
    let looks = AtomicU32::new(0);
    let desk = Desk::new(&plain(), move |request, server| {
        let is_going =
            server.object(RING).is_some_and(|it| it["metadata"]["deletionTimestamp"].is_string());
        match request.method.as_str() {
            "DELETE" if !is_going => {
                let going = json!({"metadata": {"deletionTimestamp": "2030-01-01T00:00:02Z"}});
                Some(Answer::Json(200, server.merge(RING, &going)))
            }
            "GET"
                if request.path == RING
                    && is_going
                    && looks.fetch_add(1, Ordering::Relaxed) > 30 =>
            {
                Some(refusal(404, "NotFound"))
            }
            _ => None,
        }
    });
    desk.has_job("Created");
    let ended = desk.run(&["submit", "job.yaml", "--replace"]);
    let told = "waiting until UnisonoJob ring in namespace lab and its pods are gone";
    assert_eq!(ended.stderr.matches(told).count(), 1, "{}", ended.stderr);
}

#[test]
fn a_name_means_what_runs_else_the_newer_one() {
    let desk = Desk::usual(&plain());
    let state = |words: &[&str]| {
        let ended = desk.run(&[&["status", "ring", "--output", "json"], words].concat());
        let shown: Value = serde_json::from_str(&ended.stdout).expect("it is JSON");
        (shown["run"]["id"].clone(), ended.stderr)
    };
    let here = (json!("ring-0001"), String::new());
    // 2020, 2030 and 2040.
    desk.ran_here("ring", 1_577_836_800_000);
    assert_eq!(state(&[]), here, "nothing is in the cluster");
    desk.has_job("Created");
    assert_ne!(state(&[]), here, "it runs in the cluster");
    assert_eq!(state(&["--engine", "local"]), here);
    desk.has_job("Succeeded");
    assert_ne!(state(&[]), here, "the cluster's is newer");
    desk.ran_here("ring", 2_208_988_800_000);
    assert_eq!(state(&[]), here, "the local run is newer");
    let stopped = desk.run(&["stop", "ring-0001"]);
    assert!(stopped.stderr.contains("ring-0001 has ended"), "{}", stopped.stderr);
}

#[test]
fn a_cluster_that_lets_nobody_in_is_told_where_a_name_is_not_known_here() {
    let desk = Desk::new(&plain(), |_, _| Some(told_refusal(401, "Unauthorized", "Unauthorized")));
    let ended = desk.run(&["status", "ring"]);
    assert_eq!(ended.code, 125);
    for part in ["no run of this machine is called `ring`", "Unauthorized", "log in again"] {
        assert!(ended.stderr.contains(part), "no {part:?} in {}", ended.stderr);
    }
    desk.ran_here("ring", 1);
    let ended = desk.run(&["status", "ring"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("only this machine was asked for `ring`"), "{}", ended.stderr);
}

#[test]
fn after_submitting_the_hint_says_which_of_two_is_meant() {
    let desk = Desk::usual(&plain());
    let first = desk.run(&["submit", "job.yaml"]);
    assert!(first.stderr.contains("`unisono stop ring` stops it"), "{}", first.stderr);
    desk.ran_here("ring", 1);
    let second = desk.run(&["submit", "job.yaml"]);
    let told = "`unisono stop ring --engine kubernetes` stops it";
    assert!(second.stderr.contains(told), "{}", second.stderr);
}

/// Refuses to list these kinds.
fn hides(kinds: &'static [&'static str]) -> impl Fn(&Request, &Server) -> Option<Answer> {
    move |request, _| {
        let plural = request.path.rsplit('/').next().unwrap_or_default();
        let is_hidden = request.method == "GET" && kinds.contains(&plural);
        is_hidden.then(|| told_refusal(403, "Forbidden", &format!("{plural} is forbidden")))
    }
}

#[test]
fn kinds_of_jobs_that_nobody_may_list_are_left_out_with_a_warning() {
    let desk = Desk::new(&plain(), hides(&["mpijobs", "mpis"]));
    desk.has_job("Succeeded");
    let told = "you may not list mpijobs and mpis: jobs of that kind are left out";
    for words in [&["list"][..], &["status", "ring"], &["why", "ring"], &["logs", "ring"]] {
        let ended = desk.run(&[words, &["--engine", "kubernetes"]].concat());
        assert_eq!(ended.code, 0, "{words:?}: {}", ended.stderr);
        assert_eq!(ended.stderr.matches(told).count(), 1, "{words:?}: {}", ended.stderr);
    }
    assert!(desk.run(&["list", "--engine", "kubernetes"]).stdout.contains("ring"));
    let absent = desk.run(&["status", "pi", "--engine", "kubernetes"]);
    assert_eq!(absent.code, 2, "{}", absent.stderr);
    assert!(absent.stderr.contains(told), "{}", absent.stderr);
}

#[test]
fn whoever_may_list_no_jobs_at_all_is_told_so() {
    let desk = Desk::new(&plain(), hides(&["mpijobs", "mpis", "unisonojobs"]));
    desk.has_job("Succeeded");
    let ended = desk.run(&["list", "--engine", "kubernetes"]);
    assert_eq!(ended.code, 125, "{}", ended.stderr);
    let told = "jobs cannot be listed: mpijobs is forbidden";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
}

#[test]
fn an_object_of_another_namespace_than_the_one_that_was_asked_for_is_refused() {
    let named = plain().replace("{name: ring}", "{name: ring, namespace: lab}");
    let desk = Desk::usual(&named);
    for words in [&["submit", "job.yaml"][..], &["submit", "job.yaml", "--dry-run"]] {
        let ended = desk.run(&[words, &["--namespace", "other"]].concat());
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        for part in ["UnisonoJob ring is for namespace lab, not other", "--namespace lab"] {
            assert!(ended.stderr.contains(part), "no {part:?} in {}", ended.stderr);
        }
    }
    assert!(desk.server.writes().is_empty());
    let ended = desk.run(&["submit", "job.yaml", "--namespace", "lab"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    // Where jobs usually go is no wish for this one.
    let mut command = desk.command(&["submit", "job.yaml"]);
    let ended = Ended::of(command.env("UNISONO_NAMESPACE", "other").output().unwrap());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}

#[test]
fn what_would_be_made_is_shown_in_the_namespace_of_the_kubeconfig() {
    let desk = Desk::usual(&plain());
    let shown = desk.run(&["submit", "job.yaml", "--dry-run"]);
    assert_eq!((shown.code, shown.stderr.as_str()), (0, ""));
    assert!(shown.stdout.contains("  namespace: lab\n"), "{}", shown.stdout);
    assert!(!shown.stdout.contains("namespace: default"), "{}", shown.stdout);
    let planned = desk.run(&["plan", "job.yaml", "--engine", "kubernetes", "--output", "json"]);
    assert!(planned.stdout.contains("\"namespace\": \"lab\""), "{}", planned.stdout);
    let other = desk.run(&["submit", "job.yaml", "--dry-run", "--namespace", "other"]);
    assert!(other.stdout.contains("  namespace: other\n"), "{}", other.stdout);
    assert!(desk.server.writes().is_empty());
}

#[test]
fn lines_without_ranks_are_told_when_a_rank_is_asked_for() {
    let desk = Desk::new(&plain(), |request, _| {
        request.path.ends_with("/log").then(|| Answer::Bytes(b"hello\n".to_vec()))
    });
    desk.has_job("Succeeded");
    pod(&desk);
    let words = ["logs", "ring", "--rank", "0", "--engine", "kubernetes"];
    let ended = desk.run(&words);
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{}", ended.stderr);
    let told = [
        "submitted without --follow",
        "`unisono logs ring --engine kubernetes`",
        "submit --follow",
    ];
    for part in told {
        assert!(ended.stderr.contains(part), "no {part:?} in {}", ended.stderr);
    }
    let tags = json!({"metadata": {"annotations": {"unisono.dev/tag-output": "true"}}});
    desk.server.merge(RING, &tags);
    let tagged = desk.run(&words);
    assert!(tagged.stderr.contains("nothing was written there"), "{}", tagged.stderr);
}
