//! The life of an agreement: its job's reports, longer slots, new attempts, its end and its bill; and when something is due.

pub(super) mod admission;
pub(super) mod awaited_words;
pub(super) mod begin;
pub(super) mod billing;
pub(super) mod deadlines;
pub(super) mod executions;
pub(super) mod held_nodes;
pub(super) mod keep_offers;
pub(super) mod late_starts;
pub(super) mod lost_work;
pub(super) mod move_up;
pub(super) mod overrun;
pub(super) mod pieces;
pub(super) mod reports;
pub(super) mod retry;
pub(super) mod start_notices;
pub(super) mod succession;
pub(super) mod update;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use domain::agreement::{Agreement, ServiceState};
use domain::clock::second_of;
use domain::resources::NodeState;
use scheduler::{Fraction, Interval, Seconds, Time};
use uuid::Uuid;

use crate::agreements::Agreements;
use crate::agreements::is_undecided;
use crate::life::deadlines::Agenda;
use crate::life::start_notices::Starts;
use crate::overruns::{LastLook, Overruns};
use crate::prices::payer::fraction_of_millionths;
use crate::schedules::Schedules;
use crate::schedules::resource_plan::ResourcePlan;
use crate::settings::Settings;
use crate::timetable::Timetable;

/// Seconds after the end of its slot from when on nothing of a lost job can run.
const STOPPED_AFTER: Seconds = 3_600;

/// When something is due for agreements, and what runs.
#[derive(Clone)]
pub(crate) struct Life {
    /// When the planner has something to do for an agreement: its slot begins, ends with nothing running in it, or nears
    /// its end with something that may go on.
    due: Timetable<Uuid>,
    /// The fraction of its wait after which every agreement moves no more.
    fix_after: Option<Fraction>,
    /// The times from which waiting agreements move no more.
    fixing: Timetable<Uuid>,
    /// When guarantees are assessed that time alone may decide.
    agenda: Agenda,
    /// When starts are announced.
    starts: Starts,
    /// By how much slots may be made longer.
    overruns: Overruns,
    /// The agreements that end with their slots, even while work runs, or that may still be made longer but not saved
    /// any more.
    ending: BTreeMap<Uuid, LastLook>,
    /// The nodes that each begun agreement has been given.
    bound: HashMap<Uuid, Vec<u32>>,
    /// The agreements with lost work that may still have an old job to stop.
    stopping: BTreeMap<Uuid, Agreement>,
    /// When this plan was made.
    made: Time,
}

impl Life {
    /// Life on a plan that is made at `now`, with the nodes that begun agreements have.
    pub(crate) fn new(settings: &Settings, bound: HashMap<Uuid, Vec<u32>>, now: Time) -> Self {
        Self {
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
        }
    }

    /// When the plan was made.
    pub(crate) fn made(&self) -> Time {
        self.made
    }

    /// Takes over by how much slots may be made longer.
    pub(crate) fn set_overruns(&mut self, overruns: &Overruns) {
        self.overruns.clone_from(overruns);
    }

    /// The seconds in which the work of an agreement saves itself, as [`Overruns::grace`] has them.
    pub(crate) fn grace(&self, agreement: &Agreement) -> Option<Seconds> {
        self.overruns.grace(agreement)
    }

    /// How often the slot of an agreement is looked at again, where that is said.
    fn last_look(&self, id: Uuid) -> Option<LastLook> {
        self.ending.get(&id).copied()
    }

    /// The agreements for which there is something to do by `now`.
    pub(crate) fn due_by(&self, now: Time) -> Vec<Uuid> {
        self.due.due_by(now)
    }

    /// The agreements for which time alone may decide a guarantee by `now`.
    pub(crate) fn to_assess_by(&self, now: Time) -> Vec<Uuid> {
        self.agenda.times.due_by(now)
    }

    /// The agreements whose starts are to be announced by `now`.
    pub(crate) fn to_announce_by(&self, now: Time) -> Vec<Uuid> {
        self.starts.due_by(now)
    }

    /// Notes that the start of an agreement at an instant has been announced.
    pub(crate) fn note_announced(&mut self, agreement: &Agreement, start: Time) {
        self.starts.note_announced(agreement, start);
    }

    /// The next instant at which something is due.
    pub(crate) fn next_due(&self) -> Option<Time> {
        let all = [self.due.next(), self.agenda.times.next(), self.starts.next()];
        all.into_iter().flatten().min()
    }

    /// Takes in an agreement that has got a place, or the change of one from `before`.
    pub(crate) fn note_agreement(
        &mut self,
        schedules: &Schedules,
        before: Option<&Agreement>,
        agreement: &Agreement,
    ) {
        self.note_due_time(schedules, agreement);
        self.agenda.note(before, agreement);
    }

