//! Runs futures that never wait.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// The result of a future that is ready at once, as those of blocking engines are; none when it would wait.
pub fn now_or_never<F: Future>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_future_that_waits_has_no_result_now() {
        assert_eq!(now_or_never(async { 3 }), Some(3));
        assert_eq!(now_or_never(std::future::pending::<u8>()), None);
    }
}
