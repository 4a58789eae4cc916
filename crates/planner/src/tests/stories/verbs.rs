//! What parties, operators, nodes and peers do in a story, beside negotiating.

use domain::agreement::{
    AtPeer, Compensation, CompensationValue, Guarantee, GuaranteeState, Job, JobEnd, Money, RunOutcome,
    SeenAtPeer, Shape, Values,
};
use domain::clock::MICROS_PER_SECOND;
use domain::resources::{BusyTime, NodeReport, NodeState, PEER, Reporter, Scaling};
use scheduler::preemptive::{Preemption, Rounding};
use scheduler::{Fraction, Interval, Rate, Time};
use uuid::Uuid;

use super::trace::{agreement_in_words, repaired_in_words};
use super::{RESTARTING, Story, euro};
use crate::commands::{EndWithoutPeer, MoveToPeer, ReportAtPeer};
use crate::resources::repair;
use crate::tests::harness::proposal;
use crate::{ChangeResource, Evict, MoveAgreement, Request, ResourceVerb, ResourceWish, Terminate};

/// Most nodes that are asked for.
const NODES_MAX: usize = 4;

/// A guarantee that pays its party half of the price, and something for each minute.
fn guarantee(name: &str, objective: &str) -> Guarantee {
    let penalty = |worth, every| Compensation {
        worth,
        every,
        paid: 0,
    };
    Guarantee {
        name: name.into(),
        objective: objective.into(),
        qualifying_condition: None,
        state: GuaranteeState::NotDetermined,
        evidence: None,
        values: Values {
            penalties: vec![
                penalty(CompensationValue::PricePart(50_000_000), None),
                penalty(CompensationValue::Amount(Money::new(1_234, euro())), Some(60)),
            ],
            ..Values::default()
        },
    }
}

impl Story {
    /// A request of a party, which may be one for work in pieces, of several sizes, or to be run again when it is lost.
    pub(super) fn request(&mut self, party: &str) -> Request {
        let now = self.domain.now;
        let random = &mut self.random;
        let runs = random.below(3) > 0;
        let cut = runs && random.below(3) == 0;
        let (duration, ready) = if cut {
            (30 + random.seconds(100), now)
        } else {
            (1 + random.seconds(60), now + random.seconds(200))
        };
        let nodes = 1 + u32::try_from(random.below(NODES_MAX)).unwrap();
        let scales = random.below(3) == 0;
        let fewest = if scales { 1 } else { nodes };
        let sizes = (fewest..=nodes).rev().map(|count| Shape {
            nodes: count,
            duration: duration * i64::from(nodes) / i64::from(count),
        });
        let room = random.seconds(100) + random.seconds(2) * (20 + random.seconds(300));
        let again = random.below(3) == 0;
        let independent = fewest < nodes && random.below(2) == 0;
        let pieces = 2 + u32::try_from(random.below(4)).unwrap();
        let rounding = if independent { Rounding::Up } else { Rounding::Cuts };
        let preemption = Preemption::new(pieces, 1_000_000 / pieces, independent).unwrap();
        let job = Job {
            application: "sleep".into(),
            arguments: vec!["1".into()],
            ..Job::default()
        };
        Request {
            party: party.into(),
            template: if again { RESTARTING } else { "advance-reservation" }.into(),
            shapes: sizes.collect(),
            scaling: if scales {
                Scaling::ReferenceRate
            } else {
                Scaling::Contract
            },
            preemption: cut.then(|| preemption.rounded(rounding)),
            fix_at_ppm: (random.below(5) == 0).then_some(300_000),
            deviation_max: (random.below(4) == 0).then(|| Fraction::percent(50)),
            budget: (random.below(4) == 0).then(|| Money::new(5_000, euro())),
            job: runs.then_some(job),
            guarantees: vec![
                guarantee("START", "started le latest_start"),
                guarantee("COMPLETION", "completed le deadline"),
            ],
            ..proposal(nodes, duration, (ready, ready + duration + room))
        }
    }

    /// A few slices of moves into free time, after an early end.
    pub(super) fn make_slices(&mut self) {
        if let Some(id) = self.any_agreement().filter(|_| self.random.below(2) == 0) {
            self.terminate(id, false);
        }
        for _ in 0..=self.random.below(3) {
            let now = self.domain.now;
            self.note(&format!("{now} slice"));
            self.domain.improve();
        }
    }

