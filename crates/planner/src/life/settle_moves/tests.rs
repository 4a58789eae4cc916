//! A decision that moves many stores one record; slices, or what changes an agreement, settle each agreement by one line.

use std::collections::BTreeMap;

use domain::agreement::Agreement;
use domain::resources::Resource;
use scheduler::{Interval, Seconds};

use super::*;
use crate::commands::Place;
use crate::life::unsettled_moves::{SLICE_SETTLED, UnsettledMoves};
use crate::life::update;
use crate::tests::harness::{Domain, proposal};
use crate::{Settings, State, Terminate};

const DAY: Seconds = 86_400;
const BEGIN: i64 = 1_000;
const LONG: i64 = 100;

/// Four nodes, and so many flexible agreements one after the other on all of them.
fn with_waiting(count: i64) -> (Domain, Vec<Uuid>) {
    let mut settings = Settings::new(vec![Resource::new("local", "local", 4)], 30 * DAY);
    settings.improving.idle = false;
    let mut domain = Domain::with(settings);
    domain.moves_up = false;
    let waiting = (0..count).map(|_| {
        let flexible = proposal(4, LONG, (BEGIN, 20 * DAY));
        domain.place(flexible).unwrap().agreement.id
    });
    let waiting = waiting.collect();
    (domain, waiting)
}

/// Lets a rigid newcomer in on all nodes for some time: what lies there has to move.
fn let_in(domain: &mut Domain, from: i64, until: i64) -> Vec<Change> {
    let rigid = proposal(4, until - from, (from, until));
    domain.decide(|decider| {
        decider.decide(Place(rigid)).unwrap();
        decider.batch.clone()
    })
}

fn settle(domain: &mut Domain) -> Vec<Change> {
    domain.decide(|decider| {
        decider.settle_some_moves();
        decider.batch.clone()
    })
}

/// The versions that are stored for agreements whose moves are settled.
fn settled(batch: &[Change]) -> Vec<(Uuid, i64, i64)> {
    let of_change = |change: &Change| match change {
        Change::SettleMoves {
            agreement, before, ..
        } => Some((agreement.id, *before, agreement.version)),
        _ => None,
    };
    batch.iter().filter_map(of_change).collect()
}

fn updated(batch: &[Change]) -> usize {
    let is_update = |change: &&Change| matches!(change, Change::UpdateAgreement { .. });
    batch.iter().filter(is_update).count()
}

fn recorded(batch: &[Change]) -> Vec<Arc<MoveRecord>> {
    let of_change = |change: &Change| match change {
        Change::RecordMoves(record) => Some(Arc::clone(record)),
        _ => None,
    };
    batch.iter().filter_map(of_change).collect()
}

fn forgotten(batch: &[Change]) -> Vec<i64> {
    let of_change = |change: &Change| match change {
        Change::ForgetMoves(record) => Some(record.number),
        _ => None,
    };
    batch.iter().filter_map(of_change).collect()
}

#[test]
fn many_moves_are_one_change_and_are_settled_in_slices() {
    let many = SLICE_SETTLED + 6;
    let (mut domain, waiting) = with_waiting(i64::try_from(many).unwrap());
    let until = BEGIN + LONG * i64::try_from(many).unwrap();
    let before: BTreeMap<_, _> = waiting.iter().map(|id| (*id, domain.of(*id).slot())).collect();
    let batch = let_in(&mut domain, BEGIN, until);
    let [record] = &recorded(&batch)[..] else {
        panic!("{batch:?}")
    };
    assert_eq!((record.number, record.moves.len()), (1, many));
    assert!(record.cause.is_some());
    assert_eq!((updated(&batch), settled(&batch).len()), (0, 0));
    domain.check();
    assert!(domain.state.has_unsettled_moves());

    domain.told.clear();
    let first = settle(&mut domain);
    assert_eq!(settled(&first).len(), SLICE_SETTLED);
    assert!(forgotten(&first).is_empty(), "others are left");
    let second = settle(&mut domain);
    assert_eq!((settled(&second).len(), forgotten(&second)), (6, vec![1]));
    assert!(!domain.state.has_unsettled_moves());
    assert_eq!(settle(&mut domain).len(), 0);
    domain.check();
    for (id, slot) in before {
        let told: Vec<_> = domain.told.iter().filter(|told| told.0 == id).collect();
        let moved = time_difference_in_words(domain.of(id).slot().start - slot.start);
        let line = format!("{moved}, to let another agreement in");
        assert_eq!(told, [&(id, line)], "one line for each");
        assert_eq!(domain.of(id).version, 2);
    }
}

