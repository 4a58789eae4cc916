//! Algorithm 1, or the place in the plan as it stands, within the work that a decision may do; and how the result becomes the
//! plan.

use super::least_gain::LeastGain;
use super::lifted::LIFTED;
use super::newcomer::Newcomer;
use super::trial::{Obstacle, Trial};
use super::work::{SEARCH, Work};
use super::{DecisionRule, Move, NoPlace, Schedule};
use crate::queue::Key;
use crate::request::Request;
use crate::time::{Interval, Time};

/// The work of attempts that are laid over the plan, before everything behind the newcomer is lifted instead: this much,
const OVERLAY: u64 = 200;
/// and for each waiting request, as a part of the cost of lifting and placing it, so much at least,
const OVERLAY_EACH: u64 = 4;
/// and so much at most, if what is left is enough to lift all then.
const OVERLAY_EACH_MAX: u64 = 8;
/// Putting one waiting request in order, where all are sorted again.
const SORTED: u64 = 8;
/// Work that a makeshift may do: enough for a few hundred others that make way.
const MAKESHIFT: u64 = 60_000;
/// Work that the search for few others that have other places may do, and half of what a decision has at most: the rest is for
/// algorithm 1.
const DISPLACEMENT: u64 = 40_000;
/// Work that may be done about the moves of others once the newcomer has its place.
const SETTLING: u64 = 20_000;

/// A newcomer has a place, and the slot tree holds it.
#[derive(Debug)]
pub(super) struct AdmittedRequest {
    pub(super) trial: Trial,
    /// The key that it went behind, with everything behind that at its first fit; `None` where it was placed in another way.
    behind: Option<Key>,
    fit: FirstFit,
    /// Work that may be done about the places that others have left for it.
    gains: u64,
}

/// Whether a newcomer lies at its first fit,
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstFit {
    /// with everything behind its own key lifted,
    InOrder,
    /// or in the plan as it stands,
    Standing,
    /// or neither, as far as it is known.
    Neither,
}

impl AdmittedRequest {
    /// A trial that was found in another way than algorithm 1.
    fn out_of_order(trial: Trial) -> Self {
        Self {
            trial,
            behind: None,
            fit: FirstFit::Neither,
            gains: 0,
        }
    }
}

impl Schedule {
    /// The key behind which algorithm 1 tries `request` last, as far as it comes with the work that may be done; `None` where it
    /// lets it in. Changes nothing.
    pub(crate) fn refused_behind(&mut self, request: &Request, work: &mut Work) -> Option<Key> {
        let mut newcomer = self.newcomer_to_admit(request, work);
        match self.admit_by_order(&mut newcomer, 0, work) {
            Ok(admitted) => {
                self.take_admitted_back(admitted);
                None
            }
            Err(_) => Some(newcomer.behind),
        }
    }

    /// Whether algorithm 1 would accept a request with one possible start, as far as that can be found out with the work that may
    /// be done. Changes nothing.
    pub(crate) fn would_admit_fixed(&mut self, request: &Request, work: &mut Work) -> bool {
        work.spend(SEARCH);
        // A request that fits the plan as it stands is accepted, in any order.
        if self.tree.min_free(request.window()) >= request.nodes {
            return true;
        }
        let mut newcomer = self.newcomer_to_admit_standing(request, None);
        let admitted = self.admit_by_order(&mut newcomer, 0, work);
        admitted.map(|admitted| self.take_admitted_back(admitted)).is_ok()
    }

    /// Leaves the plan as it was before; the start that the newcomer would have had.
    pub(super) fn take_admitted_back(&mut self, admitted: AdmittedRequest) -> Time {
        let start = admitted.trial.start;
        admitted.trial.take_back(&mut self.tree);
        start
    }

    /// Algorithm 1, and where that refuses the others of the portfolio.
    ///
    /// # Errors
    /// Where `request` has no place, or none was found with the work that may be done.
    pub(super) fn admit_in_any_order(
        &mut self,
        request: &Request,
        work: &mut Work,
    ) -> Result<AdmittedRequest, NoPlace> {
        let tries = self.tries;
        let refused = match self.admit(request, work) {
            Err(refused) if tries > 0 && !refused.cut_short => refused,
            decided => return decided,
        };
        let trial = self.attempt(work).run_portfolio(request, tries);
        match (trial, self.rule) {
            (Some(trial), DecisionRule::Standing) => Ok(self.settle(trial)),
            (Some(trial), DecisionRule::Published) => Ok(AdmittedRequest::out_of_order(trial)),
            (None, _) => Err(refused),
        }
    }

    /// Algorithm 1: the change that lets `request` in, which the slot tree then holds.
    ///
    /// # Errors
    /// Where it has no place, or none was found with the work that may be done.
    pub(super) fn admit(&mut self, request: &Request, work: &mut Work) -> Result<AdmittedRequest, NoPlace> {
        let mut newcomer = self.newcomer_to_admit(request, work);
        let makeshift = self.work().part(MAKESHIFT).left();
        let found = match self.admit_by_order(&mut newcomer, makeshift, work) {
            Err(Obstacle::Spent) => {
                self.cut_short += 1;
                let trial = match self.rule {
                    DecisionRule::Published => self.make_way(&newcomer, MAKESHIFT),
                    // It was tried before algorithm 1.
                    DecisionRule::Standing => None,
                };
                trial.map(AdmittedRequest::out_of_order)
            }
            Err(_) => None,
            Ok(admitted) => return Ok(admitted),
        };
        let cut_short = work.is_spent();
        found.ok_or(NoPlace { cut_short })
    }

