//! A plan to decide on in tests, without a store, and what must always hold of it.

use std::collections::BTreeMap;

use scheduler::domain::Attribute;
use scheduler::{Interval, Rate, Seconds, Time};
use uuid::Uuid;

use super::super::decide::{Decider, Remembered};
use super::super::{Accepted, Error, Plan, Proposal, Refusal, Resource, Scaling, Settings};
use crate::agreement::{Agreement, Filter, Shape};
use crate::clock::MICROS_PER_SECOND;
use crate::store::Change;

pub(in crate::planner) const HORIZON: Seconds = 4_000;

/// A plan to decide on, without a store, with everything that would have been stored.
pub(in crate::planner) struct Domain {
    pub(in crate::planner) settings: Settings,
    pub(in crate::planner) plan: Plan,
    pub(in crate::planner) known: BTreeMap<Uuid, Agreement>,
    pub(in crate::planner) told: Vec<(Uuid, String)>,
    pub(in crate::planner) now: i64,
}

impl Domain {
    pub(in crate::planner) fn new(resources: Vec<Resource>) -> Self {
        let settings = Settings::new(resources, HORIZON);
        let plan = Plan::rebuild(&settings, Vec::new(), Vec::new(), Time(0)).unwrap();
        Self {
            settings,
            plan,
            known: BTreeMap::new(),
            told: Vec::new(),
            now: 0,
        }
    }

    pub(in crate::planner) fn decide<R>(&mut self, verb: impl FnOnce(&mut Decider<'_>) -> R) -> R {
        let mut batch = Vec::new();
        self.plan.resources.advance(Time(self.now));
        let mut decider = Decider {
            settings: &self.settings,
            plan: &mut self.plan,
            now: self.now * MICROS_PER_SECOND,
            batch: &mut batch,
            remembered: Remembered::new(),
        };
        let result = verb(&mut decider);
        for change in batch {
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
            } else {
                self.known.insert(agreement.id, *agreement);
            }
        }
        result
    }

    pub(in crate::planner) fn place(&mut self, proposal: Proposal) -> Result<Accepted, Refusal> {
        self.decide(|decider| decider.place(proposal))
            .map_err(|error| match error {
                Error::Refused(refusal) => *refusal,
                other => panic!("{other}"),
            })
    }

    pub(in crate::planner) fn of(&self, id: Uuid) -> &Agreement {
        &self.known[&id]
    }

    /// What must always hold.
    pub(in crate::planner) fn check(&self) {
        for (id, agreement) in &self.known {
            assert_eq!(self.plan.get(*id), Some(agreement), "the plan is what was stored");
            assert!(agreement.window().contains(agreement.placement), "{agreement:?}");
            let pieces = agreement.pieces.iter().map(|piece| piece.placement.duration());
            let planned = match agreement.pieces.as_slice() {
                [] => agreement.placement.duration(),
                _ => pieces.sum(),
            };
            assert_eq!(agreement.duration, planned, "{agreement:?}");
            let at = self.plan.resources.place(&agreement.resource).unwrap();
            let of = self.plan.resources.get(at).unwrap();
            for filter in &agreement.leeway.filters {
                let requirement = filter.requirement(agreement.nodes);
                assert!(requirement.holds(&of.resource.attributes), "{agreement:?}");
            }
        }
        for resource in &self.settings.resources {
            let at = self.plan.resources.place(&resource.name).unwrap();
            let tree = self.plan.resources.get(at).unwrap().schedule.tree();
            // What ended within this second has its nodes until the second is over.
            for second in self.now + 2..self.now + 800 {
                let here = self.known.values().filter(|a| a.resource == resource.name);
                let loads = here.flat_map(Agreement::loads);
                let using = |(of, _): &(Interval, u32)| of.contains(Interval::of(Time(second), 1));
                let used: u32 = loads.filter(using).map(|(_, nodes)| nodes).sum();
                assert!(used <= resource.capacity, "{} at {second}", resource.name);
                if second % 7 == 0 {
                    let of = self.plan.resources.get(at).unwrap();
                    let out = |(of, _): &&(Interval, u32)| of.contains(Interval::of(Time(second), 1));
                    let blocked: u32 = of.nodes.blocks.iter().filter(out).map(|(_, nodes)| nodes).sum();
                    let free = tree.min_free(Interval::of(Time(second), 1));
                    assert_eq!(
                        free + used + blocked,
                        resource.capacity,
                        "{} at {second}",
                        resource.name
                    );
                }
            }
        }
    }

    /// The earliest completion that is free on any resource, by a look at each second of each.
    pub(in crate::planner) fn earliest(&self, proposal: &Proposal) -> Option<Time> {
        let window = Interval::new(
            proposal.ready.unwrap().max(Time(self.now)),
            proposal.deadline.unwrap(),
        );
        let mut earliest = None;
        for resource in &self.settings.resources {
            let at = self.plan.resources.place(&resource.name)?;
            let schedule = &self.plan.resources.get(at)?.schedule;
            let (tree, now) = (schedule.tree(), schedule.now());
            for shape in &proposal.shapes {
                let shape = proposal.scaling.shape(*shape, resource.rate);
                let holds = |filter: &Filter| filter.requirement(shape.nodes).holds(&resource.attributes);
                if shape.nodes > resource.capacity || !proposal.filters.iter().all(holds) {
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

pub(in crate::planner) fn proposal(nodes: u32, duration: Seconds, window: (i64, i64)) -> Proposal {
    Proposal {
        id: Uuid::now_v7(),
        party: "physics".into(),
        name: None,
        template: "t".into(),
        shapes: vec![Shape { nodes, duration }],
        scaling: Scaling::Contract,
        preemption: None,
        filters: Vec::new(),
        fix_at_ppm: None,
        deviation_max: None,
        ready: Some(Time(window.0)),
        deadline: Some(Time(window.1)),
        job: None,
        guarantees: Vec::new(),
        budget: None,
        document: String::new(),
        choices: Vec::new(),
        idempotency: None,
    }
}

pub(in crate::planner) fn rated(name: &str, capacity: u32, millionths: u32) -> Resource {
    Resource {
        rate: Rate::from_millionths(millionths).unwrap(),
        ..Resource::new(name, "local", capacity)
    }
}

pub(in crate::planner) fn arm(name: &str) -> Resource {
    let mut resource = Resource::new(name, "local", 4);
    let arm = Attribute::Word("arm".into());
    resource.attributes.insert("cpu_architecture".into(), arm);
    resource
        .attributes
        .insert("memory_bytes".into(), Attribute::Number(100));
    resource
}
