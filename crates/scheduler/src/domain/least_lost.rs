//! The placement that loses least work, among resources of different rates.
//!
//! Paper 003 (Castillo, Rouskas, Harfoush) lets jobs take single servers. Its searches ask the rates slowest first (FF-HA, section
//! III), so that fast servers are left to jobs that only they complete in time, and the laboratory's `SingleTree`
//! then takes the idle period that the job leaves the least *idle lead* in: idle time before it. Its nominal capacity, c =
//! μ · (et − st) in section II, expires at the rate μ as time goes by, unless a smaller job comes for it.
//!
//! Here a resource has many nodes, and any of its free nodes will do. The plan of its free nodes is read as levels: level j is
//! idle where at least j nodes are free. A placement of n nodes at s takes the upper n of the levels that are idle at s, which became
//! idle last. If st(j) is the second at which level j became idle, it loses
//!
//! Σ over its levels j of  min(s − st(j), length of the slot) + (s − ready time)
//!
//! node-seconds: the capacity of its idle leads, divided by μ, and the wait. An idle lead as long as the slot or longer counts as long as the
//! slot, since it holds another such job. The wait counts because an idle lead that is avoided by waiting for long is no gain to the
//! party. μ comes first: a lower rate is better than any idle lead. Work is only lost in seconds that are yet to come.

use super::search::DomainSearch;
use super::{Candidate, Domain, ForeseenTimes, HasPlan, Objective, Rank, Task, bits};
use crate::slot_tree::SlotTree;
use crate::time::{Interval, Seconds, Time};

/// Of this many resources of a rate, the ones that complete the task first, the idle leads are compared. With 40 single servers of a
/// rate it makes no difference whether more are; with 16, a quarter more work was lost.
pub(super) const COMPARED_MAX: usize = if cfg!(test) { 2 } else { 64 };

/// The bits of a rank's objective below the rate. Fewer than 2³¹ nodes lose less than 2⁶³ seconds each.
const LOST_BITS: u32 = 95;

/// The rank of a placement on a resource of this rate, in millionths.
fn rank_by_lost_work(rate: u32, lost: i128, end: Time, resource: u64) -> Rank {
    Rank {
        objective: (i128::from(rate) << LOST_BITS) + lost.min((1 << LOST_BITS) - 1),
        completion: end,
        resource,
    }
}

impl<P: HasPlan> Domain<P> {
    /// The best placement by [`Objective::LeastWorkLost`]. `decision` is open for the resources that match.
    pub(super) fn by_least_lost(&self, decision: &mut DomainSearch<'_>) -> Option<Candidate> {
        decision.objective = Objective::EarliestCompletion;
        decision.kept_max = COMPARED_MAX;
        let matching = std::mem::take(&mut decision.open);
        let mut last = self.kinds.len();
        // The kinds of a rate lie side by side, the fastest first.
        for of_rate in self.kinds.chunk_by(|a, b| a.rate == b.rate).rev() {
            let kinds = last - of_rate.len()..last;
            last = kinds.start;
            let members = of_rate[0].members.start..of_rate[of_rate.len() - 1].members.end;
            if bits::first_bit(members.clone(), |word| matching[word]).is_none() {
                continue;
            }
            decision.open = bits::bits_within(members, &matching);
            decision.kinds = kinds;
            self.ask_all(decision);
            let best = self.least_lost_of(decision);
            if best.is_some() {
                return best;
            }
        }
        None
    }

