//! Reservations as people look for them: running and coming ones by start; then past ones, the latest first.

use std::fmt;
use std::str::FromStr;

use store::agreements::ListPage;
use store::reservations::{self, ReservationFilter, StartPlace};
use uuid::Uuid;

use crate::pages::length_of_page;
use crate::views::agreement::AgreementView;
use crate::{Result, Service};

/// Reservations on a page where the caller does not say.
const PAGE: u32 = 20;

/// Where a list goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReservationPlace {
    /// After one that is not over.
    Live(StartPlace),
    /// After one that is over.
    Past(StartPlace),
}

impl ReservationPlace {
    /// Before all.
    const FIRST: Self = Self::Live((i64::MIN, Uuid::nil()));
    /// Before all that are over.
    const FIRST_PAST: StartPlace = (i64::MAX, Uuid::max());
}

/// The word at the end of a place among those that are over.
const PAST: &str = "past";

impl fmt::Display for ReservationPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Live((start, id)) => write!(f, "{start}.{id}"),
            Self::Past((start, id)) => write!(f, "{start}.{id}.{PAST}"),
        }
    }
}

impl FromStr for ReservationPlace {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (start, rest) = text.split_once('.').ok_or(())?;
        let (id, word) = rest
            .split_once('.')
            .map_or((rest, None), |(id, word)| (id, Some(word)));
        let place = (start.parse().map_err(|_| ())?, id.parse().map_err(|_| ())?);
        match word {
            None => Ok(Self::Live(place)),
            Some(PAST) => Ok(Self::Past(place)),
            Some(_) => Err(()),
        }
    }
}

/// A page of reservations.
#[derive(Debug)]
pub struct ReservationPage {
    /// In order.
    pub reservations: Vec<AgreementView>,
    /// Where the list goes on; none at its end.
    pub next: Option<ReservationPlace>,
}

/// A page of the reservations that match a filter. It looks at a thousand of them, so it may be short where little matches.
///
/// # Errors
/// `Error::Limit`, `Error::Unavailable`.
pub async fn list_reservations(
    service: &Service,
    filter: &ReservationFilter,
    after: Option<ReservationPlace>,
    limit: Option<u32>,
) -> Result<ReservationPage> {
    let limit = length_of_page(limit, PAGE)?;
    let is_of = |words: &[&str]| {
        filter
            .standing
            .as_deref()
            .is_none_or(|word| words.contains(&word))
    };
    let (live, past) = ReservationFilter::STANDINGS;
    let mut page = ReservationListing {
        found: Vec::new(),
        limit,
    };
    let after = match after.unwrap_or(ReservationPlace::FIRST) {
        ReservationPlace::Past(after) => after,
        ReservationPlace::Live(after) => {
            if is_of(&live) {
                let found = reservations::live_reservations(&service.store, filter, after, page.room());
                if let Some(next) = page.take(found.await?) {
                    return Ok(page.up_to(Some(ReservationPlace::Live(next))));
                }
            }
            ReservationPlace::FIRST_PAST
        }
    };
    if !is_of(&past) {
        return Ok(page.up_to(None));
    }
    let found = reservations::past_reservations(&service.store, filter, after, page.room());
    let next = page.take(found.await?);
    Ok(page.up_to(next.map(ReservationPlace::Past)))
}

/// A page that is being filled.
struct ReservationListing {
    found: Vec<AgreementView>,
    limit: u32,
}

impl ReservationListing {
    /// How many more there is room for.
    fn room(&self) -> u32 {
        self.limit - u32::try_from(self.found.len()).unwrap_or(self.limit)
    }

    /// Takes a page of the store, which has no more than there is room for. Answers where that list goes on. A reservation that ends
    /// between two reads is in both: the later one has it as it is now.
    fn take(&mut self, (found, next): ListPage<StartPlace>) -> Option<StartPlace> {
        let is_read_again = |view: &AgreementView| found.iter().any(|(agreement, _)| agreement.id == view.id);
        self.found.retain(|view| !is_read_again(view));
        self.found
            .extend(found.into_iter().map(|(agreement, succession)| AgreementView {
                supersedes: succession.supersedes,
                superseded_by: succession.superseded_by,
                ..AgreementView::of(&agreement)
            }));
        next
    }

    fn up_to(self, next: Option<ReservationPlace>) -> ReservationPage {
        ReservationPage {
            reservations: self.found,
            next,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_a_list_comes_back_as_it_was_written() {
        let id = Uuid::now_v7();
        for place in [
            ReservationPlace::FIRST,
            ReservationPlace::Live((-5, id)),
            ReservationPlace::Past((7, id)),
        ] {
            assert_eq!(place.to_string().parse(), Ok(place));
        }
        for wrong in [
            "",
            "1",
            "x.y",
            "1.2",
            "1.01a1fc5d-835f-772d-b9d0-c724faec45f2.x",
            "1.2.past",
        ] {
            assert_eq!(wrong.parse::<ReservationPlace>(), Err(()), "{wrong}");
        }
    }
}
