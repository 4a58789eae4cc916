//! A set of resources by number, 64 to a word.

use std::cmp::Ordering;
use std::ops::Range;

/// Words for this number of resources.
pub(super) fn bit_words(resources: usize) -> usize {
    resources.div_ceil(64)
}

/// Sets or clears one bit.
pub(super) fn put_bit(bits: &mut [u64], number: usize, present: bool) {
    let bit = 1 << (number % 64);
    if present {
        bits[number / 64] |= bit;
    } else {
        bits[number / 64] &= !bit;
    }
}

/// A set with every number from `number` on one higher, and without `number`: room for one more.
pub(super) fn with_bit_inserted(bits: &[u64], number: usize, words: usize) -> impl Iterator<Item = u64> {
    let low = (1_u64 << (number % 64)) - 1;
    let word = move |at: usize| bits.get(at).copied().unwrap_or(0);
    (0..words).map(move |at| {
        let carried = at.checked_sub(1).map_or(0, |before| word(before) >> 63);
        match at.cmp(&(number / 64)) {
            Ordering::Less => word(at),
            Ordering::Equal => (word(at) & low) | ((word(at) & !low) << 1),
            Ordering::Greater => (word(at) << 1) | carried,
        }
    })
}

/// A set without `number`, and with every higher number one lower.
pub(super) fn with_bit_removed(bits: &[u64], number: usize, words: usize) -> impl Iterator<Item = u64> {
    let low = (1_u64 << (number % 64)) - 1;
    let word = move |at: usize| bits.get(at).copied().unwrap_or(0);
    (0..words).map(move |at| {
        let shifted = (word(at) >> 1) | (word(at + 1) << 63);
        match at.cmp(&(number / 64)) {
            Ordering::Less => word(at),
            Ordering::Equal => (word(at) & low) | (shifted & !low),
            Ordering::Greater => shifted,
        }
    })
}

/// The first number in `range` of which `word` has the bit; `word(w)` gives the bits of numbers 64·w to 64·w + 63.
pub(super) fn first_bit(range: Range<usize>, word: impl Fn(usize) -> u64) -> Option<usize> {
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
pub(super) fn all_bits(range: Range<usize>, word: impl Fn(usize) -> u64) -> impl Iterator<Item = usize> {
    let mut rest = range;
    std::iter::from_fn(move || {
        let found = first_bit(rest.clone(), &word)?;
        rest.start = found + 1;
        Some(found)
    })
}

/// The bits of a set in `range`, and none outside.
pub(super) fn bits_within(range: Range<usize>, bits: &[u64]) -> Vec<u64> {
    let below = |number: usize, word: usize| match number.saturating_sub(word * 64) {
        64.. => u64::MAX,
        some => (1 << some) - 1,
    };
    let words = bits.iter().enumerate();
    words
        .map(|(word, bits)| bits & below(range.end, word) & !below(range.start, word))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{all_bits, bit_words, put_bit, with_bit_inserted, with_bit_removed};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn room_is_made_and_taken_back_at_any_number(
            set in prop::collection::btree_set(0_usize..200, 0..60),
            count in 200_usize..260,
            number in 0_usize..200,
        ) {
            let mut bits = vec![0; bit_words(count)];
            for one in &set {
                put_bit(&mut bits, *one, true);
            }
            let numbers = |bits: &[u64], count| all_bits(0..count, |w| bits[w]).collect::<BTreeSet<_>>();
            let wide: Vec<u64> = with_bit_inserted(&bits, number, bit_words(count + 1)).collect();
            let higher = set.iter().map(|one| one + usize::from(*one >= number)).collect();
            prop_assert_eq!(numbers(&wide, count + 1), higher);
            prop_assert_eq!(with_bit_removed(&wide, number, bit_words(count)).collect::<Vec<_>>(), bits.clone());
            let lower = set.iter().filter(|one| **one != number);
            let lower = lower.map(|one| one - usize::from(*one > number)).collect();
            let narrow: Vec<u64> = with_bit_removed(&bits, number, bit_words(count - 1)).collect();
            prop_assert_eq!(numbers(&narrow, count - 1), lower);
        }
    }
}
