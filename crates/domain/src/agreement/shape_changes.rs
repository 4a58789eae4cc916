//! The changes of its shape that an agreement leaves open while it waits: a term of it, which its party sees.

use scheduler::{Seconds, Time};
use serde::{Deserialize, Serialize};

/// The changes of its shape that an agreement leaves open while it waits. Its work, its deadline and its price stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShapeChanges {
    /// Whether it may get another of its sizes.
    pub sizes: bool,
    /// Whether its work may be cut in other pieces.
    pub cuts: bool,
    /// Until when, as seconds since the epoch; none for until its slot begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Seconds>,
}

impl ShapeChanges {
    /// Nothing may change.
    pub const NONE: Self = Self {
        sizes: false,
        cuts: false,
        until: None,
    };

    /// Whether something may change at an instant before its slot begins.
    pub fn is_open_at(&self, now: Time) -> bool {
        (self.sizes || self.cuts) && self.until.is_none_or(|until| now < Time(until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_changes_from_the_stated_instant_on() {
        let changes = ShapeChanges {
            until: Some(10),
            sizes: true,
            cuts: false,
        };
        assert_eq!([9, 10].map(|at| changes.is_open_at(Time(at))), [true, false]);
        assert!(!ShapeChanges::NONE.is_open_at(Time(0)));
    }
}
