//! Writes every file that follows from the code: schemas, field reference, command reference, list of codes, manifests.

mod codes;
mod commands;
mod files;

fn main() -> anyhow::Result<()> {
    files::write()
}