#[test]
fn a_few_moves_and_those_that_bind_soon_are_stored_one_by_one() {
    let few = i64::try_from(FEW_MOVES).unwrap();
    let (mut domain, _) = with_waiting(few);
    let batch = let_in(&mut domain, BEGIN, BEGIN + LONG * few);
    assert_eq!((updated(&batch), recorded(&batch)), (FEW_MOVES, vec![]));

    let (mut domain, waiting) = with_waiting(2 * few);
    // Only the first of them begins within the time.
    domain.now = BEGIN - SOON + LONG / 2;
    let batch = let_in(&mut domain, BEGIN, BEGIN + LONG * 2 * few);
    let [record] = &recorded(&batch)[..] else {
        panic!("{batch:?}")
    };
    assert_eq!((updated(&batch), record.moves.len()), (1, 2 * FEW_MOVES - 1));
    assert!(
        record
            .moves
            .iter()
            .all(|one_move| one_move.agreement != waiting[0])
    );
}

#[test]
fn all_that_may_be_unsettled_is_settled_before_a_start_that_is_recorded_binds() {
    let slices = UNSETTLED_MAX.div_ceil(SLICE_SETTLED);
    assert!(slices < usize::try_from(SOON).unwrap(), "a slice takes a second");
}

#[test]
fn what_changes_an_agreement_settles_its_moves_first() {
    let (mut domain, waiting) = with_waiting(20);
    let batch = let_in(&mut domain, BEGIN, BEGIN + 20 * LONG);
    assert_eq!(recorded(&batch).len(), 1);
    let ended = waiting[7];
    let order = Terminate::of(ended, None);
    let batch = domain.decide(|decider| {
        decider.decide(order).unwrap();
        decider.batch.clone()
    });
    assert_eq!(settled(&batch), [(ended, 1, 2)]);
    let last = batch.iter().find_map(|change| match change {
        Change::UpdateAgreement { agreement, .. } => Some((agreement.id, agreement.version)),
        _ => None,
    });
    assert_eq!(last, Some((ended, 3)));
    let rest = settle(&mut domain);
    assert_eq!((settled(&rest).len(), forgotten(&rest)), (19, vec![1]));
    assert!(settled(&rest).iter().all(|(id, ..)| *id != ended));
}

#[test]
fn moves_of_several_records_are_one_line_and_a_record_goes_when_others_have_taken_its_place() {
    let (mut domain, waiting) = with_waiting(20);
    let_in(&mut domain, BEGIN, BEGIN + 20 * LONG);
    let now: Vec<_> = waiting.iter().map(|id| domain.of(*id).slot()).collect();
    let first = now.iter().map(|slot| slot.start).min().unwrap().seconds();
    let last = now.iter().map(|slot| slot.end).max().unwrap().seconds();
    let batch = let_in(&mut domain, first, last);
    assert_eq!((recorded(&batch)[0].number, forgotten(&batch)), (2, vec![1]));
    domain.told.clear();
    let batch = settle(&mut domain);
    assert_eq!(forgotten(&batch), [2]);
    assert!(
        settled(&batch)
            .iter()
            .all(|(_, before, after)| (*before, *after) == (1, 3))
    );
    for (at, id) in waiting.iter().enumerate() {
        let told: Vec<_> = domain.told.iter().filter(|told| told.0 == *id).collect();
        let from = Time(BEGIN + LONG * i64::try_from(at).unwrap());
        let moved = time_difference_in_words(domain.of(*id).slot().start - from);
        assert_eq!(told, [&(*id, format!("{moved}, to let another agreement in"))]);
    }
}