    /// The best of the placements that start no earlier than those kept.
    fn least_lost_of(&self, decision: &mut DomainSearch<'_>) -> Option<Candidate> {
        let (task, window) = (decision.task, decision.window);
        let mut best: Option<Candidate> = None;
        for first in std::mem::take(&mut decision.kept) {
            let number = *self.numbers.get(&first.resource)?;
            let (resource, plan) = (&self.resources[number], self.plans[number].plan());
            let rate = resource.rate.millionths();
            let wait = i128::from(task.nodes) * i128::from(first.slot.start - window.start);
            let bound = rank_by_lost_work(rate, wait, first.slot.end, first.resource);
            if best.is_some_and(|best| bound >= best.rank) {
                continue;
            }
            let step = decision.forecasts.get(number).copied().flatten();
            let step_end = step.map(|step| step.forecast.step(first.slot.start).starts.end);
            let latest = window.end - first.foreseen.hold;
            let starts = Interval::new(first.slot.start, (latest + 1).min(step_end.unwrap_or(Time::MAX)));
            let (start, lost) =
                find_least_lost(plan, task, first.foreseen, window.start, starts, self.index.now());
            let slot = Interval::of(start, first.foreseen.hold);
            let rank = rank_by_lost_work(rate, lost, slot.end, first.resource);
            if best.is_none_or(|best| rank < best.rank) {
                best = Some(Candidate { slot, rank, ..first });
            }
        }
        best
    }
}

/// The start of `starts` that loses the fewest node-seconds, the earliest of equal ones, and how many it loses; the first of
/// `starts` is known to fit. Nothing is lost before `now`.
///
/// Between two seconds at which nodes become free, a later start only loses more. So only those are looked at, and none that loses
/// more by its wait alone than the best. O(k log n) for k changes of the plan within the length of the slot before and after the
/// first start.
fn find_least_lost(
    plan: &SlotTree,
    task: &Task,
    foreseen: ForeseenTimes,
    ready: Time,
    starts: Interval,
    now: Time,
) -> (Time, i128) {
    let (nodes, hold) = (i64::from(task.nodes), foreseen.hold);
    let from = now.max(starts.start - hold).min(starts.start);
    let wait = |start: Time| i128::from(nodes) * i128::from(start - ready);
    let lost = |levels: &LeastLostLevels, start: Time| wait(start) + levels.lead(nodes, start, hold);
    let mut steps = plan.steps_from(from).peekable();
    let mut levels = LeastLostLevels::default();
    while let Some((t, free)) = steps.next_if(|(t, _)| *t <= starts.start) {
        levels.change(t.max(from), free.into());
    }
    let mut best = (starts.start, lost(&levels, starts.start));
    for (t, free) in steps {
        if t >= starts.end || wait(t) >= best.1 {
            break;
        }
        let rises = levels.free() < free.into();
        levels.change(t, free.into());
        if rises && lost(&levels, t) < best.1 {
            if plan.min_free(Interval::of(t, hold)) < task.nodes {
                // The slot of the first start is free: what is in the way lies behind it, and a start behind that waits for
                // longer than any idle lead counts.
                break;
            }
            best = (t, lost(&levels, t));
        }
    }
    best
}

/// Since when each level of the free nodes is idle.
#[derive(Debug, Default)]
struct LeastLostLevels {
    /// The level up to which nodes are idle since then, ever higher and ever later.
    idle: Vec<(i64, Time)>,
}

impl LeastLostLevels {
    /// The nodes that are free by now.
    fn free(&self) -> i64 {
        self.idle.last().map_or(0, |(level, _)| *level)
    }

    /// From `t` on so many nodes are free.
    fn change(&mut self, t: Time, free: i64) {
        let mut since = t;
        while let Some((_, earlier)) = self.idle.pop_if(|(level, _)| *level >= free) {
            since = earlier;
        }
        self.idle.push((free, since));
    }

    /// The idle leads of the upper `nodes` levels at `start`, each at most `longest`, in node-seconds.
    fn lead(&self, nodes: i64, start: Time, longest: Seconds) -> i128 {
        let base = self.free() - nodes;
        let mut lead = 0;
        for (number, (level, since)) in self.idle.iter().enumerate().rev() {
            if *level <= base {
                break;
            }
            let below = number.checked_sub(1).map_or(0, |below| self.idle[below].0);
            let taken = level - below.max(base);
            lead += i128::from(taken) * i128::from((start - *since).min(longest));
        }
        lead
    }
}
