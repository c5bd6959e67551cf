//! The demonstration: runs the small example of every system on isolated hosts and closes with a table.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

const COLUMNS: [&str; 6] = ["FILE", "SYSTEM", "HOSTS x SLOTS", "RANKS", "FIRST RANK", "EXIT"];

#[expect(clippy::print_stdout, reason = "a demonstration is there to be seen")]
pub(crate) fn run() -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let program = root.join("target/release/unisono");
    let state = tempfile::tempdir().context("make a folder for the runs")?;
    let unisono = || {
        let mut command = Command::new(&program);
        command.current_dir(&root).env("XDG_STATE_HOME", state.path());
        command
    };
    let mut rows = vec![COLUMNS.map(str::to_owned)];
    for example in examples(&root)? {
        let shown = example.strip_prefix(&root).unwrap_or(&example).display().to_string();
        println!("$ unisono run {shown}");
        let status = unisono().args(["run", &shown]).status();
        let status = status.with_context(|| format!("run {}", program.display()))?;
        println!();
        if !status.success() {
            bail!("{shown} ended with {status}");
        }
        let plan = json(unisono().args(["plan", "--output", "json", &shown]))?;
        let runs = json(unisono().args(["list", "--output", "json"]))?;
        rows.push(row(&shown, &plan, &runs));
    }
    print_table(&rows);
    println!("\nTry it: target/release/unisono run FILE, with any of these files or your own.");
    Ok(())
}

/// One file per system, in order of their names.
fn examples(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(root.join("examples/small")).context("list the examples")?;
    let mut files: Vec<PathBuf> = entries.filter_map(|it| Some(it.ok()?.path())).collect();
    files.sort();
    Ok(files)
}

fn json(command: &mut Command) -> anyhow::Result<Value> {
    let output = command.output().context("run unisono")?;
    serde_json::from_slice(&output.stdout).context("read what unisono prints")
}

/// What the plan and the last run tell about one file.
fn row(file: &str, plan: &Value, runs: &Value) -> [String; 6] {
    let hosts = plan["hosts"].as_array().map_or(&[][..], Vec::as_slice);
    let slots: Vec<u64> =
        hosts.iter().filter_map(|host| host["slots"].as_u64()).filter(|it| *it > 0).collect();
    let even = slots.iter().all(|count| Some(count) == slots.first());
    let shape = match slots.first() {
        Some(count) if even => format!("{} x {count}", slots.len()),
        Some(_) | None => slots.iter().map(u64::to_string).collect::<Vec<_>>().join(" + "),
    };
    let last = runs["runs"].as_array().and_then(|runs| runs.last()).unwrap_or(&Value::Null);
    let number = |value: &Value| value.as_i64().map_or_else(|| "-".to_owned(), |it| it.to_string());
    [
        file.to_owned(),
        plan["job"]["dialect"].as_str().unwrap_or("-").to_owned(),
        shape,
        number(&plan["ranks"]),
        format!("{} ms", number(&last["first_rank_ms"])),
        number(&last["exit"]),
    ]
}

#[expect(clippy::print_stdout, reason = "a demonstration is there to be seen")]
fn print_table(rows: &[[String; 6]]) {
    let width = |at: usize| rows.iter().map(|row| row[at].len()).max().unwrap_or(0);
    for row in rows {
        let cells: Vec<String> = row
            .iter()
            .enumerate()
            .map(|(at, cell)| format!("{cell:<wide$}", wide = width(at)))
            .collect();
        println!("{}", cells.join("  ").trim_end());
    }
}
