//! The demonstration: runs the small example of every system on isolated hosts and closes with a table.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

const COLUMNS: [&str; 6] = ["FILE", "SYSTEM", "HOSTS x SLOTS", "RANKS", "FIRST RANK", "EXIT"];

type Row = [String; 6];

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
    println!("{}", table(&rows));
    println!("Try it: target/release/unisono run FILE, with any of these files or your own.");
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
fn row(file: &str, plan: &Value, runs: &Value) -> Row {
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

/// The rows, each column as wide as its widest cell.
fn table(rows: &[Row]) -> String {
    let width = |at: usize| rows.iter().map(|row| row[at].len()).max().unwrap_or(0);
    let line = |row: &Row| {
        let cells = row.iter().enumerate();
        let cells = cells.map(|(at, cell)| format!("{cell:<wide$}", wide = width(at)));
        cells.collect::<Vec<String>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plan(slots: &[u64]) -> Value {
        let hosts: Vec<Value> = slots.iter().map(|slots| json!({"slots": slots})).collect();
        json!({"job": {"dialect": "kubeflow/v1"}, "hosts": hosts, "ranks": 4})
    }

    #[test]
    fn a_row_tells_of_the_plan_and_of_the_last_run() {
        let runs = json!({"runs": [{"exit": 1}, {"first_rank_ms": 493, "exit": 0}]});
        let told = |slots: &[u64]| row("a.yaml", &plan(slots), &runs);
        assert_eq!(told(&[0, 2, 2]), ["a.yaml", "kubeflow/v1", "2 x 2", "4", "493 ms", "0"]);
        assert_eq!(told(&[3, 1])[2], "3 + 1");
        assert_eq!(row("a", &plan(&[]), &json!({}))[4..], ["- ms", "-"]);
    }

    #[test]
    fn columns_line_up_and_no_line_ends_in_blanks() {
        let rows = [COLUMNS.map(str::to_owned), row("a.yaml", &plan(&[1]), &json!({}))];
        let expected = "FILE    SYSTEM       HOSTS x SLOTS  RANKS  FIRST RANK  EXIT\n\
                        a.yaml  kubeflow/v1  1 x 1          4      - ms        -\n";
        assert_eq!(table(&rows), expected);
    }
}
