//! Agreements named by the beginning of their ids, as it stands in lists.

use std::str::FromStr;

use uuid::Uuid;

use crate::cli::Failure;
use crate::cli::client::{Server, read};
use crate::negotiation::AgreementPage;

/// Digits of an id.
const DIGITS: usize = 32;
/// Digits that are needed at least: fewer are hardly meant.
const DIGITS_MIN: usize = 4;

/// The id of an agreement, or its first digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct IdStart(String);

impl FromStr for IdStart {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.replace('-', "").to_ascii_lowercase();
        let is_start = (DIGITS_MIN..=DIGITS).contains(&digits.len())
            && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        is_start.then_some(Self(digits)).ok_or_else(|| {
            format!("the id of an agreement is expected, or its first {DIGITS_MIN} digits or more")
        })
    }
}

impl Server {
    /// The one agreement with an id that begins so.
    pub(in crate::cli) async fn id_of(&self, start: &IdStart) -> Result<Uuid, Failure> {
        let IdStart(digits) = start;
        // The last id that begins so; pages go down from there.
        let last: Uuid = format!("{digits:f<DIGITS$}")
            .parse()
            .map_err(|why| Failure::Usage(format!("{digits}: {why}")))?;
        if digits.len() == DIGITS {
            return Ok(last);
        }
        let page: AgreementPage = read(self.get(&format!("/agreements?after={last}&limit=2")).await?)?;
        let begins = |id: &Uuid| id.simple().to_string().starts_with(digits);
        let found: Vec<_> = page.agreements.iter().map(|of| of.id).filter(begins).collect();
        match found[..] {
            [one] => Ok(one),
            [] => Err(Failure::Refused(format!(
                "there is no agreement with an id that begins with {digits}, or it is not yours to see"
            ))),
            _ => Err(Failure::Refused(format!(
                "several agreements have ids that begin with {digits}; give more digits"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_an_id_has_four_digits_at_least() {
        let start = |text: &str| text.parse::<IdStart>().map(|IdStart(digits)| digits);
        assert_eq!(start("01A1FC5D-835f"), Ok("01a1fc5d835f".to_owned()));
        assert!(start("01a1fc5d-835f-772d-b9d0-c724faec45f2").is_ok());
        for wrong in [
            "",
            "01a",
            "01a1x",
            "01a1fc5d-835f-772d-b9d0-c724faec45f2a",
            "----",
        ] {
            assert!(start(wrong).is_err(), "{wrong:?}");
        }
    }
}
