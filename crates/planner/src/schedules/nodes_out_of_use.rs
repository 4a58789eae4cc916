//! Nodes out of use, and nodes that come or leave: the plan of a resource follows, and some agreements leave it for that.

use std::collections::BTreeMap;

use domain::resources::{KeptNodes, NodeRow, NodeState, ReportedState, Reporter};
use scheduler::{Interval, Placement, Schedule, Seconds, Time, counted};

use crate::context::Search;
use crate::schedules::Schedules;
use crate::schedules::failures::Failures;
use crate::schedules::nodes::FAR;
use crate::schedules::resource_plan::{ResourcePlan, Use};

impl Schedules {
    /// Whether [`Self::put_out_of_use`] would change something.
    pub(crate) fn changes_nodes_out_of_use(&self, at: usize, now: Time, failures: &Failures) -> bool {
        self.get(at).is_some_and(|resource_plan| {
            !resource_plan.is_as_planned(&resource_plan.nodes_in_use(now, failures))
        })
    }

    /// Takes nodes out of use by their states and by maintenance, and gives back the others; takes in nodes that the resource got,
    /// and lets those go that it has no more. Of the requests in `known`, each with its slack, the ones in the way leave, with most
    /// slack first. Returns these with their starts. Others stay and keep their nodes. `None` where nothing has changed.
    pub(crate) fn put_out_of_use(
        &mut self,
        at: usize,
        now: Time,
        failures: &Failures,
        known: &BTreeMap<u64, Seconds>,
    ) -> Option<Vec<(u64, Time)>> {
        let is_resized = self
            .get(at)
            .is_some_and(|plan| plan.nodes_in_use(now, failures).nodes != plan.schedule.tree().capacity());
        // A schedule notes all changes but that of its size.
        if is_resized {
            self.note_all();
        } else {
            self.note_schedule(at);
            self.note_nodes(at);
        }
        let (mut look, mut stuck) = (None, None);
        let leave = |resource_plan: &mut ResourcePlan| {
            resource_plan.schedule.advance(now);
            let wanted = resource_plan.nodes_in_use(now, failures);
            let next_look = resource_plan
                .nodes
                .next_look(resource_plan.schedule.now(), failures);
            look = [next_look, wanted.leaves].into_iter().flatten().min();
            if resource_plan.is_as_planned(&wanted) {
                resource_plan.nodes.blocks = wanted.before;
                return (None, Vec::new());
            }
            let Use { before, next, .. } = wanted;
            let both = before.iter().chain(&next);
            let mut touched: Vec<Interval> = both.map(|(interval, _)| *interval).collect();
            for (interval, nodes) in before {
                if let Err(why) = resource_plan.schedule.unblock(interval, nodes) {
                    stuck.get_or_insert_with(|| {
                        let nodes = counted(nodes, "node");
                        format!("out of use, and cannot be given back: {nodes} in {interval}: {why}")
                    });
                }
            }
            let mut way = OutOfUseRequests::of(&resource_plan.schedule, known, now);
            let there = resource_plan.schedule.tree().capacity();
            if wanted.nodes != there {
                let all = Interval::new(wanted.now, FAR);
                touched.push(all);
                way.clear(
                    &mut resource_plan.schedule,
                    all,
                    there.saturating_sub(wanted.nodes),
                );
                if let Err(why) = resource_plan.schedule.resize(wanted.nodes) {
                    stuck.get_or_insert_with(|| {
                        let there = counted(there, "node");
                        format!("{there} cannot become {}: {why}", wanted.nodes)
                    });
                }
            }
            let mut blocks = Vec::new();
            for (interval, nodes) in next {
                way.clear(&mut resource_plan.schedule, interval, nodes);
                blocks.extend(take_nodes_out_of_use(
                    &mut resource_plan.schedule,
                    interval,
                    nodes,
                ));
            }
            resource_plan.nodes.blocks = blocks;
            touched.extend(way.slots);
            (Some(way.left), touched)
        };
        let left = self.change_plan(at, leave)?;
        if let Some(what) = stuck {
            self.impossible.note(|| what);
        }
        self.looks.set(at, look);
        self.queue_look_at_free_time(at);
        left
    }

    /// Takes nodes out of use that are free sooner than was known: ones that kept their work, and ones that leave the resource. Nothing has been
    /// placed on them yet.
    fn keep_freed_nodes_out_of_use(&mut self, at: usize, now: Time, failures: &Failures) {
        if self.get(at).is_some_and(|each| !each.is_plain())
            && self.changes_nodes_out_of_use(at, now, failures)
        {
            self.put_out_of_use(at, now, failures, &BTreeMap::new());
        }
    }

