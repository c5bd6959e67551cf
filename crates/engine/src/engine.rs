//! The engine: three acts, each a translation.
//!
//! The acts are futures, because one engine waits for a cluster's API and must not block a thread for it. An engine that
//! blocks, as the one on this machine does, returns futures that are ready at once and is driven by
//! [`now_or_never`](crate::now_or_never), without any runtime. So there is one trait and one [`tick`](crate::tick()), and
//! this crate depends on no runtime.

use std::future::Future;

use unisono_plan::{Next, Observed, Plan, Want, Why};

/// Something that can carry plans out.
pub trait Engine: Send {
    /// Why an act failed. The next tick tries again.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Looks at everything that belongs to the job, older tries included.
    fn observe(
        &mut self,
        plan: &Plan,
    ) -> impl Future<Output = Result<Observed, Self::Error>> + Send;

    /// Whether what is written down says already why the job waits. Engines that keep no such record have nothing to add.
    fn has_told(&self, _why: &[Why]) -> bool {
        true
    }

    /// Writes the status down, unless somebody else has written a newer one since it was read.
    fn record(
        &mut self,
        plan: &Plan,
        next: &Next,
    ) -> impl Future<Output = Result<Recorded, Self::Error>> + Send;

    /// Does what is wanted. Must be safe to repeat: what is already so is left so, an incarnation that has ended is not
    /// started again, and a place that is still taken by an older incarnation is not taken over.
    fn apply(
        &mut self,
        plan: &Plan,
        want: &Want,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// Whether a status was written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// It was.
    Written,
    /// It was not: what it was made from is out of date.
    Outdated,
}
