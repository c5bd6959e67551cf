//! Files that mean no good: whatever stands in them, nothing is written outside the run's folder.

use std::path::{Path, PathBuf};

use unisono_testbed::mpi::Flavour;

use crate::support::{SOON, User, text};

/// Names that would leave a folder, run a command, look like an option or be too long.
fn names() -> Vec<String> {
    let mut names: Vec<String> = [
        "../../etc",
        "a/../../b",
        "/etc/x",
        "..",
        ".",
        "a;touch pwned",
        "$(touch pwned)",
        "`touch pwned`",
    ]
    .map(str::to_owned)
    .into();
    names.extend(
        ["-rf", "--help", "a b", "a\nb", "a\0b", "é\u{202e}x", "%s%n", "~root"].map(str::to_owned),
    );
    names.push("x".repeat(300));
    names.push(String::new());
    names
}

/// The same name everywhere that a file can put one.
fn jobs(name: &str) -> Vec<String> {
    let quoted = serde_json::to_string(name).expect("a name is text");
    let openpai = |job: &str, role: &str, folder: &str| {
        format!(
            r#"{{"jobName": {job}, "image": "lab/x:1", "codeDir": {folder}, "outputDir": {folder}, "taskRoles":
               [{{"name": {role}, "minSucceededTaskCount": 1, "command": "echo ran"}}]}}"#
        )
    };
    let kubeflow = |job: &str, folder: &str, variable: &str| {
        format!(
            "{{\"apiVersion\": \"kubeflow.org/v2beta1\", \"kind\": \"MPIJob\", \"metadata\": {{\"name\": {job}, \
             \"namespace\": {folder}}}, \"spec\": {{\"sshAuthMountPath\": {folder}, \"mpiReplicaSpecs\": {{\"Launcher\": \
             {{\"template\": {{\"spec\": {{\"containers\": [{{\"name\": \"l\", \"image\": \"lab/x:1\", \"command\": \
             [\"echo\", \"ran\"], \"workingDir\": {folder}, \"env\": [{{\"name\": {variable}, \"value\": \"1\"}}]}}]}}}}}}, \
             \"Worker\": {{\"replicas\": 1, \"template\": {{\"spec\": {{\"containers\": [{{\"name\": \"w\", \"image\": \
             \"lab/x:1\"}}]}}}}}}}}}}}}"
        )
    };
    let (plain, empty) = ("\"plain\"", "\"\"");
    vec![
        openpai(&quoted, plain, empty),
        openpai(plain, &quoted, empty),
        openpai(plain, plain, &quoted),
        kubeflow(&quoted, plain, plain),
        kubeflow(plain, &quoted, plain),
        kubeflow(plain, plain, &quoted),
    ]
}

/// Everything below a folder, but for the runs in their own place.
fn listing(folder: &Path, runs: &Path) -> Vec<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("list").flatten() {
            let path = entry.path();
            if path != runs {
                folders.extend(entry.file_type().is_ok_and(|it| it.is_dir()).then(|| path.clone()));
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn no_name_and_no_path_of_a_file_leaves_the_runs_folder() {
    let user = User::of(Flavour::OpenMpi4);
    let home = user.home.path().join("deep/home");
    let runs = home.join(".local/state/unisono/runs");
    std::fs::create_dir_all(&runs).expect("folders");
    std::fs::write(home.join("job.json"), "").expect("write it");
    let machine = ["/etc", "/opt", "/", "/tmp/b", "/root/etc"];
    let outside = || machine.map(|it| std::fs::read_dir(it).map_or(0, Iterator::count));
    let (before, around) = (listing(user.home.path(), &runs), outside());
    let mut ran = 0;
    for job in names().iter().flat_map(|name| jobs(name)) {
        std::fs::write(home.join("job.json"), &job).expect("write the job");
        let mut unisono = user.unisono(&["run", "job.json"]);
        let output = unisono.current_dir(&home).env("HOME", &home).output().expect("run unisono");
        // It runs, or is refused with a clear word; it never panics.
        let told = text(&output.stderr);
        assert!(output.status.code().is_some_and(|code| code != 101), "{job}: {told}");
        assert!(!told.contains("panicked"), "{job}: {told}");
        ran += usize::from(text(&output.stdout).contains("ran"));
        assert_eq!(listing(user.home.path(), &runs), before, "{job}");
        assert_eq!(outside(), around, "{job}");
        for run in std::fs::read_dir(&runs).expect("list").flatten() {
            let name = run.file_name().to_string_lossy().into_owned();
            let is_run = run.path().join("run.json").exists();
            assert!(!is_run || name.starts_with(|it: char| it.is_ascii_alphanumeric()), "{name:?}");
            assert!(name.is_ascii(), "{name:?}");
            std::fs::remove_dir_all(run.path())
                .or_else(|_| std::fs::remove_file(run.path()))
                .expect("remove it");
        }
    }
    assert!(ran > 10, "nothing ran, so nothing was tried: {ran}");
    user.watch.assert_nothing_left(SOON);
}

#[test]
fn links_that_a_job_lays_are_not_followed() {
    let user = User::of(Flavour::OpenMpi4);
    let victim = user.home.path().join("victim");
    std::fs::write(&victim, "mine\n").expect("write it");
    // Fails once, so that its folder is used again with what it left there.
    let line = format!(
        "cd /opt/unisono/job; test -e laid && echo again || {{ touch laid; ln -s {0} table.next; ln -sf {0} table; \
         exit 1; }}",
        victim.display()
    );
    let quoted = serde_json::to_string(&line).expect("a line is text");
    let job = format!(
        r#"{{"jobName": "sly", "image": "lab/x:1", "retryCount": 1, "taskRoles":
           [{{"name": "a", "minSucceededTaskCount": 1, "command": {quoted}}}]}}"#
    );
    let output = user.run(&job, &["--raw", "--timeout", "30"]);
    assert_eq!(std::fs::read_to_string(&victim).expect("read it"), "mine\n", "{output:?}");
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("again\n", Some(0)));
    user.watch.assert_nothing_left(SOON);
}

