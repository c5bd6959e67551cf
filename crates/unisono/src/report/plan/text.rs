//! A plan for people: who, where, what, with what.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use unisono_job::{Flavour, MpiFrom, quote};
use unisono_plan::view::hostfile;
use unisono_plan::{Argv, Plan, View};

use crate::report::plan::{hosts, rules};
use crate::report::table::{aligned, counted};

/// Longer host files are shown by their beginning and end.
const SHOWN_LINES: usize = 8;

pub(super) fn of(plan: &Plan) -> String {
    let mut text = heading(plan);
    section(&mut text, "Hosts", &hosts::table(plan).rendered("  "));
    if let Some(launch) = launch(plan) {
        section(&mut text, &launch.0, &launch.1);
    }
    for (group, command) in own_commands(plan) {
        section(&mut text, &format!("Command of each {group}"), &indented(&command));
    }
    let hostfile = hostfile(plan);
    if !hostfile.is_empty() {
        section(&mut text, "Host file", &indented(&shortened(&hostfile)));
    }
    section(&mut text, "Rules", &aligned(&rules::of(&plan.job), "  "));
    let added = View::of(plan).launch.map(|launch| launch.env).unwrap_or_default();
    if !added.is_empty() {
        let lines: Vec<(String, String)> = added.into_iter().collect();
        section(&mut text, "Environment that Unisono adds", &aligned(&lines, "  "));
    }
    text
}

fn heading(plan: &Plan) -> String {
    let bold = Style::new().bold();
    let job = &plan.job;
    let ranks = match plan.ranks {
        Some(ranks) => counted(ranks, "rank"),
        None => "ranks not known".to_owned(),
    };
    let counts =
        [counted(plan.hosts.len(), "host"), counted(plan.slot_count(), "slot"), ranks].join(", ");
    let flavour = job.mpi.flavour.map_or("any MPI", Flavour::name);
    let from = match job.mpi.from {
        MpiFrom::Stated => " (stated)",
        MpiFrom::LaunchLine => " (by the launch line)",
        MpiFrom::Default | MpiFrom::Unknown => "",
    };
    format!("{bold}{}{bold:#}  {}: {counts}, {flavour}{from}\n", job.name, job.dialect)
}

fn section(text: &mut String, title: &str, body: &str) {
    let style = Style::new().bold().fg_color(Some(AnsiColor::Cyan.into()));
    // Writing to a String cannot fail.
    let _written = write!(text, "\n{style}{title}{style:#}\n{body}");
}

fn launch(plan: &Plan) -> Option<(String, String)> {
    let host = plan.launch_host()?;
    let line = match &plan.program_of(host).argv {
        Argv::Words(words) => quote(&plan.shown(words)),
        Argv::ImageEntry(words) if words.is_empty() => "(what the image runs)".to_owned(),
        Argv::ImageEntry(words) => {
            format!("(the image's entry point) {}", quote(&plan.shown(words)))
        }
        Argv::Nothing => return None,
    };
    Some((format!("Launch line, on {}", host.name), indented(&line)))
}

/// Groups whose members run something of their own, other than the launch line.
fn own_commands(plan: &Plan) -> Vec<(&str, String)> {
    let groups = (0..).zip(&plan.job.groups);
    let own = groups.filter_map(|(at, group)| {
        let host =
            plan.hosts_of_group(at).iter().find(|host| Some(host.member) != plan.launch_on)?;
        match &plan.program_of(host).argv {
            Argv::Words(words) => Some((group.name.as_str(), quote(&plan.shown(words)))),
            Argv::ImageEntry(_) | Argv::Nothing => None,
        }
    });
    own.collect()
}

fn indented(text: &str) -> String {
    text.lines().fold(String::new(), |mut block, line| {
        block.extend(["  ", line, "\n"]);
        block
    })
}

fn shortened(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    match lines.as_slice() {
        [first, second, middle @ .., last] if lines.len() > SHOWN_LINES => {
            format!("{first}\n{second}\n… {} more lines\n{last}\n", middle.len())
        }
        _ => text.to_owned(),
    }
}