    fn terminate(&mut self, id: Uuid, by_provider: bool) {
        let order = Terminate {
            by_provider,
            ..Terminate::of(id, None)
        };
        self.ask(
            &format!("terminate {id}, by provider {by_provider}"),
            |decider| decider.decide(order),
            agreement_in_words,
        );
    }

    /// An agreement is ended by one of its sides, or moved by an operator.
    pub(super) fn end_or_move(&mut self) {
        let Some(id) = self.any_agreement() else { return };
        match self.random.below(6) {
            0 | 1 => self.terminate(id, false),
            2 => self.terminate(id, true),
            3 => {
                let order = Evict {
                    id,
                    by: "operator".into(),
                    reason: "the nodes are needed".into(),
                    compensation: Some(Money::new(77_000, euro())),
                    versions: None,
                    idempotency: None,
                };
                self.ask(
                    &format!("evict {id}"),
                    |decider| decider.decide(order),
                    |evicted| {
                        format!(
                            "{}, {:?}",
                            agreement_in_words(&evicted.agreement),
                            evicted.penalties
                        )
                    },
                );
            }
            _ => {
                let later = Time(self.domain.now + self.random.seconds(200));
                let order = MoveAgreement {
                    id,
                    by: "operator".into(),
                    resource: None,
                    start: (self.random.below(2) == 0).then_some(later),
                    reason: None,
                    versions: None,
                    idempotency: None,
                };
                self.ask(
                    &format!("move {id} to {:?}", order.start),
                    |decider| decider.decide(order),
                    agreement_in_words,
                );
            }
        }
    }

    /// Nodes of one resource fail, are drained or come back, and may be others' for a while.
    pub(super) fn report_nodes(&mut self) {
        let resources = self.domain.state.schedules.list();
        let resource = self.random.choose(&resources).unwrap().clone();
        if resource.kind == PEER {
            return;
        }
        let reporters = [Reporter::Executor, Reporter::Operator];
        let by = *self.random.choose(&reporters).unwrap();
        let states = [NodeState::Up, NodeState::Up, NodeState::Drained, NodeState::Down];
        let states = (0..resource.capacity).map(|_| *self.random.choose(&states).unwrap());
        let states = states.collect();
        let now = Time(self.domain.now);
        let busy = (0..self.random.below(3)).map(|_| BusyTime {
            node: u32::try_from(self.random.below(resource.capacity as usize)).unwrap(),
            interval: Interval::of(now + self.random.seconds(100), 1 + self.random.seconds(100)),
        });
        let busy = busy.collect();
        self.set_nodes(&resource.name, by, states, busy);
    }

    fn set_nodes(&mut self, resource: &str, by: Reporter, states: Vec<NodeState>, busy: Vec<BusyTime>) {
        let asked = format!("nodes of {resource} by {by:?}: {states:?}, {busy:?}");
        let report = NodeReport {
            states,
            busy,
            ..NodeReport::default()
        };
        self.ask(
            &asked,
            |decider| repair::repair_nodes(decider, resource, by, &report),
            repaired_in_words,
        );
    }

    /// All nodes here fail, so that peers are asked, or come back; and word comes of an agreement at a peer.
    pub(super) fn hear_of_peers(&mut self) {
        let here = self.domain.state.schedules.list();
        let here: Vec<(String, u32)> = here
            .iter()
            .filter(|resource| resource.kind != PEER)
            .map(|resource| (resource.name.clone(), resource.capacity))
            .collect();
        let state = if self.random.below(3) == 0 {
            NodeState::Down
        } else {
            NodeState::Up
        };
        for (name, capacity) in here {
            let states = vec![state; capacity as usize];
            self.set_nodes(&name, Reporter::Executor, states, Vec::new());
        }
        let asked: Vec<Uuid> = self
            .domain
            .known
            .values()
            .filter(|agreement| agreement.resource == "west")
            .map(|agreement| agreement.id)
            .collect();
        for id in asked {
            // One may have made way for another.
            if !self.domain.known.contains_key(&id) {
                continue;
            }
            match self.at_peer.get(&id).cloned() {
                Some(row) => self.hear_of_peer(row),
                None if self.random.below(4) == 0 => {
                    self.ask(
                        &format!("no peer for {id}"),
                        |decider| decider.decide(EndWithoutPeer(id)),
                        |()| "done".to_owned(),
                    );
                }
                None => self.move_to_peer(id),
            }
        }
    }

