//! The state in memory: the basis of the decisions, which the store can rebuild at any time.
//!
//! A decision takes slots out of the plan and puts them back a moment later, and relies on the plan in many other ways. Where
//! this fails, other parts of the plan may be wrong too: the plan in memory is not the stored one any more. The code that
//! finds this notes it (`impossible.rs`) and returns. Before a batch is stored, the writer looks there. Where something is noted, it stores
//! nothing of the batch, reads the plan anew, and answers that the requests are worth another try. So no decision has to undo
//! anything (`docs/decisions/0006`).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use domain::agreement::{Agreement, NegotiationInstance, NegotiationOffer};
use domain::resources::{Binding, CLUSTER, NodeRow, Resource};
use scheduler::{Time, counted};
use uuid::Uuid;

use crate::agreements::{Agreements, is_undecided_agreement};
use crate::elsewhere::waiting_commands::WaitingCommands;
use crate::error::Inconsistent;
use crate::journal::TakeBack;
use crate::life::Life;
use crate::life::unsettled_moves::UnsettledMoves;
use crate::limits::Limits;
use crate::placement::places::Places;
use crate::schedules::Schedules;
use crate::schedules::foresight::Foresight;
use crate::schedules::need::requests_of_agreement;
use crate::schedules::resource_plan::{ResourcePlan, new_resource_plan};
use crate::settings::Settings;
use crate::table::Table;
use crate::table::suggestion::Suggestion;

/// The state in memory, by its owners. Calls among them go in this order.
pub struct State {
    /// When something is due for agreements, and what runs.
    pub(super) life: Life,
    /// The negotiations that go on, and what is held for their offers.
    pub(super) table: Table,
    /// The commands that wait for their clusters.
    pub(super) elsewhere: WaitingCommands,
    /// The slots by their numbers, and which have moved of late.
    pub(super) placement: Places,
    /// What parties have, spend and ask.
    pub(super) limits: Limits,
    /// Every agreement that is not over.
    pub(super) agreements: Agreements,
    /// The resources with their schedules.
    pub(super) schedules: Schedules,
}

impl State {
    /// The state that a set of live agreements makes on resources, given by rising id, for decisions from `now` on. Retired resources
    /// without any are left out, once all nodes are given back; but not clusters, where reservations may be left. O(n log n).
    ///
    /// # Errors
    /// [`Inconsistent`] when an agreement names a resource that there is not, or does not fit on it.
    pub fn rebuild(
        settings: &Settings,
        resources: &[Resource],
        agreements: Vec<Agreement>,
        bindings: Vec<Binding>,
        now: Time,
    ) -> Result<Self, Inconsistent> {
        let unended = bindings.iter().filter(|binding| binding.interval.end > now);
        let used = agreements.iter().map(|agreement| agreement.resource.as_str());
        let used: BTreeSet<&str> = used
            .chain(unended.map(|unended| unended.resource.as_str()))
            .collect();
        let is_gone = |resource: &&Resource| {
            resource.is_retired() && resource.kind != CLUSTER && !used.contains(resource.name.as_str())
        };
        let (gone, resources): (Vec<_>, Vec<&Resource>) = resources.iter().partition(is_gone);
        let gone = gone.into_iter().cloned().collect();
        let places: HashMap<&str, usize> = resources
            .iter()
            .map(|resource| resource.name.as_str())
            .zip(0..)
            .collect();
        // Work still has them.
        let mut leaving: HashMap<usize, BTreeSet<u32>> = HashMap::new();
        for binding in bindings.iter().filter(|binding| binding.interval.end > now) {
            let place = places.get(binding.resource.as_str());
            if let Some(at) = place.filter(|at| binding.node >= resources[**at].capacity) {
                leaving.entry(*at).or_default().insert(binding.node);
            }
        }
        let planned = |(at, resource): (usize, &&Resource)| {
            let leaving = leaving.get(&at).map_or(0, BTreeSet::len);
            new_resource_plan(
                resource,
                u32::try_from(leaving).unwrap_or(u32::MAX),
                settings,
                now,
            )
        };
        let mut plans: Vec<ResourcePlan> = resources.iter().enumerate().map(planned).collect();
        // They stay where they were read: each takes a kilobyte.
        let mut numbers = Vec::with_capacity(agreements.len());
        let mut number = 0;
        for agreement in &agreements {
            numbers.push(number);
            if is_undecided_agreement(agreement) {
                continue;
            }
            let place = places.get(agreement.resource.as_str());
            restore_state_of_agreement(place.and_then(|at| plans.get_mut(*at)), agreement, number)
                .map_err(|why| Inconsistent(format!("agreement {} {why}", agreement.id)))?;
            number += agreement.slots.len() as u64;
        }
        // The slots before the present one have had nodes, too.
        let present_slot = |id: Uuid| {
            let found = agreements.binary_search_by_key(&id, |agreement| agreement.id);
            let agreement = &agreements[found.ok()?];
            (!is_undecided_agreement(agreement)).then(|| agreement.slot())
        };
        let mut bound: HashMap<Uuid, Vec<u32>> = HashMap::new();
        let mut from = now;
        for binding in bindings {
            let until = binding.interval.end;
            if let Some(at) = places.get(binding.resource.as_str()) {
                plans[*at].bind(&[binding.node], until);
            }
            let slot = present_slot(binding.agreement);
            if slot.is_some_and(|slot| slot.contains(binding.interval)) {
                bound.entry(binding.agreement).or_default().push(binding.node);
            } else {
                // It ended within this second, or a slot of it did, and has its nodes until the second is over.
                from = from.max(until);
            }
        }
        for plan in &mut plans {
            plan.schedule.advance(from);
        }
        let mut state = Self {
            life: Life::new(settings, bound, now),
            table: Table::default(),
            elsewhere: WaitingCommands::default(),
            placement: Places::default(),
            limits: Limits::default(),
            agreements: Agreements::with_room_for(agreements.len()),
            schedules: Schedules::new(plans, gone, settings, now),
        };
        state.life.begin_filling();
        for (agreement, number) in agreements.into_iter().zip(numbers) {
            if is_undecided_agreement(&agreement) {
                state.insert_unplaced(agreement);
                continue;
            }
            if agreement.waits_to_run_again() {
                state.life.stop_lost_work_later(agreement.clone());
            }
            state.insert(agreement, number);
        }
        state.life.end_filling();
        Ok(state)
    }

