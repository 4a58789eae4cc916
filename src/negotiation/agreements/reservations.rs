//! Reservations as people look for them: running and coming ones by start; then past ones, the latest first.

use std::fmt;
use std::str::FromStr;

use scheduler::Time;
use uuid::Uuid;

use crate::agreement::Agreement;
use crate::negotiation::service::length_of_page;
use crate::negotiation::views::agreement::AgreementView;
use crate::negotiation::{Negotiation, Result};
use crate::store::{ReservationFilter, StartPlace, Succession};

/// Reservations on a page where the caller does not say, and at most.
const PAGE: (u32, u32) = (20, 500);
/// Blocks of reservations that are over which one page looks through.
const BLOCKS_MAX: usize = 2;

/// Where a list goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReservationPlace {
    /// After one that is not over.
    Live(StartPlace),
    /// After one that is over, in the block of the last made ones up to an id.
    Past(Uuid, StartPlace),
}

impl ReservationPlace {
    /// Before all.
    const FIRST: Self = Self::Live((i64::MIN, Uuid::nil()));

    /// Before all that are over in a block.
    const fn block(newest: Uuid) -> Self {
        Self::Past(newest, (i64::MAX, Uuid::max()))
    }
}

impl fmt::Display for ReservationPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Live((start, id)) => write!(f, "{start}.{id}"),
            Self::Past(newest, (start, id)) => write!(f, "{start}.{id}.{newest}"),
        }
    }
}

impl FromStr for ReservationPlace {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.split('.');
        let start = parts.next().and_then(|start| start.parse().ok()).ok_or(())?;
        let mut id = || {
            parts
                .next()
                .map(|id| id.parse::<Uuid>().map_err(|_| ()))
                .transpose()
        };
        let place = (start, id()?.ok_or(())?);
        Ok(id()?.map_or(Self::Live(place), |newest| Self::Past(newest, place)))
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

impl ReservationFilter {
    /// The words of `standing` for reservations that are not over, and for past ones.
    pub const STANDINGS: ([&str; 2], [&str; 6]) = (
        ["waiting", "running"],
        ["done", "failed", "lost", "changed", "cancelled", "refused"],
    );

    /// Those with a place in a time, in whole seconds.
    #[must_use]
    pub fn within(self, start: Option<i64>, end: Option<i64>) -> Self {
        Self {
            start: start.map(Time),
            end: end.map(Time),
            ..self
        }
    }
}

impl Negotiation {
    /// A page of the reservations that match a filter. Among those that are over, the last made ones come in blocks, which are sorted each
    /// by itself; a page looks through few of them, so it may be short where little matches.
    ///
    /// # Errors
    /// `Error::Limit`, `Error::Unavailable`.
    pub async fn reservations(
        &self,
        filter: &ReservationFilter,
        after: Option<ReservationPlace>,
        limit: Option<u32>,
    ) -> Result<ReservationPage> {
        let limit = length_of_page(limit, PAGE)? as usize;
        let is_of = |words: &[&str]| {
            filter
                .standing
                .as_deref()
                .is_none_or(|word| words.contains(&word))
        };
        let (live, past) = ReservationFilter::STANDINGS;
        let mut page = Filling {
            found: Vec::new(),
            limit,
        };
        let mut place = after.unwrap_or(ReservationPlace::FIRST);
        if let ReservationPlace::Live(after) = place {
            if is_of(&live) {
                let found = self.store.live_reservations(filter, after, page.asked()).await?;
                if let Some(last) = page.take(found, after) {
                    return Ok(page.up_to(Some(ReservationPlace::Live(last))));
                }
            }
            place = ReservationPlace::block(Uuid::max());
        }
        if !is_of(&past) {
            return Ok(page.up_to(None));
        }
        for _ in 0..BLOCKS_MAX {
            let ReservationPlace::Past(newest, after) = place else {
                break;
            };
            let found = self
                .store
                .past_reservations(filter, newest, after, page.asked())
                .await?;
            if let Some(last) = page.take(found, after) {
                return Ok(page.up_to(Some(ReservationPlace::Past(newest, last))));
            }
            let Some(behind) = self.store.behind_block(filter.party.as_deref(), newest).await? else {
                return Ok(page.up_to(None));
            };
            place = ReservationPlace::block(behind);
        }
        Ok(page.up_to(Some(place)))
    }
}

/// A page that is being filled.
struct Filling {
    found: Vec<AgreementView>,
    limit: usize,
}

impl Filling {
    /// How many to ask for: one more than there is room for tells that there are more.
    fn asked(&self) -> u32 {
        u32::try_from(self.limit - self.found.len() + 1).unwrap_or(u32::MAX)
    }

    /// Takes what there is room for. Where there is more, the place of the last taken; `before` where there is no room at all.
    fn take(&mut self, mut found: Vec<(Agreement, Succession)>, before: StartPlace) -> Option<StartPlace> {
        let room = self.limit - self.found.len();
        let more = found.len() > room;
        found.truncate(room);
        let last = found
            .last()
            .map(|(of, _)| (of.placement().start.seconds(), of.id));
        self.found
            .extend(found.into_iter().map(|(agreement, succession)| AgreementView {
                supersedes: succession.supersedes,
                superseded_by: succession.superseded_by,
                ..AgreementView::of(&agreement)
            }));
        more.then_some(last.unwrap_or(before))
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
        let (id, newest) = (Uuid::now_v7(), Uuid::max());
        for place in [
            ReservationPlace::FIRST,
            ReservationPlace::Live((-5, id)),
            ReservationPlace::Past(newest, (7, id)),
        ] {
            assert_eq!(place.to_string().parse(), Ok(place));
        }
        for wrong in ["", "1", "x.y", "1.2", "1.01a1fc5d-835f-772d-b9d0-c724faec45f2.x"] {
            assert_eq!(wrong.parse::<ReservationPlace>(), Err(()), "{wrong}");
        }
    }
}
