//! The lists of reservations by start, and of agreements by id, where a filter leaves much out.

use std::cell::Cell;
use std::sync::Arc;

use domain::agreement::{AgreementState, EventKind, MoveRecord, RecordedMove, ServiceState, Slots};
use domain::change::Change;
use scheduler::{Interval, Time};
use store::agreements::{self, AgreementFilter, ListPage};
use store::reservations::{self, ReservationFilter, StartPlace};
use uuid::Uuid;

use super::{agreement, create, decide, event, tamper};
use crate::support::stores::on_both_engines;

on_both_engines!(
    a_search_in_a_long_past_goes_on_until_all_was_looked_at,
    a_search_among_many_that_wait_goes_on_until_all_was_looked_at,
    rows_and_end_of_a_page_are_of_one_instant,
    a_list_of_a_time_has_what_moved_into_it_and_not_what_moved_away,
    a_record_of_moves_is_read_once,
);

const FIRST: StartPlace = (i64::MAX, Uuid::max());
const FIRST_LIVE: StartPlace = (i64::MIN, Uuid::nil());

/// The starts on a page, and the place after which the next one begins.
fn starts_of_page<P>(page: Result<ListPage<P>, store::Error>) -> (Vec<i64>, Option<P>) {
    let (found, next) = page.expect("they can be read");
    let starts = found.iter().map(|(found, _)| found.placement().start.seconds());
    (starts.collect(), next)
}

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
    let page = async |filter: &ReservationFilter, after: StartPlace| {
        starts_of_page(reservations::past_reservations(&store, filter, after, 5).await)
    };
    for (party, found) in [(None, vec![2, 1, 0]), (Some("physics"), vec![2, 0])] {
        let search = filter(party, Some("needle"), None);
        let (first, last) = page(&search, FIRST).await;
        assert_eq!(first, Vec::<i64>::new(), "{party:?}");
        let last = last.expect("there are more");
        assert_eq!(last.0, 3, "{party:?}");
        assert_eq!(page(&search, last).await, (found, None), "{party:?}");
    }
    let (newest, next) = page(&filter(None, None, None), FIRST).await;
    assert_eq!(newest, [1_002, 1_001, 1_000, 999, 998]);
    assert_eq!(next.map(|(start, _)| start), Some(998));
    let early = page(&filter(Some("physics"), None, Some(4)), FIRST).await;
    assert_eq!(
        early,
        (vec![3, 2, 0], None),
        "those that begin later are not looked at"
    );
    let none = page(&filter(Some("phys"), Some("needle"), None), FIRST).await;
    assert_eq!(none, (Vec::new(), None));
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
        let page = reservations::live_reservations(&store, &filter, FIRST_LIVE, 5).await;
        let (found, next) = page.expect("they can be read");
        assert_eq!(found.len(), 1, "those that wait are passed over");
        assert_eq!(next, None);
    }
    // By start: those with the name come last.
    for party in [None, Some("physics".to_owned())] {
        let filter = ReservationFilter {
            party,
            search: Some("needle".to_owned()),
            ..ReservationFilter::default()
        };
        let page = async |after: StartPlace| {
            starts_of_page(reservations::live_reservations(&store, &filter, after, 5).await)
        };
        let (first, last) = page(FIRST_LIVE).await;
        assert_eq!(first, Vec::<i64>::new());
        let last = last.expect("there are more");
        assert_eq!(last.0, 1_999);
        assert_eq!(page(last).await, (vec![2_001, 2_002], None));
    }
    // By id: the first three come last.
    for (party, state) in [(None, None), (Some("physics"), Some(AgreementState::Observed))] {
        let filter = AgreementFilter {
            party: party.map(str::to_owned),
            state,
            end: Some(Time(1_003)),
            ..AgreementFilter::default()
        };
        let page = async |after: Option<Uuid>| {
            starts_of_page(agreements::agreements_page(&store, &filter, after, 5).await)
        };
        let (first, last) = page(None).await;
        assert_eq!(first, Vec::<i64>::new());
        assert!(last.is_some(), "there are more");
        assert_eq!(page(last).await, (vec![1_002, 1_001, 1_000], None));
    }
    // What an index has together is looked through by itself.
    let page = async |filter: &AgreementFilter| {
        let page = agreements::agreements_page(&store, filter, None, 5).await;
        let (found, next) = page.expect("they can be read");
        (found.len(), next.is_some())
    };
    let mut filter = AgreementFilter {
        state: Some(AgreementState::Observed),
        ..AgreementFilter::default()
    };
    assert_eq!(page(&filter).await, (5, true));
    filter.initiator_id = Some("of-mine".to_owned());
    filter.name = Some("hay".to_owned());
    assert_eq!(
        page(&filter).await,
        (5, true),
        "those that match are not the newest"
    );
    filter = AgreementFilter {
        party: Some("physics".to_owned()),
        name: Some("a Needle".to_owned()),
        ..AgreementFilter::default()
    };
    assert_eq!(page(&filter).await, (2, false));
    filter.initiator_id = Some("of-mine".to_owned());
    assert_eq!(page(&filter).await, (2, true), "three were not looked at");
}

async fn rows_and_end_of_a_page_are_of_one_instant(url: String) {
    let (store, lease) = decide(&url).await;
    let waiting: Vec<Change> = (0..1_064)
        .map(|start| {
            let mut waits = agreement("physics");
            waits.slots = Slots::one((Interval::of(Time(1_000 + start), 60), 1));
            waits.name = Some(if start < 1_000 { "hay" } else { "a needle" }.to_owned());
            create(&waits)
        })
        .collect();
    store.commit(lease.epoch, &waiting).await.expect("it is stored");
    let filter = ReservationFilter {
        search: Some("needle".to_owned()),
        ..ReservationFilter::default()
    };
    // Pages and changes take turns on two connections, so that some changes come between the reads of a page.
    let changed = Cell::new(0);
    let read = async {
        let mut pages = 0;
        while pages < 50 || changed.get() < 50 {
            pages += 1;
            let (mut next, mut found) = (Some(FIRST_LIVE), 0);
            while let Some(after) = next {
                let page = reservations::live_reservations(&store, &filter, after, 200).await;
                let page = page.expect("they can be read");
                found += page.0.len();
                next = page.1;
            }
            assert_eq!(found, 64, "none of those that stay is passed over");
        }
    };
    // The first 64 go behind all others, and come back.
    let change = async {
        loop {
            for sql in [
                "UPDATE agreements SET planned_start_s = planned_start_s + 5000, planned_end_s = planned_end_s + 5000 \
                 WHERE planned_start_s < 1064",
                "UPDATE agreements SET planned_start_s = planned_start_s - 5000, planned_end_s = planned_end_s - 5000 \
                 WHERE planned_start_s >= 5000",
            ] {
                tamper(&url, sql).await;
                changed.set(changed.get() + 1);
            }
        }
    };
    tokio::select! {
        () = read => {}
        () = change => {}
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
        let starts = async |limit| {
            starts_of_page(reservations::live_reservations(&store, &filter, FIRST_LIVE, limit).await).0
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
        let starts =
            async |limit| starts_of_page(agreements::agreements_page(&store, &filter, None, limit).await).0;
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