    /// Takes in an agreement that its resource's schedule has placed under a number.
    pub(super) fn insert(&mut self, agreement: Agreement, number: u64) {
        self.life.note_agreement(&self.schedules, None, &agreement);
        self.placement.add(&agreement, number);
        self.limits.add(&agreement);
        self.open_windows(&agreement);
        self.agreements.insert(agreement);
    }

    /// Has the slots of an agreement that have not begun move in the windows that they have now.
    fn open_windows(&mut self, agreement: &Agreement) {
        let is_counted_on = self.table.is_counted_on(agreement.id);
        self.placement
            .open_windows(&mut self.schedules, agreement, is_counted_on);
    }

    /// Takes in an agreement that has no place yet.
    pub(super) fn insert_unplaced(&mut self, agreement: Agreement) {
        self.agreements.insert(agreement);
    }

    /// How many wait for their decision.
    pub(super) fn pending_count(&self) -> usize {
        // Agreements with a place have a number.
        self.agreements.len() - self.placement.len()
    }

    /// Replaces a live agreement by its new version. An ended agreement leaves the plan, and so does an ended slot: at
    /// `now` its nodes are free.
    pub(super) fn replace(&mut self, next: Agreement, now: Time) {
        let Some(old) = self.agreements.remove(next.id) else {
            self.note_impossible(|| format!("agreement {} is changed and is not in the plan", next.id));
            return;
        };
        // An agreement without a place is not counted yet.
        let counted = !self.placement.numbers_of(next.id).is_empty();
        if counted {
            self.limits.remove(&old);
            if !next.state.is_final() {
                self.limits.add(&next);
            }
        }
        if !next.state.is_final() {
            self.life.note_agreement(&self.schedules, Some(&old), &next);
            self.free_slots(&old, &next, now);
            self.open_windows(&next);
            self.agreements.insert(next);
            return;
        }
        let nodes = self.life.forget(next.id);
        self.placement.forget_moves(next.id);
        if is_undecided_agreement(&old) {
            return;
        }
        let Some((at, _)) = self.placement.planned_slot(&mut self.schedules, &old, 0) else {
            return;
        };
        let (end, until) = (next.released(), old.slot().end);
        if end < until {
            self.schedules
                .change_bindings(at, |resource| resource.unbind(&nodes, until, end));
        }
        for number in self.placement.keep_first(next.id, 0) {
            self.schedules.free(at, now, number);
        }
    }

