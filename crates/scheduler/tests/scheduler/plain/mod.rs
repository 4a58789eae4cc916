//! Algorithms 1 and 2 as they stand in the specification: sort everything, lift everything behind the newcomer, place it all
//! again, on a copy of the plan. The oracle of the fast one, and its standard in measurements. A newcomer that fits the plan as it
//! stands is placed there where that is the rule.

use scheduler::queue::Key;
use scheduler::{Decision, Fraction, Move, Order, Placement, Reason, Request, SlotTree, Time};
use std::collections::BTreeMap;

#[derive(Clone, Copy)]
pub(crate) struct PlacedRequest {
    pub(crate) request: Request,
    pub(crate) start: Time,
}

pub(crate) struct Plain {
    pub(crate) tree: SlotTree,
    order: Order,
    fixing: Option<Fraction>,
    /// Whether a newcomer that fits the plan as it stands is placed there, and moves no other.
    pub(crate) stands: bool,
    pub(crate) now: Time,
    pub(crate) waiting: Vec<PlacedRequest>,
    pub(crate) running: Vec<PlacedRequest>,
}

/// A queue in order, the newcomer at `k` where there is one, placed on a plan of its own.
pub(crate) struct Candidate {
    pub(crate) queue: Vec<PlacedRequest>,
    pub(crate) tree: SlotTree,
}

impl Plain {
    pub(crate) fn new(capacity: u32, order: Order, fixing: Option<Fraction>) -> Self {
        let tree = SlotTree::new(capacity);
        Self {
            tree,
            order,
            fixing,
            stands: false,
            now: Time(i64::MIN / 8),
            waiting: Vec::new(),
            running: Vec::new(),
        }
    }

    pub(crate) fn submit(&mut self, now: Time, request: &Request) -> Decision {
        self.begin(now);
        if let Some(reason) = request.impossible(self.tree.capacity(), now) {
            return Decision::Refused {
                reason,
                cut_short: false,
            };
        }
        match self.admit(request) {
            Ok(candidate) => {
                let moved = self.commit(candidate);
                let placement = self.placements().into_iter().find(|p| p.id == request.id);
                let placement = placement.expect("it was accepted");
                Decision::Accepted { placement, moved }
            }
            Err(_) => Decision::Refused {
                reason: Reason::NoCapacityInWindow,
                cut_short: false,
            },
        }
    }

    pub(crate) fn placements(&self) -> Vec<Placement> {
        let all = self.running.iter().chain(&self.waiting);
        let mut placements: Vec<Placement> = all
            .map(|p| Placement {
                id: p.request.id,
                slot: p.request.slot(p.start),
                nodes: p.request.nodes,
            })
            .collect();
        placements.sort_unstable_by_key(|p| p.id);
        placements
    }

    pub(crate) fn advance(&mut self, now: Time) {
        self.now = now;
        let (started, waiting) = self.waiting.iter().partition(|p| p.start <= now);
        self.waiting = waiting;
        self.running.extend::<Vec<PlacedRequest>>(started);
        self.running.retain(|p| p.start + p.request.duration >= now);
        self.tree.forget(now);
    }

    pub(crate) fn begin(&mut self, now: Time) {
        self.advance(now);
        let Some(Fraction {
            numerator,
            denominator,
        }) = self.fixing
        else {
            return;
        };
        for PlacedRequest { request, start } in &mut self.waiting {
            let (age, wait) = (now - request.submitted, *start - request.submitted);
            if age * i64::from(denominator) >= i64::from(numerator) * wait {
                *request = request.fixed_to(*start);
            }
        }
    }

    fn key(&self, request: &Request) -> Key {
        self.order.key(request, self.now)
    }

    pub(crate) fn sorted(&self, newcomer: Option<&Request>) -> Vec<PlacedRequest> {
        let newcomer = newcomer.map(|request| PlacedRequest {
            request: *request,
            start: Time::MAX,
        });
        let mut queue: Vec<PlacedRequest> = self.waiting.iter().copied().chain(newcomer).collect();
        queue.sort_by_cached_key(|p| self.key(&p.request));
        queue
    }

    /// Algorithm 1 without step 5: the new plan, or the requests before the newcomer when it found no place.
    pub(crate) fn admit(&self, request: &Request) -> Result<Candidate, Vec<PlacedRequest>> {
        let mut queue = self.sorted(Some(request));
        let mut k = queue
            .iter()
            .position(|p| p.request.id == request.id)
            .expect("it is in the queue");
        let window = request.window_at(self.now);
        let standing = self.tree.earliest_fit(request.nodes, request.duration, window);
        if let Some(start) = standing.filter(|_| self.stands) {
            queue[k].start = start;
            let mut tree = self.tree.clone();
            tree.reserve(request.slot(start), request.nodes).expect("it fits");
            return Ok(Candidate { queue, tree });
        }
        loop {
            match self.place(&queue, k) {
                Ok(candidate) => return Ok(candidate),
                Err(i) if i == k => return Err(queue[..k].to_vec()),
                Err(i) => {
                    let newcomer = queue.remove(k);
                    queue.insert(i, newcomer);
                    k = i;
                }
            }
        }
    }

    /// Places everything from index `k` on again; the index of the first that finds no place.
    pub(crate) fn place(&self, queue: &[PlacedRequest], k: usize) -> Result<Candidate, usize> {
        let mut candidate = Candidate {
            queue: queue.to_vec(),
            tree: self.tree.clone(),
        };
        for placed in queue[k..].iter().filter(|p| p.start != Time::MAX) {
            candidate
                .tree
                .release(placed.request.slot(placed.start), placed.request.nodes)
                .expect("the plan holds the placements");
        }
        for (i, placed) in candidate.queue.iter_mut().enumerate().skip(k) {
            let request = placed.request;
            let window = request.window_at(self.now);
            placed.start = candidate
                .tree
                .earliest_fit(request.nodes, request.duration, window)
                .ok_or(i)?;
            candidate
                .tree
                .reserve(request.slot(placed.start), request.nodes)
                .expect("the plan holds the placements");
        }
        Ok(candidate)
    }

    pub(crate) fn commit(&mut self, candidate: Candidate) -> Vec<Move> {
        let new: BTreeMap<u64, Time> = candidate.queue.iter().map(|p| (p.request.id, p.start)).collect();
        let mut moved = Vec::new();
        for old in &self.waiting {
            let id = old.request.id;
            let to = *new.get(&id).expect("no request is lost");
            if to != old.start {
                moved.push(Move {
                    id,
                    from: old.start,
                    to,
                });
            }
        }
        moved.sort_unstable();
        self.tree = candidate.tree;
        self.waiting = candidate.queue;
        moved
    }
}
