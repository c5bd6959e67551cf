//! What every engine offers, and the loop that drives it.