    /// Finds a place for a newcomer by the schedule's order alone. By the standing rule displacement comes before that, and a
    /// makeshift, which may do as much work as `makeshift` says besides.
    fn admit_by_order(
        &mut self,
        newcomer: &mut Newcomer,
        makeshift: u64,
        work: &mut Work,
    ) -> Result<AdmittedRequest, Obstacle> {
        if self.rule == DecisionRule::Standing
            && let Some(start) = newcomer.standing
        {
            let trial = self.attempt(work).run_standing(&newcomer.request, start);
            let admitted = AdmittedRequest::out_of_order(trial);
            return Ok(AdmittedRequest {
                fit: FirstFit::Standing,
                ..admitted
            });
        }
        if self.rule == DecisionRule::Standing {
            let request = newcomer.request;
            let most = DISPLACEMENT.min(work.left() / 2);
            let displaced = work.within(most, |work| self.attempt(work).run_displacement(&request));
            let trial = match displaced.or_else(|| self.make_way(newcomer, makeshift)) {
                Some(trial) => trial,
                None => self.place_again_with_few_moves(newcomer, work)?,
            };
            return Ok(self.settle(trial));
        }
        let trial = self.place_again(Some(newcomer), None, work)?;
        let is_in_order = newcomer.first_fit.is_none_or(|start| start == trial.start);
        Ok(AdmittedRequest {
            fit: if is_in_order {
                FirstFit::InOrder
            } else {
                FirstFit::Neither
            },
            behind: Some(newcomer.behind),
            trial,
            gains: 0,
        })
    }

    /// Places a newcomer where all that are in its way have other places.
    fn make_way(&mut self, newcomer: &Newcomer, work: u64) -> Option<Trial> {
        self.attempt(&mut Work::of(work)).run_makeshift(newcomer)
    }

    /// Algorithm 1, and where that lets the newcomer in a plan with fewer moves, if one is found with as much work again: all stay
    /// where they are that do not have to move.
    fn place_again_with_few_moves(
        &mut self,
        newcomer: &mut Newcomer,
        work: &mut Work,
    ) -> Result<Trial, Obstacle> {
        let mut first = *newcomer;
        let trial = self.place_again(Some(newcomer), None, work)?;
        let (start, moved) = (trial.start, trial.moved.clone());
        trial.take_back(&mut self.tree);
        // What is remembered are outcomes of moving up.
        let memory = std::mem::take(&mut self.memory);
        let least_gain = std::mem::replace(&mut self.least_gain, LeastGain::NEVER);
        // The search for few moves may do as much again.
        let few = self.place_again(Some(&mut first), None, &mut self.work());
        self.memory = memory;
        self.least_gain = least_gain;
        match few {
            Ok(few) if few.moved.len() < moved.len() => return Ok(few),
            Ok(few) => few.take_back(&mut self.tree),
            Err(_) => {}
        }
        Ok(self.attempt(work).lay_moves(&newcomer.request, start, moved))
    }

    /// Takes moves back that are not needed.
    fn settle(&mut self, mut trial: Trial) -> AdmittedRequest {
        let mut work = Work::of(SETTLING);
        self.attempt(&mut work).put_back(&mut trial);
        AdmittedRequest {
            gains: work.left(),
            ..AdmittedRequest::out_of_order(trial)
        }
    }

    /// Moves a few others, of those that may move now, up into the places that were left for a newcomer, where they gain much: to no start
    /// before `not_before`.
    pub(super) fn use_left_places(
        &mut self,
        admitted: &mut AdmittedRequest,
        not_before: Time,
        may_move: impl FnMut(u64) -> bool,
    ) {
        let mut work = Work::of(admitted.gains);
        self.attempt(&mut work)
            .use_left_places(&mut admitted.trial, not_before, may_move);
    }

    /// A newcomer and everything behind it, or without one everything, placed again: first only the requests that changes can
    /// reach, and where that is too much all of them.
    pub(super) fn place_again(
        &mut self,
        mut newcomer: Option<&mut Newcomer>,
        freed: Option<Interval>,
        work: &mut Work,
    ) -> Result<Trial, Obstacle> {
        let waiting = self.waiting.len() as u64;
        if self.waiting.is_stale() {
            work.spend(SORTED * waiting);
            if work.is_spent() {
                return Err(Obstacle::Spent);
            }
            self.freshen_waiting();
        }
        let beside_lifting = work.left().saturating_sub(LIFTED * waiting);
        let overlay = beside_lifting.clamp(OVERLAY_EACH * waiting, OVERLAY_EACH_MAX * waiting);
        let found = work.within(OVERLAY + overlay, |work| {
            loop {
                let found = self.attempt(work).run(newcomer.as_deref(), freed);
                match (found, newcomer.as_deref_mut()) {
                    (Err(Obstacle::Waiting { key, placed }), Some(newcomer)) => {
                        newcomer.go_behind(key, placed);
                    }
                    (found, _) => return found,
                }
            }
        });
        if !matches!(found, Err(Obstacle::Spent)) || work.is_spent() {
            return found;
        }
        let found = self.attempt(work).run_lifted(newcomer);
        if matches!(found, Err(Obstacle::Spent)) {
            *work = Work::of(0);
        }
        found
    }

    /// Takes over an admission: the start of `request`, and the moves of others.
    pub(super) fn commit_admitted(
        &mut self,
        admitted: &AdmittedRequest,
        request: &Request,
    ) -> (Time, Vec<Move>) {
        let start = admitted.trial.start;
        let moved = self.apply_trial(&admitted.trial, admitted.behind);
        self.check_place_or_fault(request, start, start);
        let h = self.take_in_waiting(request, start);
        match admitted.fit {
            FirstFit::InOrder => {}
            FirstFit::Standing => self.waiting.loosen_in_order(h),
            FirstFit::Neither => self.waiting.loosen(h),
        }
        (start, moved)
    }
}
