//! Nodes out of use: they are taken out of a resource's plan, and some agreements leave it for that.

use std::collections::BTreeMap;

use scheduler::{Interval, Placement, Schedule, Seconds, Time};

use crate::planner::resources::Resources;
use crate::planner::resources::failures::Failures;
use crate::planner::resources::resource_plan::ResourcePlan;

impl ResourcePlan {
    /// The nodes out of use, in the plan and by their states.
    fn out_of_use(&self, now: Time, failures: &Failures) -> [Vec<(Interval, u32)>; 2] {
        // A slot that ended within this second has its nodes until the second is over.
        let now = self.schedule.now().max(now);
        let kept = |node: u32| self.bound_until.get(&node).copied().filter(|until| *until > now);
        let next = self.nodes.out_of_use(self.resource.capacity, now, failures, kept);
        [from_now(&self.nodes.blocks, now), next]
    }
}

impl Resources {
    /// Whether [`Self::put_out_of_use`] would change something.
    pub(in crate::planner) fn changes_use(&self, at: usize, now: Time, failures: &Failures) -> bool {
        self.get(at).is_some_and(|of| {
            let [before, next] = of.out_of_use(now, failures);
            before != next
        })
    }

    /// Takes nodes out of use by their states and by maintenance, and gives back the others. Of the requests in `known`, each
    /// with its slack, the ones in the way leave, with most slack first. Returns these with their starts. Others stay and keep
    /// their nodes. `None` where nothing has changed.
    pub(in crate::planner) fn put_out_of_use(
        &mut self,
        at: usize,
        now: Time,
        failures: &Failures,
        known: &BTreeMap<u64, Seconds>,
    ) -> Option<Vec<(u64, Time)>> {
        let (mut look, mut stuck) = (None, None);
        let leave = |of: &mut ResourcePlan| {
            of.schedule.advance(now);
            let [before, next] = of.out_of_use(now, failures);
            look = of.nodes.next_look(of.schedule.now(), failures);
            if before == next {
                of.nodes.blocks = before;
                return (None, Vec::new());
            }
            let mut touched: Vec<Interval> = before
                .iter()
                .chain(&next)
                .map(|(interval, _)| *interval)
                .collect();
            for (interval, nodes) in before {
                if let Err(why) = of.schedule.unblock(interval, nodes) {
                    stuck.get_or_insert((interval, nodes, why));
                }
            }
            // Requests with slots that have begun in the plan and not in fact.
            let begun = known
                .keys()
                .filter(|number| of.schedule.waiting_at(**number).is_none());
            let begun: Vec<u64> = begun.copied().collect();
            let mut left = Vec::new();
            let mut blocks = Vec::new();
            for (interval, nodes) in next {
                while let Some(lies) = in_excess(&of.schedule, (known, &begun), interval, nodes)
                    && of.schedule.vacate(now, lies.id).is_some()
                {
                    touched.push(lies.slot);
                    left.push((lies.id, lies.slot.start));
                }
                blocks.extend(block(&mut of.schedule, interval, nodes));
            }
            of.nodes.blocks = blocks;
            (Some(left), touched)
        };
        let left = self.change_plan(at, leave)?;
        if let Some((interval, nodes, why)) = stuck {
            let what =
                || format!("{nodes} nodes in {interval} were out of use and cannot be given back: {why}");
            self.impossible.note(what);
        }
        self.looks.set(at, look);
        self.note_free_time(at);
        left
    }
}

/// The part of the blocks that is not over.
fn from_now(blocks: &[(Interval, u32)], now: Time) -> Vec<(Interval, u32)> {
    let rest = |(interval, nodes): &(Interval, u32)| {
        let rest = Interval::new(interval.start.max(now), interval.end);
        (!rest.is_empty()).then_some((rest, *nodes))
    };
    blocks.iter().filter_map(rest).collect()
}

/// The steps of a plan inside an interval, with the free nodes of each.
fn free_steps(schedule: &Schedule, interval: Interval) -> Vec<(Interval, u32)> {
    let mut steps: Vec<(Interval, u32)> = Vec::new();
    for (start, free) in schedule.tree().steps() {
        if let Some((last, _)) = steps.last_mut() {
            last.end = last.end.min(start);
        }
        if start >= interval.end {
            break;
        }
        steps.push((Interval::new(start.max(interval.start), interval.end), free));
    }
    steps.retain(|(step, _)| !step.is_empty());
    steps
}

/// The request that is to leave first so that as many nodes are free throughout an interval. None where they are free,
/// or where no request there is known.
fn in_excess(
    schedule: &Schedule,
    known: (&BTreeMap<u64, Seconds>, &[u64]),
    interval: Interval,
    nodes: u32,
) -> Option<Placement> {
    if schedule.tree().min_free(interval) >= nodes {
        return None;
    }
    let steps = free_steps(schedule, interval).into_iter();
    let mut short = steps.filter(|(_, free)| *free < nodes);
    short.find_map(|(step, _)| most_flexible(schedule, known, step))
}

/// The request with most slack of the known ones in an interval: it is the easiest to place again.
fn most_flexible(
    schedule: &Schedule,
    (known, begun): (&BTreeMap<u64, Seconds>, &[u64]),
    interval: Interval,
) -> Option<Placement> {
    let waiting = schedule.waiting_in(interval).map(|request| request.id);
    let found = waiting.chain(begun.iter().copied()).filter_map(|number| {
        let slack = *known.get(&number)?;
        let lies = schedule.placement(number)?;
        lies.slot.meets(interval).then_some((slack, lies))
    });
    found
        .max_by_key(|(slack, lies)| (*slack, lies.id))
        .map(|(_, lies)| lies)
}

/// Takes nodes out of use, as many as are free at each time. Returns the taken nodes.
fn block(schedule: &mut Schedule, interval: Interval, nodes: u32) -> Vec<(Interval, u32)> {
    if schedule.block(interval, nodes).is_ok() {
        return vec![(interval, nodes)];
    }
    let steps = free_steps(schedule, interval).into_iter();
    let steps = steps.map(|(step, free)| (step, free.min(nodes)));
    steps
        .filter(|(step, taken)| *taken > 0 && schedule.block(*step, *taken).is_ok())
        .collect()
}
