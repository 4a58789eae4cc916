//! The resources of the domain with their plans, and the choice of the one that takes a request.
//!
//! All changes of a plan go through here, because the domain's index has to know each of them: with it a decision looks
//! at few of ten thousand resources.

pub(super) mod failures;
pub(super) mod foresight;
pub(super) mod need;
pub(super) mod needed_sizes;
pub(super) mod nodes;

mod look_queue;
pub(super) mod nodes_out_of_use;
pub(super) mod resource_choice;
pub(super) mod resource_plan;
pub(super) mod undo;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use domain::agreement::Agreement;
use domain::resources::{LOCAL, NodeRow, Resource};
use prediction::Ids;
use scheduler::domain::{Attribute, Domain};
use scheduler::{Decision, Interval, Move, Placement, Rate, Request, Schedule, Seconds, Time, counted};

use crate::impossible::Impossible;
use crate::schedules::foresight::{Foresight, ForesightCache};
use crate::schedules::look_queue::LookQueue;
use crate::schedules::resource_plan::{ResourcePlan, domain_id, domain_resource, new_resource_plan};
use crate::schedules::undo::{UndoLog, close_undo_log, open_undo_log};
use crate::settings::Settings;
use crate::timetable::Timetable;

/// The most waiting requests of one resource that are tried elsewhere for a new request: each trial costs a decision.
pub(crate) const IN_THE_WAY_MAX: usize = 16;

/// The number of agreements in its window that are looked at, to find these.
const LYING_MAX: usize = 1_024;

/// Seconds after a slot at a peer for which it is waited for the peer's word whether it has handed the nodes over.
const PEER_TELLS_WITHIN: Seconds = 3_600;

/// The resources with their plans, each known by its place: the order in which they came.
#[derive(Clone)]
pub(super) struct Schedules {
    domain: Domain<ResourcePlan>,
    /// The present; each plan follows when it is changed.
    now: Time,
    places: HashMap<String, usize>,
    /// The retired ones on which nothing is planned any more, by name, with how their nodes stood.
    gone: BTreeMap<String, (Resource, Vec<NodeRow>)>,
    /// The resources on which something may be able to start earlier.
    look_queue: LookQueue,
    /// Whether every change of a plan makes its resource one of these.
    idle: bool,
    /// When to look again at the resources with nodes that are not in their normal state.
    looks: Timetable<usize>,
    /// The closed resources, the retired ones, and those on which nothing new is placed: the frozen ones and the peers.
    closed: BTreeSet<usize>,
    retired: BTreeSet<usize>,
    frozen: BTreeSet<usize>,
    /// What is foreseen of work on them, and the ids of the domain by name.
    foresight: Arc<Foresight>,
    ids: Arc<Ids>,
    weighed: ForesightCache,
    /// The largest and the fastest there are.
    capacity_max: u32,
    rate_max: Rate,
    /// The work that a decision may do, in all and on each resource.
    work: u64,
    work_each: u64,
    /// Whether a search for a place that found none was cut short, since this was last set to `false`.
    cut_short: bool,
    /// The fault that must never happen and did.
    impossible: Impossible,
    /// The changes of the present trials.
    undo: UndoLog,
}

impl Schedules {
    /// The resources on which something may be planned, in the order of their places.
    pub(super) fn plans(&self) -> impl Iterator<Item = &ResourcePlan> {
        (0..self.places.len()).filter_map(|at| self.get(at))
    }

    /// The domain's own ones of these that are not retired.
    pub(super) fn in_service(&self) -> impl Iterator<Item = &ResourcePlan> {
        self.plans()
            .filter(|plan| !plan.resource.is_retired() && !plan.resource.is_peer())
    }

    /// The resource at a place.
    pub(super) fn get(&self, at: usize) -> Option<&ResourcePlan> {
        self.domain.get(domain_id(at)).map(|(_, plan)| plan)
    }

    /// The resource with this name.
    pub(super) fn named(&self, name: &str) -> Option<&ResourcePlan> {
        self.get(self.place_of(name)?)
    }

