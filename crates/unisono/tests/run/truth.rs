//! A run is never told to have succeeded when it has not.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use unisono_testbed::leaks::command_line;
use unisono_testbed::mpi::Flavour;
use unisono_testbed::program::Program;

use crate::{SOON, User, first_line, json, text, until};

/// Processes of the machine whose command line has this in it, and that belong to this user's runs.
fn processes(user: &User, part: &str) -> Vec<u32> {
    let (name, mark) = user.watch.variable();
    let wanted = format!("{}={}", name.display(), mark.display());
    let entries = std::fs::read_dir("/proc").expect("list processes").flatten();
    let numbers = entries.filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok());
    let is_it = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        command_line(*pid).contains(part)
            && environment.split(|byte| *byte == 0).any(|it| it == wanted.as_bytes())
    };
    numbers.filter(is_it).collect()
}

fn kill(pid: u32) {
    let sent = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
    assert!(sent.expect("send a signal").success());
}

fn host_name(pid: u32) -> String {
    let output = Command::new("nsenter").args(["-u", "-t", &pid.to_string(), "hostname"]).output();
    text(&output.expect("enter the host").stdout).trim().to_owned()
}

/// Whether the side of the launcher was told of a rank on that host.
fn launcher_knows_rank(user: &User, host: &str) -> bool {
    let runs = std::fs::read_dir(user.home.path().join(".local/state/unisono/runs"));
    let proof = |run: std::fs::DirEntry| {
        std::fs::read_to_string(run.path().join("hosts/mpirun-host-0/proof")).ok()
    };
    let proof: String = runs.expect("list runs").flatten().filter_map(proof).collect();
    let told = proof.lines().map(|line| serde_json::from_str(line).unwrap_or_default());
    told.into_iter().any(|it: serde_json::Value| it["host"] == host && it["event"] == "rank")
}

#[test]
fn a_lost_connection_is_a_failure_even_where_the_launcher_ends_with_0() {
    for flavour in [Flavour::OpenMpi5, Flavour::OpenMpi4] {
        let user = User::of(flavour);
        let prefix = user.mpi.prefix.display().to_string();
        let program = user.program(Program::Wait);
        let words =
            ["run", "--mpi", &prefix, "--raw", "--hosts", "2", "--slots", "1", "--timeout", "60"];
        let command = [&words[..], &["--", "mpirun", "-n", "2", &program, "600"]].concat();
        let mut run = user
            .unisono(&command)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("run unisono");
        let lines = [first_line(&mut run), first_line(&mut run)];
        assert!(lines.iter().all(|line| line.starts_with("waiting")), "{lines:?}");
        // A launcher that kills its connections leaves only what they told before.
        until(|| launcher_knows_rank(&user, "mpirun-host-1"));
        // On the other host: the process that answers for the launch, which is not that host's process 1.
        let supervisor = processes(&user, "unisono-agent serve").into_iter().find(|pid| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let inside = status.lines().find(|line| line.starts_with("NSpid:"));
            inside.is_some_and(|it| !it.ends_with("\t1")) && host_name(*pid) == "mpirun-host-1"
        });
        kill(supervisor.expect("a launch is answered"));
        let output = run.wait_with_output().expect("it ends");
        let told = text(&output.stderr);
        let status = json(&user, &["status", "--output", "json"]);
        assert!(
            !output.status.success() && output.status.code() != Some(124),
            "{flavour:?}: {told}{status}"
        );
        let (run, lost) = (&status["run"], &status["hosts"]["mpirun-host-1"]["lost"]);
        let exit = output.status.code().into();
        assert_eq!((&run["state"], &run["exit"]), (&"failed".into(), &exit), "{flavour:?}: {told}");
        assert!(lost.is_string(), "{flavour:?}: {status}");
        user.watch.assert_nothing_left(SOON);
    }
}

#[test]
fn a_lost_host_starts_everything_again_and_too_many_fail_the_job() {
    for (restarts, code) in [(1, Some(0)), (0, Some(137))] {
        let user = User::of(Flavour::OpenMpi4);
        let script =
            "if [ -e again ]; then echo again; else touch again; echo begun; sleep 600; fi";
        let job = format!(
            "apiVersion: unisono.dev/v1alpha1\nkind: UnisonoJob\nmetadata: {{name: lost}}\nspec:\n  \
             policies: {{gangRestarts: {restarts}}}\n  groups:\n  \
             - {{name: launcher, run: Launch, script: '{script}'}}\n  - {{name: worker, slots: 1}}\n"
        );
        std::fs::write(user.home.path().join("job.yaml"), job).expect("write the job");
        let mut run = user
            .unisono(&["run", "job.yaml", "--raw"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("run unisono");
        assert_eq!(first_line(&mut run), "begun\n");
        let worker = processes(&user, "unisono-agent serve")
            .into_iter()
            .find(|pid| host_name(*pid) == "lost-worker-0");
        kill(worker.expect("the worker is up"));
        let output = run.wait_with_output().expect("it ends");
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), code, "{told}");
        assert_eq!(text(&output.stdout), if restarts == 1 { "again\n" } else { "" }, "{told}");
        user.watch.assert_nothing_left(SOON);
    }
}

