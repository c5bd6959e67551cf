//! Tables for people: cells enter, aligned columns leave.

use std::fmt::{self, Write};

use anstyle::Style;

/// How a column is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// A table with a heading.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table of these columns.
    pub(crate) fn new(columns: &[(&'static str, Align)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row, one cell a column.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The table as text, each line after `indent`.
    pub(crate) fn rendered(&self, indent: &str) -> String {
        let widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(at, (title, _))| {
                let cells = self.rows.iter().filter_map(|row| row.get(at)).map(|it| width(it));
                cells.chain([width(title)]).max().unwrap_or(0)
            })
            .collect();
        let heading = Style::new().dimmed();
        let titles: Vec<String> = self.columns.iter().map(|(it, _)| (*it).to_owned()).collect();
        let mut text = format!("{indent}{heading}{}{heading:#}\n", self.line(&titles, &widths));
        for row in &self.rows {
            // Writing to a String cannot fail.
            let _written = writeln!(text, "{indent}{}", self.line(row, &widths));
        }
        text
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        for ((cell, (_, align)), wide) in cells.iter().zip(&self.columns).zip(widths) {
            let blanks = " ".repeat(wide.saturating_sub(width(cell)));
            match align {
                Align::Left => line.extend([cell.as_str(), &blanks, "  "]),
                Align::Right => line.extend([blanks.as_str(), cell, "  "]),
            }
        }
        line.trim_end().to_owned()
    }
}

fn width(cell: &str) -> usize {
    cell.chars().count()
}

/// Names and values in two columns without a heading, each line after `indent`.
pub(crate) fn aligned(pairs: &[(String, String)], indent: &str) -> String {
    let widest = pairs.iter().map(|(name, _)| width(name)).max().unwrap_or(0);
    let mut text = String::new();
    for (name, value) in pairs {
        let blanks = " ".repeat(widest - width(name));
        // Writing to a String cannot fail.
        let _written = writeln!(text, "{indent}{name}{blanks}  {value}");
    }
    text
}

/// A count with its noun: `1 job`, `2 jobs`.
pub(crate) fn counted<N: fmt::Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    if count == N::from(1) { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_no_line_ends_in_blanks() {
        let mut table =
            Table::new(&[("HOST", Align::Left), ("SLOTS", Align::Right), ("X", Align::Left)]);
        table.row(["a".to_owned(), "12".to_owned(), String::new()]);
        table.row(["über-1".to_owned(), "3".to_owned(), "y".to_owned()]);
        let plain = anstream::adapter::strip_str(&table.rendered(" ")).to_string();
        assert_eq!(plain, " HOST    SLOTS  X\n a          12\n über-1      3  y\n");
    }
}