    /// Takes back how nodes stand.
    pub(crate) fn recall_nodes_out_of_use(&mut self, rows: Vec<NodeRow>, now: Time) {
        self.note_all();
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
            self.change_bindings(at, |plan| plan.nodes.restore(row.node, by, said));
            self.looks.set(at, Some(now));
        }
    }

    /// Takes over which resources are closed, and the reports about their nodes, from before the plan was rebuilt.
    pub(crate) fn recall_out_of_use_reports(&mut self, before: &Self, now: Time) {
        for (was, plan) in before.plans().enumerate() {
            let Some(at) = self.place_of(&plan.resource.name) else {
                continue;
            };
            if !before.closed.contains(&was) {
                self.closed.remove(&at);
            }
            let before = plan;
            self.change_bindings(at, |resource_plan| {
                resource_plan.nodes.busy.clone_from(&before.nodes.busy);
                resource_plan.kept.clone_from(&before.kept);
                resource_plan.has_told_kept = before.has_told_kept;
            });
            self.looks.set(at, Some(now));
        }
    }

    /// The resources with nodes to look at by `now`.
    pub(crate) fn places_with_nodes_due(&self, now: Time) -> Vec<usize> {
        let mut due = self.looks.due_by(now);
        due.sort_unstable();
        due
    }

    /// The next instant at which a resource has nodes to look at.
    pub(crate) fn next_look(&self) -> Option<Time> {
        self.looks.next()
    }

    /// Changes the bindings of a resource's nodes.
    pub(crate) fn change_bindings<R>(
        &mut self,
        at: usize,
        change: impl FnOnce(&mut ResourcePlan) -> R,
    ) -> Option<R> {
        self.note_nodes(at);
        self.change_plan(at, |each| (change(each), Vec::new()))
    }

    /// Takes note of the nodes that a resource keeps for agreements.
    pub(crate) fn note_nodes_kept_out_of_use(&mut self, resource: &str, kept: Vec<KeptNodes>) {
        let Some(at) = self.place_of(resource) else {
            return;
        };
        let kept = kept.into_iter().map(|kept| (kept.run, kept));
        self.change_bindings(at, |resource_plan| {
            resource_plan.kept = kept.collect();
            resource_plan.has_told_kept = true;
        });
    }
}

/// Takes the nodes of a resource out of use that are free sooner than was known, before anything is placed on them.
pub(crate) fn keep_freed_nodes_out_of_use(search: &mut Search<'_>, resource: &str) {
    if let Some(at) = search.schedules.place_of(resource) {
        let (now, failures) = (search.present_second(), &search.settings.failures);
        search.schedules.keep_freed_nodes_out_of_use(at, now, failures);
    }
}

/// The requests that may leave to make way, and those that have.
struct OutOfUseRequests<'a> {
    now: Time,
    /// With their slack.
    known: &'a BTreeMap<u64, Seconds>,
    /// The requests with slots that have begun in the plan and not in fact.
    begun: Vec<u64>,
    /// The ones that left, with their starts, and their slots.
    left: Vec<(u64, Time)>,
    slots: Vec<Interval>,
}

impl<'a> OutOfUseRequests<'a> {
    fn of(schedule: &Schedule, known: &'a BTreeMap<u64, Seconds>, now: Time) -> Self {
        let begun = known
            .keys()
            .filter(|number| schedule.waiting_at(**number).is_none());
        Self {
            now,
            known,
            begun: begun.copied().collect(),
            left: Vec::new(),
            slots: Vec::new(),
        }
    }

    /// Has requests leave until as many nodes are free throughout an interval, or no known request is in the way.
    fn clear(&mut self, schedule: &mut Schedule, mut interval: Interval, nodes: u32) {
        while let Some((step, lies)) = self.in_excess(schedule, interval, nodes)
            && schedule.vacate(self.now, lies.id).is_some()
        {
            self.slots.push(lies.slot);
            self.left.push((lies.id, lies.slot.start));
            // Before it there are enough, or nothing more can be done.
            interval.start = step.start;
        }
    }

    /// The request that is to leave first so that as many nodes are free throughout an interval, and where they are not. None where
    /// they are free, or where no request there is known.
    fn in_excess(
        &self,
        schedule: &Schedule,
        interval: Interval,
        nodes: u32,
    ) -> Option<(Interval, Placement)> {
        if schedule.tree().min_free(interval) >= nodes {
            return None;
        }
        let mut short = free_steps(schedule, interval).filter(|(_, free)| *free < nodes);
        short.find_map(|(step, _)| Some((step, self.most_flexible(schedule, step)?)))
    }

    /// The request with most slack of the known ones in an interval: it is the easiest to place again.
    fn most_flexible(&self, schedule: &Schedule, interval: Interval) -> Option<Placement> {
        let waiting = schedule.waiting_in(interval).map(|request| request.id);
        let found = waiting.chain(self.begun.iter().copied()).filter_map(|number| {
            let slack = *self.known.get(&number)?;
            let lies = schedule.placement(number)?;
            lies.slot.meets(interval).then_some((slack, lies))
        });
        found
            .max_by_key(|(slack, lies)| (*slack, lies.id))
            .map(|(_, lies)| lies)
    }
}

/// The steps of a plan inside an interval, with the free nodes of each.
fn free_steps(schedule: &Schedule, interval: Interval) -> impl Iterator<Item = (Interval, u32)> {
    let mut steps = schedule.tree().steps().peekable();
    let within = std::iter::from_fn(move || {
        let (start, free) = steps.next().filter(|(start, _)| *start < interval.end)?;
        let end = steps.peek().map_or(Time::MAX, |(next, _)| *next);
        let step = Interval::new(start.max(interval.start), end.min(interval.end));
        Some((step, free))
    });
    within.filter(|(step, _)| !step.is_empty())
}

/// Takes nodes out of use, as many as are free at each time. Returns the taken nodes.
fn take_nodes_out_of_use(schedule: &mut Schedule, interval: Interval, nodes: u32) -> Vec<(Interval, u32)> {
    if schedule.block(interval, nodes).is_ok() {
        return vec![(interval, nodes)];
    }
    let steps = free_steps(schedule, interval).map(|(step, free)| (step, free.min(nodes)));
    let steps: Vec<_> = steps.collect();
    let taken = steps
        .into_iter()
        .filter(|(step, taken)| *taken > 0 && schedule.block(*step, *taken).is_ok());
    taken.collect()
}

#[cfg(test)]
mod tests;
