//! The demonstration: plans the small example of every system and closes with a table.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

#[expect(clippy::print_stdout, reason = "a demonstration is there to be seen")]
pub(crate) fn run() -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let program = root.join("target/release/unisono");
    let mut rows =
        vec![["FILE", "DIALECT", "HOSTS", "SLOTS", "RANKS", "LAUNCHES ON"].map(str::to_owned)];
    for example in examples(&root)? {
        let shown = example.strip_prefix(&root).unwrap_or(&example).display().to_string();
        println!("$ unisono plan {shown}\n");
        let status = Command::new(&program)
            .args(["plan", &shown])
            .current_dir(&root)
            .status()
            .with_context(|| format!("run {}", program.display()))?;
        if !status.success() {
            bail!("{shown} cannot be planned");
        }
        println!();
        rows.push(row(&program, &root, &shown)?);
    }
    print_table(&rows);
    println!("\nTry it: target/release/unisono plan FILE, with any of these files or your own.");
    Ok(())
}

/// One file per system, in order of their names.
fn examples(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let folder = root.join("examples/small");
    let entries = std::fs::read_dir(&folder).context("list the examples")?;
    let mut files: Vec<PathBuf> = entries.filter_map(|it| Some(it.ok()?.path())).collect();
    files.sort();
    Ok(files)
}

fn row(program: &Path, root: &Path, example: &str) -> anyhow::Result<[String; 6]> {
    let output = Command::new(program)
        .args(["plan", "--output", "json", example])
        .current_dir(root)
        .output()
        .context("plan as JSON")?;
    let plan: Value = serde_json::from_slice(&output.stdout).context("read the plan")?;
    let hosts = plan["hosts"].as_array().map_or(&[][..], Vec::as_slice);
    let slots: u64 = hosts.iter().filter_map(|host| host["slots"].as_u64()).sum();
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    Ok([
        example.to_owned(),
        text(&plan["job"]["dialect"]),
        hosts.len().to_string(),
        slots.to_string(),
        plan["ranks"].as_u64().map_or_else(|| "-".to_owned(), |ranks| ranks.to_string()),
        text(&plan["launch"]["on"]),
    ])
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
