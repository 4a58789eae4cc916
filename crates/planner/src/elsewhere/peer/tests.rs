//! What a peer delivers late, or not at all, is not delivered here either.

use domain::agreement::{
    Agreement, AgreementState, AtPeer, Guarantee, GuaranteeState, Job, JobEnd, Money, RunOutcome, SeenAtPeer,
    ServiceState, Values,
};
use domain::clock::MICROS_PER_SECOND;
use domain::resources::{PEER, Resource};
use scheduler::Time;
use uuid::Uuid;

use crate::commands::{BeginDue, ReportAtPeer};
use crate::life::reports;
use crate::tests::harness::{Domain, proposal};
use crate::tests::price_plan::eur;
use crate::{Request, State, Terminate};

const PRICE: i64 = 6_000;

fn price(micros: i64) -> Money {
    Money::new(micros, eur())
}

fn at(seconds: i64) -> i64 {
    seconds * MICROS_PER_SECOND
}

/// Two nodes for a minute from 100 on.
fn reservation() -> Request {
    proposal(2, 60, (100, 160))
}

fn work() -> Request {
    Request {
        job: Some(Job {
            application: "sleep".into(),
            ..Job::default()
        }),
        ..reservation()
    }
}

/// A reservation whose start is guaranteed.
fn with_start() -> Request {
    Request {
        guarantees: vec![Guarantee {
            name: "START".into(),
            objective: "started le latest_start".into(),
            qualifying_condition: None,
            state: GuaranteeState::NotDetermined,
            evidence: None,
            values: Values::default(),
        }],
        ..reservation()
    }
}

/// What was found of its start.
fn start_of(agreement: &Agreement) -> GuaranteeState {
    agreement.guarantees[0].state
}

/// A domain with a peer that is to carry out this agreement.
fn agreed_at_peer(asked: Request) -> (Domain, Uuid) {
    let mut here = Domain::new(vec![Resource::new("south", "local", 4)]);
    let agreement = Agreement {
        fixed: true,
        price: Some(price(PRICE)),
        ..here.place(asked).unwrap().agreement
    };
    let id = agreement.id;
    let mut domain = Domain::new(vec![Resource::new("south", PEER, 4)]);
    let (settings, live) = (&domain.settings, vec![agreement.clone()]);
    domain.state = State::rebuild(settings, &settings.resources, live, Vec::new(), Time(0)).unwrap();
    domain.known.insert(id, agreement);
    (domain, id)
}

/// A domain with a peer that carries out this agreement, which has just begun.
fn begun_at_peer(asked: Request) -> (Domain, Uuid) {
    let (mut domain, id) = agreed_at_peer(asked);
    begin_due(&mut domain, 100);
    (domain, id)
}

fn begin_due(domain: &mut Domain, second: i64) {
    domain.now = second;
    domain
        .decide(|decider| decider.decide(BeginDue).map(drop))
        .unwrap();
}

/// Has the party of an agreement end it at a second.
fn end(domain: &mut Domain, second: i64, id: Uuid) {
    domain.now = second;
    let end = Terminate::of(id, None);
    domain.decide(|decider| decider.decide(end)).unwrap();
}

/// The news of an agreement at its peer.
fn seen(id: Uuid, started_us: Option<i64>, lost: Option<&str>) -> SeenAtPeer {
    let row = AtPeer {
        id: Uuid::from_u128(7),
        agreement: id,
        peer: "south".into(),
        address: Some("http://127.0.0.1:9/agreements/1".into()),
        intent: None,
        price: None,
        made: 0,
        state: AgreementState::Observed.word().into(),
        charged: 0,
        paid_back: 0,
        lost: lost.is_some(),
        guarantees: Vec::new(),
        settled: None,
    };
    SeenAtPeer {
        row,
        slot: None,
        started: started_us,
        lost: lost.map(Into::into),
        ended: None,
    }
}

/// Has something be seen at a peer at a second.
fn see(domain: &mut Domain, second: i64, seen: SeenAtPeer) {
    domain.now = second;
    domain
        .decide(|decider| decider.decide(ReportAtPeer(seen)))
        .unwrap();
}

/// Has the peer tell something about an agreement at a second.
fn tell(domain: &mut Domain, second: i64, id: Uuid, started_us: Option<i64>, lost: Option<&str>) {
    see(domain, second, seen(id, started_us, lost));
}

#[test]
fn nodes_that_a_peer_hands_over_late_are_delivered_from_then_on() {
    for (started, delivered, owed) in [(at(100), 60, PRICE), (at(130), 30, PRICE / 2)] {
        let (mut domain, id) = begun_at_peer(reservation());
        assert!(domain.of(id).never_had_nodes(), "it has not told yet");
        tell(&mut domain, 131, id, Some(started), None);
        assert_eq!(domain.of(id).started, Some(started));
        begin_due(&mut domain, 160);
        let over = &domain.over[&id];
        assert_eq!(over.outcome, Some(RunOutcome::Completed), "{over:?}");
        assert_eq!(
            (over.delivered(), over.price_of_delivered()),
            (delivered, Some(price(owed)))
        );
    }
}

#[test]
fn a_clock_of_a_peer_that_is_wrong_gives_no_nodes_before_their_slot_or_later_than_now() {
    for (told, started) in [(at(90), at(100)), (at(999), at(131))] {
        let (mut domain, id) = begun_at_peer(reservation());
        tell(&mut domain, 131, id, Some(told), None);
        assert_eq!(domain.of(id).started, Some(started));
    }
}

