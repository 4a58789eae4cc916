//! A set of resources by number, 64 to a word.

use std::ops::Range;

/// Words for this number of resources.
pub(super) fn words(resources: usize) -> usize {
    resources.div_ceil(64)
}

/// Sets or clears one bit.
pub(super) fn put(bits: &mut [u64], number: usize, present: bool) {
    let bit = 1 << (number % 64);
    if present {
        bits[number / 64] |= bit;
    } else {
        bits[number / 64] &= !bit;
    }
}

/// The first number in `range` of which `word` has the bit; `word(w)` gives the bits of numbers 64·w to 64·w + 63.
pub(super) fn first(range: Range<usize>, word: impl Fn(usize) -> u64) -> Option<usize> {
    let mut at = range.start;
    while at < range.end {
        let rest = word(at / 64) >> (at % 64);
        if rest != 0 {
            let found = at + rest.trailing_zeros() as usize;
            return (found < range.end).then_some(found);
        }
        at = (at / 64 + 1) * 64;
    }
    None
}

/// All numbers in `range` of which `word` has the bit.
pub(super) fn all(range: Range<usize>, word: impl Fn(usize) -> u64) -> impl Iterator<Item = usize> {
    let mut rest = range;
    std::iter::from_fn(move || {
        let found = first(rest.clone(), &word)?;
        rest.start = found + 1;
        Some(found)
    })
}

/// The bits of a set in `range`, and none outside.
pub(super) fn within(range: Range<usize>, bits: &[u64]) -> Vec<u64> {
    let below = |number: usize, word: usize| match number.saturating_sub(word * 64) {
        64.. => u64::MAX,
        some => (1 << some) - 1,
    };
    let words = bits.iter().enumerate();
    words
        .map(|(word, bits)| bits & below(range.end, word) & !below(range.start, word))
        .collect()
}
