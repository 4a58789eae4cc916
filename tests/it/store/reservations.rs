//! The list of past reservations by start.

use domain::agreement::{AgreementState, ServiceState, Slots};
use domain::change::Change;
use scheduler::{Interval, Time};
use store::reservations::{self, ReservationFilter, StartPlace};
use uuid::Uuid;

use super::{agreement, create, decide};
use crate::support::stores::on_both_engines;

on_both_engines!(a_search_in_a_long_past_goes_on_until_all_was_looked_at);

const FIRST: StartPlace = (i64::MAX, Uuid::max());

async fn a_search_in_a_long_past_goes_on_until_all_was_looked_at(url: String) {
    let (store, lease) = decide(&url).await;
    // One query looks at ten thousand of them.
    let past: Vec<Change> = (0..10_003)
        .map(|start| {
            let mut over = agreement(if start == 1 { "biology" } else { "physics" });
            over.slots = Slots::one((Interval::of(Time(start), 60), 1));
            over.name = Some(if start < 3 { "a Needle" } else { "hay" }.to_owned());
            (over.state, over.service) = (AgreementState::Terminated, ServiceState::Completed);
            create(&over)
        })
        .collect();
    store.commit(lease.epoch, &past).await.expect("it is stored");
    let filter = |party: Option<&str>, search: Option<&str>, end: Option<i64>| ReservationFilter {
        party: party.map(str::to_owned),
        search: search.map(str::to_owned),
        end: end.map(Time),
        ..ReservationFilter::default()
    };
    let starts = async |filter: &ReservationFilter, after: StartPlace| -> Vec<i64> {
        let found = reservations::past_reservations(&store, filter, after, 5).await;
        let found = found.expect("they can be read").into_iter();
        found
            .map(|(found, _)| found.placement().start.seconds())
            .collect()
    };
    let end = async |filter: &ReservationFilter, after: StartPlace| {
        reservations::last_reservation_looked_at(&store, filter, after)
            .await
            .expect("it can be read")
    };
    for (party, found) in [(None, vec![2, 1, 0]), (Some("physics"), vec![2, 0])] {
        let search = filter(party, Some("needle"), None);
        assert_eq!(starts(&search, FIRST).await, Vec::<i64>::new(), "{party:?}");
        let last = end(&search, FIRST).await.expect("there are more");
        assert_eq!(last.0, 3, "{party:?}");
        assert_eq!(starts(&search, last).await, found, "{party:?}");
        assert_eq!(end(&search, last).await, None, "{party:?}");
    }
    let everything = filter(None, None, None);
    let newest = starts(&everything, FIRST).await;
    assert_eq!(newest, [10_002, 10_001, 10_000, 9_999, 9_998]);
    assert_eq!(
        end(&everything, FIRST).await,
        None,
        "what filters nothing looks on by itself"
    );
    let early = filter(Some("physics"), None, Some(4));
    assert_eq!(
        starts(&early, FIRST).await,
        [3, 2, 0],
        "those that begin later are not looked at"
    );
    assert_eq!(end(&early, FIRST).await, None);
    assert_eq!(
        starts(&filter(Some("phys"), Some("needle"), None), FIRST).await,
        Vec::<i64>::new()
    );
}
