//! Numbers that only look random: the same for the same seed, on every machine.

/// Marsaglia's xorshift.
pub(crate) struct Random(u64);

impl Random {
    /// The sequence of a seed. Seeds that are near each other are spread, as the sequence alone would take long to.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number from 0 to `bound - 1`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % bound as u64).expect("below a usize")
    }

    /// The same, for lengths of time.
    pub(crate) fn seconds(&mut self, bound: usize) -> i64 {
        i64::try_from(self.below(bound)).expect("a bound that a test writes down")
    }

    /// One of several; none of none.
    pub(crate) fn choose<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        if choices.is_empty() {
            None
        } else {
            choices.get(self.below(choices.len()))
        }
    }
}
