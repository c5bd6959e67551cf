//! Medians and Markdown tables.

use std::time::Duration;

/// The middle of several figures.
pub(crate) fn median<T: Copy + PartialOrd>(figures: &[T]) -> T {
    let mut sorted = figures.to_vec();
    sorted.sort_by(|one, other| one.partial_cmp(other).expect("no figure is NaN"));
    sorted[sorted.len() / 2]
}

pub(crate) fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}

#[expect(clippy::print_stdout, reason = "the tables are what a benchmark is for")]
pub(crate) fn table(title: &str, heads: &[&str], rows: &[Vec<String>]) {
    println!("\n## {title}\n");
    println!("| {} |", heads.join(" | "));
    println!("|{}", "---|".repeat(heads.len()));
    for row in rows {
        println!("| {} |", row.join(" | "));
    }
}