#[test]
fn the_word_of_a_peer_is_waited_for_beyond_the_slot_and_counts_when_it_comes() {
    let (mut domain, id) = begun_at_peer(reservation());
    begin_due(&mut domain, 160);
    assert_eq!(
        domain.state.life.next_own_due(),
        Some(Time(160 + 3_600)),
        "only its word matters"
    );
    begin_due(&mut domain, 2_000);
    assert_eq!(domain.of(id).service, ServiceState::Idle, "the peer is silent");
    tell(&mut domain, 2_001, id, Some(at(100)), None);
    begin_due(&mut domain, 2_001);
    let over = &domain.over[&id];
    assert_eq!(
        (over.outcome, over.ended, over.price_of_delivered()),
        (Some(RunOutcome::Completed), Some(at(160)), Some(price(PRICE)))
    );
}

#[test]
fn nodes_that_a_peer_has_not_handed_over_are_lost_and_cost_nothing() {
    let silent: fn(&mut Domain, Uuid) = |domain, _| begin_due(domain, 160 + 3_600);
    let told: fn(&mut Domain, Uuid) = |domain, id| tell(domain, 161, id, None, Some("it came to nothing"));
    for way in [silent, told] {
        let (mut domain, id) = begun_at_peer(with_start());
        way(&mut domain, id);
        let over = &domain.over[&id];
        assert_eq!(
            (over.outcome, over.price_of_delivered()),
            (Some(RunOutcome::Lost), None)
        );
        assert_eq!(start_of(over), GuaranteeState::Violated);
    }
}

#[test]
fn the_start_at_a_peer_is_judged_by_the_word_of_the_peer_however_late_that_comes() {
    // The service is there at the start, or comes up half a minute later.
    for begun in [100, 130] {
        for (started, found) in [
            (at(100), GuaranteeState::Fulfilled),
            (at(120), GuaranteeState::Violated),
        ] {
            let (mut domain, id) = agreed_at_peer(with_start());
            begin_due(&mut domain, begun);
            begin_due(&mut domain, 140);
            assert_eq!(start_of(domain.of(id)), GuaranteeState::NotDetermined, "{begun}");
            assert_eq!(domain.state.life.next_assessment(), None, "no instant stays due");
            tell(&mut domain, 141, id, Some(started), None);
            assert_eq!(start_of(domain.of(id)), found, "{begun}");
        }
    }
}

#[test]
fn who_ends_a_reservation_at_a_peer_pays_for_it_once_the_peer_tells_since_when_its_nodes_are_there() {
    for (started, owed) in [(at(100), PRICE), (at(115), PRICE / 4 * 3)] {
        let (mut domain, id) = begun_at_peer(reservation());
        end(&mut domain, 130, id);
        assert_eq!(domain.of(id).state, AgreementState::ObservedAndTerminating);
        tell(&mut domain, 135, id, Some(started), None);
        let over = &domain.over[&id];
        assert_eq!(
            (over.state, over.outcome, over.ended, over.price_of_delivered()),
            (
                AgreementState::Terminated,
                Some(RunOutcome::Terminated),
                Some(at(135)),
                Some(price(owed))
            )
        );
    }
}

#[test]
fn who_ends_a_reservation_that_its_peer_has_not_handed_over_pays_nothing() {
    let silent: fn(&mut Domain, Uuid) = |domain, _| begin_due(domain, 160 + 3_600);
    let gone: fn(&mut Domain, Uuid) = |domain, id| tell(domain, 131, id, None, Some("it is not known there"));
    let over_there: fn(&mut Domain, Uuid) = |domain, id| {
        let mut seen = seen(id, None, None);
        seen.row.state = AgreementState::Terminated.word().into();
        // That is an agreement which the peer had lost before.
        seen.row.lost = true;
        see(domain, 131, seen.clone());
        assert!(
            domain.known.contains_key(&id),
            "it says nothing of the present one"
        );
        seen.row.lost = false;
        see(domain, 132, seen);
    };
    for way in [silent, gone, over_there] {
        let (mut domain, id) = begun_at_peer(with_start());
        end(&mut domain, 130, id);
        begin_due(&mut domain, 130);
        assert_eq!(domain.of(id).state, AgreementState::ObservedAndTerminating);
        way(&mut domain, id);
        let over = &domain.over[&id];
        assert_eq!(
            (over.state, over.outcome, over.price_of_delivered()),
            (AgreementState::Terminated, Some(RunOutcome::Terminated), None)
        );
        assert_eq!(
            start_of(over),
            GuaranteeState::NotDetermined,
            "its party has ended it"
        );
    }
}

#[test]
fn who_ends_work_whose_peer_is_silent_pays_nothing() {
    let (mut domain, id) = begun_at_peer(work());
    end(&mut domain, 130, id);
    // So it counts where the peer could not be asked for an hour.
    domain.now = 160 + 3_600;
    let lost = JobEnd::new(RunOutcome::Lost, None, at(domain.now));
    domain
        .decide(|decider| reports::record_reported_end(decider, id, &lost))
        .unwrap();
    let over = &domain.over[&id];
    assert_eq!(
        (over.state, over.price_of_delivered()),
        (AgreementState::Terminated, Some(price(0)))
    );
}

#[test]
fn work_that_a_peer_begins_late_in_its_slot_pays_for_what_was_left() {
    for (late, owed) in [(30, PRICE / 2), (5, PRICE), (0, PRICE)] {
        let (mut domain, id) = begun_at_peer(work());
        domain.now = 160;
        let end = JobEnd {
            late,
            ..JobEnd::new(RunOutcome::Killed, Some(at(100 + late)), at(160))
        };
        domain
            .decide(|decider| reports::record_reported_end(decider, id, &end))
            .unwrap();
        assert_eq!(
            domain.over[&id].price_of_delivered(),
            Some(price(owed)),
            "{late} seconds"
        );
    }
}
