//! A plan to decide on in tests, without a store, and the facts that must always hold of it.

use std::collections::BTreeMap;

use domain::agreement::{Agreement, Execution, Filter, Job, JobEnd, RunOutcome, ServiceState, Shape};
use domain::change::Change;
use domain::clock::{MICROS_PER_SECOND, Micros};
use domain::resources::{Binding, NodeReport, NodeState, Reporter, Resource, Scaling};
use prediction::Machines;
use scheduler::domain::Attribute;
use scheduler::{Interval, Rate, Seconds, Time};
use uuid::Uuid;

use super::super::decider::Decider;
use super::super::{
    AcceptedOffer, ChangeResource, Error, Refusal, RememberedAnswers, Request, ResourceVerb, ResourceWish,
    Settings, State,
};
use super::stories::Trace;
use crate::commands::{BeginDue, Place};
use crate::life::reports;
use crate::resources::machines::machines_of_rows;
use crate::resources::repair;

pub(crate) const HORIZON: Seconds = 4_000;

/// A plan to decide on, without a store, with everything that would have been stored.
pub(crate) struct Domain {
    pub(crate) settings: Settings,
    pub(crate) state: State,
    pub(crate) known: BTreeMap<Uuid, Agreement>,
    /// The agreements that are over, as they ended.
    pub(crate) over: BTreeMap<Uuid, Agreement>,
    pub(crate) told: Vec<(Uuid, String)>,
    /// The executions that were recorded.
    pub(crate) executions: Vec<Execution>,
    pub(crate) now: i64,
    /// Microseconds that have passed of that second.
    pub(crate) within: Micros,
    /// What each resource has since when, as it would have been stored.
    pub(crate) capacities: BTreeMap<String, Vec<(Micros, u32)>>,
    /// Whether all agreements that can move up do so after each decision, as they do while no command comes.
    pub(crate) moves_up: bool,
    /// All that is decided, in lines, where a test wants to see it.
    pub(crate) trace: Option<Trace>,
}

impl Domain {
    pub(crate) fn new(resources: Vec<Resource>) -> Self {
        let mut settings = Settings::new(resources, HORIZON);
        settings.improving.idle = false;
        Self::with(settings)
    }

    pub(crate) fn with(settings: Settings) -> Self {
        let plan = State::rebuild(&settings, &settings.resources, Vec::new(), Vec::new(), Time(0)).unwrap();
        let capacities = settings.resources.iter();
        let capacities = capacities.map(|resource| (resource.name.clone(), vec![(0, resource.capacity)]));
        Self {
            capacities: capacities.collect(),
            moves_up: true,
            trace: None,
            settings,
            state: plan,
            known: BTreeMap::new(),
            over: BTreeMap::new(),
            told: Vec::new(),
            executions: Vec::new(),
            now: 0,
            within: 0,
        }
    }

    /// The present instant.
    fn micros(&self) -> Micros {
        self.now * MICROS_PER_SECOND + self.within
    }

    /// One slice of moves into free time.
    pub(crate) fn improve(&mut self) {
        self.decide(|decider| {
            decider.move_some_up();
        });
    }