    /// The place of the resource with this name.
    pub(super) fn place_of(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// Lets time pass for the choice among resources; each plan follows when it is asked.
    pub(super) fn advance(&mut self, now: Time) {
        self.now = now;
        self.domain.advance(now);
    }

    /// Opens a resource for new promises.
    pub(super) fn open(&mut self, at: usize) {
        self.note_all();
        self.closed.remove(&at);
    }

    /// The names of the closed resources.
    pub(super) fn closed(&self) -> impl Iterator<Item = &str> {
        let closed = self.closed.iter().filter_map(|at| self.get(*at));
        closed.map(|closed| closed.resource.name.as_str())
    }

    /// The resources that are frozen.
    pub(super) fn frozen(&self) -> impl Iterator<Item = &Resource> {
        let frozen = self.frozen.iter().filter_map(|at| self.get(*at));
        frozen
            .map(|frozen| &frozen.resource)
            .filter(|resource| resource.is_frozen())
    }

    /// The place of the resource of something that is in the plan: it must be there.
    pub(super) fn required_place_of(&mut self, name: &str) -> Option<usize> {
        let place = self.place_of(name);
        self.impossible
            .unless(place.is_some(), || format!("there is no resource \"{name}\""));
        place
    }

    /// The name of the resource at a place, which must be there.
    pub(super) fn name(&mut self, at: usize) -> String {
        let name = self.get(at).map(|each| each.resource.name.clone());
        self.impossible
            .unless(name.is_some(), || format!("there is no resource {at}"));
        name.unwrap_or_default()
    }

    /// Changes a plan. `change` returns its result and the intervals in which the number of free nodes may have changed.
    pub(super) fn change_schedule<R>(
        &mut self,
        at: usize,
        change: impl FnOnce(&mut Schedule) -> (R, Vec<Interval>),
    ) -> Option<R> {
        let work = self.work_each;
        self.note_schedule(at);
        let changed = self.change_plan(at, |resource_plan| {
            resource_plan.schedule.set_budget(Some(work));
            change(&mut resource_plan.schedule)
        });
        if self.idle {
            self.queue_look_at_free_time(at);
        }
        changed
    }

    /// Changes a plan with all that is known of the resource. Every change goes through here, so that nothing that must never
    /// happen to a schedule goes unnoticed.
    fn change_plan<R>(
        &mut self,
        at: usize,
        change: impl FnOnce(&mut ResourcePlan) -> (R, Vec<Interval>),
    ) -> Option<R> {
        let impossible = &mut self.impossible;
        let changed = self.domain.change(domain_id(at), |each| {
            let changed = change(each);
            impossible.look_at(each);
            changed
        });
        impossible.unless(changed.is_some(), || format!("there is no resource {at}"));
        changed
    }

    /// Divides the budget of work of a decision among the places that it tries.
    pub(super) fn share_work(&mut self, places: usize) {
        self.work_each = (self.work / (places.max(1) as u64)).max(1);
    }

    /// Accepts a request by algorithm 1. Others move only where they have to.
    pub(super) fn submit(
        &mut self,
        at: usize,
        now: Time,
        request: &Request,
    ) -> Option<(Placement, Vec<Move>)> {
        self.submit_gaining(at, now, request, Time::MIN, |_| false)
    }

    /// Accepts a request by algorithm 1. Where others make room for it, those that `may_move` allows may move up into what they left, to no
    /// start before `not_before`.
    pub(super) fn submit_gaining(
        &mut self,
        at: usize,
        now: Time,
        request: &Request,
        not_before: Time,
        may_move: impl FnMut(u64) -> bool,
    ) -> Option<(Placement, Vec<Move>)> {
        let mut cut = false;
        let placed = self.change_schedule(at, |schedule| {
            match schedule.submit_gaining(now, request, not_before, may_move) {
                Decision::Accepted { placement, moved } => {
                    let mut touched = slots_of_moves(schedule, &moved);
                    touched.push(placement.slot);
                    (Some((placement, moved)), touched)
                }
                Decision::Refused { cut_short, .. } => {
                    cut = cut_short;
                    (None, Vec::new())
                }
            }
        });
        self.cut_short |= cut;
        placed?
    }

    /// Puts a request where it is told to go; whether there was room.
    #[must_use]
    pub(super) fn put(&mut self, at: usize, now: Time, request: &Request, start: Time) -> bool {
        let put = |schedule: &mut Schedule| {
            schedule.advance(now);
            match schedule.restore(request, start) {
                Ok(()) => (true, vec![request.slot(start)]),
                Err(_) => (false, Vec::new()),
            }
        };
        self.change_schedule(at, put).unwrap_or(false)
    }

    /// Puts a request where there must be room: it was there a moment ago, or its place was kept. After a loss the
    /// plan's clock is a second ahead. A request that is over by that clock needs no room.
    pub(super) fn put_back(&mut self, at: usize, now: Time, request: &Request, start: Time) {
        if request.duration <= 0 {
            return;
        }
        let back = self.put(at, now, request, start);
        self.impossible.unless(back, || {
            let (id, nodes) = (request.id, request.nodes);
            let nodes = counted(nodes, "node");
            format!("kept for request {id} and taken by others: {nodes} from {start} on")
        });
    }

    /// Whether a request has a place in a plan.
    pub(super) fn has_request(&self, at: usize, number: u64) -> bool {
        self.get(at)
            .is_some_and(|resource_plan| resource_plan.schedule.placement(number).is_some())
    }

    /// A waiting request as its schedule has it, and its start.
    pub(super) fn waiting_request(&self, at: usize, number: u64) -> Option<(Request, Time)> {
        self.get(at)?.schedule.waiting_at(number)
    }

    /// Takes a waiting request out, with all others left where they are.
    #[must_use]
    pub(super) fn withdraw(&mut self, at: usize, number: u64) -> Option<(Request, Time)> {
        self.change_schedule(at, |schedule| match schedule.withdraw(number) {
            Some((request, start)) => (Some((request, start)), vec![request.slot(start)]),
            None => (None, Vec::new()),
        })?
    }

    /// Takes a request out, whether it waits or runs, with all others left where they are.
    pub(super) fn vacate(&mut self, at: usize, now: Time, number: u64) {
        self.change_schedule(at, |schedule| {
            let freed = schedule.vacate(now, number);
            ((), freed.into_iter().collect())
        });
    }

    /// The start of a request if algorithm 1 accepted it; no agreement moves.
    pub(super) fn would_start(&mut self, at: usize, now: Time, request: &Request) -> Option<Time> {
        let mut cut = false;
        let start = self.change_schedule(at, |schedule| {
            let before = schedule.cut_short();
            let start = schedule.would_start(now, request);
            cut = start.is_none() && schedule.cut_short() > before;
            (start, Vec::new())
        });
        self.cut_short |= cut;
        start?
    }

    /// Frees the rest of a request's slot. All others stay where they are; a later slice moves them up.
    pub(super) fn free(&mut self, at: usize, now: Time, number: u64) {
        self.vacate(at, now, number);
        self.queue_look_at_free_time(at);
    }

    /// Fixes a waiting request where it lies.
    pub(super) fn fix(&mut self, at: usize, number: u64) {
        self.change_schedule(at, |schedule| (schedule.fix(number), Vec::new()));
    }

    /// The waiting agreements on a resource in the way of a new request: first the ones that would lose their place to it in
    /// the order, then the others in its window, by start.
    pub(crate) fn waiting_in_the_way(&mut self, at: usize, now: Time, request: &Request) -> Vec<u64> {
        let found = self.change_schedule(at, |schedule| {
            let mut numbers = schedule.displaced(now, request);
            let window = request.window_at(now);
            let lying = schedule.waiting_in(window).take(LYING_MAX);
            let lying = lying.filter_map(|lying| Some((schedule.placement(lying.id)?.slot.start, lying.id)));
            let mut lying: Vec<(Time, u64)> = lying.collect();
            lying.sort_unstable();
            let others = lying.into_iter().map(|(_, number)| number);
            let mut others: Vec<u64> = others.filter(|number| !numbers.contains(number)).collect();
            numbers.append(&mut others);
            numbers.truncate(IN_THE_WAY_MAX);
            (numbers, Vec::new())
        });
        found.unwrap_or_default()
    }

    /// Puts requests where they are told to go, all or none; whether there was room.
    #[must_use]
    pub(super) fn put_all(&mut self, at: usize, now: Time, requests: &[(Request, Time)]) -> bool {
        let begun = open_undo_log(self);
        let mut all = requests.iter();
        let put = all.all(|(request, start)| self.put(at, now, request, *start));
        close_undo_log(self, begun, put);
        put
    }

    /// The value of an attribute of any resource in service that has it, to list the values.
    pub(super) fn values(&self, attribute: &str) -> BTreeSet<Attribute> {
        let values = self.in_service();
        let values = values.filter_map(|values| values.resource.attributes_with_name().remove(attribute));
        values.collect()
    }

    /// Whether a resource is this machine.
    pub(crate) fn is_local(&self, resource: &str) -> bool {
        let resource = self.named(resource);
        resource.is_some_and(|each| each.resource.kind == LOCAL)
    }

    /// The names of some nodes of a resource, for people.
    pub(crate) fn names_of(&self, resource: &str, nodes: &[u32]) -> String {
        let resource = self.named(resource);
        resource.map_or_else(String::new, |each| each.resource.names_of(nodes))
    }

    /// Whether a peer carries an agreement out.
    pub(crate) fn is_at_peer(&self, agreement: &Agreement) -> bool {
        let resource = self.named(&agreement.resource);
        resource.is_some_and(|each| each.resource.is_peer())
    }

    /// Until when it is waited for the word of a peer whether it has handed over the nodes of a reservation, whose slot has begun
    /// here; none where that is known, or is not a peer's to tell.
    pub(crate) fn peer_tells_until(&self, agreement: &Agreement) -> Option<Time> {
        let waits = agreement.has_nodes() && agreement.never_had_nodes() && self.is_at_peer(agreement);
        waits.then(|| agreement.slot().end + PEER_TELLS_WITHIN)
    }

    /// Takes a request off a resource that must be there; all others stay where they are.
    pub(crate) fn vacate_on(&mut self, resource: &str, now: Time, number: u64) {
        if let Some(at) = self.required_place_of(resource) {
            self.vacate(at, now, number);
        }
    }

    /// The fault that must never happen and did; none where the plan may be used. O(1).
    pub(crate) fn why_impossible(&self) -> Option<&str> {
        self.impossible.0.as_deref()
    }

    /// Notes that something has happened that must never happen.
    pub(crate) fn note_impossible(&mut self, what: impl FnOnce() -> String) {
        self.impossible.note(what);
    }

    /// Notes it where something does not hold that must hold.
    pub(crate) fn note_unless(&mut self, holds: bool, what: impl FnOnce() -> String) {
        self.impossible.unless(holds, what);
    }

    /// What foresees by the present settings.
    pub(crate) fn foresight(&self) -> &Arc<Foresight> {
        &self.foresight
    }

    /// Begins a search for a place: none has been cut short in it yet.
    pub(crate) fn begin_search(&mut self) {
        self.cut_short = false;
    }

    /// Whether a search for a place that found none was cut short, since one was last begun.
    pub(crate) fn is_cut_short(&self) -> bool {
        self.cut_short
    }

    /// The resources with the plans that they have, in the order in which ties are broken, for decisions from `now` on; and the
    /// retired ones on which nothing is planned.
    pub(crate) fn new(plans: Vec<ResourcePlan>, gone: Vec<Resource>, settings: &Settings, now: Time) -> Self {
        let mut resources = Self {
            domain: Domain::new(Interval::new(now, now + settings.horizon), Vec::new()),
            now,
            places: HashMap::new(),
            gone: gone
                .into_iter()
                .map(|gone| (gone.name.clone(), (gone, Vec::new())))
                .collect(),
            look_queue: LookQueue::default(),
            idle: settings.improving.idle,
            looks: Timetable::default(),
            closed: BTreeSet::new(),
            retired: BTreeSet::new(),
            frozen: BTreeSet::new(),
            foresight: Arc::new(Foresight::of(settings)),
            ids: foresight::ids_of_resources(std::iter::empty()),
            weighed: ForesightCache::default(),
            capacity_max: 0,
            rate_max: scheduler::Rate::default(),
            work: settings.decision_work,
            work_each: settings.decision_work,
            cut_short: false,
            impossible: Impossible::default(),
            undo: UndoLog::default(),
        };
        resources.join(plans, settings, now);
        resources
    }

    /// Takes in resources that are new, with empty plans, or that come back.
    pub(crate) fn add(&mut self, new: &[Resource], settings: &Settings, now: Time) {
        self.note_all();
        let states = new.iter().filter_map(|new| self.gone.remove(&new.name));
        let states: Vec<NodeRow> = states.flat_map(|(_, states)| states).collect();
        let plans = new
            .iter()
            .map(|resource| new_resource_plan(resource, 0, settings, now));
        self.join(plans.collect(), settings, now);
        self.recall_nodes_out_of_use(states, now);
    }

    fn join(&mut self, plans: Vec<ResourcePlan>, settings: &Settings, now: Time) {
        let mut more = Vec::with_capacity(plans.len());
        for (at, resource_plan) in (self.places.len()..).zip(plans) {
            self.impossible.look_at(&resource_plan);
            let before = self.places.insert(resource_plan.resource.name.clone(), at);
            self.impossible.unless(before.is_none(), || {
                format!("there are two resources \"{}\"", resource_plan.resource.name)
            });
            if !resource_plan.is_plain() {
                self.looks.set(at, Some(now));
            }
            if resource_plan.resource.closed {
                self.closed.insert(at);
            }
            more.push((
                domain_resource(at, &resource_plan.resource, settings),
                resource_plan,
            ));
        }
        self.domain.insert(more);
        self.ids = foresight::ids_of_resources(self.plans().map(|plan| plan.resource.name.as_str()));
        self.weighed.forget();
        self.recount();
    }

    /// Has a resource be so from now on. Its plan follows with the next look at its nodes
    /// ([`Schedules::put_out_of_use`]), and agreements that it may not keep are to leave it.
    pub(crate) fn revise(&mut self, at: usize, next: Resource, settings: &Settings) {
        self.note_all();
        let grows = next.capacity > self.capacity_max;
        let before = self
            .get(at)
            .map(|each| (each.resource.closed, each.resource.is_retired()));
        if !next.closed {
            self.closed.remove(&at);
        } else if before.is_some_and(|(closed, is_retired)| !closed || is_retired && !next.is_retired()) {
            // It is another one, or has not been looked at all the while.
            self.closed.insert(at);
        }
        let revised = domain_resource(at, &next, settings);
        self.change_bindings(at, |each| {
            each.nodes.plan_maintenance(next.planned_maintenance());
            each.resource = next;
        });
        self.weighed.forget();
        // The index has no sizes above the largest resource.
        let is_known = |(before, _): (&scheduler::domain::Resource, _)| *before == revised && !grows;
        if !self.domain.get(revised.id).is_some_and(is_known) {
            self.domain.revise(vec![revised]);
        }
        self.recount();
    }

    /// Takes over another price list.
    pub(crate) fn reprice(&mut self, settings: &Settings) {
        self.note_all();
        self.foresight = Arc::new(Foresight::of(settings));
        self.weighed.forget();
        let plans = self.plans().enumerate();
        let priced = plans.map(|(at, plan)| domain_resource(at, &plan.resource, settings));
        let is_other = |resource: &scheduler::domain::Resource| {
            let before = self.domain.get(resource.id);
            before.is_some_and(|(before, _)| before != resource)
        };
        let changed = priced.filter(is_other).collect();
        self.domain.revise(changed);
    }

    /// Every resource: first the ones on which something may be planned, in the order of their places, and then the ones that are
    /// gone, by name.
    pub(crate) fn list(&self) -> Vec<Resource> {
        let planned = self.plans().map(|plan| &plan.resource);
        let gone = self.gone.values().map(|(gone, _)| gone);
        planned.chain(gone).cloned().collect()
    }

    /// A resource, which may be gone.
    pub(crate) fn named_or_gone(&self, name: &str) -> Option<&Resource> {
        let planned = self.named(name).map(|each| &each.resource);
        planned.or_else(|| self.gone.get(name).map(|(gone, _)| gone))
    }

    /// Takes note of a resource that stays gone.
    pub(crate) fn keep_as_gone(&mut self, resource: Resource) {
        self.note_all();
        let (_, states) = self
            .gone
            .remove(&resource.name)
            .unwrap_or((resource.clone(), Vec::new()));
        self.gone.insert(resource.name.clone(), (resource, states));
    }

    fn recount(&mut self) {
        let in_service = || self.in_service().map(|each| &each.resource);
        let capacity_max = in_service().map(|each| each.capacity).max().unwrap_or(0);
        let rate_max = in_service().map(|each| each.rate).max().unwrap_or_default();
        let places_of = |is: fn(&Resource) -> bool| {
            let plans = self.plans().enumerate().filter(|(_, plan)| is(&plan.resource));
            plans.map(|(at, _)| at).collect()
        };
        let retired = places_of(Resource::is_retired);
        let frozen = places_of(|resource| resource.is_frozen() || resource.is_peer());
        (self.capacity_max, self.rate_max) = (capacity_max, rate_max);
        (self.retired, self.frozen) = (retired, frozen);
    }
}

/// The slots that moves have left and taken.
fn slots_of_moves(schedule: &Schedule, moves: &[Move]) -> Vec<Interval> {
    let slots = |one_move: &Move| {
        let duration = schedule.placement(one_move.id)?.slot.duration();
        Some([
            Interval::of(one_move.from, duration),
            Interval::of(one_move.to, duration),
        ])
    };
    moves.iter().filter_map(slots).flatten().collect()
}

#[cfg(test)]
impl Schedules {
    /// All but the plans of the resources and the forecasts.
    pub(crate) fn in_words(&self) -> String {
        let sets = (&self.closed, &self.retired, &self.frozen);
        let sizes = (self.capacity_max, self.rate_max, self.work_each, self.cut_short);
        let places: BTreeMap<&String, &usize> = self.places.iter().collect();
        let (looks, queue, gone) = (&self.looks.next(), &self.look_queue, &self.gone);
        format!("{places:?} {sets:?} {sizes:?} {looks:?} {queue:?} {gone:?}")
    }
}
