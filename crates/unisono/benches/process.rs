//! How long `unisono plan` takes as a process: every example, and one job from 10 to 100,000 hosts.
//!
//! Prints a table. Each number is the least of several runs: a machine that does other things can only make a run slower.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const HOSTS: [u32; 5] = [10, 100, 1_000, 10_000, 100_000];

#[expect(clippy::print_stdout, reason = "the table is what the measurement is for")]
fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut table = "| what | least time | per host |\n|---|---|---|\n".to_owned();
    for example in examples(&root) {
        let shown = example.strip_prefix(&root).unwrap_or(&example).display().to_string();
        let least = least(&root, &[&shown], 30);
        row(&mut table, &format!("`unisono plan {shown}`"), least, None);
    }
    for hosts in HOSTS {
        let count = hosts.to_string();
        let arguments = ["examples/small/kubeflow.yaml", "--output", "json", "--hosts", &count];
        let least = least(&root, &arguments, if hosts > 10_000 { 5 } else { 15 });
        row(&mut table, &format!("{hosts} hosts, `--output json`"), least, Some(hosts));
    }
    println!("{table}");
}

fn examples(root: &Path) -> Vec<PathBuf> {
    let folders = ["examples/small", "examples/real"].map(|it| root.join(it));
    let entries = folders.iter().filter_map(|it| std::fs::read_dir(it).ok()).flatten();
    let mut files: Vec<PathBuf> = entries.filter_map(|it| Some(it.ok()?.path())).collect();
    files.sort();
    files
}

fn least(root: &Path, arguments: &[&str], runs: u32) -> Duration {
    let once = || {
        let started = Instant::now();
        let status = Command::new(env!("CARGO_BIN_EXE_unisono"))
            .arg("plan")
            .args(arguments)
            .current_dir(root)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .expect("the program starts");
        assert!(status.success(), "{arguments:?} cannot be planned");
        started.elapsed()
    };
    (0..runs).map(|_| once()).min().unwrap_or_default()
}

fn row(table: &mut String, what: &str, least: Duration, hosts: Option<u32>) {
    let milliseconds = least.as_secs_f64() * 1e3;
    let each = hosts.map_or("–".to_owned(), |hosts| {
        format!("{:.2} µs", least.as_secs_f64() * 1e6 / f64::from(hosts))
    });
    // Writing to a String cannot fail.
    let _written = writeln!(table, "| {what} | {milliseconds:.2} ms | {each} |");
}
