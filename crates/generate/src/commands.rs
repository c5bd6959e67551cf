//! The command reference: every command's long help, as one page.

use std::fmt::Write;

pub(crate) fn page() -> String {
    let mut page = "# Commands\n\nWritten by `cargo xtask generate` from the program's own help. \
         Exit codes: [exit-codes.md](exit-codes.md).\n"
        .to_owned();
    let mut command = unisono::command().term_width(100).disable_colored_help(true);
    command.build();
    section(&mut command, &mut page);
    page
}

fn section(command: &mut clap::Command, page: &mut String) {
    let name = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    // Writing to a String cannot fail.
    let _written = write!(page, "\n## {name}\n\n```text\n{}\n```\n", lines.join("\n").trim_end());
    for inner in command.get_subcommands_mut() {
        section(inner, page);
    }
}