#[test]
fn a_plan_that_is_read_again_knows_where_agreements_are_and_what_is_unsettled() {
    let (mut domain, waiting) = with_waiting(20);
    let mut rows: Vec<Agreement> = waiting.iter().map(|id| domain.of(*id).clone()).collect();
    let records = recorded(&let_in(&mut domain, BEGIN, BEGIN + 20 * LONG));
    // One was settled and ended before the crash, another one is stored where it is.
    let over = rows.remove(3);
    rows[5] = domain.of(rows[5].id).clone();
    let settled_one = rows[5].id;
    let records = records.iter().map(|record| MoveRecord::clone(record)).collect();
    let unsettled = UnsettledMoves::of(records, 0, &mut rows);
    assert_eq!((unsettled.len(), unsettled.next_number()), (18, 2));
    let later = UnsettledMoves::of(Vec::new(), 40, &mut []);
    assert_eq!(later.next_number(), 41, "a number that no settled record has had");
    for row in &rows {
        assert_eq!(row, domain.of(row.id));
    }
    let resources = domain.state.schedules.list();
    let mut state = State::rebuild(&domain.settings, &resources, rows, Vec::new(), Time(0)).unwrap();
    state.recall_moves(unsettled);
    domain.state = state;
    let batch = settle(&mut domain);
    assert_eq!((settled(&batch).len(), forgotten(&batch)), (18, vec![1]));
    let gone = [over.id, settled_one];
    assert!(
        settled(&batch)
            .iter()
            .all(|(id, before, after)| { (*before, *after) == (1, 2) && !gone.contains(id) })
    );
    let overlap = Interval::new(Time(BEGIN), Time(BEGIN + 20 * LONG));
    for row in domain.known.values().filter(|row| row.duration == LONG) {
        let slot = row.slot();
        assert!(slot.end <= overlap.start || slot.start >= overlap.end, "{slot}");
    }
}

#[test]
fn who_was_moved_back_before_its_moves_were_settled_is_told_nothing() {
    let (mut domain, waiting) = with_waiting(20);
    let starts: Vec<Time> = waiting.iter().map(|id| domain.of(*id).slot().start).collect();
    let rigid = proposal(4, 20 * LONG, (BEGIN, BEGIN + 20 * LONG));
    let newcomer = domain.place(rigid).unwrap().agreement.id;
    domain.decide(|decider| decider.decide(Terminate::of(newcomer, None)).unwrap());
    let batch = domain.decide(|decider| {
        let numbers = |id: &Uuid| decider.state.placement.numbers_of(*id)[0];
        let numbers: Vec<u64> = waiting.iter().map(numbers).collect();
        let resources = &mut decider.state.schedules;
        let lifted = numbers
            .iter()
            .map(|number| resources.withdraw(0, *number).unwrap());
        let lifted: Vec<_> = lifted.collect();
        let back = lifted.into_iter().zip(&starts).map(|((request, from), to)| {
            assert!(resources.put(0, Time(0), &request, *to));
            let (id, to) = (request.id, *to);
            Move { id, from, to }
        });
        let back: Vec<Move> = back.collect();
        update::update_after_moves(decider, &back, "back");
        decider.batch.clone()
    });
    assert_eq!(recorded(&batch).len(), 1);
    domain.told.clear();
    let batch = settle(&mut domain);
    let is_told = batch.iter().filter_map(|change| match change {
        Change::SettleMoves { is_told, .. } => Some(*is_told),
        _ => None,
    });
    assert_eq!(is_told.collect::<Vec<_>>(), [false; 20]);
    let line = "moved and moved back, back";
    assert!(
        domain.told.iter().all(|(_, told)| told == line),
        "{:?}",
        domain.told
    );
}
