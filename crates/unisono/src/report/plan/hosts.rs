//! The hosts of a plan as a table; many equal hosts take few rows.

use unisono_plan::{Argv, Host, Plan};

use crate::report::table::{Align, Table};

/// Runs of equal hosts up to this length are shown in full.
const SHOWN_HOSTS: usize = 8;

/// A host with the ranks it is expected to run.
struct Row<'plan> {
    host: &'plan Host,
    /// The first rank and how many follow, where they can be told.
    ranks: Option<(u64, u64)>,
}

pub(super) fn table(plan: &Plan) -> Table {
    let mut table = Table::new(&[
        ("HOST", Align::Left),
        ("GROUP", Align::Left),
        ("SLOTS", Align::Right),
        ("RANKS", Align::Left),
        ("RUNS", Align::Left),
    ]);
    let rows = rows(plan);
    let equal = |left: &Row<'_>, right: &Row<'_>| {
        let key = |row: &Row<'_>| (row.host.member.group, row.host.slots, row.host.runs.name());
        key(left) == key(right)
    };
    for run in rows.chunk_by(equal) {
        match run {
            [first, second, middle @ .., last] if run.len() > SHOWN_HOSTS => {
                add(&mut table, plan, first);
                add(&mut table, plan, second);
                table.row([format!("… {} more", middle.len())]);
                add(&mut table, plan, last);
            }
            all => all.iter().for_each(|row| add(&mut table, plan, row)),
        }
    }
    table
}

fn add(table: &mut Table, plan: &Plan, row: &Row<'_>) {
    table.row([
        row.host.name.clone(),
        plan.group_of(row.host).name.clone(),
        row.host.slots.to_string(),
        match row.ranks {
            None | Some((_, 0)) => "-".to_owned(),
            Some((first, 1)) => first.to_string(),
            Some((first, count)) => format!("{first}-{}", first + count - 1),
        },
        row.host.runs.name().to_owned(),
    ]);
}

/// Every host with its ranks: launchers fill the slots of one host after the other, unless they are told otherwise.
fn rows(plan: &Plan) -> Vec<Row<'_>> {
    let ranks = plan.ranks.map(u64::from).filter(|ranks| *ranks <= plan.slot_count());
    let ranks = ranks.filter(|_| fills_host_by_host(plan));
    let mut placed = 0;
    let rows = plan.hosts.iter().map(|host| {
        let ranks = ranks.map(|ranks| {
            let count = u64::from(host.slots).min(ranks - placed);
            let first = placed;
            placed += count;
            (first, count)
        });
        Row { host, ranks }
    });
    rows.collect()
}

fn fills_host_by_host(plan: &Plan) -> bool {
    const OTHERWISE: [&str; 6] = ["bynode", "by node", "ppr:", "-rr", "-ppn", "perhost"];
    plan.launch_host().is_some_and(|host| match &plan.program_of(host).argv {
        Argv::Words(words) => {
            let line = words.join(" ");
            !OTHERWISE.iter().any(|option| line.contains(option))
        }
        Argv::ImageEntry(_) | Argv::Nothing => false,
    })
}
