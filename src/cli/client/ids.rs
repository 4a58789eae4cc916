//! Things named by the beginning of their ids, as it stands in lists, and agreements also by their names.

use std::str::FromStr;

use clap::Args;
use serde_json::Value;
use uuid::Uuid;

use crate::cli::Failure;
use crate::cli::client::{Server, escape_path_part, list_or_empty, read_answer, text_or_empty};
use service::AgreementPage;

/// Digits of an id.
const DIGITS: usize = 32;
/// Digits that are needed at least: fewer are hardly meant.
const DIGITS_MIN: usize = 4;
/// Agreements of a name, and negotiations, that are looked through: the newest.
const LOOKED_AT: usize = 100;

/// The id of something, or its first digits; or the name of an agreement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct IdOrName(String);

impl FromStr for IdOrName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.trim().is_empty() {
            return Err("an id is expected, or the name of an agreement");
        }
        Ok(Self(text.to_owned()))
    }
}

impl IdOrName {
    /// The digits that an id may begin with; none where the text can be a name only.
    fn digits(&self) -> Option<String> {
        let digits = self.0.replace('-', "").to_ascii_lowercase();
        let is_start = (DIGITS_MIN..=DIGITS).contains(&digits.len())
            && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        is_start.then_some(digits)
    }

    /// The whole id, where it is one.
    fn whole(&self) -> Option<Uuid> {
        self.digits()
            .filter(|digits| digits.len() == DIGITS)?
            .parse()
            .ok()
    }

    /// The id after the last one that begins with these digits; pages go down from there.
    fn id_after(digits: &str) -> Uuid {
        let last = format!("{digits:f<DIGITS$}").parse().unwrap_or(Uuid::max());
        Uuid::from_u128(last.as_u128().saturating_add(1))
    }
}

/// The ids of the values that begin so.
fn ids_beginning_with(values: &[Value], digits: &str) -> Vec<Uuid> {
    let ids = values
        .iter()
        .filter_map(|values| text_or_empty(&values["id"]).parse::<Uuid>().ok());
    ids.filter(|id| id.simple().to_string().starts_with(digits))
        .collect()
}

impl Server {
    /// The one agreement with an id that begins so; or with this name, of several the one that is not over.
    pub(in crate::cli) async fn id_of(&self, named: &IdOrName) -> Result<Uuid, Failure> {
        let IdOrName(name) = named;
        if let Some(whole) = named.whole() {
            return Ok(whole);
        }
        if let Some(digits) = named.digits() {
            match self.newest_ids("agreements", &digits).await?[..] {
                [] => {}
                [one] => return Ok(one),
                _ => return Err(several_ids_failure("agreements", &digits)),
            }
        }
        let path = format!("/agreements?name={}&limit={LOOKED_AT}", escape_path_part(name));
        let page: AgreementPage = read_answer(self.get(&path).await?)?;
        let is_over = |state: &str| matches!(state, "Rejected" | "Complete" | "Terminated");
        let all: Vec<_> = page.agreements.iter().collect();
        let live: Vec<_> = all
            .iter()
            .filter(|agreement| !is_over(&agreement.state))
            .collect();
        match (&live[..], &all[..]) {
            ([one], _) => Ok(one.id),
            ([], [one]) => Ok(one.id),
            ([], []) => Err(Failure::Refused(format!(
                "there is no agreement with an id that begins with {name}, or with this name, or it is not yours to see"
            ))),
            _ => Err(Failure::Refused(format!(
                "several agreements have the name {name}; give the id of one: {}",
                all.iter()
                    .map(|agreement| agreement.id.to_string())
                    .collect::<Vec<_>>()
                    .join(", ")
            ))),
        }
    }

    /// At most two agreements or negotiations with ids that begin so.
    async fn newest_ids(&self, what: &str, digits: &str) -> Result<Vec<Uuid>, Failure> {
        let page = self
            .get(&format!("/{what}?after={}&limit=2", IdOrName::id_after(digits)))
            .await?;
        Ok(ids_beginning_with(list_or_empty(&page[what]), digits))
    }

    /// The one offer with an id that begins so, of those that can be accepted now.
    pub(in crate::cli) async fn id_of_offer(&self, named: &IdOrName) -> Result<Uuid, Failure> {
        if let Some(whole) = named.whole() {
            return Ok(whole);
        }
        let digits = named.digits().unwrap_or_default();
        let page = self
            .get(&format!("/negotiations?state=open&limit={LOOKED_AT}"))
            .await?;
        let offers = list_or_empty(&page["negotiations"])
            .iter()
            .flat_map(|one_list_or_empty| list_or_empty(&one_list_or_empty["offers"]));
        let offers: Vec<Value> = offers.cloned().collect();
        match ids_beginning_with(&offers, &digits)[..] {
            [one] if !digits.is_empty() => Ok(one),
            [_, _, ..] if !digits.is_empty() => Err(several_ids_failure("offers", &digits)),
            _ => Err(Failure::Refused(format!(
                "no offer that is held for you has an id that begins with {}; `bespeak negotiations` lists them",
                named.0
            ))),
        }
    }

    /// The one agreement or negotiation with an id that begins so, or else the one offer of the negotiations that were opened before
    /// it; or the agreement with this name.
    pub(in crate::cli) async fn id_of_anything(&self, named: &IdOrName) -> Result<Uuid, Failure> {
        let Some(digits) = named.digits().filter(|digits| digits.len() < DIGITS) else {
            return self.id_of(named).await;
        };
        let mut found = self.newest_ids("agreements", &digits).await?;
        found.extend(self.newest_ids("negotiations", &digits).await?);
        if found.is_empty() {
            let page = self
                .get(&format!(
                    "/negotiations?after={}&limit={LOOKED_AT}",
                    IdOrName::id_after(&digits)
                ))
                .await?;
            // An offer is younger than its negotiation, and lies near it.
            for id in list_or_empty(&page["negotiations"])
                .iter()
                .take(LOOKED_AT / 10)
                .map(|list_or_empty| text_or_empty(&list_or_empty["id"]))
            {
                let negotiation = self.get(&format!("/negotiations/{id}")).await?;
                found.extend(ids_beginning_with(list_or_empty(&negotiation["offers"]), &digits));
            }
        }
        match found[..] {
            [one] => Ok(one),
            [] => self.id_of(named).await,
            _ => Err(several_ids_failure("agreements, negotiations or offers", &digits)),
        }
    }
}

fn several_ids_failure(what: &str, digits: &str) -> Failure {
    Failure::Refused(format!(
        "several {what} have ids that begin with {digits}; give more digits"
    ))
}

/// An agreement, and the service to ask about it.
#[derive(Debug, Args)]
pub(in crate::cli) struct AgreementOptions {
    /// The agreement: its id, as many first digits as no other has, or its name.
    pub(in crate::cli) id: IdOrName,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_an_id_has_four_digits_at_least_and_all_else_is_a_name() {
        let digits = |text: &str| text.parse::<IdOrName>().unwrap().digits();
        assert_eq!(digits("01A1FC5D-835f"), Some("01a1fc5d835f".to_owned()));
        assert!(digits("01a1fc5d-835f-772d-b9d0-c724faec45f2").is_some());
        for name in [
            "01a",
            "01a1x",
            "01a1fc5d-835f-772d-b9d0-c724faec45f2a",
            "----",
            "nightly",
        ] {
            assert_eq!(digits(name), None, "{name:?}");
        }
        assert!(" ".parse::<IdOrName>().is_err());
    }
}
