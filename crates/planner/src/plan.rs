//! The plan in memory: the basis of the decisions, which the store can rebuild at any time.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use domain::agreement::{Agreement, AgreementState, NegotiationInstance, NegotiationOffer, ServiceState};
use domain::clock::second_of;
use domain::resources::{Binding, CLUSTER, NodeState, Resource};
use scheduler::{Fraction, Interval, Seconds, Time, counted};
use uuid::Uuid;

use crate::admission::limits::Limits;
use crate::admission::payer::fraction_of_millionths;
use crate::error::Inconsistent;
use crate::lifecycle::deadlines::Agenda;
use crate::lifecycle::life::Life;
use crate::lifecycle::start_notices::Starts;
use crate::live_agreements::Agreements;
use crate::offers::open::Table;
use crate::placement::places::Places;
use crate::requests::{request_of_slot, requests_of_agreement};
use crate::reserving::waiting_commands::WaitingCommands;
use crate::resources::Schedules;
use crate::resources::members::new_resource_plan;
use crate::resources::resource_plan::ResourcePlan;
use crate::settings::Settings;
use crate::timetable::Timetable;

/// The plan in memory, by its owners. Calls among them go in this order.
#[derive(Clone)]
pub struct Plan {
    /// When something is due for agreements, and what runs.
    pub(super) life: Life,
    /// The negotiations that go on, and what is held for their offers.
    pub(super) table: Table,
    /// The commands that wait for their clusters.
    pub(super) waiting: WaitingCommands,
    /// The slots by their numbers, and which have moved of late.
    pub(super) placement: Places,
    /// What parties have, spend and ask.
    pub(super) limits: Limits,
    /// Every agreement that is not over.
    pub(super) agreements: Agreements,
    /// The resources with their schedules.
    pub(super) schedules: Schedules,
}

impl Plan {
    /// The plan that a set of live agreements makes on resources, given by rising id, for decisions from `now` on. Retired resources
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
        let mut restored = Vec::with_capacity(agreements.len());
        let (undecided, agreements): (Vec<_>, Vec<_>) = agreements.into_iter().partition(is_undecided);
        let mut number = 0;
        for agreement in agreements {
            let place = places.get(agreement.resource.as_str());
            restore_agreement(place.and_then(|at| plans.get_mut(*at)), &agreement, number)
                .map_err(|why| Inconsistent(format!("agreement {} {why}", agreement.id)))?;
            let next = number + agreement.slots.len() as u64;
            restored.push((agreement, number));
            number = next;
        }
        // The slots before the present one have had nodes, too.
        let live: HashMap<Uuid, Interval> = restored
            .iter()
            .map(|(agreement, _)| (agreement.id, agreement.slot()))
            .collect();
        let mut bound: HashMap<Uuid, Vec<u32>> = HashMap::new();
        let mut from = now;
        for binding in bindings {
            let until = binding.interval.end;
            if let Some(at) = places.get(binding.resource.as_str()) {
                plans[*at].bind(&[binding.node], until);
            }
            let slot = live.get(&binding.agreement);
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
        let mut plan = Self {
            life: Life {
                due: Timetable::default(),
                fix_after: settings.fix_after,
                fixing: Timetable::default(),
                agenda: Agenda::new(now),
                starts: Starts::announced(settings.announce),
                overruns: settings.overruns.clone(),
                ending: BTreeMap::new(),
                bound,
                stopping: BTreeMap::new(),
                made: now,
            },
            table: Table::default(),
            waiting: WaitingCommands::default(),
            placement: Places::default(),
            limits: Limits::default(),
            agreements: Agreements::default(),
            schedules: Schedules::new(plans, gone, settings, now),
        };
        for (agreement, number) in restored {
            if agreement.waits_to_run_again() {
                plan.stop_lost_work_later(agreement.clone());
            }
            plan.insert(agreement, number);
        }
        for agreement in undecided {
            plan.insert_unplaced(agreement);
        }
        Ok(plan)
    }

    /// The number that the next agreement will be known by.
    pub(super) fn next_number(&self) -> u64 {
        self.placement.numbers.next()
    }

