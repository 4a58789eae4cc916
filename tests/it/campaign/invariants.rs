//! What holds at every moment. Nothing is over capacity, also not over that of the nodes that are left. No agreement is outside its
//! window or on a node that is gone. None is forgotten, and each keeps what was agreed. The check that an operator can run finds
//! nothing.

use std::collections::BTreeSet;

use domain::agreement::Agreement;
use domain::resources::NodeState;
use planner::ListNodes;
use scheduler::{Interval, Time};
use store::{Finding, agreements, bindings, negotiations};

use super::{Aim, CHECKED_EVERY, Campaign, RECOVERY};
use crate::golden::trail_of;
use crate::support::eventually;

/// Seconds in which the plan is looked at: nodes that are down are planned with again later.
pub(super) const AHEAD: i64 = 400;

impl Campaign<'_> {
    /// Asserts what must hold after a verb. Where sessions are being ended, only what is stored is looked at.
    pub(super) async fn check(&mut self, verb: usize, when: &str) {
        if self.ender.is_none() {
            self.check_plan(when).await;
        }
        if verb.is_multiple_of(CHECKED_EVERY) {
            self.check_all(when).await;
        }
    }

    /// Rules that must hold of the plan at any time.
    async fn check_plan(&mut self, when: &str) {
        let (store, now) = (&self.domain.store, self.now());
        let live = agreements::live_agreements(store)
            .await
            .expect("they can be read");
        let bindings = bindings::live_bindings(store, now)
            .await
            .expect("they can be read");
        for resource in self.domain.planner.resources().iter() {
            let states = self
                .domain
                .planner
                .send(ListNodes {
                    resource: resource.name.clone(),
                })
                .await;
            let states = states.expect("it answers");
            let gone = |node: u32| {
                states
                    .get(node as usize)
                    .is_some_and(|state| state.state == NodeState::Down)
            };
            let down = (0..resource.capacity).filter(|node| gone(*node)).count();
            let stay = resource.capacity - u32::try_from(down).expect("few");
            let here: Vec<_> = live
                .iter()
                .filter(|live| live.resource == resource.name)
                .collect();
            if resource.is_retired() {
                // Pieces to come of work that has begun stay where the work is saved.
                let goes_on =
                    |agreement: &&Agreement| agreement.is_being_carried_out() || agreement.slots_begun() > 0;
                assert!(
                    here.iter().copied().all(|each| goes_on(&each)),
                    "{when}: {here:?}"
                );
                self.seen.extend((!here.is_empty()).then_some(Aim::Retiring));
            }
            // Work keeps nodes that leave until it ends.
            let bound: Vec<_> = bindings
                .iter()
                .filter(|binding| binding.resource == resource.name)
                .collect();
            let leaving: Vec<Interval> = bound
                .iter()
                .filter(|bound| bound.node >= resource.capacity)
                .map(|bound| bound.interval)
                .collect();
            self.seen.extend((!leaving.is_empty()).then_some(Aim::Leaving));
            let loads: Vec<_> = here.iter().flat_map(|each| each.loads()).collect();
            // What is used and what is left change at these instants only. An agreement that ended within this second has its nodes
            // until the second is over.
            let begins = loads.iter().map(|(load, _)| load.start);
            let changes = leaving.iter().flat_map(|leaving| [leaving.start, leaving.end]);
            let instants = begins.chain(changes).map(|at| at.max(now + 2));
            let instants: BTreeSet<Time> = instants.filter(|at| *at < now + AHEAD).collect();
            for at in instants {
                let second = Interval::of(at, 1);
                let used = loads.iter().filter(|(load, _)| load.contains(second));
                let used: u32 = used.map(|(_, nodes)| nodes).sum();
                let leaving = leaving.iter().filter(|leaving| leaving.contains(second)).count();
                let left = stay + u32::try_from(leaving).expect("few");
                assert!(
                    used <= left,
                    "{when}: {} has {left} nodes at {at:?}, {used} are used",
                    resource.name
                );
            }
            for binding in bound {
                let runs = here.iter().any(|each| each.id == binding.agreement);
                // An agreement that was lost within this second has had its nodes until the second is over.
                let lasts = binding.interval.end > now + 1;
                assert!(
                    !runs || !lasts || !gone(binding.node),
                    "{when}: {binding:?} is gone"
                );
            }
        }
        let again = |agreement: &Agreement| agreement.job.as_ref().is_some_and(|job| job.restarts > 0);
        self.saw(Aim::Restarted, live.iter().any(again));
    }

    /// Asserts that the stored data has no fault, and that what was answered is kept.
    pub(super) async fn check_all(&mut self, when: &str) {
        let findings = self.verify().await;
        if !findings.is_empty() {
            let trail = trail_of(&self.domain.store).await;
            panic!("{when}:\n{findings:#?}\n{trail}");
        }
        if self.ender.is_none() {
            self.check_told(when).await;
        }
    }

    /// The findings; a session may have been ended in the moment before.
    async fn verify(&self) -> Vec<Finding> {
        for _ in 0..10 {
            match self.domain.store.verify().await {
                Ok(findings) => return findings,
                Err(store::Error::Unavailable(_)) => {}
                Err(error) => panic!("it can be read: {error}"),
            }
        }
        panic!("the store does not recover");
    }

    /// An acknowledged agreement is there with the window, size and duration that it was given; only additions of the provider lie
    /// beyond. An offer that was accepted has its agreement.
    pub(super) async fn check_told(&mut self, when: &str) {
        let store = &self.domain.store;
        for (id, one) in &self.told.accepted {
            let stored = agreements::agreement(store, *id).await.expect("it can be read");
            let stored = stored.unwrap_or_else(|| panic!("{when}: {id} is gone"));
            let deadline = match stored.overrun() {
                // A reservation that begins a little late ends as much later.
                0 if stored.job.is_some() => stored.deadline,
                _ => stored.deadline.min(one.deadline),
            };
            assert_eq!(
                (stored.ready, deadline, &stored.party),
                (one.ready, one.deadline, &one.party),
                "{when}"
            );
            // Work may have got another of its sizes, and other pieces where it may be cut.
            let may_be_cut = one.constraints.cuts.is_some();
            let keeps = |agreement: &Agreement| !may_be_cut && agreement.constraints.shapes.is_empty();
            let size =
                |agreement: &Agreement| keeps(agreement).then_some((agreement.nodes(), agreement.duration));
            assert_eq!(size(&stored), size(one), "{when}");
            let [pieces, before] = [&stored, one].map(|agreement| agreement.slots.pieces().len());
            let more = pieces > before && stored.overrun() > 0;
            assert!(pieces == before || more || may_be_cut, "{when}: {stored:?}");
            self.seen.extend(more.then_some(Aim::Saved));
            let events = agreements::events_of_agreement(store, *id)
                .await
                .expect("they can be read");
            let words: Vec<_> = events.iter().map(|event| event.kind.word()).collect();
            if self.told.terminated.contains(id) {
                let asked = words.iter().filter(|word| **word == "terminating").count();
                assert_eq!(asked, 1, "{when}: {events:?}");
            }
            assert!(
                !stored.state.is_final() || words.last() == Some(&"closed"),
                "{when}: {events:?}"
            );
        }
        for (offer, agreement) in &self.told.made {
            let offer = negotiations::negotiation_offer(store, *offer)
                .await
                .expect("it can be read");
            let (offer, _) = offer.expect("it is there");
            assert_eq!(offer.agreement, Some(*agreement), "{when}");
        }
    }

    /// Waits until the planner is in step with its store: it may just be taking its lease again.
    pub(super) async fn check_is_in_step(&self) {
        let what = format!("a planner that is in step, seed {}", self.seed);
        let planner = &self.domain.planner;
        eventually(&what, RECOVERY, async || planner.is_ready().then_some(())).await;
    }
}
