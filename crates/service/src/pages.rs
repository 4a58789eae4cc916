//! The pages of a list: how long each is, and where the next begins.

use crate::error::{Error, Result};

/// The most rows of a page of any list: what waits behind it may be a hundred thousand.
const ROWS_MAX: u32 = 200;

/// The rows of a page: as many as are asked for, from 1 to [`ROWS_MAX`], or as usual.
///
/// # Errors
/// [`Error::Limit`] beyond these bounds.
pub(super) fn length_of_page(limit: Option<u32>, usual: u32) -> Result<u32> {
    let limit = limit.unwrap_or(usual);
    let is_right = (1..=ROWS_MAX).contains(&limit);
    is_right.then_some(limit).ok_or(Error::Limit(ROWS_MAX))
}

/// The first `limit` of the rows found, and the key after which the next page begins. One more row than that has been asked for,
/// and tells whether there is one.
pub(super) fn cut_page<T, K>(mut found: Vec<T>, limit: u32, key: impl Fn(&T) -> K) -> (Vec<T>, Option<K>) {
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let next = found.last().map(key).filter(|_| more);
    (found, next)
}
