//! Resources come, change, and are retired, while the others are decided on.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use domain::resources::{NodeRow, NodeState, ReportedState, Reporter, Resource};
use scheduler::admission::TRIES;
use scheduler::domain::Domain;
use scheduler::{Interval, Schedule, Time};

use crate::impossible::Impossible;
use crate::schedules::foresight::{self, Foresight};
use crate::schedules::look_queue::ToLookAt;
use crate::schedules::nodes::Nodes;
use crate::schedules::resource_choice::WeighedForecasts;
use crate::schedules::resource_plan::ResourcePlan;
use crate::schedules::undo::UndoLog;
use crate::schedules::{Schedules, domain_id};
use crate::settings::Settings;
use crate::timetable::Timetable;

/// A resource with an empty plan from `now` on, before it is part of a domain. Beside its own it has as many nodes as work still
/// uses that leave it.
pub(crate) fn new_resource_plan(
    resource: &Resource,
    leaving: u32,
    settings: &Settings,
    now: Time,
) -> ResourcePlan {
    let mut schedule = Schedule::new(resource.capacity.saturating_add(leaving), settings.order)
        .deciding(settings.decision)
        .budgeted(Some(settings.decision_work))
        .trying(TRIES)
        .gaining(settings.improving.least_gain);
    schedule.advance(now);
    ResourcePlan {
        resource: resource.clone(),
        schedule,
        bound_until: BTreeMap::new(),
        kept: HashMap::new(),
        has_told_kept: false,
        nodes: Nodes::new(resource.planned_maintenance()),
    }
}

/// The domain's data about a resource.
fn domain_resource(at: usize, resource: &Resource, settings: &Settings) -> scheduler::domain::Resource {
    let pricing = settings.pricing.as_ref();
    scheduler::domain::Resource {
        id: domain_id(at),
        rate: resource.rate,
        price: pricing.map_or(0, |pricing| pricing.node_hour(&resource.name)),
        attributes: resource.attributes_with_name(),
    }
}

impl Schedules {
    /// The resources with the plans that they have, in the order in which ties are broken, for decisions from `now` on; and the
    /// retired ones on which nothing is planned.
    pub(crate) fn new(plans: Vec<ResourcePlan>, gone: Vec<Resource>, settings: &Settings, now: Time) -> Self {
        let mut resources = Self {
            domain: Domain::new(Interval::new(now, now + settings.horizon), Vec::new()),
            places: HashMap::new(),
            gone: gone
                .into_iter()
                .map(|gone| (gone.name.clone(), (gone, Vec::new())))
                .collect(),
            to_look_at: ToLookAt::default(),
            idle: settings.improving.idle,
            looks: Timetable::default(),
            closed: BTreeSet::new(),
            retired: BTreeSet::new(),
            frozen: BTreeSet::new(),
            foresight: Arc::new(Foresight::of(settings)),
            ids: foresight::ids_of_resources(std::iter::empty()),
            weighed: WeighedForecasts::default(),
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
        let states = new.iter().filter_map(|new| self.gone.remove(&new.name));
        let states: Vec<NodeRow> = states.flat_map(|(_, states)| states).collect();
        let plans = new
            .iter()
            .map(|resource| new_resource_plan(resource, 0, settings, now));
        self.join(plans.collect(), settings, now);
        self.recall_nodes(states, now);
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
        let (_, states) = self
            .gone
            .remove(&resource.name)
            .unwrap_or((resource.clone(), Vec::new()));
        self.gone.insert(resource.name.clone(), (resource, states));
    }

    /// Takes back how nodes stand.
    pub(crate) fn recall_nodes(&mut self, rows: Vec<NodeRow>, now: Time) {
        for row in rows {
            let said = Reporter::from_word(&row.reporter).zip(NodeState::from_word(&row.state));
            let Some((by, state)) = said else { continue };
            if let Some((_, states)) = self.gone.get_mut(&row.resource) {
                states.push(row);
                continue;
            }
            let Some(at) = self.place_of(&row.resource) else {
                continue;
            };
            let said = ReportedState {
                state,
                since: row.since,
                reason: row.reason,
            };
            self.change_bindings(at, |decider| decider.nodes.restore(row.node, by, said));
            self.looks.set(at, Some(now));
        }
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