#[test]
fn a_proof_that_is_none_keeps_nobody_waiting() {
    let user = User::of(Flavour::OpenMpi4);
    for lay in ["mkfifo PROOF", "ln -s /dev/zero PROOF", "ln -s /etc/passwd PROOF", "mkdir PROOF"] {
        let lay = lay.replace("PROOF", "/opt/unisono/job/proof");
        let line = format!("rm -f /opt/unisono/job/proof; {lay}; ssh sh-host-1 \"{lay}\"; exit 3");
        let words = ["run", "--hosts", "2", "--timeout", "60", "--", "sh", "-c", &line];
        let output = user.unisono(&words).output().expect("run unisono");
        assert_eq!(output.status.code(), Some(3), "{lay}: {}", text(&output.stderr));
        for asked in ["status", "why"] {
            let told = user.unisono(&[asked]).output().expect("ask");
            assert!(told.status.success(), "{asked}: {}", text(&told.stderr));
        }
    }
    user.watch.assert_nothing_left(SOON);
}

#[test]
fn a_working_folder_that_cannot_be_is_one_error_before_anything_starts() {
    let user = User::of(Flavour::OpenMpi4);
    let job = |folder: &str| {
        format!(
            "apiVersion: unisono.dev/v1alpha1\nkind: UnisonoJob\nmetadata: {{name: astray}}\nspec:\n  \
             groups: [{{name: host, slots: 1, run: LaunchOnFirst, script: pwd, workingDir: {folder}}}]\n"
        )
    };
    for (folder, told) in [
        ("src", "the working folder `src` is relative"),
        ("/no/such/folder", "the working folder `/no/such/folder` is not on this machine"),
    ] {
        let output = user.run(&job(folder), &[]);
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{err}");
        assert!(err.contains(told) && err.contains("help: "), "{err}");
        assert!(!err.contains("astray: "), "nothing may have begun: {err}");
    }
    let apart = tempfile::tempdir_in("/tmp").expect("a folder");
    let folder = apart.path().to_str().expect("text");
    let output = user.run(&job(folder), &["--raw"]);
    assert_eq!(text(&output.stdout).trim_end(), folder, "{}", text(&output.stderr));
}

#[test]
fn a_place_for_temporary_files_that_hosts_do_not_see_is_not_passed_on() {
    let user = User::of(Flavour::OpenMpi4);
    let line = "mktemp > /dev/null && echo ${TMPDIR-none}";
    for (more, seen) in [(&[][..], "none\n"), (&["--env", "TMPDIR=/var/tmp"], "/var/tmp\n")] {
        let words = [&["run", "--raw"], more, &["--", "sh", "-c", line]].concat();
        let mut unisono = user.unisono(&words);
        let output = unisono.env("TMPDIR", "/tmp/of-mine").output().expect("run unisono");
        assert_eq!(text(&output.stdout), seen, "{}", text(&output.stderr));
    }
}

#[test]
fn working_folders_and_environments_under_tmp_are_there_inside() {
    let user = User::of(Flavour::OpenMpi4);
    let apart = tempfile::tempdir_in("/tmp").expect("a folder");
    let (venv, work) = (apart.path().join("venv"), apart.path().join("work/src"));
    for folder in [venv.join("bin"), work.clone()] {
        std::fs::create_dir_all(folder).expect("a folder");
    }
    std::fs::write(venv.join("marker"), "venv\n").expect("write it");
    std::fs::write(work.join("data"), "data\n").expect("write it");
    let line =
        "cat $VIRTUAL_ENV/marker data; ssh sh-host-1 'cat data; touch written'; ls /tmp | wc -l";
    let words = ["run", "--raw", "--hosts", "2", "--", "sh", "-c", line];
    let mut unisono = user.unisono(&words);
    let output =
        unisono.current_dir(&work).env("VIRTUAL_ENV", &venv).output().expect("run unisono");
    let said = text(&output.stdout);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[..3], ["venv", "data", "data"], "{}", text(&output.stderr));
    assert!(work.join("written").exists());
    // The home, the program's folder if it is there, and these two under one name.
    assert!(lines[3].parse::<u32>().is_ok_and(|count| count <= 3), "{said}");
}
