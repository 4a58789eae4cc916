//! The characters that an argument may have.

use std::fmt;
use std::ops::RangeInclusive;

/// Characters that a text may hold, written as in a bracket expression: `a-zA-Z0-9_.`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CharacterSet(Vec<RangeInclusive<char>>);

impl CharacterSet {
    /// Reads a bracket expression: characters and ranges; `-` is itself at either end.
    pub(super) fn read(text: &str) -> Option<Self> {
        let characters: Vec<char> = text.chars().collect();
        let mut ranges = Vec::new();
        let mut rest = characters.as_slice();
        loop {
            rest = match *rest {
                [] => break,
                [first, '-', last, ref rest @ ..] => {
                    ranges.push(first..=last);
                    rest
                }
                [one, ref rest @ ..] => {
                    ranges.push(one..=one);
                    rest
                }
            };
        }
        let sound = !ranges.is_empty() && ranges.iter().all(|range| !range.is_empty());
        sound.then_some(Self(ranges))
    }

    pub(super) fn contains(&self, character: char) -> bool {
        self.0.iter().any(|range| range.contains(&character))
    }
}

impl fmt::Display for CharacterSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|range| match (range.start(), range.end()) {
                (start, end) if start == end => write!(f, "{start}"),
                (start, end) => write!(f, "{start}-{end}"),
            })
    }
}