    /// Takes in an agreement that its resource's schedule has placed under a number.
    pub(super) fn insert(&mut self, agreement: Agreement, number: u64) {
        self.note_due_time(&agreement);
        self.life.agenda.note(None, &agreement);
        for (number, _) in (number..).zip(agreement.slots.iter()) {
            self.placement.numbers.add(agreement.id, number);
        }
        *self
            .limits
            .node_seconds
            .entry(agreement.party.clone())
            .or_default() += agreement.node_seconds();
        self.limits.holdings.add(&agreement);
        self.open_windows(&agreement);
        self.agreements.insert(agreement);
    }

    /// Takes in an agreement that has no place yet.
    pub(super) fn insert_unplaced(&mut self, agreement: Agreement) {
        self.agreements.insert(agreement);
    }

    /// How many wait for their decision.
    pub(super) fn pending_count(&self) -> usize {
        // Agreements with a place have a number.
        self.agreements.len() - self.placement.numbers.agreements()
    }

    /// A live agreement.
    pub(super) fn get(&self, id: Uuid) -> Option<&Agreement> {
        self.agreements.get(&id)
    }

    /// The agreements with concrete nodes.
    pub(super) fn begun(&self) -> impl Iterator<Item = &Agreement> {
        self.life.bound.keys().filter_map(|id| self.agreements.get(id))
    }

    /// The node-seconds that a party has in agreements that are not over.
    pub(super) fn node_seconds(&self, party: &str) -> u128 {
        self.limits.node_seconds.get(party).copied().unwrap_or(0)
    }

    /// Replaces a live agreement by its new version. An ended agreement leaves the plan, and so does an ended slot: at
    /// `now` its nodes are free.
    pub(super) fn replace(&mut self, next: Agreement, now: Time) {
        let Some(old) = self.agreements.remove(next.id) else {
            self.note_impossible(|| format!("agreement {} is changed and is not in the plan", next.id));
            return;
        };
        // An agreement without a place is not counted yet.
        let counted = !self.placement.numbers.of(next.id).is_empty();
        let used = self.limits.node_seconds.entry(old.party.clone()).or_default();
        if counted {
            *used = used.saturating_sub(old.node_seconds());
            self.limits.holdings.remove(&old);
            if !next.state.is_final() {
                *used += next.node_seconds();
                self.limits.holdings.add(&next);
            }
        }
        if !next.state.is_final() {
            self.note_due_time(&next);
            self.life.agenda.note(Some(&old), &next);
            self.free_slots(&old, &next, now);
            self.open_windows(&next);
            self.agreements.insert(next);
            return;
        }
        self.life.due.set(next.id, None);
        self.life.fixing.set(next.id, None);
        self.life.starts.forget(next.id);
        self.life.agenda.times.set(next.id, None);
        self.placement.moved_up.forget(next.id);
        self.life.ending.remove(&next.id);
        let nodes = self.life.bound.remove(&next.id).unwrap_or_default();
        if is_undecided(&old) {
            return;
        }
        let Some((at, _)) = self.planned_slot(&old, 0) else {
            return;
        };
        let (end, until) = (next.released(), old.slot().end);
        if end < until {
            self.schedules
                .change_bindings(at, |resource| resource.unbind(&nodes, until, end));
        }
        for number in self.placement.numbers.keep_first(next.id, 0) {
            self.schedules.free(at, now, number);
        }
    }

