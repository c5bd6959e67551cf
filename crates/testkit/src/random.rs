//! Numbers that look random and are the same for the same seed on every machine.

/// A stream of numbers (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 when that is 0.
    pub const fn below(&mut self, end: u64) -> u64 {
        if end == 0 { 0 } else { self.number() % end }
    }

    /// Whether one chance in `out_of` came up; never for 0.
    pub const fn one_in(&mut self, out_of: u64) -> bool {
        out_of != 0 && self.below(out_of) == 0
    }

    /// One of these.
    ///
    /// # Panics
    ///
    /// When there are none.
    pub fn pick<'item, T>(&mut self, items: &'item [T]) -> &'item T {
        let at = usize::try_from(self.below(items.len() as u64)).unwrap_or(0);
        &items[at]
    }

    /// Puts items into another order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            let other = usize::try_from(self.below(at as u64 + 1)).unwrap_or(0);
            items.swap(at, other);
        }
    }
}
