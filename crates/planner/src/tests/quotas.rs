//! What a party is told of its quotas: the sizes that it may have, and the times that are free for it.

use domain::agreement::NegotiationInstance;
use domain::resources::{CLUSTER, Resource};
use scheduler::refusal::Relaxation;
use scheduler::{Interval, Reason, Time};
use uuid::Uuid;

use super::harness::{Domain, proposal};
use crate::{
    OfferOrigin, OpenResource, Quotas, QuoteOffers, Refusal, Request, Settings, ShowAvailability, Weights,
};

/// Four nodes, of which a party may have an hour of one node.
fn domain() -> Domain {
    let mut settings = Settings::new(vec![Resource::new("local", "local", 4)], 100_000);
    settings.quotas.node_hours = Some(1);
    Domain::with(settings)
}

/// Why a request gets no offer.
fn refusal_of(domain: &mut Domain, request: Request) -> Refusal {
    let id = Uuid::now_v7();
    let negotiation = NegotiationInstance {
        id,
        party: request.party.clone(),
        agreement: None,
        created: 0,
        expires: Time(900),
        ended: None,
        proposed: None,
    };
    domain.state.table.open(negotiation, []);
    let ask = QuoteOffers {
        about: OfferOrigin::Negotiation(id),
        proposal: request,
        others: None,
        weights: Weights::default(),
    };
    let quote = domain.decide(|decider| decider.decide(ask)).unwrap();
    quote.refusal.expect("nothing is offered")
}

#[test]
fn a_refusal_names_the_sizes_that_the_quota_leaves_and_those_for_which_there_is_room() {
    let mut domain = domain();
    let asked = proposal(4, 1_800, (1_000, 3_000));
    let refusal = refusal_of(&mut domain, asked.clone());
    assert_eq!(refusal.reason, Reason::QuotaExceeded);
    let words =
        "0 are in use, and 2 are asked for; it may have 2 nodes for 1800 seconds, or 4 nodes for 900 seconds";
    assert!(refusal.binding.ends_with(words), "{refusal:?}");
    let sizes = [Relaxation::Nodes(2), Relaxation::Duration(900)];
    assert_eq!(refusal.relaxations, sizes);
    // Each of them is accepted.
    for (nodes, duration) in [(2, 1_800), (4, 900)] {
        let mut domain = self::domain();
        domain.place(proposal(nodes, duration, (1_000, 3_000))).unwrap();
    }
    let other = Request {
        party: "chemistry".to_owned(),
        ..proposal(3, 1_000, (1_000, 2_000))
    };
    domain.place(other).unwrap();
    let refusal = refusal_of(&mut domain, asked.clone());
    assert!(refusal.binding.ends_with(words), "{refusal:?}");
    assert_eq!(refusal.relaxations, [Relaxation::Duration(900)]);
    domain.place(proposal(1, 3_600, (1_000, 5_000))).unwrap();
    let refusal = refusal_of(&mut domain, asked);
    let words = "1 are in use, and 2 are asked for";
    assert!(refusal.binding.ends_with(words), "{refusal:?}");
    assert_eq!(refusal.relaxations, []);
}

#[test]
fn a_refusal_of_a_window_beyond_the_horizon_of_a_party_names_no_sizes() {
    let mut domain = domain();
    domain.settings.quotas = Quotas {
        horizon: Some(5_000),
        ..Quotas::default()
    };
    let refusal = refusal_of(&mut domain, proposal(4, 1_800, (1_000, 9_000)));
    assert_eq!(refusal.reason, Reason::QuotaExceeded);
    assert_eq!(refusal.relaxations, []);
}

#[test]
fn a_time_is_free_for_a_party_as_far_as_its_quotas_leave_it() {
    let mut domain = domain();
    let within = Interval::new(Time(1_000), Time(9_000));
    let mut free = |nodes| {
        let asked = ShowAvailability {
            party: "physics".to_owned(),
            nodes,
            within,
            kind: None,
        };
        domain.decide(|decider| decider.decide(asked)).unwrap()
    };
    assert_eq!(free(1), Some(vec![within]));
    assert_eq!(free(2), Some(Vec::new()));
    // The second horizon comes before an hour is over.
    for horizon in [5_000, 2_800] {
        domain.settings.quotas = Quotas {
            horizon: Some(horizon),
            ..Quotas::default()
        };
        let asked = ShowAvailability {
            party: "physics".to_owned(),
            nodes: 4,
            within,
            kind: None,
        };
        let free = domain.decide(|decider| decider.decide(asked)).unwrap();
        assert_eq!(free, Some(vec![Interval::new(Time(1_000), Time(horizon))]));
    }
}

#[test]
fn no_sizes_and_no_times_are_told_of_a_resource_before_it_has_been_checked() {
    let resource = Resource {
        closed: true,
        ..Resource::new("local", CLUSTER, 4)
    };
    let mut settings = Settings::new(vec![resource], 100_000);
    settings.quotas.node_hours = Some(1);
    let mut domain = Domain::with(settings);
    let open = OpenResource {
        resource: "local".to_owned(),
    };
    for told in [0, 2] {
        let refusal = refusal_of(&mut domain, proposal(4, 1_800, (1_000, 3_000)));
        assert_eq!(refusal.reason, Reason::QuotaExceeded);
        assert_eq!(refusal.relaxations.len(), told, "{refusal:?}");
        let asked = ShowAvailability {
            party: "physics".to_owned(),
            nodes: 1,
            within: Interval::new(Time(1_000), Time(9_000)),
            kind: None,
        };
        let free = domain.decide(|decider| decider.decide(asked)).unwrap();
        assert_eq!(free.is_some_and(|free| !free.is_empty()), told > 0);
        domain.decide(|decider| decider.decide(open.clone())).unwrap();
    }
}
