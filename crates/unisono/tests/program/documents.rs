//! What pages of documentation show that is neither a call with its output nor a file of examples/.

use std::process::Command;

use crate::environment::{Ended, Environment};
use crate::every_dialect::{FILES, PROTOTYPES};

fn text(page: &str) -> String {
    let path = format!("{}/../../docs/{page}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect("the page is there")
}

/// The blocks of a page that begin with this mark.
fn blocks(page: &str, mark: &str) -> Vec<String> {
    let text = text(page);
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

#[test]
fn the_table_of_dialects_has_a_row_for_each_that_the_cluster_is_given() {
    let page = text("submit.md");
    let begun = page.split("<!-- written by `cargo xtask dialects` -->").nth(1);
    let table = begun.and_then(|it| it.split("<!-- end -->").next()).expect("a table");
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let rows: Vec<&str> = rows.skip_while(|name| *name == "file").collect();
    let files = FILES.iter().map(|(name, _)| *name);
    let given: Vec<&str> = files.chain(PROTOTYPES.iter().map(|(name, ..)| *name)).collect();
    assert_eq!(rows, given, "`cargo xtask dialects` writes the table");
}
