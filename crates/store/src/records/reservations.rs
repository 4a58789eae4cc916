//! Reservations as people look for them: agreements in the order of their starts.

use scheduler::Time;
use uuid::Uuid;

use crate::engine::{Columns, Result, Value, statements};
use crate::records::agreements::{LOOKED_AT, ListPage, PageQuery, read_list_page};
use crate::store::Store;

/// Which reservations are wanted: those that match all that is given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReservationFilter {
    /// Of this party.
    pub party: Option<String>,
    /// Where they stand: waiting, running; done, failed, changed, cancelled, refused.
    pub standing: Option<String>,
    /// On this resource.
    pub resource: Option<String>,
    /// With a place that ends after this instant.
    pub start: Option<Time>,
    /// With a place that begins before this instant.
    pub end: Option<Time>,
    /// With this in their names, or ids that begin with it.
    pub search: Option<String>,
}

impl ReservationFilter {
    /// The words of `standing` for reservations that are not over, and for past ones.
    pub const STANDINGS: ([&str; 2], [&str; 6]) = (
        ["waiting", "running"],
        ["done", "failed", "lost", "changed", "cancelled", "refused"],
    );

    /// This filter for reservations with a place in a time, in whole seconds.
    #[must_use]
    pub fn within(self, start: Option<i64>, end: Option<i64>) -> Self {
        Self {
            start: start.map(Time),
            end: end.map(Time),
            ..self
        }
    }
}

/// A place in a list of reservations: a start, and an id.
pub type StartPlace = (i64, Uuid);

/// At most `limit` of the reservations that match a filter and are not over, by start, beginning after a place. Where the filter leaves
/// some out it looks at a thousand of them, so that a page may be short, or empty.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn live_reservations(
    store: &Store,
    filter: &ReservationFilter,
    after: StartPlace,
    limit: u32,
) -> Result<ListPage<StartPlace>> {
    let (rows, ends) = if filter.is_of_running() {
        (
            [
                statements::RUNNING_RESERVATIONS,
                statements::RUNNING_RESERVATIONS_OF,
            ],
            [statements::RUNNING_PLACES, statements::RUNNING_PLACES_OF],
        )
    } else {
        (
            [statements::LIVE_RESERVATIONS, statements::LIVE_RESERVATIONS_OF],
            [statements::LIVE_PLACES, statements::LIVE_PLACES_OF],
        )
    };
    reservations_page(store, filter, after, limit, rows, ends).await
}

/// At most `limit` of the reservations that match a filter and are over, the latest start first, beginning after a place. Where the
/// filter leaves some out it looks at a thousand of them, so that a page may be short, or empty.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn past_reservations(
    store: &Store,
    filter: &ReservationFilter,
    after: StartPlace,
    limit: u32,
) -> Result<ListPage<StartPlace>> {
    let rows = [statements::PAST_RESERVATIONS, statements::PAST_RESERVATIONS_OF];
    let ends = [statements::PAST_PLACES, statements::PAST_PLACES_OF];
    reservations_page(store, filter, filter.first_after(after), limit, rows, ends).await
}

/// A page of reservations. The first statements find them, the others the places that these look at last.
async fn reservations_page(
    store: &Store,
    filter: &ReservationFilter,
    after: StartPlace,
    limit: u32,
    rows: [&'static str; 2],
    ends: [&'static str; 2],
) -> Result<ListPage<StartPlace>> {
    let pattern = ReservationPattern::of(filter.search.as_deref());
    let asked = limit.saturating_add(1);
    let mut values = pattern.values(filter, after, asked);
    values.push(filter.looked_at(asked).into());
    let end_values = vec![after.0.into(), after.1.into(), (LOOKED_AT - 1).into()];
    let query = PageQuery {
        party: filter.party.as_deref(),
        rows,
        values,
        ends: filter.leaves_out().then_some((ends, end_values)),
        period: (filter.start, filter.end),
        after,
        limit,
    };
    let end = |row: &Columns<'_>| Ok((row.integer("planned_start_s")?, row.id("id")?));
    read_list_page(store, &query, end, |(agreement, succession)| {
        let start = succession.listed_start.unwrap_or(agreement.placement().start);
        (start.seconds(), agreement.id)
    })
    .await
}

impl ReservationFilter {
    /// Whether it leaves some of a party's reservations out.
    fn leaves_out(&self) -> bool {
        let has = [&self.standing, &self.resource, &self.search];
        has.into_iter().any(Option::is_some) || self.start.is_some() || self.end.is_some()
    }

    /// Whether those are wanted that have begun and are not over: an index has these together.
    fn is_of_running(&self) -> bool {
        self.standing.as_deref() == Some("running")
    }

    /// How many are looked at for some of them.
    fn looked_at(&self, limit: u32) -> u32 {
        if self.leaves_out() { LOOKED_AT } else { limit }
    }

    /// The place after which those begin that come after a place and may match.
    fn first_after(&self, after: StartPlace) -> StartPlace {
        let end = self.end.map(|end| (end.seconds(), Uuid::nil()));
        end.map_or(after, |end| end.min(after))
    }
}

/// What a search is compared with: patterns of names, and the first and the last id that begin with it.
struct ReservationPattern {
    name: Option<String>,
    small: Option<String>,
    first: Uuid,
    last: Uuid,
}

impl ReservationPattern {
    fn of(search: Option<&str>) -> Self {
        let name = search.map(|search| {
            let quoted = search.replace('!', "!!").replace('%', "!%").replace('_', "!_");
            format!("%{quoted}%")
        });
        let digits = search.map(|search| search.replace('-', "")).unwrap_or_default();
        let is_id =
            !digits.is_empty() && digits.len() <= 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let padded = |with: &str| {
            let text = digits.clone() + &with.repeat(32_usize.saturating_sub(digits.len()));
            Uuid::try_parse(&text).ok()
        };
        let (first, last) = if is_id {
            (padded("0"), padded("f"))
        } else {
            (None, None)
        };
        Self {
            small: name.as_ref().map(|name| name.to_lowercase()),
            name,
            // No id lies between these.
            first: first.unwrap_or(Uuid::max()),
            last: last.unwrap_or(Uuid::nil()),
        }
    }

    fn values<'a>(&'a self, filter: &'a ReservationFilter, after: StartPlace, limit: u32) -> Vec<Value<'a>> {
        let [start, end] = [filter.start, filter.end].map(|at| at.map(Time::seconds));
        vec![
            (&filter.standing).into(),
            (&filter.resource).into(),
            start.into(),
            end.into(),
            (&self.name).into(),
            (&self.small).into(),
            self.first.into(),
            self.last.into(),
            after.0.into(),
            after.1.into(),
            limit.into(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_is_a_part_of_a_name_or_the_beginning_of_an_id() {
        let pattern = ReservationPattern::of(Some("50%_A!"));
        assert_eq!(pattern.name.as_deref(), Some("%50!%!_A!!%"));
        assert_eq!(pattern.small.as_deref(), Some("%50!%!_a!!%"));
        assert!(pattern.first > pattern.last, "it is no id");
        let pattern = ReservationPattern::of(Some("01a1FC5d-8"));
        assert_eq!(pattern.first.to_string(), "01a1fc5d-8000-0000-0000-000000000000");
        assert_eq!(pattern.last.to_string(), "01a1fc5d-8fff-ffff-ffff-ffffffffffff");
        assert_eq!(ReservationPattern::of(None).name, None);
    }
}
