//! Pieces that move for others, and others that move for pieces.

use super::*;
use crate::placement::trial;
use crate::table::{change_end, replace};
use crate::{OfferOrigin, QuoteOffers, Weights};

fn said(domain: &Domain, id: uuid::Uuid, words: &str) -> bool {
    domain
        .told
        .iter()
        .any(|(told, line)| *told == id && line.contains(words))
}

#[test]
fn others_move_for_pieces_that_have_no_place_else() {
    let mut domain = domain(vec![local("local", 4)]);
    let moves = domain.place(proposal(4, 10, (1, 60))).unwrap().agreement.id;
    let stays = domain.place(proposal(4, 10, (15, 25))).unwrap().agreement.id;
    let asked = cut(4, 20, (3, 100), (0, 35));
    let accepted = domain.place(asked.clone()).unwrap();
    assert_eq!(slots(&accepted.agreement), [(0, 14), (25, 31)]);
    assert_eq!(accepted.moved.len(), 1);
    assert_eq!(domain.of(moves).placement().start, Time(31));
    assert_eq!(domain.of(stays).placement().start, Time(15));
    assert!(said(
        &domain,
        moves,
        "30 seconds later, to let another agreement in"
    ));
    domain.check();
    domain.check_rebuilt();
    // There is no room for the same amount again, and the refused request has moved no agreement.
    let before = domain.known.clone();
    domain.place(asked).unwrap_err();
    assert_eq!(domain.known, before);
    domain.check();
    domain.check_rebuilt();
}

#[test]
fn who_has_a_fixed_slot_does_not_move_for_pieces() {
    let mut domain = domain(vec![local("local", 4)]);
    let fixed = Request {
        fix_at_ppm: Some(0),
        ..proposal(4, 10, (1, 60))
    };
    domain.place(fixed).unwrap();
    domain.place(proposal(4, 10, (15, 25))).unwrap();
    domain.place(cut(4, 20, (3, 100), (0, 35))).unwrap_err();
    domain.check();
}

#[test]
fn pieces_that_have_not_begun_move_for_others_and_keep_their_order() {
    let mut domain = domain(vec![local("local", 4)]);
    domain.place(proposal(4, 20, (10, 30))).unwrap();
    let id = domain.place(cut(4, 30, (3, 100), (0, 200))).unwrap().agreement.id;
    assert_eq!(slots(domain.of(id)), [(0, 9), (30, 51)]);
    let other = domain.place(proposal(4, 10, (32, 42))).unwrap().agreement.id;
    assert_eq!(slots(domain.of(id)), [(0, 9), (42, 63)]);
    assert!(said(
        &domain,
        id,
        "piece 2 of 2 12 seconds later, to let another agreement in"
    ));
    domain.check();
    domain.check_rebuilt();
    domain.begin(0);
    // Running work does not move, and nor do the pieces before it.
    domain.place(proposal(4, 5, (4, 9))).unwrap_err();
    domain.now = 8;
    domain.end(id, RunOutcome::Checkpointed);
    domain.check_rebuilt();
    domain
        .decide(|decider| decider.decide(Terminate::of(other, None)))
        .unwrap();
    assert_eq!(
        slots(domain.of(id)),
        [(0, 9), (30, 51)],
        "into what has become free"
    );
    assert_eq!(domain.of(id).placement(), Interval::new(Time(0), Time(51)));
    domain.check();
    domain.check_rebuilt();
    domain.begin(30);
    domain.now = 40;
    domain.end(id, RunOutcome::Completed);
    assert!(!domain.known.contains_key(&id), "complete");
}

#[test]
fn pieces_whose_agreement_is_fixed_stay_where_they_are_also_when_the_first_has_begun() {
    let mut domain = domain(vec![local("local", 4)]);
    domain.place(proposal(4, 20, (10, 30))).unwrap();
    let fixed = Request {
        fix_at_ppm: Some(1_000_000),
        ..cut(4, 30, (3, 100), (0, 200))
    };
    let id = domain.place(fixed).unwrap().agreement.id;
    domain.begin(0);
    domain.place(proposal(4, 10, (32, 42))).unwrap_err();
    assert!(domain.of(id).fixed);
    assert_eq!(slots(domain.of(id)), [(0, 9), (30, 51)]);
    domain.check_rebuilt();
}

