//! Adaptive requests against plain oracles that look at every second of a small plan.

mod moldable;
mod plain;
mod preemptive;
mod pricing;

use self::plain::Plain;
use scheduler::{Interval, SlotTree, Time};

/// A plan with some `(start, duration, nodes)` in use, in both forms; entries that do not fit are left out.
pub(crate) fn occupied(capacity: u32, busy: &[(i64, i64, u32)]) -> (SlotTree, Plain) {
    let (mut tree, mut plain) = (SlotTree::new(capacity), Plain::new(capacity));
    for (start, duration, nodes) in busy {
        if plain.fits(*start, *duration, *nodes) {
            plain.take(*start, *duration, *nodes);
            tree.reserve(Interval::of(Time(*start), *duration), *nodes)
                .expect("it fits");
        }
    }
    (tree, plain)
}
