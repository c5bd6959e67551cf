//! The job's name in a version: it must be part of every host's name.

use unisono_job::{MAX_LABEL, label_from};

use super::Writer;
use crate::kubernetes::{is_dns_1035_label, is_subdomain};

/// Room for `-worker-` and the digits of the largest count.
const HOST_ENDING: usize = "-worker-2147483647".len();

impl Writer<'_> {
    /// The name; where the version cannot have it, the nearest one, and a note.
    pub(super) fn name(&mut self) -> String {
        let name = self.job.name.as_str();
        // All members but the launcher become workers; without any the rule is that of one.
        let last = self.job.host_count().max(2) - 2;
        let fits = if self.is_v2() {
            is_dns_1035_label(&format!("{name}-worker-{last}"))
        } else {
            is_subdomain(name)
        };
        if fits {
            return name.to_owned();
        }
        let longest = MAX_LABEL - HOST_ENDING;
        let label = label_from(name, longest);
        let label = if is_dns_1035_label(&label) {
            label
        } else {
            label_from(&format!("job-{name}"), longest)
        };
        self.lost(
            format!(
                "`{}` cannot be part of host names; the job is called `{label}`",
                crate::clipped(name)
            ),
            "choose another name: a letter, then letters, digits and dashes",
        );
        label
    }
}
