//! The neutral job: groups of members, what each runs, and the rules of its life.