    /// Lets go of an agreement that is over. Returns the nodes that it had.
    pub(crate) fn forget(&mut self, id: Uuid) -> Vec<u32> {
        self.due.set(id, None);
        self.fixing.set(id, None);
        self.starts.forget(id);
        self.agenda.times.set(id, None);
        self.ending.remove(&id);
        self.forget_nodes(id)
    }

    /// Forgets the nodes that an agreement has been given. Returns them.
    pub(crate) fn forget_nodes(&mut self, id: Uuid) -> Vec<u32> {
        self.bound.remove(&id).unwrap_or_default()
    }

    /// The nodes that an agreement has been given; none before its slot has begun.
    pub(crate) fn nodes_of(&self, id: Uuid) -> Option<&Vec<u32>> {
        self.bound.get(&id)
    }

    /// The agreements that have been given nodes, with these, in no order.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (Uuid, &Vec<u32>)> {
        self.bound.iter().map(|(id, nodes)| (*id, nodes))
    }

    /// The agreements with lost work that may still have an old job to stop.
    pub(crate) fn stopping(&self) -> impl Iterator<Item = &Agreement> {
        self.stopping.values()
    }

    /// The agreement of this id, where it has lost work that may still have an old job to stop.
    pub(crate) fn stopping_of(&self, id: Uuid) -> Option<&Agreement> {
        self.stopping.get(&id)
    }

    /// Gives an agreement concrete nodes of its resource that are free from `now` on until the end of its placement: first the
    /// nodes that are kept for it, then the lowest-numbered. Fewer than it holds only if the plan is over capacity, which it
    /// never is.
    pub(crate) fn bind(&mut self, schedules: &mut Schedules, agreement: &Agreement, now: Time) -> Vec<u32> {
        let Some(at) = schedules.required_place_of(&agreement.resource) else {
            return Vec::new();
        };
        let bind = |resource_plan: &mut ResourcePlan| {
            let nodes = resource_plan.free_nodes(agreement, now);
            resource_plan.bind(&nodes, agreement.slot().end);
            nodes
        };
        let nodes = schedules.change_bindings(at, bind).unwrap_or_default();
        self.bound.insert(agreement.id, nodes.clone());
        nodes
    }

    /// Gives the nodes that an agreement has to another, or to itself, until `end`.
    fn hand_over(&mut self, schedules: &mut Schedules, old: &Agreement, to: Uuid, end: Time) {
        let Some(nodes) = self.bound.remove(&old.id) else {
            schedules.note_impossible(|| format!("agreement {} has begun and has no nodes", old.id));
            return;
        };
        if let Some(at) = schedules.required_place_of(&old.resource) {
            schedules.change_bindings(at, |resource| resource.rebind(&nodes, end));
        }
        self.bound.insert(to, nodes);
    }

    /// Whether none of the nodes that an agreement has been given is out of use, or others', in an interval, or leaves its
    /// resource.
    fn may_keep(&self, schedules: &Schedules, agreement: &Agreement, interval: Interval) -> bool {
        let resource = schedules.named(&agreement.resource);
        let Some(in_service) = resource.filter(|in_service| !in_service.resource.is_retired()) else {
            return false;
        };
        let nodes = self.bound.get(&agreement.id).map_or(&[][..], Vec::as_slice);
        nodes.iter().all(|node| {
            in_service
                .nodes
                .may_be_kept(*node, in_service.resource.capacity, interval)
        })
    }

    /// Whether an agreement may keep its nodes in the time by which a later end makes its last slot longer. A slot that is to come has no nodes of
    /// its own yet.
    pub(crate) fn may_keep_until(&self, schedules: &Schedules, agreement: &Agreement, end: Time) -> bool {
        let planned = agreement.placement().end;
        let runs = agreement.has_nodes() && !agreement.has_more_slots();
        !runs || end <= planned || self.may_keep(schedules, agreement, Interval::new(planned, end))
    }

    /// Has the nodes of an agreement be free from `now` on.
    pub(crate) fn unbind(&self, schedules: &mut Schedules, agreement: &Agreement, now: Time) {
        let nodes = self.bound.get(&agreement.id).map_or(&[][..], Vec::as_slice);
        let until = agreement.slot().end;
        if let Some(at) = schedules.required_place_of(&agreement.resource) {
            schedules.change_bindings(at, |resource| resource.unbind(nodes, until, now));
        }
    }

    /// Takes the nodes from an agreement that it was given.
    fn take_nodes(&mut self, schedules: &mut Schedules, agreement: &Agreement, now: Time) {
        let nodes = self.bound.remove(&agreement.id).unwrap_or_default();
        if let Some(at) = schedules.required_place_of(&agreement.resource) {
            let until = agreement.slot().end;
            schedules.change_bindings(at, |resource| resource.unbind(&nodes, until, now));
        }
    }

    /// Gives an agreement these nodes of its resource until the end of its slot.
    fn give_nodes(&mut self, schedules: &mut Schedules, agreement: &Agreement, nodes: &[u32]) {
        if let Some(at) = schedules.required_place_of(&agreement.resource) {
            let until = agreement.slot().end;
            schedules.change_bindings(at, |resource| resource.bind(nodes, until));
        }
        self.bound.insert(agreement.id, nodes.to_vec());
    }

    /// Has the slot of an agreement begin with the next second, where its nodes are free from then on: work on some of them ended
    /// within this one, and those that it counted on are gone. Returns whether that is so. The agreement has no nodes until then.
    fn begin_a_second_later(&mut self, schedules: &mut Schedules, agreement: &Agreement, now: Time) -> bool {
        self.unbind(schedules, agreement, now);
        self.bound.remove(&agreement.id);
        let resource = schedules.named(&agreement.resource);
        let free = resource.map_or(0, |resource| resource.free_nodes(agreement, now + 1).len());
        let is_later = free >= agreement.slot_nodes() as usize;
        if is_later {
            self.due.set(agreement.id, Some(now + 1));
        }
        is_later
    }

    /// The agreements with concrete nodes.
    pub(crate) fn begun<'a>(&self, agreements: &'a Agreements) -> impl Iterator<Item = &'a Agreement> {
        self.bound.keys().filter_map(|id| agreements.get(*id))
    }

    /// The begun agreements with a node that is gone, except those after the end of their slots: the executor knows how their
    /// work ended.
    pub(crate) fn begun_on_lost_nodes(
        &self,
        schedules: &Schedules,
        agreements: &Agreements,
        at: usize,
        now: Time,
    ) -> Vec<Uuid> {
        let Some(resource_with_nodes) = schedules
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
            agreements.get(*id).is_some_and(|agreement| {
                agreement.slot().end > now && schedules.place_of(&agreement.resource) == Some(at)
            })
        };
        let mut lost: Vec<Uuid> = self
            .bound
            .iter()
            .filter(|(id, nodes)| nodes.iter().any(gone) && here(id))
            .map(|(id, _)| *id)
            .collect();
        lost.sort_unstable();
        lost
    }

    /// The agreements without a job that have begun on a resource, while the resource does not hold their nodes yet.
    pub(crate) fn nodes_not_handed_over(&self, agreements: &Agreements, resource: &str) -> Vec<Agreement> {
        let waits = |agreement: &&Agreement| {
            agreement.resource == resource
                && agreement.service == ServiceState::Idle
                && agreement.never_had_nodes()
        };
        self.begun(agreements).filter(waits).cloned().collect()
    }

    /// The begun agreements on a resource that holds other nodes for them than their own, with these nodes. An agreement
    /// is left out where these nodes would be another's, or are known to be gone.
    fn nodes_held_elsewhere(
        &self,
        schedules: &Schedules,
        agreements: &Agreements,
        resource: &str,
        now: Time,
    ) -> Vec<(Agreement, Vec<u32>)> {
        let Some(resource_plan) = schedules.named(resource) else {
            return Vec::new();
        };
        let elsewhere = |agreement: &Agreement| {
            let mut nodes = resource_plan.kept_for(agreement)?.nodes.clone();
            nodes.sort_unstable();
            let stands = |node: &u32| {
                *node < resource_plan.resource.capacity && resource_plan.nodes.state(*node) != NodeState::Down
            };
            let whole = nodes.len() == agreement.slot_nodes() as usize && nodes.iter().all(stands);
            let differ = *self.bound.get(&agreement.id)? != nodes;
            (agreement.resource == resource && whole && differ && agreement.slot().end > now).then_some(nodes)
        };
        let mut others: Vec<_> = self
            .begun(agreements)
            .filter_map(|agreement| Some((agreement, elsewhere(agreement)?)))
            .map(|(agreement, nodes)| (agreement.clone(), nodes))
            .collect();
        others.sort_by_key(|(agreement, _)| agreement.id);
        loop {
            let bound = |id: &Uuid| self.bound.get(id).into_iter().flatten().copied();
            let left: BTreeSet<u32> = others.iter().flat_map(|(other, _)| bound(&other.id)).collect();
            let before = others.len();
            let mut taken = BTreeSet::new();
            others.retain(|(_, nodes)| {
                let mut free = nodes
                    .iter()
                    .filter(|node| resource_plan.is_free(**node, now) || left.contains(*node));
                free.clone().count() == nodes.len() && free.all(|node| taken.insert(*node))
            });
            if others.len() == before {
                return others;
            }
        }
    }

    /// When it is to be looked at whether the work of an agreement is over.
    fn next_overrun_look(&self, schedules: &Schedules, agreement: &Agreement) -> Option<Time> {
        if schedules.is_at_peer(agreement) {
            // Its slot there is the peer's to make longer.
            return None;
        }
        let grace = match self.ending.get(&agreement.id) {
            Some(LastLook::Never) => return None,
            Some(LastLook::Unsaved(_)) => 0,
            None => self.overruns.grace(agreement).unwrap_or(0),
        };
        self.overruns.look_at(agreement, grace)
    }

    /// Notes how often the slot of an agreement is looked at again; as often as it takes where that is not said.
    pub(crate) fn look_again(
        &mut self,
        schedules: &Schedules,
        agreements: &Agreements,
        id: Uuid,
        last: Option<LastLook>,
    ) {
        let Some(agreement) = agreements.get(id) else {
            return;
        };
        match last {
            Some(last) => self.ending.insert(id, last),
            None => self.ending.remove(&id),
        };
        self.note_due_time(schedules, agreement);
    }

    /// When the planner has to act on an agreement by itself.
    fn due_time_of(&self, schedules: &Schedules, agreement: &Agreement) -> Option<Time> {
        if is_undecided(agreement) {
            return None;
        }
        match agreement.service {
            ServiceState::Idle if agreement.has_nodes() => {
                let awaited = schedules.peer_tells_until(agreement);
                Some(awaited.unwrap_or(agreement.slot().end))
            }
            ServiceState::NotReady | ServiceState::Idle => Some(agreement.slot().start),
            ServiceState::Processing => self.next_overrun_look(schedules, agreement),
            ServiceState::Completed => None,
        }
    }

    /// Notes when something is to be done for an agreement.
    fn note_due_time(&mut self, schedules: &Schedules, agreement: &Agreement) {
        self.due.set(agreement.id, self.due_time_of(schedules, agreement));
        self.starts.watch(agreement);
        self.fixing
            .set(agreement.id, fixed_from(agreement, self.fix_after));
    }

    /// The agreements that wait, could still move, and are to do so no more.
    fn agreements_to_fix(&self, agreements: &Agreements, now: Time) -> Vec<Agreement> {
        let due = self.fixing.due_by(now).into_iter();
        due.filter_map(|id| agreements.get(id).cloned()).collect()
    }

    /// The agreements with a running job.
    pub(crate) fn running(&self, agreements: &Agreements) -> Vec<Agreement> {
        let mut running: Vec<_> = agreements
            .processing()
            .chain(self.stopping.values())
            .cloned()
            .collect();
        running.sort_by_key(|agreement| agreement.id);
        running
    }

    /// Forgets which nodes an agreement has been given, and that its slot is made no longer: it is to have another.
    fn forget_given_nodes(&mut self, schedules: &Schedules, agreements: &Agreements, agreement: Uuid) {
        self.bound.remove(&agreement);
        self.look_again(schedules, agreements, agreement, None);
    }

    /// Forgets the jobs to be stopped once their slots have been over for long, and this plan has known them for as long:
    /// nothing of them runs any more.
    pub(crate) fn give_up_stopping_lost_work(&mut self, now: Time) {
        let made = self.made;
        self.stopping
            .retain(|_, agreement| agreement.placement().end.max(made) + STOPPED_AFTER > now);
    }

    /// Notes that the job of an agreement that is over has to be stopped, where anything is left of it.
    pub(crate) fn stop_lost_work_later(&mut self, agreement: Agreement) {
        self.stopping.insert(agreement.id, agreement);
    }

    /// Forgets that the job of an agreement is to be stopped: nothing is left of it. Returns whether it was to be.
    pub(crate) fn forget_lost_work(&mut self, agreement: Uuid) -> bool {
        self.stopping.remove(&agreement).is_some()
    }
}

#[cfg(test)]
impl Life {
    /// The next instant at which there is something to do for an agreement.
    fn next_own_due(&self) -> Option<Time> {
        self.due.next()
    }

    /// The next instant at which time alone may decide a guarantee.
    fn next_assessment(&self) -> Option<Time> {
        self.agenda.times.next()
    }

    /// Whether every slot is looked at as often as it takes.
    pub(crate) fn looks_often(&self) -> bool {
        self.ending.is_empty()
    }
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