    /// Frees the rest of the slots that are over in `next`, and those that it gives up, and that `old` had.
    fn free_slots(&mut self, old: &Agreement, next: &Agreement, now: Time) {
        for index in 0..next.slots.len() {
            if next.is_slot_given_up(index)
                && !old.is_slot_given_up(index)
                && let Some((at, number)) = self.placement.planned_slot(&mut self.schedules, old, index)
            {
                self.schedules.free(at, now, number);
            }
        }
        let over = old.slots_over()..next.slots_over();
        if over.is_empty() {
            return;
        }
        let nodes = self.life.forget_nodes(next.id);
        for index in over {
            let (Some((at, number)), Some(slot)) = (
                self.placement.planned_slot(&mut self.schedules, old, index),
                next.slots.get(index),
            ) else {
                return;
            };
            let (end, until) = (slot.occupied().end, slot.placement.end);
            if end < until {
                self.schedules
                    .change_bindings(at, |resource| resource.unbind(&nodes, until, end));
            }
            self.schedules.free(at, now, number);
        }
    }

    /// The next instant at which something is due.
    pub fn next_due(&self) -> Option<Time> {
        let all = [
            self.life.next_due(),
            self.table.next_lapse(),
            self.schedules.next_look(),
        ];
        all.into_iter().flatten().min()
    }

    /// Whether commands wait for their clusters.
    pub fn has_waiting_commands(&self) -> bool {
        !self.elsewhere.is_empty()
    }

    /// Whether the commands that wait for their clusters have changed since this was last asked.
    pub fn take_waiting_changed(&mut self) -> bool {
        self.elsewhere.take_changed()
    }

    /// Gives up the slots of commands that had waited and were dropped.
    pub fn forget_dropped_reservations(&mut self, now: Time) {
        for (at, number) in self.elsewhere.take_dropped() {
            self.schedules.vacate(at, now, number);
        }
    }

    /// Whether a slice at `now` has something to look at. Where energy decides, nothing moves by itself: an earlier time may be a dearer
    /// one. O(1).
    pub fn may_move_up(&self, now: Time) -> bool {
        self.placement.may_move_up(&self.schedules, now)
    }

    /// Whether moves are recorded that a slice can settle. O(1).
    pub fn has_unsettled_moves(&self) -> bool {
        !self.life.unsettled_moves().is_empty()
    }

    /// Takes back the moves that are recorded and not settled. The agreements are where these say.
    pub fn recall_moves(&mut self, unsettled: UnsettledMoves) {
        *self.life.unsettled_moves_mut() = unsettled;
    }

    /// Takes back the open negotiations and their holds.
    ///
    /// # Errors
    /// [`Inconsistent`] when there is no room for that.
    pub fn reopen(
        &mut self,
        open: Vec<(NegotiationInstance, Vec<NegotiationOffer>)>,
        now: Time,
    ) -> Result<(), Inconsistent> {
        for (instance, offers) in open {
            self.table.open(instance, offers);
        }
        self.table
            .restore_holds(&mut self.schedules, (&self.placement, &self.agreements), now)
            .map_err(Inconsistent)
    }

    /// Takes back which starts have been announced.
    pub fn recall_announced(&mut self, starts: Vec<(Uuid, Time)>) {
        for (id, start) in starts {
            if let Some(agreement) = self.agreements.get(id) {
                self.life.note_announced(agreement, start);
            }
        }
    }

    /// Takes over the reports of executors to the plan `before`. They are not stored and are valid until the next
    /// reports.
    pub fn recall_reports(&mut self, before: &Self, now: Time) {
        self.schedules.recall_out_of_use_reports(&before.schedules, now);
        self.elsewhere.recall_reports(&before.elsewhere);
    }

    /// The fault that must never happen and did; none where the plan may be used. O(1).
    pub fn why_impossible(&self) -> Option<&str> {
        self.schedules.why_impossible()
    }

    /// Notes that something has happened that must never happen.
    pub(super) fn note_impossible(&mut self, what: impl FnOnce() -> String) {
        self.schedules.note_impossible(what);
    }

    /// A live agreement that must be there.
    pub(super) fn must_get(&mut self, id: Uuid) -> Option<Agreement> {
        let agreement = self.agreements.get(id).cloned();
        self.schedules.note_unless(agreement.is_some(), || {
            format!("agreement {id} is not in the plan")
        });
        agreement
    }

