//! What a member may use of a machine's processors and memory.

use unisono_job::{Dialect, Group, Job};

/// Limits on one member; absent: as much as there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Thousandths of a processor.
    pub cpu_millis: Option<u64>,
    /// Bytes of memory.
    pub memory_bytes: Option<u64>,
}

impl Limits {
    /// The limits that a file states for the members of a group.
    ///
    /// OpenPAI's version 1 fills in one processor and 100 MB for whoever says nothing. That is no statement of the file's, and
    /// would end most programs that its own machines, with limits on other things, let run.
    pub fn of(job: &Job, group: &Group) -> Self {
        let is_stated = |name: &str| {
            let key = format!("{}.{name}", group.name);
            job.dialect != Dialect::OpenPaiV1 || job.origins.of(&key).is_some()
        };
        let limit = |name: &str| group.resources.limits.get(name).filter(|_| is_stated(name));
        Self {
            cpu_millis: limit("cpu").map(|it| it.milli()).filter(|it| *it > 0),
            memory_bytes: limit("memory").map(|it| it.whole()).filter(|it| *it > 0),
        }
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.cpu_millis.is_none() && self.memory_bytes.is_none()
    }
}

#[cfg(test)]
mod tests {
    use unisono_job::{Place, Quantity};

    use super::*;
    use crate::EngineKind;
    use crate::sample;

    #[test]
    fn stated_limits_count_and_filled_in_ones_do_not() {
        let mut plan = sample::plan(EngineKind::Local, |job| {
            let limits = &mut job.groups[1].resources.limits;
            limits.insert("cpu".to_owned(), Quantity::parse("1500m").unwrap());
            limits.insert("memory".to_owned(), Quantity::parse("64Mi").unwrap());
        });
        let of = |job: &Job| Limits::of(job, &job.groups[1]);
        let both = Limits { cpu_millis: Some(1500), memory_bytes: Some(64 << 20) };
        assert_eq!(of(&plan.job), both);
        assert!(Limits::of(&plan.job, &plan.job.groups[0]).is_empty());
        plan.job.dialect = Dialect::OpenPaiV1;
        assert!(of(&plan.job).is_empty());
        plan.job.origins.set("work.memory", Place { path: String::new(), span: None });
        assert_eq!(of(&plan.job), Limits { cpu_millis: None, ..both });
    }
}
