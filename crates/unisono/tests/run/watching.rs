//! What can be seen of a run by programs, from other terminals, and of a file with several jobs.

use std::io::Write as _;
use std::process::{Command, Stdio};

use unisono_testbed::mpi::Flavour;
use unisono_testbed::program::Program;

use crate::{SOON, User, first_line, json, text};

#[test]
fn programs_are_told_every_event_and_every_line_as_json() {
    let user = User::of(Flavour::OpenMpi4);
    let program = user.program(Program::Hello);
    let words = ["run", "--output", "jsonl", "--hosts", "2", "--slots", "1", "--", "mpirun"];
    let output = user.unisono(&[&words[..], &["-n", "2", &program]].concat()).output();
    let output = output.expect("run unisono");
    let said = text(&output.stdout);
    let lines: Vec<serde_json::Value> =
        said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!((lines[0]["job"].as_str(), lines[0]["ranks"].as_u64()), (Some("mpirun"), Some(2)));
    let events: Vec<&str> = lines.iter().filter_map(|line| line["event"].as_str()).collect();
    assert!(events.contains(&"output"), "{said}");
    for rank in 0..2 {
        let wrote = lines.iter().find(|line| line["rank"] == rank).expect("it wrote a line");
        let told = format!("rank {rank} of 2 on mpirun-host-{rank}");
        assert!(wrote["text"].as_str().is_some_and(|it| it.starts_with(&told)), "{wrote}");
        assert_eq!(wrote["stream"], "stdout");
        // Not its launcher's, and the line is whole.
        assert_eq!(wrote["host"], format!("mpirun-host-{rank}"));
        assert_eq!(wrote["partial"], serde_json::Value::Null);
    }
    let summary = lines.last().expect("a last line");
    assert_eq!((&summary["event"], &summary["verdict"]), (&"summary".into(), &"succeeded".into()));
    let numbers = ["exit", "ranks", "hosts"].map(|name| summary[name].as_u64());
    assert_eq!(numbers, [Some(0), Some(2), Some(2)], "{summary}");
    let took = ["first_rank_ms", "took_ms"].map(|name| summary[name].as_u64());
    assert!(took[0].is_some() && took[0] <= took[1], "{summary}");
    assert_eq!(summary["ran"], serde_json::json!({"mpirun-host-0": [0], "mpirun-host-1": [1]}));
    assert_eq!(
        (&summary["warnings"], &summary["doubts"]),
        (&serde_json::json!([]), &serde_json::json!([]))
    );
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn pieces_of_a_line_are_told_as_pieces() {
    let user = User::of(Flavour::OpenMpi4);
    let script = "head -c 100000 /dev/zero | tr '\\0' x; echo y; printf end";
    let words = ["run", "--output", "jsonl", "--", "/bin/sh", "-c", script];
    let output = user.unisono(&words).output().expect("run unisono");
    let said = text(&output.stdout);
    let lines = said.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let mut whole = vec![String::new()];
    let mut pieces = 0;
    for line in lines.filter(|line: &serde_json::Value| line["event"] == "output") {
        let last = whole.last_mut().expect("a line");
        last.push_str(line["text"].as_str().expect("text"));
        match line["partial"].as_bool() {
            Some(true) => pieces += 1,
            _ => whole.push(String::new()),
        }
    }
    assert_eq!(whole, [format!("{}y", "x".repeat(100_000)), "end".to_owned()]);
    assert!(pieces >= 2, "{said}");
}

/// What `status` tells of the last run: its state, its exit code, and which ranks were seen on which host.
fn status(user: &User) -> (String, Option<i64>, serde_json::Value) {
    let status = json(user, &["status", "--output", "json"]);
    let hosts = status["hosts"].as_object().expect("hosts by name").iter();
    let ranks = hosts.map(|(name, host)| {
        // The launcher is at home on the first host: nobody has to reach it.
        assert_eq!(host["reached"].is_u64(), name != "mpirun-host-0", "{status}");
        (name.clone(), host["ranks"].clone())
    });
    let state = status["run"]["state"].as_str().expect("a state").to_owned();
    (state, status["run"]["exit"].as_i64(), ranks.collect::<serde_json::Map<_, _>>().into())
}

#[test]
fn status_list_and_logs_agree_during_a_run_after_it_and_after_a_crash() {
    let user = User::of(Flavour::OpenMpi4);
    let program = user.program(Program::Wait);
    for (signal, state, exit) in [("-INT", "stopped", true), ("-KILL", "crashed", false)] {
        let words = ["run", "--hosts", "2", "--slots", "1", "--", "mpirun", &program, "600"];
        let mut run = user
            .unisono(&words)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("run unisono");
        let lines = [first_line(&mut run), first_line(&mut run)];
        assert!(lines.iter().all(|line| line.contains("waiting")), "{lines:?}");
        let seats = serde_json::json!({"mpirun-host-0": [0], "mpirun-host-1": [1]});
        assert_eq!(status(&user), ("running".to_owned(), None, seats.clone()));
        let sent = Command::new("kill").args([signal, &run.id().to_string()]).status();
        assert!(sent.expect("send a signal").success());
        run.wait().expect("it ends");

        let (told, code, ran) = status(&user);
        assert_eq!((told.as_str(), code.is_some(), ran), (state, exit, seats), "{signal}");
        let listed = json(&user, &["list", "--output", "json"]);
        let last = listed["runs"].as_array().and_then(|runs| runs.last()).expect("a run");
        assert_eq!((&last["state"], last["exit"].as_i64()), (&state.into(), code), "{signal}");
        let shown = text(&user.unisono(&["status"]).output().expect("ask").stdout);
        assert!(shown.contains("REACHED AFTER") && shown.contains("mpirun-host-1"), "{shown}");
        for rank in ["0", "1"] {
            let log = user.unisono(&["logs", "--rank", rank]).output().expect("read the log");
            assert!(text(&log.stdout).contains("waiting"), "{signal}: rank {rank}");
        }
        user.watch.assert_nothing_left(SOON);
    }
}

#[test]
fn logs_follow_one_host_to_the_end() {
    let user = User::of(Flavour::OpenMpi4);
    let job = r#"{"jobName": "duet", "image": "lab/x:1", "taskRoles": [
        {"name": "main", "minSucceededTaskCount": 1, "command":
         "echo begun; while [ ! -e go ]; do sleep 0.05; done; ssh other-0 echo nothing; echo ended"},
        {"name": "other", "command": "echo other; sleep infinity"}]}"#;
    std::fs::write(user.home.path().join("job.json"), job).expect("write the job");
    let spawn = |words: &[&str]| {
        let mut command = user.unisono(words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("run unisono")
    };
    let run = spawn(&["run", "job.json"]);
    crate::until(|| {
        let other = user.unisono(&["logs", "--host", "other-0"]).output().expect("read");
        let main = user.unisono(&["logs", "--host", "main-0"]).output().expect("read");
        (text(&other.stdout), text(&main.stdout)) == ("other\n".to_owned(), "begun\n".to_owned())
    });
    let mut follows = spawn(&["logs", "--follow", "--host", "main-0"]);
    assert_eq!(first_line(&mut follows), "begun\n");
    std::fs::write(user.home.path().join("go"), "").expect("let it go");
    assert!(run.wait_with_output().expect("it ends").status.success());
    let rest = follows.wait_with_output().expect("it ends with the run");
    assert_eq!(text(&rest.stdout), "nothing\nended\n");
    let none = user.unisono(&["logs", "--host", "nobody"]).output().expect("read");
    assert!(!none.status.success() && text(&none.stderr).contains("nothing was written there"));
    user.watch.assert_nothing_left(SOON);
}

#[test]
fn one_of_several_jobs_of_a_file_is_run_by_name() {
    let user = User::of(Flavour::OpenMpi4);
    let mut file = std::fs::File::create(user.home.path().join("both.yaml")).expect("make a file");
    for name in ["first", "second"] {
        write!(
            file,
            "---\napiVersion: unisono.dev/v1alpha1\nkind: UnisonoJob\nmetadata: {{name: {name}}}\nspec:\n  \
             groups: [{{name: host, slots: 1, run: LaunchOnFirst, script: echo {name}}}]\n"
        )
        .expect("write the jobs");
    }
    let output = user.unisono(&["run", "both.yaml", "--job", "second", "--raw"]).output();
    assert_eq!(text(&output.expect("run unisono").stdout), "second\n");
    let output = user.unisono(&["run", "both.yaml"]).output().expect("run unisono");
    let told = text(&output.stderr);
    assert!(told.contains("choose one with --job: first, second"), "{told}");
    assert_eq!(text(&output.stdout), "");
}
