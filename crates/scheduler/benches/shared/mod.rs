//! Parts that the benchmarks share.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of a clock.
pub(crate) fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    (time.tv_sec * 1_000_000_000 + time.tv_nsec).cast_unsigned()
}

/// Nanoseconds of processor time of this thread.
pub(crate) fn cpu_ns() -> u64 {
    nanoseconds(ClockId::ThreadCPUTime)
}

/// A small generator of well-mixed numbers (splitmix64).
pub(crate) struct Mix(pub(crate) u64);

impl Mix {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Below `bound`, which is at least 1.
    pub(crate) fn below(&mut self, bound: i64) -> i64 {
        let product = u128::from(self.next()) * u128::from(bound.cast_unsigned());
        i64::try_from(product >> 64).expect("below an i64")
    }
}
