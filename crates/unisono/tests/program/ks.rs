//! ksonnet's command line, typed as its users typed it, in real folders.

use std::fs;
use std::os::unix::process::CommandExt;

use crate::environment::{Ended, Environment};

/// A home with an application in the folder `lab`.
struct Application(Environment);

impl Application {
    fn new() -> Self {
        let environment = Environment::new();
        let ended = environment.run(&["ks", "init", "lab", "--namespace", "ml"]);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        Self(environment)
    }

    /// A line that starts with `ks`, in a folder of the application, with the program called by that name.
    fn typed(&self, folder: &str, line: &str) -> Ended {
        let words: Vec<&str> = line.strip_prefix("ks ").expect("it is ks").split(' ').collect();
        let mut command = self.0.command(&words);
        command.arg0("/usr/local/bin/ks").current_dir(self.0.path().join("lab").join(folder));
        Ended::of(command.output().expect("the program starts"))
    }

    fn ks(&self, line: &str) -> String {
        let ended = self.typed("", line);
        assert_eq!(ended.code, 0, "{line}: {}", ended.stderr);
        ended.stdout
    }

    fn files(&self) -> Vec<String> {
        let root = self.0.path().join("lab");
        let mut found = Vec::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("it is a folder").flatten() {
                let path = entry.path();
                let inside = path.strip_prefix(&root).expect("it is inside").display().to_string();
                found.push(inside);
                if path.is_dir() {
                    folders.push(path);
                }
            }
        }
        found.sort();
        found
    }
}

#[test]
fn the_quick_start_gives_two_workers_with_eight_slots() {
    let application = Application::new();
    application.ks("ks pkg install kubeflow/mpi-job@master");
    application.ks("ks generate mpi-operator mpi-operator");
    application.ks("ks generate mpi-job-simple tensorflow-benchmark-16 --gpus 16");
    let shown = application.ks("ks show default -c tensorflow-benchmark-16");
    let planned = application.0.run_with(&["plan", "--output", "json", "-"], shown.as_bytes());
    assert_eq!(planned.code, 0, "{}", planned.stderr);
    let plan: serde_json::Value = serde_json::from_str(&planned.stdout).expect("it is JSON");
    let hosts = plan["hosts"].as_array().expect("hosts are a list");
    let slots = hosts.iter().filter(|host| host["group"] == "worker").map(|host| &host["slots"]);
    assert_eq!(slots.collect::<Vec<_>>(), [8, 8]);
}

#[test]
fn applying_without_a_cluster_says_so_and_leaves_by_its_own_code() {
    let application = Application::new();
    application.ks("ks generate mpi-job-simple ring --gpus 8");
    for verb in ["apply", "delete"] {
        let ended = application.typed("", &format!("ks {verb} default -c ring"));
        assert_eq!((ended.code, ended.stdout.as_str()), (125, ""));
        assert!(ended.stderr.contains("no cluster is known"), "{}", ended.stderr);
    }
}

#[test]
fn a_component_comes_and_goes_without_a_trace() {
    let application = Application::new();
    let before = application.files();
    let ended = application.typed("components", "ks generate mpi-job-custom fit --replicas 3");
    assert_eq!(ended.code, 0, "it works below the folder too: {}", ended.stderr);
    application.ks("ks env add us/west");
    application.ks("ks param set fit replicas 5 --env us/west");
    assert!(application.ks("ks show us/west").contains("replicas: 5"));
    application.ks("ks component rm fit");
    application.ks("ks env rm us/west");
    assert_eq!(application.files(), before);
}

#[test]
fn nothing_is_written_when_something_is_wrong() {
    let application = Application::new();
    let before = application.files();
    for line in [
        "ks generate mpi-job-simple ring --gpus many",
        "ks generate mpi-job ring",
        "ks generate mpi-job-simple ../../ring",
        "ks param set ring gpus 1",
    ] {
        let ended = application.typed("", line);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{line}");
        assert!(ended.stderr.contains("help: "), "{line}: {}", ended.stderr);
    }
    assert_eq!(application.files(), before);
    let again = application.0.run(&["ks", "init", "lab"]);
    assert_eq!(again.code, 2, "an application is not overwritten");
    let nowhere = application.0.run(&["ks", "env", "list"]);
    assert!(nowhere.stderr.contains("ks init NAME"), "{}", nowhere.stderr);
}

#[test]
fn help_needs_no_application() {
    let environment = Environment::new();
    for words in [&["ks", "help"][..], &["ks", "--help"], &["ks"], &["ks", "show", "-h"]] {
        let ended = environment.run(words);
        assert_eq!(ended.code, 0, "{words:?}: {}", ended.stderr);
        assert!(ended.stdout.contains("ks generate PROTOTYPE NAME"), "{words:?}");
    }
}