    pub(crate) fn decide<R>(&mut self, verb: impl FnOnce(&mut Decider<'_>) -> R) -> R {
        let (now, mut batch) = (self.micros(), Vec::new());
        self.state.schedules.advance(Time(self.now));
        let mut decider = Decider::new(
            &self.settings,
            &mut self.state,
            now,
            Uuid::now_v7,
            &mut batch,
            RememberedAnswers::new(),
        );
        let result = verb(&mut decider);
        while self.moves_up && decider.state.may_move_up(Time(self.now)) {
            decider.move_some_up();
        }
        assert_eq!(self.state.why_impossible(), None);
        if let Some(trace) = &mut self.trace {
            trace.note_changes(&batch);
        }
        for change in batch {
            if let Change::RecordExecution(execution) = change {
                self.executions.push(*execution);
                continue;
            }
            if let Change::SetCapacity { resource, steps } = change {
                let known = self.capacities.entry(resource).or_default();
                known.retain(|(since, _)| *since < steps[0].0);
                known.extend(steps);
                continue;
            }
            if let Change::RecordMoves(record) = change {
                for one_move in &record.moves {
                    one_move.apply(self.known.get_mut(&one_move.agreement).unwrap());
                }
                continue;
            }
            if let Change::SettleMoves { agreement, event, .. } = change {
                self.told.push((agreement.id, event.detail));
                self.known.insert(agreement.id, *agreement);
                continue;
            }
            let (Change::CreateAgreement {
                agreement, events, ..
            }
            | Change::UpdateAgreement {
                agreement, events, ..
            }) = change
            else {
                continue;
            };
            let lines = events.into_iter().map(|event| (agreement.id, event.detail));
            self.told.extend(lines);
            if agreement.state.is_final() {
                self.known.remove(&agreement.id);
                self.over.insert(agreement.id, *agreement);
            } else {
                self.known.insert(agreement.id, *agreement);
            }
        }
        result
    }

    pub(crate) fn place(&mut self, proposal: Request) -> Result<AcceptedOffer, Refusal> {
        self.decide(|decider| decider.decide(Place(proposal)))
            .map_err(|error| match error {
                Error::Refused(refusal) => *refusal,
                other => panic!("{other}"),
            })
    }

    pub(crate) fn of(&self, id: Uuid) -> &Agreement {
        &self.known[&id]
    }

    /// The facts that must always hold.
    pub(crate) fn check(&self) {
        for (id, agreement) in &self.known {
            assert_eq!(
                self.state.agreements.get(*id),
                Some(agreement),
                "the plan is what was stored"
            );
            assert!(
                agreement.window().contains(agreement.placement()),
                "{agreement:?}"
            );
            let most = agreement.duration + self.settings.overruns.most(agreement);
            let planned = agreement.duration..=most;
            assert!(planned.contains(&agreement.planned_seconds()), "{agreement:?}");
            let at = self.state.schedules.place_of(&agreement.resource).unwrap();
            let one_resource = self.state.schedules.get(at).unwrap();
            for filter in &agreement.constraints.filters {
                let requirement = filter.requirement(agreement.nodes());
                assert!(
                    requirement.holds(&one_resource.resource.attributes),
                    "{agreement:?}"
                );
            }
        }
        for resource_plan in self.state.schedules.plans() {
            let (resource, tree) = (&resource_plan.resource, resource_plan.schedule.tree());
            // A slot that ended within this second has its nodes until the second is over.
            for second in self.now + 2..self.now + 800 {
                let here = self.known.values().filter(|a| a.resource == resource.name);
                let loads = here.flat_map(Agreement::loads);
                let using = |(each, _): &(Interval, u32)| each.contains(Interval::of(Time(second), 1));
                let used: u32 = loads.filter(using).map(|(_, nodes)| nodes).sum();
                let has = self.capacity(&resource.name, second);
                assert!(used <= has, "{} at {second}: {used} of {has}", resource.name);
                if second % 7 == 0 {
                    let out = |(each, _): &&(Interval, u32)| each.contains(Interval::of(Time(second), 1));
                    let blocked: u32 = resource_plan
                        .nodes
                        .blocks
                        .iter()
                        .filter(out)
                        .map(|(_, nodes)| nodes)
                        .sum();
                    let free = tree.min_free(Interval::of(Time(second), 1));
                    assert_eq!(
                        free + used + blocked,
                        tree.capacity(),
                        "{} at {second}",
                        resource.name
                    );
                }
            }
        }
    }

    /// The nodes of a resource in a second, as stored.
    fn capacity(&self, resource: &str, second: i64) -> u32 {
        let Some(known) = self.capacities.get(resource) else {
            // A test that has made its plan itself.
            return self.state.schedules.named(resource).unwrap().resource.capacity;
        };
        let mut since = known.iter().rev();
        let last = since.find(|(since, _)| *since <= second * MICROS_PER_SECOND);
        last.unwrap_or(&known[0]).1
    }

    /// The nodes that agreements have been given, as stored.
    fn bindings(&self) -> Vec<Binding> {
        let bound = self.state.life.nodes();
        let binding_of = |(id, nodes): (Uuid, &Vec<u32>)| {
            let agreement = &self.known[&id];
            let one = |node: &u32| Binding {
                agreement: agreement.id,
                resource: agreement.resource.clone(),
                node: *node,
                interval: agreement.slot(),
            };
            nodes.iter().map(one).collect::<Vec<_>>()
        };
        bound.flat_map(binding_of).collect()
    }

    /// That the plan rebuilt from the store keeps the same nodes free as this one.
    pub(crate) fn check_rebuilt(&self) {
        let mut known: Vec<_> = self.known.values().cloned().collect();
        known.sort_by_key(|agreement| agreement.id);
        let now = Time(self.now);
        let resources = self.state.schedules.list();
        let rebuilt = State::rebuild(&self.settings, &resources, known, self.bindings(), now).unwrap();
        for resource in &resources {
            if rebuilt.schedules.place_of(&resource.name).is_none() {
                assert!(resource.is_retired(), "{} is not planned on", resource.name);
                continue;
            }
            let second = |plan: &State, second| {
                let resource_plan = plan.schedules.named(&resource.name).unwrap();
                let second = Interval::of(Time(second), 1);
                let out = |(block, _): &&(Interval, u32)| block.contains(second);
                let blocked: u32 = resource_plan
                    .nodes
                    .blocks
                    .iter()
                    .filter(out)
                    .map(|(_, nodes)| nodes)
                    .sum();
                resource_plan.schedule.tree().min_free(second) + blocked
            };
            for at in self.now + 2..self.now + 300 {
                assert_eq!(
                    second(&rebuilt, at),
                    second(&self.state, at),
                    "{} at {at}",
                    resource.name
                );
            }
        }
        // Whether work goes on at its end is looked at again.
        if self.state.life.looks_often() {
            assert_eq!(rebuilt.next_due().is_some(), self.state.next_due().is_some());
        }
        assert_eq!(rebuilt.why_impossible(), None);
        let windows = [&rebuilt, &self.state].map(|plan| self.windows(plan));
        assert_eq!(windows[0], windows[1], "pieces move as they did");
    }

    /// Where the pieces lie that have not begun, and where they may.
    fn windows(&self, plan: &State) -> Vec<(Uuid, usize, Time, Time, Time)> {
        let mut windows = Vec::new();
        for resource_plan in plan.schedules.plans() {
            windows.extend(resource_plan.schedule.waiting().filter_map(|request| {
                let (agreement, index) = plan
                    .placement
                    .waiting_slot_by_number(&plan.agreements, request.id)?;
                let in_pieces = agreement.slots.is_split();
                let start = resource_plan.schedule.placement(request.id)?.slot.start;
                // A slot that begins within the next second may have begun for the schedule.
                let waits = start > Time(self.now + 1);
                (waits && in_pieces).then_some((agreement.id, index, start, request.ready, request.deadline))
            }));
        }
        windows.sort_unstable();
        windows
    }

    pub(crate) fn begin(&mut self, at: i64) {
        self.now = at;
        self.decide(|decider| {
            repair::repair_nodes_in_time(decider);
            decider.decide(BeginDue)
        })
        .unwrap();
        self.check();
    }

    pub(crate) fn end(&mut self, id: Uuid, outcome: RunOutcome) {
        let end = ended_at(outcome, self.micros());
        self.decide(|decider| reports::record_reported_end(decider, id, &end))
            .unwrap();
        self.check();
    }

    /// Has the job of an agreement end that was never started in its slot.
    pub(crate) fn never_started(&mut self, id: Uuid) {
        let end = JobEnd {
            started: None,
            ..ended_at(RunOutcome::Lost, self.micros())
        };
        self.decide(|decider| reports::record_reported_end(decider, id, &end))
            .unwrap();
        self.check();
    }

    pub(crate) fn nodes_down(&mut self, count: usize) {
        let mut states = vec![NodeState::Up; 8];
        states[..count].fill(NodeState::Down);
        let report = NodeReport {
            states,
            ..NodeReport::default()
        };
        self.decide(|decider| repair::repair_nodes(decider, "local", Reporter::Operator, &report))
            .unwrap();
        self.check();
    }

    /// Gives a resource another number of nodes.
    pub(crate) fn resize(&mut self, name: &str, capacity: u32) {
        let wish = ResourceWish {
            capacity: Some(capacity),
            ..ResourceWish::default()
        };
        let order = ChangeResource {
            id: Uuid::now_v7(),
            party: "operator".to_owned(),
            name: name.to_owned(),
            verb: ResourceVerb::Put(wish),
        };
        self.decide(|decider| decider.decide(order)).unwrap();
        self.check();
    }

    /// Lets time pass, a second at a time, with every process started at once.
    pub(crate) fn pass_until(&mut self, until: i64) {
        while self.now < until {
            self.begin(self.now + 1);
            let begun = self.known.values().filter(|agreement| {
                agreement.service == ServiceState::Processing && agreement.slot_started().is_none()
            });
            for id in begun.map(|begun| begun.id).collect::<Vec<_>>() {
                let at = self.now * MICROS_PER_SECOND;
                self.decide(|decider| reports::record_reported_start(decider, id, at, None))
                    .unwrap();
            }
        }
    }

    /// The earliest completion that is free on any resource, by a look at each second of each.
    pub(crate) fn earliest(&self, request: &Request) -> Option<Time> {
        let window = Interval::new(
            request.ready.unwrap().max(Time(self.now)),
            request.deadline.unwrap(),
        );
        let mut earliest = None;
        for resource_plan in self.state.schedules.in_service() {
            let (resource, schedule) = (&resource_plan.resource, &resource_plan.schedule);
            let (tree, now) = (schedule.tree(), schedule.now());
            for shape in &request.shapes {
                let shape = request.scaling.shape(*shape, resource.rate);
                let holds = |filter: &Filter| filter.requirement(shape.nodes).holds(&resource.attributes);
                if shape.nodes > resource.capacity || !request.filters.iter().all(holds) {
                    continue;
                }
                let free =
                    |start: i64| tree.min_free(Interval::of(Time(start), shape.duration)) >= shape.nodes;
                let last = window.end - shape.duration;
                let start = (window.start.max(now).seconds()..=last.seconds()).find(|start| free(*start));
                let end = start.map(|start| Time(start) + shape.duration);
                earliest = [earliest, end].into_iter().flatten().min();
            }
        }
        earliest
    }
}

/// The end of a job; one that is lost had begun.
fn ended_at(outcome: RunOutcome, at: Micros) -> JobEnd {
    JobEnd::new(outcome, (outcome == RunOutcome::Lost).then_some(at), at)
}

pub(crate) fn proposal(nodes: u32, duration: Seconds, window: (i64, i64)) -> Request {
    Request {
        id: Uuid::now_v7(),
        party: "physics".into(),
        name: None,
        template: "t".into(),
        shapes: vec![Shape { nodes, duration }],
        scaling: Scaling::Contract,
        preemption: None,
        shape_changes: None,
        filters: Vec::new(),
        barred: Vec::new(),
        fix_at_ppm: None,
        deviation_max: None,
        ready: Some(Time(window.0)),
        deadline: Some(Time(window.1)),
        expires: None,
        job: None,
        guarantees: Vec::new(),
        budget: None,
        spender: None,
        document: "".into(),
        choices: Vec::new(),
        initiator_id: None,
        idempotency: None,
    }
}

/// A proposal to run something.
pub(crate) fn work(nodes: u32, duration: Seconds, window: (i64, i64)) -> Request {
    Request {
        job: Some(Job {
            application: "sleep".into(),
            arguments: vec!["1".into()],
            ..Job::default()
        }),
        ..proposal(nodes, duration, window)
    }
}

pub(crate) fn rated(name: &str, capacity: u32, millionths: u32) -> Resource {
    Resource {
        rate: Rate::from_millionths(millionths).unwrap(),
        ..Resource::new(name, "local", capacity)
    }
}

pub(crate) fn arm(name: &str) -> Resource {
    let mut resource = Resource::new(name, "local", 4);
    let arm = Attribute::Word("arm".into());
    resource.attributes.insert("cpu_architecture".into(), arm);
    resource
        .attributes
        .insert("memory_bytes".into(), Attribute::Number(100));
    resource
}

/// The resources of settings as predictions know them.
pub(crate) fn machines_of(settings: &Settings) -> Machines {
    machines_of_rows(settings.resources.iter().map(Resource::row).collect()).expect("they were not stored")
}
