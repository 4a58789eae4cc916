//! How many reservations an order concerns: said before it is confirmed, and on the page that it leads to.

use crate::values::Values;
use service::PlaceChangeView;

/// How many reservations lose their place, get another one, and are not listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct AffectedReservations {
    pub(super) lost: usize,
    pub(super) moved: usize,
    pub(super) unlisted: usize,
}

impl AffectedReservations {
    pub(super) fn of(changes: &[PlaceChangeView], unlisted: usize) -> Self {
        let lost = changes.iter().filter(|change| change.to.is_none()).count();
        Self {
            lost,
            moved: changes.len() - lost,
            unlisted,
        }
    }

    /// What a query of a page says; none where nothing has followed.
    pub(super) fn read(query: Option<&str>) -> Option<Self> {
        let values = Values::read(query.unwrap_or_default().as_bytes());
        let number = |name| values.get(name).parse().unwrap_or(0);
        let followed = Self {
            lost: number("lost"),
            moved: number("moved"),
            unlisted: number("unlisted"),
        };
        (followed != Self::default()).then_some(followed)
    }

    /// The address of a page that says so.
    pub(super) fn address(self, page: &str) -> String {
        if self == Self::default() {
            return page.to_owned();
        }
        let Self {
            lost,
            moved,
            unlisted,
        } = self;
        format!("{page}?lost={lost}&moved={moved}&unlisted={unlisted}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_says_what_its_address_says_and_nothing_else() {
        let followed = AffectedReservations {
            lost: 1,
            moved: 2,
            unlisted: 0,
        };
        let address = followed.address("/page");
        assert_eq!(
            AffectedReservations::read(address.strip_prefix("/page?")),
            Some(followed)
        );
        assert_eq!(AffectedReservations::default().address("/page"), "/page");
        for query in [None, Some(""), Some("lost=many&moved=-1"), Some("lost=0")] {
            assert_eq!(AffectedReservations::read(query), None, "{query:?}");
        }
    }
}
