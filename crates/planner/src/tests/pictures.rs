//! What pages are shown of the plan is a part of the whole of it.

use domain::agreement::Agreement;
use domain::resources::Resource;
use scheduler::{Interval, Time};

use super::harness::{Domain, HORIZON, proposal};
use crate::picture::{PicturedSlot, slots_of_all, slots_of_party};
use crate::{ListPlanned, Request, ShowOperations};

const PARTIES: [&str; 3] = ["chemistry", "medicine", "physics"];

/// Draws numbers from a seed.
fn draws(mut seed: u64) -> impl FnMut(i64) -> i64 {
    move |below| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        i64::try_from(seed >> 33).unwrap() % below
    }
}

/// Some agreements of each party on two resources, of which some have begun and some are over.
fn domain(draw: &mut impl FnMut(i64) -> i64) -> Domain {
    let mut domain = Domain::new(vec![
        Resource::new("here", "local", 4),
        Resource::new("there", "local", 3),
    ]);
    for number in 0..60 {
        let (start, duration) = (draw(2_000), 1 + draw(if number % 8 == 0 { 700 } else { 60 }));
        let request = Request {
            party: PARTIES[number % 3].to_owned(),
            ..proposal(
                1 + u32::try_from(draw(3)).unwrap(),
                duration,
                (domain.now + start, domain.now + start + duration + draw(600)),
            )
        };
        let _ = domain.place(request);
        if number % 10 == 9 {
            domain.pass_until(domain.now + draw(30));
        }
    }
    domain
}

#[test]
fn the_slots_of_a_time_are_that_part_of_the_whole_plan() {
    let mut draw = draws(5);
    for _ in 0..10 {
        let mut domain = domain(&mut draw);
        let windows: Vec<Interval> = (0..20)
            .map(|_| Interval::of(Time(draw(3_000)), draw(500)))
            .collect();
        domain.decide(|decider| {
            let view = decider.view();
            for plan in view.schedules.plans() {
                let whole = Interval::new(Time(0), Time(2 * HORIZON));
                let (all, more) = slots_of_all(view, plan, whole, usize::MAX);
                assert_eq!(more, 0);
                let live = view.agreements.iter();
                let there = live.filter(|live| live.resource == plan.resource.name);
                let unended: usize = there.map(|live| live.slots.len() - live.slots_over()).sum();
                assert_eq!(all.len(), unended, "every slot is on it");
                for window in &windows {
                    let meets = |slot: &&PicturedSlot| slot.interval.meets(*window);
                    let part: Vec<PicturedSlot> = all.iter().filter(meets).cloned().collect();
                    assert_eq!(slots_of_all(view, plan, *window, usize::MAX), (part.clone(), 0));
                    let (some, more) = slots_of_all(view, plan, *window, 3);
                    assert_eq!((some.len() + more, some.len()), (part.len(), part.len().min(3)));
                    for party in PARTIES {
                        let own = part.iter().filter(|slot| slot.party == party);
                        let own: Vec<PicturedSlot> = own.cloned().collect();
                        let first = own.iter().take(2).cloned().collect();
                        let found = slots_of_party(view, plan, party, *window, 2);
                        assert_eq!(found, (first, own.len().saturating_sub(2)));
                    }
                }
            }
        });
    }
}

#[test]
fn what_waits_is_counted_as_it_changes() {
    let mut draw = draws(7);
    let mut domain = domain(&mut draw);
    let operations = domain.decide(|decider| decider.decide(ShowOperations { waiting_max: 5 }));
    let operations = operations.unwrap();
    domain.decide(|decider| {
        let view = decider.view();
        let mut waiting: Vec<_> = view
            .agreements
            .iter()
            .filter(|live| live.is_waiting())
            .map(|live| (live.placement().start, live.id))
            .collect();
        waiting.sort_unstable();
        assert_eq!(operations.waiting, waiting.len());
        let next = operations
            .next
            .iter()
            .map(|next| (next.placement().start, next.id));
        assert_eq!(next.collect::<Vec<_>>(), waiting[..5]);
        for of in &operations.resources {
            let there = |live: &&Agreement| live.resource == of.name;
            let begun = view.agreements.iter().filter(|live| live.service.is_ready());
            let booked: u32 = begun.filter(there).map(Agreement::slot_nodes).sum();
            assert_eq!(of.booked, booked);
        }
    });
}

#[test]
fn what_a_resource_has_is_listed_by_start() {
    let mut draw = draws(11);
    let mut domain = domain(&mut draw);
    let resources = ["here", "there", "nowhere"].map(str::to_owned);
    let lists = resources.clone().map(|resource| {
        let listed = domain.decide(|decider| decider.decide(ListPlanned { resource }));
        listed.unwrap().agreements
    });
    domain.decide(|decider| {
        let view = decider.view();
        for (resource, listed) in resources.into_iter().zip(lists) {
            let there = view.agreements.iter().filter(|live| live.resource == resource);
            let mut there: Vec<_> = there.collect();
            there.sort_by_key(|live| (live.placement().start, live.id));
            assert_eq!(there.is_empty(), resource == "nowhere");
            assert!(listed.iter().map(|(live, _)| live).eq(there), "{resource}");
        }
    });
}
