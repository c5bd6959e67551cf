//! The allocator for programs that are operators. What watches tell is read and thrown away all the time; the C library's own takes a
//! third of an operator's processor time for that, this one half as much.

pub use mimalloc::MiMalloc as Allocator;

/// Gives back what was freed. The allocator does so by and by while it is asked for more, which nobody does after a burst of work.
#[expect(
    unsafe_code,
    reason = "its library has no other name for it; it takes and returns nothing"
)]
pub(crate) fn give_back() {
    // SAFETY: it may be called at any time from any thread, and looks at no memory that is in use.
    unsafe { libmimalloc_sys::mi_collect(true) }
}