    /// The live agreement with the slot that a schedule knows by a number, which must be there, and which of its slots that is.
    pub(super) fn must_get_slot(&mut self, number: u64) -> Option<(Agreement, usize)> {
        let found = self
            .placement
            .slot_by_number(&self.agreements, number)
            .map(|(agreement, index)| (agreement.clone(), index));
        self.schedules.note_unless(found.is_some(), || {
            format!("no agreement has the number {number}")
        });
        found
    }

    /// Takes back how nodes stand.
    pub fn recall_nodes(&mut self, rows: Vec<NodeRow>, now: Time) {
        self.schedules.recall_nodes_out_of_use(rows, now);
    }

    /// Takes back what keys with a cap have spent, in millionths of the currency of each cap.
    pub fn recall_spent(&mut self, spent: HashMap<Uuid, i64>) {
        self.limits.recall_spent(spent);
    }

    /// Finds the agreements that could be moved up by now.
    pub fn find_improvable(&mut self) {
        self.schedules.reset_look_queue();
    }

    /// Notes that there may be free time on every resource.
    pub fn note_free_time_everywhere(&mut self) {
        self.schedules.queue_looks_everywhere();
    }

    /// Lets time pass until `now`.
    pub fn advance(&mut self, now: Time) {
        self.schedules.advance(now);
    }

    /// All resources, the retired ones among them.
    pub fn resources(&self) -> Vec<Resource> {
        self.schedules.list()
    }

    /// What foresees by the present settings.
    pub fn foresight(&self) -> &Arc<Foresight> {
        self.schedules.foresight()
    }

    /// Takes what is suggested that the provider proposes.
    pub fn take_suggestions(&mut self) -> Vec<Suggestion> {
        self.table.take_suggestions()
    }

    /// Takes back the agreements with lost work. It checks again whether anything of the work still runs, because it is not
    /// known whether that was told to stop and has recorded its end. A slot that was lost within this second, begun or not, counts
    /// until the second is over.
    pub fn recall_lost(&mut self, lost: Vec<Agreement>) {
        let loads = lost.iter().flat_map(Agreement::loads);
        let kept = loads.filter(|(time, _)| (time.start..time.end).contains(&self.life.made()));
        if let Some(until) = kept.map(|(time, _)| time.end).max() {
            self.schedules.advance(until);
        }
        for agreement in lost {
            // A resource that is not known has no executor to ask; one that is retired has.
            if self.schedules.named_or_gone(&agreement.resource).is_some() {
                self.life.stop_lost_work_later(agreement);
            }
        }
    }
}

/// The small parts of a state, as they were before a try.
pub(super) struct StateBefore {
    life: <Life as TakeBack>::Before,
    table: <Table as TakeBack>::Before,
    elsewhere: <WaitingCommands as TakeBack>::Before,
    placement: <Places as TakeBack>::Before,
    limits: <Limits as TakeBack>::Before,
    schedules: <Schedules as TakeBack>::Before,
}

impl TakeBack for State {
    type Before = StateBefore;

    fn begin_try(&mut self) -> StateBefore {
        self.agreements.begin_try();
        StateBefore {
            life: self.life.begin_try(),
            table: self.table.begin_try(),
            elsewhere: self.elsewhere.begin_try(),
            placement: self.placement.begin_try(),
            limits: self.limits.begin_try(),
            schedules: self.schedules.begin_try(),
        }
    }

    fn take_back(&mut self, before: StateBefore) {
        self.agreements.take_back(());
        self.life.take_back(before.life);
        self.table.take_back(before.table);
        self.elsewhere.take_back(before.elsewhere);
        self.placement.take_back(before.placement);
        self.limits.take_back(before.limits);
        self.schedules.take_back(before.schedules);
    }
}

/// Takes back an agreement with the placement that it has; says why when it has no room.
fn restore_state_of_agreement(
    plan: Option<&mut ResourcePlan>,
    agreement: &Agreement,
    number: u64,
) -> Result<(), String> {
    let name = &agreement.resource;
    let Some(resource_plan) = plan else {
        return Err(format!(
            "is placed on the resource \"{name}\", which there is not"
        ));
    };
    for request in requests_of_agreement(agreement, number) {
        let index = usize::try_from(request.id - number).unwrap_or(usize::MAX);
        let slot = agreement
            .slots
            .get(index)
            .unwrap_or(&agreement.present_slot())
            .placement;
        resource_plan
            .schedule
            .restore_one_of_many(&request, slot.start)
            .map_err(|_| {
                let nodes = counted(request.nodes, "node");
                format!("needs {nodes} of \"{name}\" in {slot}, more than are free")
            })?;
    }
    Ok(())
}
