//! What pages of documentation show that is neither a call with its output nor a file of examples/.

use std::process::Command;

use crate::environment::{Ended, Environment};

/// The blocks of a page that begin with this mark.
fn blocks(page: &str, mark: &str) -> Vec<String> {
    let path = format!("{}/../../docs/{page}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("the page is there");
    let opening = format!("```{mark}\n");
    let begun = text.split(&opening).skip(1);
    begun.map(|rest| rest.split("```").next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn jobs_of_the_page_on_unisonojob_can_be_run() {
    let environment = Environment::new();
    let jobs = blocks("unisonojob.md", "yaml");
    let jobs: Vec<&String> = jobs.iter().filter(|it| it.contains("kind: UnisonoJob")).collect();
    assert!(jobs.len() >= 2, "the page shows jobs");
    for job in jobs {
        environment.file("job.yaml", job);
        let checked = environment.run(&["check", "job.yaml"]);
        assert_eq!(checked.code, 0, "{job}\n{}", checked.stderr);
    }
}

#[test]
fn commands_of_the_page_on_ksonnet_give_what_it_says() {
    let environment = Environment::new();
    let programs = environment.path().join("programs");
    std::fs::create_dir(&programs).expect("a folder for programs");
    for name in ["ks", "unisono"] {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_unisono"), programs.join(name))
            .expect("a link to the program");
    }
    let script = blocks("ksonnet.md", "sh").concat();
    let output = Command::new("sh")
        .args(["-euc", &script])
        .env("PATH", format!("{}:/usr/bin:/bin", programs.display()))
        .env("HOME", environment.path())
        .current_dir(environment.path())
        .output()
        .expect("a shell starts");
    let ended = Ended::of(output);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    for worker in ["tensorflow-benchmark-16-worker-0", "tensorflow-benchmark-16-worker-1"] {
        assert!(ended.stdout.contains(worker), "{}", ended.stdout);
    }
}