    /// Frees the rest of the slots that are over in `next`, and those that it gives up, and that `old` had.
    fn free_slots(&mut self, old: &Agreement, next: &Agreement, now: Time) {
        for index in 0..next.slots.len() {
            if next.is_given_up(index)
                && !old.is_given_up(index)
                && let Some((at, number)) = self.planned_slot(old, index)
            {
                self.schedules.free(at, now, number);
            }
        }
        let over = old.slots_over()..next.slots_over();
        if over.is_empty() {
            return;
        }
        let nodes = self.life.bound.remove(&next.id).unwrap_or_default();
        for index in over {
            let (Some((at, number)), Some(slot)) = (self.planned_slot(old, index), next.slots.get(index))
            else {
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

    /// Fixes a waiting agreement's slots where they lie.
    pub(super) fn fix(&mut self, agreement: &Agreement) {
        for index in 0..agreement.slots.len() {
            if let Some((at, number)) = self.planned_slot(agreement, index) {
                self.schedules.fix(at, number);
            }
        }
    }

    /// When the planner has to act on an agreement by itself.
    fn due_time_of(&self, agreement: &Agreement) -> Option<Time> {
        if is_undecided(agreement) {
            return None;
        }
        match agreement.service {
            ServiceState::Idle if agreement.has_nodes() => {
                let awaited = self.peer_tells_until(agreement);
                Some(awaited.unwrap_or(agreement.slot().end))
            }
            ServiceState::NotReady | ServiceState::Idle => Some(agreement.slot().start),
            ServiceState::Processing => self.next_overrun_look(agreement),
            ServiceState::Completed => None,
        }
    }

    /// Notes when something is to be done for an agreement.
    pub(super) fn note_due_time(&mut self, agreement: &Agreement) {
        self.life.due.set(agreement.id, self.due_time_of(agreement));
        self.life.starts.watch(agreement);
        self.life
            .fixing
            .set(agreement.id, fixed_from(agreement, self.life.fix_after));
    }

    /// The agreements that wait, could still move, and are to do so no more.
    pub(super) fn agreements_to_fix(&self, now: Time) -> Vec<Agreement> {
        let due = self.life.fixing.due_by(now).into_iter();
        due.filter_map(|id| self.get(id).cloned()).collect()
    }

    /// The next instant at which something is due.
    pub fn next_due(&self) -> Option<Time> {
        let (lapsing, look) = (self.table.due.next(), self.schedules.next_look());
        let all = [
            self.life.due.next(),
            lapsing,
            self.life.agenda.times.next(),
            self.life.starts.next(),
            look,
        ];
        all.into_iter().flatten().min()
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
        self.restore_holds(now).map_err(Inconsistent)
    }

    /// Takes back which starts have been announced.
    pub fn recall_announced(&mut self, starts: Vec<(Uuid, Time)>) {
        for (id, start) in starts {
            if let Some(agreement) = self.agreements.get(&id) {
                self.life.starts.note_announced(agreement, start);
            }
        }
    }

    /// The agreements with a running job.
    pub(super) fn running(&self) -> Vec<Agreement> {
        let mut running: Vec<_> = self
            .agreements
            .processing()
            .chain(self.life.stopping.values())
            .cloned()
            .collect();
        running.sort_by_key(|agreement| agreement.id);
        running
    }

    /// Takes over the reports of executors to the plan `before`. They are not stored and are valid until the next
    /// reports.
    pub fn recall_reports(&mut self, before: &Self, now: Time) {
        self.schedules.recall_reports(&before.schedules, now);
        // Commands that waited are not decided.
        self.waiting.within.clone_from(&before.waiting.within);
        self.waiting
            .handed_within
            .clone_from(&before.waiting.handed_within);
    }

    /// The begun agreements with a node that is gone, except those after the end of their slots: the executor knows how their
    /// work ended.
    pub(super) fn begun_on_lost_nodes(&self, at: usize, now: Time) -> Vec<Uuid> {
        let Some(resource_with_nodes) = self
            .schedules
            .get(at)
            .filter(|resource_with_nodes| !resource_with_nodes.nodes.is_plain())
        else {
            return Vec::new();
        };
        if !resource_with_nodes.nodes.any_down() {
            return Vec::new();
        }
        let gone = |node: &u32| resource_with_nodes.nodes.state(*node) == NodeState::Down;
        let here = |id: &Uuid| {
            self.agreements.get(id).is_some_and(|agreement| {
                agreement.slot().end > now && self.schedules.place_of(&agreement.resource) == Some(at)
            })
        };
        let mut lost: Vec<Uuid> = self
            .life
            .bound
            .iter()
            .filter(|(id, nodes)| nodes.iter().any(gone) && here(id))
            .map(|(id, _)| *id)
            .collect();
        lost.sort_unstable();
        lost
    }

    /// The numbers of the agreements on a resource that have not begun, with their slack.
    pub(super) fn waiting_on(&self, at: usize, now: Time) -> BTreeMap<u64, Seconds> {
        let Some(resource_plan) = self.schedules.get(at) else {
            return BTreeMap::new();
        };
        let waits = |number: u64| {
            let (agreement, index) = self.waiting_slot_by_number(number)?;
            // An addition to a contract has to leave first.
            if agreement.adds_to_contract(index) {
                return Some((number, Seconds::MAX));
            }
            Some((number, request_of_slot(agreement, number, index).slack(now)))
        };
        let placements = resource_plan.schedule.placements();
        placements.filter_map(|placement| waits(placement.id)).collect()
    }

    /// Gives an agreement concrete nodes of its resource that are free from `now` on until the end of its placement: first the
    /// nodes that are kept for it, then the lowest-numbered. Fewer than it holds only if the plan is over capacity, which it
    /// never is.
    pub(super) fn bind(&mut self, agreement: &Agreement, now: Time) -> Vec<u32> {
        let Some(at) = self.schedules.required_place_of(&agreement.resource) else {
            return Vec::new();
        };
        let bind = |resource_plan: &mut ResourcePlan| {
            let nodes = resource_plan.free_nodes(agreement, now);
            resource_plan.bind(&nodes, agreement.slot().end);
            nodes
        };
        let nodes = self.schedules.change_bindings(at, bind).unwrap_or_default();
        self.life.bound.insert(agreement.id, nodes.clone());
        nodes
    }

    /// Gives the nodes that an agreement has to another, or to itself, until `end`.
    pub(super) fn hand_over(&mut self, old: &Agreement, to: Uuid, end: Time) {
        let Some(nodes) = self.life.bound.remove(&old.id) else {
            self.note_impossible(|| format!("agreement {} has begun and has no nodes", old.id));
            return;
        };
        if let Some(at) = self.schedules.required_place_of(&old.resource) {
            self.schedules
                .change_bindings(at, |resource| resource.rebind(&nodes, end));
        }
        self.life.bound.insert(to, nodes);
    }

    /// Whether none of the nodes that an agreement has been given is out of use, or others', in an interval, or leaves its
    /// resource.
    pub(super) fn may_keep(&self, agreement: &Agreement, interval: Interval) -> bool {
        let resource = self.schedules.named(&agreement.resource);
        let Some(in_service) = resource.filter(|in_service| !in_service.resource.is_retired()) else {
            return false;
        };
        let nodes = self.life.bound.get(&agreement.id).map_or(&[][..], Vec::as_slice);
        nodes.iter().all(|node| {
            in_service
                .nodes
                .may_be_kept(*node, in_service.resource.capacity, interval)
        })
    }

    /// The same for the time by which a later end makes the last slot of an agreement longer. A slot that is to come has no nodes of
    /// its own yet.
    pub(super) fn may_keep_until(&self, agreement: &Agreement, end: Time) -> bool {
        let planned = agreement.placement().end;
        let runs = agreement.has_nodes() && !agreement.has_more_slots();
        !runs || end <= planned || self.may_keep(agreement, Interval::new(planned, end))
    }

    /// Has the nodes of an agreement be free from `now` on.
    pub(super) fn unbind(&mut self, agreement: &Agreement, now: Time) {
        let nodes = self.life.bound.get(&agreement.id).map_or(&[][..], Vec::as_slice);
        let until = agreement.slot().end;
        if let Some(at) = self.schedules.required_place_of(&agreement.resource) {
            self.schedules
                .change_bindings(at, |resource| resource.unbind(nodes, until, now));
        }
    }

    /// Forgets which nodes an agreement has been given, and that its slot is made no longer: it is to have another.
    pub(super) fn forget_given_nodes(&mut self, agreement: Uuid) {
        self.life.bound.remove(&agreement);
        self.look_again(agreement, None);
    }
}

/// Takes back an agreement with the placement that it has; says why when it has no room.
fn restore_agreement(
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
            .unwrap_or(&agreement.present())
            .placement;
        resource_plan
            .schedule
            .restore(&request, slot.start)
            .map_err(|_| {
                let nodes = counted(request.nodes, "node");
                format!("needs {nodes} of \"{name}\" in {slot}, more than are free")
            })?;
    }
    Ok(())
}

/// Whether an agreement has no place, because it is not decided yet.
pub(super) fn is_undecided(agreement: &Agreement) -> bool {
    matches!(
        agreement.state,
        AgreementState::Pending | AgreementState::PendingAndTerminating
    )
}

/// The time from which a waiting agreement moves no more, by its own fraction of its wait and the general one.
fn fixed_from(agreement: &Agreement, everybody: Option<Fraction>) -> Option<Time> {
    if !agreement.has_more_to_begin() || agreement.fixed || agreement.fills_its_window() {
        return None;
    }
    let own = fraction_of_millionths(agreement.constraints.fix_at_ppm);
    let submitted = second_of(agreement.created);
    let wait = agreement.placement().start - submitted;
    let reached = |fraction: Fraction| submitted + fraction.rounded_up(wait);
    [own, everybody].into_iter().flatten().map(reached).min()
}
