//! How many files may be open at once: a run holds some for each host, so it takes what it may have; commands get what the user has.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lets this process have as many files open as it may. What leaves is how many it could have open before, if that was fewer.
pub fn raise() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let before = limit.current.filter(|_| limit.current != limit.maximum)?;
    // Where this is refused, fewer hosts fit, and the one that does not says so.
    setrlimit(Resource::Nofile, most).is_ok().then_some(before)
}

/// Gives this process, and what it becomes, the limit that [`raise`] found.
pub(crate) fn lower(before: u64) -> rustix::io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(before), ..limit })
}
