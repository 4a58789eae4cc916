//! The lists of reservations by start, and of agreements by id, where a filter leaves much out.

use std::sync::Arc;

use domain::agreement::{AgreementState, EventKind, MoveRecord, RecordedMove, ServiceState, Slots};
use domain::change::Change;
use scheduler::{Interval, Time};
use store::agreements::{self, AgreementFilter};
use store::reservations::{self, ReservationFilter, StartPlace};
use uuid::Uuid;

use super::{agreement, create, decide, event, tamper};
use crate::support::stores::on_both_engines;

on_both_engines!(
    a_search_in_a_long_past_goes_on_until_all_was_looked_at,
    a_search_among_many_that_wait_goes_on_until_all_was_looked_at,
    a_list_of_a_time_has_what_moved_into_it_and_not_what_moved_away,
    a_record_of_moves_is_read_once,
);

const FIRST: StartPlace = (i64::MAX, Uuid::max());

async fn a_search_in_a_long_past_goes_on_until_all_was_looked_at(url: String) {
    let (store, lease) = decide(&url).await;
    // One query looks at a thousand of them.
    let past: Vec<Change> = (0..1_003)
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
        reservations::last_past_reservation_looked_at(&store, filter, after)
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
    assert_eq!(newest, [1_002, 1_001, 1_000, 999, 998]);
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

async fn a_search_among_many_that_wait_goes_on_until_all_was_looked_at(url: String) {
    let (store, lease) = decide(&url).await;
    let waiting: Vec<Change> = (0..1_003)
        .map(|start| {
            let mut waits = agreement("physics");
            waits.slots = Slots::one((Interval::of(Time(1_000 + start), 60), 1));
            waits.name = Some(if start < 1_001 { "hay" } else { "a Needle" }.to_owned());
            if start == 1_002 {
                waits.service = ServiceState::Processing;
            }
            create(&waits)
        })
        .collect();
    store.commit(lease.epoch, &waiting).await.expect("it is stored");
    for party in [None, Some("physics".to_owned())] {
        let filter = ReservationFilter {
            party,
            standing: Some("running".to_owned()),
            ..ReservationFilter::default()
        };
        let first = (i64::MIN, Uuid::nil());
        let found = reservations::live_reservations(&store, &filter, first, 5).await;
        let found = found.expect("they can be read");
        assert_eq!(found.len(), 1, "those that wait are passed over");
        let end = reservations::last_live_reservation_looked_at(&store, &filter, first).await;
        assert_eq!(end.expect("it can be read"), None);
    }
    // By start: those with the name come last.
    for party in [None, Some("physics".to_owned())] {
        let filter = ReservationFilter {
            party,
            search: Some("needle".to_owned()),
            ..ReservationFilter::default()
        };
        let starts = async |after: StartPlace| -> Vec<i64> {
            let found = reservations::live_reservations(&store, &filter, after, 5).await;
            let found = found.expect("they can be read").into_iter();
            found
                .map(|(found, _)| found.placement().start.seconds())
                .collect()
        };
        let end = async |after: StartPlace| {
            let end = reservations::last_live_reservation_looked_at(&store, &filter, after).await;
            end.expect("it can be read")
        };
        let first = (i64::MIN, Uuid::nil());
        assert_eq!(starts(first).await, Vec::<i64>::new());
        let last = end(first).await.expect("there are more");
        assert_eq!(last.0, 1_999);
        assert_eq!(starts(last).await, [2_001, 2_002]);
        assert_eq!(end(last).await, None);
    }
    // By id: the first three come last.
    for (party, state) in [(None, None), (Some("physics"), Some(AgreementState::Observed))] {
        let filter = AgreementFilter {
            party: party.map(str::to_owned),
            state,
            end: Some(Time(1_003)),
            ..AgreementFilter::default()
        };
        let starts = async |after: Option<Uuid>| -> Vec<i64> {
            let found = agreements::agreements_page(&store, &filter, after, 5).await;
            let found = found.expect("they can be read").into_iter();
            found
                .map(|(found, _)| found.placement().start.seconds())
                .collect()
        };
        let end = async |after: Option<Uuid>| {
            let end = agreements::last_agreement_looked_at(&store, &filter, after).await;
            end.expect("it can be read")
        };
        assert_eq!(starts(None).await, Vec::<i64>::new());
        let last = end(None).await.expect("there are more");
        assert_eq!(starts(Some(last)).await, [1_002, 1_001, 1_000]);
        assert_eq!(end(Some(last)).await, None);
    }
    // What an index has together is looked through by itself.
    for filter in [
        AgreementFilter {
            state: Some(AgreementState::Observed),
            ..AgreementFilter::default()
        },
        AgreementFilter {
            party: Some("physics".to_owned()),
            name: Some("a Needle".to_owned()),
            ..AgreementFilter::default()
        },
    ] {
        let found = agreements::agreements_page(&store, &filter, None, 5).await;
        let many = if filter.state.is_some() { 5 } else { 2 };
        assert_eq!(found.expect("they can be read").len(), many);
        let last = agreements::last_agreement_looked_at(&store, &filter, None).await;
        assert_eq!(last.expect("it can be read"), None);
    }
}

/// The record of the first moves of an agreement.
fn moved_to(number: i64, (agreement, start): (Uuid, i64)) -> Arc<MoveRecord> {
    let one_move = RecordedMove {
        agreement,
        version: number + 1,
        start: Time(start),
    };
    Arc::new(MoveRecord {
        number,
        at: 1_000_000,
        cause: None,
        why: "for a test".to_owned(),
        moves: vec![one_move],
    })
}

async fn a_list_of_a_time_has_what_moved_into_it_and_not_what_moved_away(url: String) {
    let (store, lease) = decide(&url).await;
    let waits = |start: i64| {
        let mut waits = agreement("physics");
        (waits.ready, waits.deadline) = (Time(0), Time(10_000));
        waits.slots = Slots::one((Interval::of(Time(start), 60), 1));
        waits
    };
    let (leaves, comes) = (waits(1_000), waits(5_000));
    let mut batch: Vec<Change> = [&leaves, &comes].map(create).into();
    batch.extend((0..4).map(|at| create(&waits(1_100 + at))));
    batch.push(Change::RecordMoves(moved_to(1, (leaves.id, 6_000))));
    batch.push(Change::RecordMoves(moved_to(2, (comes.id, 1_010))));
    store.commit(lease.epoch, &batch).await.expect("it is stored");
    for party in [None, Some("physics".to_owned())] {
        let (start, end) = (Some(Time(900)), Some(Time(1_102)));
        let filter = ReservationFilter {
            party: party.clone(),
            start,
            end,
            ..ReservationFilter::default()
        };
        let starts = async |limit| -> Vec<i64> {
            let first = (i64::MIN, Uuid::nil());
            let found = reservations::live_reservations(&store, &filter, first, limit).await;
            let found = found.expect("they can be read").into_iter();
            found.map(|(one, _)| one.placement().start.seconds()).collect()
        };
        // In the order of the rows.
        assert_eq!(starts(5).await, [1_100, 1_101, 1_010]);
        assert_eq!(starts(2).await, [1_100, 1_101]);
        let filter = AgreementFilter {
            party,
            start,
            end,
            ..AgreementFilter::default()
        };
        let starts = async |limit| -> Vec<i64> {
            let found = agreements::agreements_page(&store, &filter, None, limit).await;
            let found = found.expect("they can be read").into_iter();
            found.map(|(one, _)| one.placement().start.seconds()).collect()
        };
        assert_eq!(starts(5).await, [1_101, 1_100, 1_010]);
        assert_eq!(starts(2).await, [1_101, 1_100]);
    }
}

async fn a_record_of_moves_is_read_once(url: String) {
    let (store, lease) = decide(&url).await;
    let mut waits = agreement("physics");
    (waits.ready, waits.deadline) = (Time(0), Time(10_000));
    let first = moved_to(1, (waits.id, 1_000));
    let batch = [create(&waits), Change::RecordMoves(Arc::clone(&first))];
    store.commit(lease.epoch, &batch).await.expect("it is stored");
    let start = async || {
        let found = agreements::agreement(&store, waits.id).await;
        found.expect("it can be read").map(|one| one.placement().start)
    };
    assert_eq!(start().await, Some(Time(1_000)));
    tamper(&url, "UPDATE moves SET moves = 'no list'").await;
    assert_eq!(start().await, Some(Time(1_000)));
    let second = moved_to(2, (waits.id, 2_000));
    let batch = [Change::RecordMoves(Arc::clone(&second))];
    store.commit(lease.epoch, &batch).await.expect("it is stored");
    assert_eq!(start().await, Some(Time(2_000)));
    let mut settled = waits.clone();
    second.moves[0].apply(&mut settled);
    let batch = [
        Change::SettleMoves {
            agreement: Box::new(settled),
            event: event(EventKind::Moved),
            before: waits.version,
            is_told: true,
        },
        Change::ForgetMoves(first),
        Change::ForgetMoves(second),
    ];
    store.commit(lease.epoch, &batch).await.expect("it is stored");
    assert_eq!(start().await, Some(Time(2_000)));
    // As long as there are none, none is applied that was read before.
    let sql = "UPDATE agreements SET version = 1, planned_start_s = 100, planned_end_s = 160";
    tamper(&url, sql).await;
    assert_eq!(start().await, Some(Time(100)));
}