#[test]
fn ranks_that_are_not_where_they_were_planned_are_told_and_fail_a_strict_run() {
    let user = User::of(Flavour::OpenMpi4);
    let program = user.program(Program::Hello);
    let command = [
        "--hosts",
        "2",
        "--slots",
        "1",
        "--",
        "mpirun",
        "-n",
        "2",
        "--host",
        "mpirun-host-0:2",
        &program,
    ];
    let odd = "mpirun-host-0 ran 2 of 2 ranks but has 1 slot";
    for (more, code) in [(&["run"][..], 0), (&["run", "--strict"], 125)] {
        let output = user.unisono(&[more, &command].concat()).output().expect("run unisono");
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{told}");
        assert!(told.contains(odd), "{told}");
        assert_everybody_tells(&user, &told, code, odd);
    }
    // Programs are told the same.
    let words = [&["run", "--strict", "--output", "jsonl"], &command[..]].concat();
    let output = user.unisono(&words).output().expect("run unisono");
    let said = text(&output.stdout);
    let lines: Vec<serde_json::Value> =
        said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let [.., ended, summary] = lines.as_slice() else { panic!("{said}") };
    assert_eq!((&ended["event"], &ended["code"]), (&"ended".into(), &125.into()), "{said}");
    assert_eq!((&summary["event"], &summary["exit"]), (&"summary".into(), &125.into()), "{said}");
    assert_eq!((&summary["verdict"], &ended["verdict"]), (&"failed".into(), &"failed".into()));
    assert!(summary["warnings"][0].as_str().is_some_and(|it| it.contains(odd)), "{summary}");
    assert_eq!(summary["warnings"], summary["doubts"]);
    assert_eq!(output.status.code(), Some(125));
}

/// Sees that the closing line, `list`, `status` and `why` agree on how the last run ended, and tell why it is not believed.
fn assert_everybody_tells(user: &User, told: &str, code: i32, doubt: &str) {
    let (verdict, state) = match code {
        0 => ("succeeded", "succeeded"),
        _ => (&*format!("failed with exit code {code}"), "failed"),
    };
    let closing = told.lines().last().unwrap_or_default();
    assert!(closing.contains(&format!(": {verdict}, ")), "{told}");
    let listed = json(user, &["list", "--output", "json"]);
    let last = listed["runs"].as_array().and_then(|runs| runs.last()).expect("a run");
    let status = json(user, &["status", "--output", "json"]);
    for run in [last, &status["run"]] {
        assert_eq!((&run["state"], &run["exit"]), (&state.into(), &code.into()), "{run}");
        let failure = run["failure"].as_str().unwrap_or_default();
        assert_eq!(failure.contains(doubt), code != 0, "{run}");
    }
    let why = text(&user.unisono(&["why"]).output().expect("ask").stdout);
    assert_eq!(why.contains("is not believed") && why.contains(doubt), code != 0, "{why}");
}

#[test]
fn what_a_program_prints_changes_no_exit_code() {
    let user = User::of(Flavour::OpenMpi4);
    let one = "echo 'Executable: ./mine'; exit 3";
    let both = "echo 'Executable: ./mine'; echo 'Node: sh-host-0'; exit 3";
    for (more, script) in [(&["run"][..], both), (&["run", "--raw"], one)] {
        let words = [more, &["--", "mpirun", "-n", "1", "/bin/sh", "-c", script]].concat();
        let output = user.unisono(&words).output().expect("run unisono");
        assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    }
}

#[test]
fn output_that_cannot_be_passed_on_is_a_failure() {
    let user = User::of(Flavour::OpenMpi4);
    let full = File::options().write(true).open("/dev/full").expect("a full device");
    let output = user
        .unisono(&["run", "--", "/bin/sh", "-c", "echo result"])
        .stdout(full)
        .stderr(Stdio::piped())
        .spawn()
        .and_then(|run| run.wait_with_output())
        .expect("run unisono");
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{told}");
    let doubt = "output could not be passed on: No space left";
    assert!(told.contains(doubt), "{told}");
    assert_everybody_tells(&user, &told, 125, doubt);
    assert!(text(&user.unisono(&["logs"]).output().expect("read").stdout).contains("result"));
}

#[test]
fn a_full_disk_ends_no_job_but_is_no_success() {
    let user = User::of(Flavour::OpenMpi4);
    let state = user.home.path().join("state");
    std::fs::create_dir(&state).expect("make a folder");
    // The mount is gone with the process that made it.
    let script = format!(
        "mount -t tmpfs -o size=512k tmpfs {0} && XDG_STATE_HOME={0} exec \"$0\" run --raw -- \
         /bin/sh -c 'head -c 3000000 /dev/zero | tr \"\\0\" x | fold -w 99; echo; echo end'",
        state.display()
    );
    let unisono = Path::new(env!("CARGO_BIN_EXE_unisono"));
    let mut command = user.unisono(&[]);
    let home =
        command.get_envs().map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned)));
    let variables: Vec<_> = home.filter_map(|(name, value)| Some((name, value?))).collect();
    command = Command::new("unshare");
    let output = command
        .args(["-m", "--propagation", "private", "sh", "-c", &script])
        .arg(unisono)
        .envs(variables)
        .current_dir(user.home.path())
        .stdin(Stdio::null())
        .output()
        .expect("run unisono");
    let told = text(&output.stderr);
    let written = text(&output.stdout);
    assert!(written.ends_with("\nend\n") && written.len() > 3_000_000, "{}: {told}", written.len());
    assert_eq!(output.status.code(), Some(125), "{told}");
    assert!(told.contains("could not be kept: No space left on device"), "{told}");
    user.watch.assert_nothing_left(SOON);
}
