//! Whether ranks ran where they were planned: how many ranks were seen on each host enters, what is odd about it leaves.

use std::collections::BTreeMap;

use crate::Plan;

/// What is odd about where ranks ran, as a sentence; nothing when they ran as planned, as far as anybody can tell.
pub fn odd(plan: &Plan, ran: &BTreeMap<&str, u32>) -> Option<String> {
    let seen: u32 = ran.values().sum();
    // A rank that nobody saw could be anywhere, so only a full count can be judged; where nobody knows how many there are to
    // be, every rank that was seen counts.
    let may_judge = seen > 0 && plan.ranks.is_none_or(|ranks| ranks == seen);
    if !may_judge || plan.slot_count() == 0 {
        return None;
    }
    let on = |name: &str| ran.get(name).copied().unwrap_or(0);
    // More ranks than slots must share some, as their launcher likes; but none of them belongs to a host without any.
    let is_crowded = plan.slot_count() < u64::from(seen);
    let is_over = |slots: u32, ranks: u32| ranks > slots && (slots == 0 || !is_crowded);
    let over = plan.hosts.iter().filter(|host| is_over(host.slots, on(&host.name)));
    let mut told: Vec<String> = over
        .map(|host| {
            let slots = if host.slots == 1 { "1 slot" } else { &format!("{} slots", host.slots) };
            format!("{} ran {} of {seen} ranks but has {slots}", host.name, on(&host.name))
        })
        .collect();
    if told.is_empty() && (plan.ranks.is_some() || is_crowded) {
        return None;
    }
    let mut idle = plan.hosts.iter().filter(|host| host.slots > 0 && on(&host.name) == 0);
    if let Some(first) = idle.next() {
        let others = match idle.count() {
            0 => String::new(),
            1 => " and 1 other".to_owned(),
            more => format!(" and {more} others"),
        };
        told.push(format!("{}{others} ran none", first.name));
    }
    (!told.is_empty()).then(|| told.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EngineKind;
    use crate::sample::plan;

    /// What is odd when so many ranks ran on the launcher and on each worker.
    fn told(on_launcher: u32, on_workers: [u32; 2]) -> Option<String> {
        let plan = plan(EngineKind::Kubernetes, |_| {});
        let names: Vec<&str> = plan.hosts.iter().map(|host| host.name.as_str()).collect();
        let counts = [on_launcher, on_workers[0], on_workers[1]];
        odd(&plan, &names.into_iter().zip(counts).filter(|(_, count)| *count > 0).collect())
    }

    #[test]
    fn ranks_that_stayed_with_their_launcher_are_told() {
        assert_eq!(
            told(2, [0, 0]).as_deref(),
            Some(
                "sample-run-0 ran 2 of 2 ranks but has 0 slots; sample-work-0 and 1 other ran none"
            )
        );
        assert_eq!(
            told(0, [2, 0]).as_deref(),
            Some("sample-work-0 ran 2 of 2 ranks but has 1 slot; sample-work-1 ran none")
        );
    }

    #[test]
    fn where_nobody_knows_how_many_ranks_there_are_a_host_without_any_is_told() {
        let mut plan = plan(EngineKind::Kubernetes, |_| {});
        plan.ranks = None;
        let told = |ran: &[(&'static str, u32)]| odd(&plan, &ran.iter().copied().collect());
        assert_eq!(told(&[("sample-work-0", 1)]).as_deref(), Some("sample-work-1 ran none"));
        assert_eq!(told(&[("sample-work-0", 1), ("sample-work-1", 1)]), None);
        assert_eq!(told(&[]), None, "nothing is known");
    }

    #[test]
    fn ranks_beyond_all_slots_may_share_them_but_not_a_host_without_any() {
        let mut plan = plan(EngineKind::Kubernetes, |_| {});
        plan.ranks = Some(4);
        let told = |ran: &[(&'static str, u32)]| odd(&plan, &ran.iter().copied().collect());
        assert_eq!(
            told(&[("sample-run-0", 4)]).as_deref(),
            Some(
                "sample-run-0 ran 4 of 4 ranks but has 0 slots; sample-work-0 and 1 other ran none"
            )
        );
        assert_eq!(told(&[("sample-work-0", 3), ("sample-work-1", 1)]), None);
        assert_eq!(told(&[("sample-work-0", 4)]), None);
    }

    #[test]
    fn where_no_host_has_slots_ranks_are_nowhere_odd() {
        let mut plan = plan(EngineKind::Kubernetes, |_| {});
        plan.hosts.iter_mut().for_each(|host| host.slots = 0);
        assert_eq!(odd(&plan, &[("sample-run-0", 2)].into()), None);
    }

    #[test]
    fn ranks_where_they_belong_and_counts_that_are_not_full_say_nothing() {
        assert_eq!(told(0, [1, 1]), None);
        assert_eq!(told(1, [0, 0]), None);
    }
}