    fn move_to_peer(&mut self, id: Uuid) {
        let agreement = self.domain.of(id);
        let (before, nodes) = agreement.slots[0].stretch();
        let later = Interval::of(before.start + self.random.seconds(20), before.duration());
        let slot = if self.domain.of(id).window().contains(later) {
            later
        } else {
            before
        };
        let row = AtPeer {
            id: Uuid::now_v7(),
            agreement: id,
            peer: "west".into(),
            address: Some("http://west.example/agreements/1".into()),
            intent: None,
            price: Some(Money::new(100_000, euro())),
            made: self.domain.now * MICROS_PER_SECOND,
            state: "Observed".into(),
            charged: 0,
            paid_back: 0,
            lost: false,
            guarantees: Vec::new(),
            settled: None,
        };
        let put = row.clone();
        let placed = self.ask(
            &format!("west has {id} in {slot}"),
            |decider| {
                decider.decide(MoveToPeer {
                    row: put,
                    slot: (slot, nodes),
                })
            },
            |()| "done".to_owned(),
        );
        if placed.is_some() {
            self.at_peer.insert(id, row);
        }
    }

    /// A peer has moved an agreement, lost it, or is done with it.
    fn hear_of_peer(&mut self, row: AtPeer) {
        let now = self.domain.now * MICROS_PER_SECOND;
        let agreement = self.domain.of(row.agreement);
        let (planned, runs) = (agreement.placement(), agreement.job.is_some());
        let later = planned.start + self.random.seconds(20);
        let end = later + planned.duration();
        let mut seen = SeenAtPeer {
            row,
            slot: None,
            started: None,
            lost: None,
            ended: None,
        };
        match self.random.below(5) {
            0 => {
                seen.row.lost = true;
                seen.lost = Some("west has lost its nodes".into());
            }
            1 => {
                seen.ended = runs.then(|| JobEnd::new(RunOutcome::Completed, Some(now), now));
                "Complete".clone_into(&mut seen.row.state);
                (seen.row.charged, seen.row.paid_back) = (100_000, 20_000);
                seen.row.settled = Some(now);
            }
            2 => seen.started = Some(now),
            _ => seen.slot = Some((later.seconds(), end.seconds())),
        }
        self.at_peer.insert(seen.row.agreement, seen.row.clone());
        self.ask(
            &format!(
                "west tells of {}: {:?} {:?} {:?}",
                seen.row.agreement, seen.slot, seen.started, seen.lost
            ),
            |decider| decider.decide(ReportAtPeer(seen)),
            |()| "done".to_owned(),
        );
    }

    /// The answers to what is only asked: nothing is changed by them.
    pub(super) fn ask_dry(&mut self) {
        if let Some(id) = self.any_agreement() {
            self.ask(
                &format!("dry terminate {id}"),
                |decider| decider.try_out(|tried| tried.decide(Terminate::of(id, None)))?,
                agreement_in_words,
            );
        }
        self.order("local", ResourceVerb::Retire, true);
        self.order("local", ResourceVerb::Freeze, true);
    }

    /// A resource comes, grows, shrinks, or is taken out of service and brought back; what is only asked first.
    pub(super) fn change_resource(&mut self) {
        let name = *self.random.choose(&["local", "fast", "third", "other"]).unwrap();
        let verb = match self.random.below(8) {
            0 => ResourceVerb::Retire,
            1 | 2 => ResourceVerb::Restore,
            3 => ResourceVerb::Freeze,
            4 => ResourceVerb::Thaw,
            _ => ResourceVerb::Put(ResourceWish {
                capacity: Some(1 + u32::try_from(self.random.below(6)).unwrap()),
                rate: [None, Rate::from_millionths(2_000_000)][self.random.below(2)],
                ..ResourceWish::default()
            }),
        };
        self.order(name, verb.clone(), true);
        self.order(name, verb, false);
    }

    fn order(&mut self, name: &str, verb: ResourceVerb, is_dry: bool) {
        let asked = format!("{}{verb:?} {name}", if is_dry { "dry " } else { "" });
        let order = ChangeResource {
            id: Uuid::now_v7(),
            party: "operator".into(),
            name: name.into(),
            verb,
        };
        self.ask(
            &asked,
            |decider| {
                if is_dry {
                    decider.try_out(|tried| tried.decide(order))?
                } else {
                    decider.decide(order)
                }
            },
            |changes| {
                let words = changes.resources.iter();
                let words: Vec<String> = words
                    .map(|(resource, words)| format!("{}: {words}", resource.name))
                    .collect();
                format!("{words:?}, {}", repaired_in_words(&changes.effects))
            },
        );
    }
}
