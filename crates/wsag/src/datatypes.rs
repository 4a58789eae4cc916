//! The simple types of XML Schema that values and constraints need, by their exact lexical forms.

use std::cmp::Ordering;

/// xs:integer, as far as 64 bits carry.
pub(crate) fn integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// xs:double: Rust takes `inf`, `infinity` and `nan` too, and XML Schema writes them otherwise.
pub(crate) fn double(text: &str) -> Option<f64> {
    match text {
        "INF" => return Some(f64::INFINITY),
        "-INF" => return Some(f64::NEG_INFINITY),
        "NaN" => return Some(f64::NAN),
        _ => {}
    }
    let allowed = |b: u8| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E');
    if !text.bytes().all(allowed) {
        return None;
    }
    text.parse().ok()
}

/// xs:decimal, of any length, compared exactly: sign, then digits before and after the point without the zeros
/// that do not count.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Decimal {
    negative: bool,
    whole: String,
    fraction: String,
}

impl Decimal {
    pub(crate) fn parse(text: &str) -> Option<Decimal> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let numeric = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        if whole.len() + fraction.len() == 0 || !numeric(whole) || !numeric(fraction) {
            return None;
        }
        let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
        let zero = whole.is_empty() && fraction.is_empty();
        Some(Decimal {
            negative: negative && !zero,
            whole: whole.to_owned(),
            fraction: fraction.to_owned(),
        })
    }

    /// Digits that count, at least one.
    pub(crate) fn total_digits(&self) -> usize {
        let leading = if self.whole.is_empty() {
            self.fraction.trim_start_matches('0').len()
        } else {
            0
        };
        if self.whole.is_empty() {
            leading.max(1)
        } else {
            self.whole.len() + self.fraction.len()
        }
    }

    /// Digits after the point that count.
    pub(crate) fn fraction_digits(&self) -> usize {
        self.fraction.len()
    }

    /// Millionths, if it has no finer part and fits.
    pub(crate) fn micros(&self) -> Option<i64> {
        if self.fraction.len() > 6 || self.whole.len() > 12 {
            return None;
        }
        let value: i64 = format!("{}{:0<6}", self.whole, self.fraction).parse().ok()?;
        Some(if self.negative { -value } else { value })
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        let magnitude = |one: &Decimal, two: &Decimal| {
            let whole = one
                .whole
                .len()
                .cmp(&two.whole.len())
                .then_with(|| one.whole.cmp(&two.whole));
            // Without trailing zeros, the order of fractions is that of their texts.
            whole.then_with(|| one.fraction.cmp(&two.fraction))
        };
        match (self.negative, other.negative) {
            (false, false) => magnitude(self, other),
            (true, true) => magnitude(other, self),
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
        }
    }
}
