//! Requests played on the scheduler core in order of submission, and the outcome of each.

use std::collections::BTreeMap;

use scheduler::alternatives::{AlternativeLimits, Side};
use scheduler::{Alternative, Decision, Interval, Move, Reason, Request, Schedule, Seconds, Time};

use crate::policy::{Alternatives, Policy};

/// A user's request, and its later acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayAsk {
    /// The request. Its id is unique in a replay.
    pub request: Request,
    /// How long it really runs: at most its duration, at least 1. The rest is given back at its end.
    pub run: Seconds,
    /// Whether the requester takes the nearest alternative after a refusal.
    pub takes_alternatives: bool,
}

impl ReplayAsk {
    /// A request that runs for its whole duration and takes nothing else.
    pub fn plain(request: Request) -> Self {
        Self {
            request,
            run: request.duration,
            takes_alternatives: false,
        }
    }
}

/// An alternative that a requester took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakenAlternative {
    /// Seconds beyond the asked window.
    pub deviation: Seconds,
    /// The request's duration.
    pub duration: Seconds,
    /// On which side of the window.
    pub side: Side,
}

impl TakenAlternative {
    /// φ: the deviation in durations.
    pub fn phi(&self) -> f64 {
        self.deviation as f64 / self.duration as f64
    }
}

/// How a request was accepted, which settles its price; later moves do not change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptedRequest {
    /// Where it was placed at first.
    pub slot: Interval,
    /// Where it may be placed: its window, or the alternative that was taken.
    pub window: Interval,
    /// Node-seconds of the window that were taken before.
    pub busy_area: u64,
}

/// The outcomes of the requests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReplayOutcomes {
    /// How each accepted request was, by id.
    pub accepted: BTreeMap<u64, AcceptedRequest>,
    /// Where each accepted request ran, by id.
    pub ran: BTreeMap<u64, (Interval, u32)>,
    /// Why each refused request was, by id.
    pub refused: BTreeMap<u64, Reason>,
    /// The alternatives that were taken, by the request's id.
    pub taken: BTreeMap<u64, TakenAlternative>,
    /// How often an accepted request was moved.
    pub moves: usize,
}

impl ReplayOutcomes {
    /// Node-seconds used inside `span` as a part of all that `capacity` nodes have there.
    pub fn utilisation(&self, capacity: u32, span: Interval) -> f64 {
        let used: i128 = self
            .ran
            .values()
            .map(|(slot, nodes)| {
                let inside = Interval::new(slot.start.max(span.start), slot.end.min(span.end));
                i128::from(inside.duration()) * i128::from(*nodes)
            })
            .sum();
        used as f64 / (f64::from(capacity) * span.duration() as f64)
    }
}

/// Plays requests, which are in order of submission, on a resource of `capacity` nodes.
pub fn replay_asks(capacity: u32, policy: Policy, asks: &[ReplayAsk]) -> ReplayOutcomes {
    replay_asks_watched(capacity, policy, asks, &mut |_| {})
}

/// Plays requests as [`replay_asks`] does; after each one, `progress` gets the number of requests decided so far.
pub fn replay_asks_watched(
    capacity: u32,
    policy: Policy,
    asks: &[ReplayAsk],
    progress: &mut dyn FnMut(usize),
) -> ReplayOutcomes {
    let mut player = ReplayPlayer {
        schedule: policy.schedule(capacity),
        starts: BTreeMap::new(),
        asks: asks.iter().map(|ask| (ask.request.id, *ask)).collect(),
        ends_early: asks.iter().any(|ask| ask.run < ask.request.duration),
        outcome: ReplayOutcomes::default(),
    };
    for (index, ask) in asks.iter().enumerate() {
        player.end_what_ends_early(ask.request.submitted);
        player.ask(ask, policy.alternatives);
        progress(index + 1);
    }
    player.end_what_ends_early(Time::MAX);
    player.finish()
}

struct ReplayPlayer {
    schedule: Schedule,
    /// Where each accepted request starts, as far as known.
    starts: BTreeMap<u64, Time>,
    asks: BTreeMap<u64, ReplayAsk>,
    ends_early: bool,
    outcome: ReplayOutcomes,
}

impl ReplayPlayer {
    fn ask(&mut self, ask: &ReplayAsk, alternatives: Option<Alternatives>) {
        let Err(reason) = self.submit(&ask.request) else {
            return;
        };
        let nearest = alternatives
            .filter(|_| ask.takes_alternatives)
            .and_then(|alternatives| self.nearest(&ask.request, alternatives));
        match nearest {
            Some(nearest) if self.submit(&ask.request.fixed_to(nearest.start)).is_ok() => {
                let taken = TakenAlternative {
                    deviation: nearest.deviation,
                    duration: ask.request.duration,
                    side: nearest.side,
                };
                self.outcome.taken.insert(ask.request.id, taken);
            }
            _ => {
                self.outcome.refused.insert(ask.request.id, reason);
            }
        }
    }

    fn submit(&mut self, request: &Request) -> Result<(), Reason> {
        let window = request.window();
        let busy_area = self.schedule.tree().busy_area(window);
        match self.schedule.submit(request.submitted, request) {
            Decision::Accepted { placement, moved } => {
                self.starts.insert(placement.id, placement.slot.start);
                let accepted = AcceptedRequest {
                    slot: placement.slot,
                    window,
                    busy_area,
                };
                self.outcome.accepted.insert(placement.id, accepted);
                self.note(&moved);
                Ok(())
            }
            Decision::Refused { reason, .. } => Err(reason),
        }
    }

    fn nearest(&mut self, request: &Request, alternatives: Alternatives) -> Option<Alternative> {
        let limits = AlternativeLimits {
            phi_max: alternatives.phi_max,
            count_max: if alternatives.earlier_only { usize::MAX } else { 1 },
        };
        self.schedule
            .alternatives(request.submitted, request, limits)
            .into_iter()
            .find(|alternative| !alternatives.earlier_only || alternative.side == Side::Before)
    }

    /// Ends requests that really end before their slot does, one by one, up to `now`: each end may move others up, and so bring
    /// forward the next end.
    fn end_what_ends_early(&mut self, now: Time) {
        while self.ends_early {
            let next = self
                .schedule
                .placements()
                .filter_map(|placement| {
                    let run = self.asks.get(&placement.id)?.run;
                    (run < placement.slot.duration()).then(|| (placement.slot.start + run, placement.id))
                })
                .min();
            match next {
                Some((end, id)) if end <= now => {
                    let moved = self.schedule.end(end, id).unwrap_or_default();
                    self.note(&moved);
                }
                _ => break,
            }
        }
    }

    fn note(&mut self, moved: &[Move]) {
        self.outcome.moves += moved.len();
        for change in moved {
            self.starts.insert(change.id, change.to);
        }
    }

    fn finish(mut self) -> ReplayOutcomes {
        // No figure is worth anything then.
        assert_eq!(self.schedule.fault(), None);
        for (id, start) in self.starts {
            if let Some(ask) = self.asks.get(&id) {
                let slot = Interval::of(start, ask.run);
                self.outcome.ran.insert(id, (slot, ask.request.nodes));
            }
        }
        self.outcome
    }
}
