//! The simple types of XML Schema that values and constraints need, by their exact lexical forms.

use std::borrow::Cow;
use std::cmp::Ordering;

/// White space of XML.
pub(crate) const SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

/// White space collapsed as XML Schema defines it.
pub(crate) fn collapse_space(text: &str) -> Cow<'_, str> {
    let trimmed = text.trim_matches(SPACE);
    if !trimmed.contains(['\t', '\n', '\r']) && !trimmed.contains("  ") {
        return Cow::Borrowed(trimmed);
    }
    let words: Vec<&str> = trimmed.split(SPACE).filter(|word| !word.is_empty()).collect();
    Cow::Owned(words.join(" "))
}

/// White space kept, as XML Schema defines it for strings.
pub(crate) fn preserve_space(text: &str) -> Cow<'_, str> {
    Cow::Borrowed(text)
}

/// White space replaced by spaces as XML Schema defines it for normalizedString.
pub(crate) fn replace_space(text: &str) -> Cow<'_, str> {
    if !text.contains(['\t', '\n', '\r']) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace(['\t', '\n', '\r'], " "))
}

/// xs:integer, as far as 64 bits carry.
pub(crate) fn parse_integer(text: &str) -> Result<i64, &'static str> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let value = text.parse().ok();
    let value = value.filter(|_| digits.bytes().all(|b| b.is_ascii_digit()));
    value.ok_or("a whole number is expected")
}

/// xs:int.
pub(crate) fn parse_int(text: &str) -> Result<i32, &'static str> {
    let value = parse_integer(text)?;
    value
        .try_into()
        .map_err(|_| "a whole number of 32 bits is expected")
}

/// xs:nonNegativeInteger, as far as the positive half of 64 bits carries.
pub(crate) fn parse_non_negative_i64(text: &str) -> Result<i64, &'static str> {
    let value = parse_non_negative_integer(text)?;
    Ok(value.try_into().unwrap_or(i64::MAX))
}

/// xs:double: Rust takes `inf`, `infinity` and `nan` too, and XML Schema writes them otherwise.
pub(crate) fn parse_double(text: &str) -> Result<f64, &'static str> {
    let allowed = |b: u8| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E');
    let value = match text {
        "INF" => Some(f64::INFINITY),
        "-INF" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        _ => text.parse().ok().filter(|_| text.bytes().all(allowed)),
    };
    value.ok_or("a number is expected")
}

/// A finite double that is allowed.
fn parse_bounded_double(text: &str, allowed: impl Fn(f64) -> bool, expected: &str) -> Result<f64, String> {
    let value = parse_double(text).ok();
    let value = value.filter(|value| value.is_finite() && allowed(*value));
    value.ok_or_else(|| format!("{expected} is expected"))
}

/// A number from 0 on.
pub(crate) fn parse_not_negative(text: &str) -> Result<f64, String> {
    parse_bounded_double(text, |value| value >= 0.0, "a number from 0 on")
}

/// A number above 0.
pub(crate) fn parse_positive(text: &str) -> Result<f64, String> {
    parse_bounded_double(text, |value| value > 0.0, "a number above 0")
}

/// A number from 0 to 1.
pub(crate) fn parse_share(text: &str) -> Result<f64, String> {
    parse_bounded_double(text, |value| (0.0..=1.0).contains(&value), "a number from 0 to 1")
}

/// A number above 0 and at most 1.
pub(crate) fn parse_positive_share(text: &str) -> Result<f64, String> {
    parse_share(text).and_then(|_| parse_positive(text))
}

/// A name that is not empty.
pub(crate) fn parse_token(text: &str) -> Result<String, &'static str> {
    let text = Some(text).filter(|text| !text.is_empty());
    text.map(str::to_owned).ok_or("it may not be empty")
}

/// xs:boolean.
pub(crate) fn parse_boolean(text: &str) -> Result<bool, &'static str> {
    match text {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err("true or false is expected"),
    }
}

/// A whole number from 1 to `u32::MAX`.
pub(crate) fn parse_positive_integer(text: &str) -> Result<u32, &'static str> {
    // The unsigned types of XML Schema take no sign, not even a plus.
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    let value = text.parse().ok().filter(|value| digits && *value > 0);
    value.ok_or("a whole number from 1 to 4294967295 is expected")
}

/// A whole number from 0 on, as far as 64 bits carry.
pub(crate) fn parse_unsigned_integer(text: &str) -> Result<u64, &'static str> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    let value = text.parse().ok().filter(|_| digits);
    value.ok_or("a whole number from 0 on is expected")
}

/// xs:nonNegativeInteger, up to the end of 64 bits, which stands for all beyond.
pub(crate) fn parse_non_negative_integer(text: &str) -> Result<u64, &'static str> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    let is_zero = text.starts_with("-0") && text[1..].bytes().all(|b| b == b'0');
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    match digits.parse() {
        _ if is_zero => Ok(0),
        Ok(value) if is_number => Ok(value),
        Err(_) if is_number => Ok(u64::MAX),
        _ => Err("a whole number from 0 on is expected"),
    }
}

/// xs:double, shortest form that reads back as the same.
pub(crate) fn write_double(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "INF" } else { "-INF" }.to_owned()
    } else {
        value.to_string()
    }
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
        match self.whole.len() {
            0 => self.fraction.trim_start_matches('0').len().max(1),
            whole => whole + self.fraction.len(),
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
        // Without trailing zeros, the order of fractions is that of their texts.
        let magnitude = self.whole.len().cmp(&other.whole.len());
        let magnitude = magnitude
            .then_with(|| self.whole.cmp(&other.whole))
            .then_with(|| self.fraction.cmp(&other.fraction));
        let signed = if self.negative {
            magnitude.reverse()
        } else {
            magnitude
        };
        other.negative.cmp(&self.negative).then(signed)
    }
}

/// Whether a text names a language (xs:language).
pub(crate) fn is_language(text: &str) -> bool {
    let mut parts = text.split('-').enumerate();
    parts.all(|(nth, part)| {
        let is_in_name = |c: char| c.is_ascii_alphabetic() || nth > 0 && c.is_ascii_digit();
        (1..=8).contains(&part.len()) && part.chars().all(is_in_name)
    })
}

/// Whether a text is base64: quadruples of its letters, the last perhaps filled up with `=`.
pub(crate) fn is_base64(value: &str) -> bool {
    let value: String = value.chars().filter(|c| *c != ' ').collect();
    let letters = value.trim_end_matches('=');
    value.len().is_multiple_of(4)
        && value.len() - letters.len() <= 2
        && letters
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'+' || b == b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_have_the_signs_that_their_types_allow() {
        for (text, value) in [("0", 0), ("-0", 0), ("-00", 0), ("+90", 90), ("007", 7)] {
            assert_eq!(parse_non_negative_integer(text), Ok(value), "{text}");
        }
        assert_eq!(parse_non_negative_integer("99999999999999999999"), Ok(u64::MAX));
        for text in ["", "+", "-", "-1", "--0", "++1", "+-1", "1.0", "a"] {
            assert!(parse_non_negative_integer(text).is_err(), "{text}");
        }
        assert!(parse_unsigned_integer("+1").is_err());
    }
}
