//! Faults that the tests of the writer make in a plan, to see what follows: nothing else leads to them.

use domain::agreement::Agreement;
use scheduler::{Interval, Request, Time};
use uuid::Uuid;

use crate::decider::Decider;
use crate::schedules::need::request_of_agreement;
use crate::state::State;

/// The number of the first request that nobody knows.
const STRANGER: u64 = 1_000;

impl Decider<'_> {
    /// The plan, to be damaged.
    pub fn plan_to_damage(&mut self) -> &mut State {
        self.state
    }
}

impl State {
    /// Notes that something has happened that must never happen.
    pub fn damage(&mut self, what: &str) {
        self.note_impossible(|| what.to_owned());
    }

    /// Takes a waiting agreement off the first resource and gives one of its nodes to a request that nobody knows. Whether that was
    /// possible.
    pub fn inject_stranger_for(&mut self, agreement: &Agreement, now: Time) -> bool {
        let Some(number) = self.placement.numbers_of(agreement.id).first().copied() else {
            return false;
        };
        self.schedules.vacate(0, now, number);
        let stranger = Request {
            id: STRANGER,
            nodes: 1,
            ..request_of_agreement(agreement, number)
        };
        self.schedules.put(0, now, &stranger, stranger.ready)
    }

    /// Gives each place that the first resource keeps for an offer to a request that nobody knows. Whether that was possible.
    pub fn inject_strangers_for_holds(&mut self, resource: &str, now: Time) -> bool {
        let held: Vec<u64> = self.table.held_on(resource).into_keys().collect();
        held.into_iter().all(|number| {
            let plan = self.schedules.get(0);
            let kept = plan.and_then(|plan| plan.schedule.placements().find(|placed| placed.id == number));
            let Some(kept) = kept else { return false };
            let stranger = Request {
                id: STRANGER + number,
                submitted: now,
                ready: kept.slot.start,
                deadline: kept.slot.end,
                duration: kept.slot.duration(),
                nodes: kept.nodes,
                revenue: 0,
            };
            self.schedules.vacate(0, now, number);
            self.schedules.put(0, now, &stranger, stranger.ready)
        })
    }

    /// Forgets the numbers by which the schedules know the slots of an agreement.
    pub fn forget_numbers_of(&mut self, id: Uuid) {
        self.placement.keep_first(id, 0);
    }

    /// Puts an agreement on the first resource a second time. Whether that was possible.
    pub fn inject_double_placement(&mut self, agreement: &Agreement, now: Time) -> bool {
        let Some(number) = self.placement.numbers_of(agreement.id).first().copied() else {
            return false;
        };
        let request = request_of_agreement(agreement, number);
        self.schedules.put(0, now, &request, request.ready)
    }

    /// What the schedule of the first resource has, by start: slots, and numbers of nodes.
    pub fn scheduled_despite_faults(&self) -> Vec<(Interval, u32)> {
        let plan = self.schedules.get(0);
        let placements = plan.into_iter().flat_map(|plan| plan.schedule.placements());
        let mut placed: Vec<_> = placements
            .map(|placement| (placement.slot, placement.nodes))
            .collect();
        placed.sort_unstable_by_key(|(slot, _)| slot.start);
        placed
    }
}
