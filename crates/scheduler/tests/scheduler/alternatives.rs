//! Alternatives, early completion and cancellation by the plain algorithm.

use crate::plain::{Candidate, Plain};
use scheduler::alternatives::{AlternativeLimits, Side};
use scheduler::{Alternative, Move, Request, Time};

impl Plain {
    pub(crate) fn alternatives(
        &mut self,
        now: Time,
        request: &Request,
        limits: AlternativeLimits,
    ) -> Vec<Alternative> {
        self.begin(now);
        if request.impossible(self.tree.capacity(), now).is_some() {
            return Vec::new();
        }
        let Err(before) = self.admit(request) else {
            return Vec::new();
        };
        let mut options = Vec::new();
        for placed in self.running.iter().chain(&before) {
            let slot = placed.request.slot(placed.start);
            if !slot.meets(request.window()) {
                continue;
            }
            let start = slot.start - request.duration;
            if start >= now && start < request.ready {
                options.push((request.ready - start, start, Side::Before));
            }
            let deviation = slot.end + request.duration - request.deadline;
            if deviation > 0 {
                options.push((deviation, slot.end, Side::After));
            }
        }
        let phi = limits.phi_max;
        options.retain(|o| o.0 * i64::from(phi.denominator) <= i64::from(phi.numerator) * request.duration);
        options.sort_unstable();
        options.dedup();
        let valid = options
            .into_iter()
            .filter(|(_, start, _)| self.admit(&request.fixed_to(*start)).is_ok());
        valid
            .take(limits.count_max)
            .map(|(deviation, start, side)| Alternative {
                start,
                deviation,
                side,
            })
            .collect()
    }

    pub(crate) fn end(&mut self, now: Time, id: u64) -> Option<Vec<Move>> {
        self.advance(now);
        let freed = if let Some(i) = self.waiting.iter().position(|w| w.request.id == id) {
            let placed = self.waiting.remove(i);
            self.tree
                .release(placed.request.slot(placed.start), placed.request.nodes)
                .expect("the plan holds the placements");
            true
        } else {
            let i = self.running.iter().position(|r| r.request.id == id)?;
            let placed = self.running.remove(i);
            let mut rest = placed.request.slot(placed.start);
            rest.start = now;
            if !rest.is_empty() {
                self.tree
                    .release(rest, placed.request.nodes)
                    .expect("the plan holds the placements");
            }
            !rest.is_empty()
        };
        if !freed {
            return Some(Vec::new());
        }
        let queue = self.sorted(None);
        if let Ok(candidate) = self.place(&queue, 0) {
            return Some(self.commit(candidate));
        }
        let mut candidate = Candidate {
            queue,
            tree: self.tree.clone(),
        };
        for placed in &mut candidate.queue {
            let request = placed.request;
            candidate
                .tree
                .release(request.slot(placed.start), request.nodes)
                .expect("the plan holds the placements");
            let start = candidate
                .tree
                .earliest_fit(request.nodes, request.duration, request.window_at(now));
            placed.start = placed.start.min(start.expect("its own slot is free"));
            candidate
                .tree
                .reserve(request.slot(placed.start), request.nodes)
                .expect("the plan holds the placements");
        }
        Some(self.commit(candidate))
    }

    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Request> {
        self.waiting.iter().map(|p| &p.request)
    }
}
