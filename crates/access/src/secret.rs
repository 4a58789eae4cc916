//! Secrets: 256 random bits each, shown once, and kept by us only as their SHA-256. A digest needs no salt and no slow
//! function where the secret cannot be guessed in the first place.

use std::borrow::Cow;
use std::fmt;

use domain::clock::Micros;
use sha2::{Digest, Sha256};
use store::hex;
use subtle::ConstantTimeEq;

/// The beginning of every API key, so that people and scanners of leaked secrets recognize one.
const KEY_PREFIX: &str = "bsp_";
/// Hexadecimal digits of the random part.
const DIGITS: usize = 64;
/// Hexadecimal digits of the instant at which a session begins.
const BEGIN_DIGITS: usize = 12;
const MICROS_PER_MILLISECOND: Micros = 1_000;
/// Letters and digits after the prefix that may be the part of a key.
const DIGITS_TELL: usize = 16;

/// A text in which only the beginning of each API key is left: a client may have put one in the wrong place, and what is logged or
/// answered has other readers.
pub fn hide_keys(text: &str) -> Cow<'_, str> {
    if !text.contains(KEY_PREFIX) {
        return Cow::Borrowed(text);
    }
    let mut parts = text.split(KEY_PREFIX);
    let mut hidden = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        hidden.push_str(KEY_PREFIX);
        if part.len() - rest.len() >= DIGITS_TELL {
            hidden.push('…');
            hidden.push_str(rest);
        } else {
            hidden.push_str(part);
        }
    }
    Cow::Owned(hidden)
}

/// A text that gives its holder rights. `Debug` does not show it, and it has no `Display`.
#[derive(Clone)]
pub struct Secret(pub(super) String);

impl Secret {
    /// A new API key.
    ///
    /// # Errors
    /// Where the operating system has no randomness.
    pub(super) fn key() -> Result<Self, getrandom::Error> {
        Ok(Self(format!("{KEY_PREFIX}{}", random_secret()?)))
    }

    /// A new session that begins at an instant: the milliseconds of that, and 208 random bits.
    ///
    /// # Errors
    /// Where the operating system has no randomness.
    pub(super) fn session(begins: Micros) -> Result<Self, getrandom::Error> {
        let random = random_secret()?;
        let begins = begins.div_euclid(MICROS_PER_MILLISECOND) & ((1 << (4 * BEGIN_DIGITS)) - 1);
        let random = &random[BEGIN_DIGITS..];
        Ok(Self(format!("{begins:0BEGIN_DIGITS$x}{random}")))
    }

    /// When it has begun as a session.
    pub(super) fn begun(&self) -> Micros {
        let begun = self.0.get(..BEGIN_DIGITS);
        let begun = begun.and_then(|digits| Micros::from_str_radix(digits, 16).ok());
        begun.unwrap_or(0).saturating_mul(MICROS_PER_MILLISECOND)
    }

    /// The text as an API key, if it has the form of one.
    pub(super) fn parse_key(text: &str) -> Option<Self> {
        text.strip_prefix(KEY_PREFIX)
            .is_some_and(is_random)
            .then(|| Self(text.to_owned()))
    }

    /// The text as a session, if it has the form of one.
    pub(super) fn parse_session(text: &str) -> Option<Self> {
        is_random(text).then(|| Self(text.to_owned()))
    }

    /// The text, to be shown to its owner or sent.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The digest, which is stored in its place.
    pub(super) fn digest(&self) -> String {
        hex(&Sha256::digest(&self.0))
    }

    /// Another secret that only a holder of this one can know, and that does not give this one away.
    pub(super) fn derive(&self, purpose: &str) -> Self {
        Self(hex(&Sha256::new()
            .chain_update(purpose)
            .chain_update(&self.0)
            .finalize()))
    }

    /// Whether `sent` is this secret, in a time that does not tell how near it comes.
    pub fn matches(&self, sent: &str) -> bool {
        self.0.as_bytes().ct_eq(sent.as_bytes()).into()
    }

    /// Whether `digest` was made from it, in a time that does not tell how near it comes.
    pub(super) fn has_digest(&self, digest: &str) -> bool {
        self.digest().as_bytes().ct_eq(digest.as_bytes()).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// 256 random bits in hexadecimal.
fn random_secret() -> Result<String, getrandom::Error> {
    let mut bits = [0; DIGITS / 2];
    getrandom::fill(&mut bits)?;
    Ok(hex(&bits))
}

fn is_random(text: &str) -> bool {
    text.len() == DIGITS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_key_in_a_text_only_its_beginning_is_left() {
        let key = Secret::key().expect("randomness");
        let text = format!("/agreements/{}/state?{}", key.expose(), key.expose());
        assert_eq!(hide_keys(&text), "/agreements/bsp_…/state?bsp_…");
        for other in ["/agreements/1", "bsp_", "/files/bsp_short.txt"] {
            assert_eq!(hide_keys(other), other);
        }
    }

    #[test]
    fn a_key_is_its_prefix_and_256_bits_and_no_two_are_the_same() {
        let (one, two) = (
            Secret::key().expect("randomness"),
            Secret::key().expect("randomness"),
        );
        assert_ne!(one.expose(), two.expose());
        assert!(one.has_digest(&one.digest()) && !one.has_digest(&two.digest()));
        assert!(Secret::parse_key(one.expose()).is_some());
        assert!(
            Secret::parse_session(one.expose()).is_none(),
            "a key is not a session"
        );
        let session = Secret::session(1_800_000_000_123_456).expect("randomness");
        assert_eq!(session.begun(), 1_800_000_000_123_000);
        assert!(Secret::parse_session(session.expose()).is_some());
        assert!(
            Secret::parse_key(session.expose()).is_none(),
            "nor the other way round"
        );
    }

    #[test]
    fn what_has_not_the_form_of_a_key_is_none() {
        let good = Secret::key().expect("randomness").expose().to_owned();
        let upper = good.to_uppercase();
        let longer = format!("{good}0");
        for text in [
            "",
            "bsp_",
            &good[..good.len() - 1],
            &longer,
            &upper,
            &good[4..],
            "bsp_é",
            " ",
        ] {
            assert!(Secret::parse_key(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn a_secret_is_never_shown_by_debug_formatting() {
        let secret = Secret::key().expect("randomness");
        assert!(!format!("{secret:?} {secret:#?}").contains(&secret.expose()[4..12]));
        assert_ne!(secret.derive("csrf").expose(), secret.digest());
    }
}