#[test]
fn a_piece_moves_up_into_what_the_one_before_has_left_of_its_time() {
    let mut domain = domain(vec![local("local", 4)]);
    let between = domain.place(proposal(4, 20, (10, 30))).unwrap().agreement.id;
    let id = domain.place(cut(4, 30, (3, 100), (0, 200))).unwrap().agreement.id;
    assert_eq!(slots(domain.of(id)), [(0, 9), (30, 51)]);
    domain.begin(0);
    domain.now = 4;
    domain.end(id, RunOutcome::Checkpointed);
    domain
        .decide(|decider| decider.decide(Terminate::of(between, None)))
        .unwrap();
    let pieces = slots(domain.of(id));
    assert!(pieces[1].0 < 9, "before the planned end of the first: {pieces:?}");
    let first = domain.of(id).slots.pieces()[0].occupied();
    assert!(first.end <= Time(pieces[1].0), "{first} {pieces:?}");
    domain.check();
    domain.check_rebuilt();
}

#[test]
fn others_move_for_a_lost_piece_that_has_no_place_else() {
    let mut domain = restarting(vec![local("local", 4)]);
    let moves = domain.place(proposal(4, 20, (10, 200))).unwrap().agreement.id;
    domain.place(proposal(4, 39, (51, 90))).unwrap();
    let id = domain.place(cut(4, 30, (3, 100), (0, 55))).unwrap().agreement.id;
    assert_eq!(slots(domain.of(id)), [(0, 9), (30, 51)]);
    domain.begin(0);
    domain.now = 3;
    domain.end(id, RunOutcome::Lost);
    assert_eq!(slots(domain.of(id)), [(4, 13), (30, 51)]);
    assert_eq!(domain.of(moves).placement().start, Time(90));
    assert!(said(&domain, moves, "to let one in whose slot was lost"));
    domain.check();
    domain.check_rebuilt();
}

#[test]
fn the_last_piece_ends_later_as_far_as_others_make_room_while_the_first_runs() {
    let mut domain = domain(vec![local("local", 4)]);
    domain.place(proposal(4, 20, (10, 30))).unwrap();
    let id = domain.place(cut(4, 30, (3, 100), (0, 200))).unwrap().agreement.id;
    assert_eq!(slots(domain.of(id)), [(0, 9), (30, 51)]);
    let moves = domain.place(proposal(4, 10, (51, 100))).unwrap().agreement.id;
    domain.place(proposal(4, 5, (70, 75))).unwrap();
    domain.begin(0);
    for (seconds, expected) in [(35, 56), (49, 70), (20, 41)] {
        let offered = last_ends(&mut domain, id, seconds).unwrap();
        assert_eq!(offered, [(0, 9), (30, expected)], "for {seconds} seconds");
    }
    // A slot that stays begins after nineteen seconds.
    for (seconds, why) in [(60, "promised to others"), (9, "its last piece")] {
        let refused = last_ends(&mut domain, id, seconds).unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
    assert_eq!(
        domain.of(moves).placement().start,
        Time(51),
        "an offer that is not held moves no agreement"
    );
    domain.check();
    domain.check_rebuilt();
}

/// The pieces that an agreement that has begun would be offered for this number of seconds in all.
fn last_ends(domain: &mut Domain, id: uuid::Uuid, seconds: i64) -> Result<Vec<(i64, i64)>, String> {
    let ask = QuoteOffers {
        about: OfferOrigin::Negotiation(uuid::Uuid::now_v7()),
        proposal: Request {
            deviation_max: Some(scheduler::Fraction::percent(100)),
            ..cut(4, seconds, (3, 100), (0, 200))
        },
        others: None,
        weights: Weights::default(),
    };
    let quote = domain.decide(|decider| {
        trial::suppose_in_trial(&mut decider.search(), |search| {
            let lifted = replace::lift_replaced_agreement(search, id).unwrap();
            change_end::quote_other_end_of_begun(search, &ask, Time(1_000), &lifted).unwrap()
        })
    });
    let quote = quote.map_err(|refusal| refusal.binding)?;
    let terms = &quote.candidates[0].terms;
    let times_of = |piece: &Slot| (piece.placement.start.seconds(), piece.placement.end.seconds());
    Ok(terms.slots.pieces().iter().map(times_of).collect())
}
