//! The calendar: when nodes are free, and the slots of a party in that time. A cell takes O(log n), whatever waits.

use domain::agreement::Money;
use scheduler::{Interval, Seconds, SlotTree, Time};

use crate::context::View;
use crate::free_time::free_time_in_whole_steps;
use crate::limits::allowance::allowance;
use crate::picture::{PicturedSlot, cut_in_parts, slots_of_all, slots_of_party};
use crate::prices::payer::{AllowedShapes, Payer};
use crate::prices::pricing::{Priced, Pricing};
use crate::schedules::resource_plan::ResourcePlan;

/// Free times of a resource that are looked at for those that are long enough in whole steps.
const GAPS_MAX: usize = 100;
/// Seconds of an hour.
const HOUR: Seconds = 3_600;

/// The answer is when nodes are free, and the slots of a party in that time: never which parties have what is not its own.
/// O((c + k) log n) for c cells with their parts and k slots.
///
/// # Errors
/// [`Error::Unavailable`](crate::Error::Unavailable) when the planner has stopped.
#[derive(Debug, Clone)]
pub struct ShowCalendar {
    /// The party that looks, whose quotas bound what is free for it; it sees its own slots alone. None sees everything.
    pub party: Option<String>,
    /// How many nodes it wants, and for how many seconds.
    pub wanted: (u32, Seconds),
    /// On which resource; on each where none is named.
    pub resource: Option<String>,
    /// How many resources are passed over.
    pub skip: usize,
    /// The most resources that are shown.
    pub resources_max: usize,
    /// The times that are told, in order.
    pub cells: Vec<Interval>,
    /// How many parts of each are told beside that.
    pub parts: i64,
    /// The most slots of a resource.
    pub slots_max: usize,
    /// The most free times of a resource.
    pub free_max: usize,
}

impl ShowCalendar {
    /// All of its cells together.
    fn period(&self) -> Interval {
        let ends = self.cells.first().zip(self.cells.last());
        ends.map_or(Interval::of(Time(0), 0), |(first, last)| {
            Interval::new(first.start, last.end)
        })
    }
}

/// The plan of some resources as a party may see it, as it was at an instant. All of it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Calendar {
    /// When it was looked at.
    pub taken: Time,
    /// Until when the provider plans.
    pub horizon: Time,
    /// Whether it is told when nodes are free.
    pub is_published: bool,
    /// The names of all resources on which something new is placed or the viewer sees a slot, in the provider's order.
    pub names: Vec<String>,
    /// The resources that are shown.
    pub resources: Vec<CalendarResource>,
    /// How many resources are passed over on the next page, where there is one.
    pub next: Option<usize>,
}

/// A resource on a [`Calendar`].
#[derive(Debug, Clone, PartialEq)]
pub struct CalendarResource {
    /// Its name.
    pub name: String,
    /// How many nodes it has.
    pub capacity: u32,
    /// Whether something new is placed on it: it is neither retired nor frozen.
    pub takes_new: bool,
    /// As asked for.
    pub cells: Vec<CalendarCell>,
    /// The fewest nodes that are free for the viewer in each part of each cell; none where that is over or not told.
    pub parts: Vec<Option<u32>>,
    /// The slots that the viewer sees in the time of all cells, by start: the first ones.
    pub slots: Vec<PicturedSlot>,
    /// How many more there are.
    pub more_slots: usize,
    /// When the wanted nodes are free next for the viewer and for long enough, from the first cell on.
    pub next_free: Vec<Interval>,
}

/// A time on a [`Calendar`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalendarCell {
    /// As asked for.
    pub interval: Interval,
    /// The steps that it touches, from now on; empty where it is over.
    pub within: Interval,
    /// The fewest and the most nodes that are free for the viewer at a time in these; none where it is over or not told.
    pub free: Option<(u32, u32)>,
    /// The node-seconds in use in them.
    pub taken: u64,
}

impl CalendarResource {
    /// The price for a party of one node for an hour that is its whole window, where the nodes are as busy as they are in a cell.
    /// `None` where it is more than an amount can hold.
    pub fn node_hour(&self, pricing: &Pricing, party: &str, cell: &CalendarCell, now: Time) -> Option<Money> {
        let whole = u128::from(self.capacity) * u128::from(cell.within.duration().unsigned_abs());
        let load = scheduler::pricing::price_load_factor(pricing.busy, cell.taken.into(), whole);
        let payer = Payer {
            party,
            budget: None,
            fix_at: None,
            shapes: AllowedShapes::ONE,
        };
        let hour = Interval::of(cell.within.start.max(now), HOUR);
        pricing.price(&self.name, load, now, Priced::rigid(payer, (hour, 1), hour))
    }
}

/// The calendar that is asked for.
pub(crate) fn calendar(view: View<'_>, asked: &ShowCalendar) -> Calendar {
    let party = asked.party.as_deref();
    let sees_some = |plan: &&ResourcePlan| match party {
        None => !plan.schedule.is_empty(),
        Some(party) => {
            let name = &plan.resource.name;
            let is_here = |choice| view.table.stretches_on_hold(choice).any(|(on, _)| on == name);
            view.limits.has_some_on(party, name) || view.table.choices_held(party).into_iter().any(is_here)
        }
    };
    let seen = view.schedules.plans();
    let seen: Vec<&ResourcePlan> = seen
        .filter(|plan| plan.resource.takes_new() || sees_some(plan))
        .collect();
    let is_named = |plan: &&&ResourcePlan| {
        let name = asked.resource.as_ref();
        name.is_none_or(|name| *name == plan.resource.name)
    };
    let named: Vec<&ResourcePlan> = seen.iter().filter(is_named).copied().collect();
    let page = named.iter().skip(asked.skip).take(asked.resources_max);
    let next = asked.skip.saturating_add(asked.resources_max);
    Calendar {
        taken: view.present_second(),
        horizon: view.present_second() + view.settings.horizon,
        is_published: party.is_none() || view.settings.refusals.availability,
        names: seen.iter().map(|plan| plan.resource.name.clone()).collect(),
        resources: page.map(|plan| calendar_of_resource(view, plan, asked)).collect(),
        next: (next < named.len()).then_some(next),
    }
}

fn calendar_of_resource(
    view: View<'_>,
    resource_plan: &ResourcePlan,
    asked: &ShowCalendar,
) -> CalendarResource {
    let (resource, now) = (&resource_plan.resource, view.present_second());
    let (slots, more_slots) = match &asked.party {
        None => slots_of_all(view, resource_plan, asked.period(), asked.slots_max),
        Some(party) => slots_of_party(view, resource_plan, party, asked.period(), asked.slots_max),
    };
    let allowed = asked.party.as_deref().and_then(|party| {
        let allowance = allowance(view, party, None);
        let end = (now + view.settings.horizon).max(asked.period().end).max(now);
        let on = (resource.name.as_str(), resource.capacity);
        (!allowance.is_unbounded()).then(|| allowance.steps(on, asked.wanted, Interval::new(now, end)))
    });
    let free = FreeNodes {
        tree: resource_plan.schedule.tree(),
        allowed,
        now,
        step: asked.party.as_ref().map_or(1, |_| view.settings.refusals.coarsen),
    };
    let is_told = asked.party.is_none() || view.settings.refusals.availability;
    let cells = asked.cells.iter().map(|cell| {
        let within = free.in_steps(*cell);
        CalendarCell {
            interval: *cell,
            within,
            free: free.within(within).filter(|_| is_told),
            taken: free.tree.busy_area(within),
        }
    });
    let parts = asked
        .cells
        .iter()
        .flat_map(|cell| cut_in_parts(*cell, asked.parts));
    let least = |part| free.within(free.in_steps(part)).filter(|_| is_told);
    let is_offered = is_told && resource.takes_new() && resource.capacity >= asked.wanted.0;
    let from = asked.period().start.max(now);
    let ahead = Interval::new(from, (now + view.settings.horizon).max(from));
    CalendarResource {
        name: resource.name.clone(),
        capacity: resource.capacity,
        takes_new: resource.takes_new(),
        cells: cells.collect(),
        parts: parts.map(|part| least(part).map(|(least, _)| least)).collect(),
        slots,
        more_slots,
        next_free: if is_offered {
            free.next_free(ahead, asked.wanted, asked.free_max)
        } else {
            Vec::new()
        },
    }
}

/// The nodes of a resource that are free for a viewer.
struct FreeNodes<'a> {
    tree: &'a SlotTree,
    /// How many its quotas leave it from each of some instants on, 0 before the first; none where they bound nothing.
    allowed: Option<Vec<(Time, u32)>>,
    now: Time,
    /// It is told of times in steps of this number of seconds.
    step: Seconds,
}

impl FreeNodes<'_> {
    /// The steps that a time touches, from now on. Several of them do not tell where between two steps a slot ends.
    fn in_steps(&self, time: Interval) -> Interval {
        if time.end <= self.now {
            return Interval::of(self.now, 0);
        }
        let down = time.start.max(self.now).seconds().div_euclid(self.step) * self.step;
        let up = -(-time.end.seconds()).div_euclid(self.step) * self.step;
        Interval::new(Time(down).max(self.now), Time(up))
    }

    /// The fewest and the most that are free at a time in an interval; none where it is empty.
    fn within(&self, interval: Interval) -> Option<(u32, u32)> {
        let parts = self.allowed_parts(interval).filter_map(|(part, allowed)| {
            let (least, most) = self.tree.extremes(part)?;
            Some((least.min(allowed), most.min(allowed)))
        });
        parts.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
    }

    /// The parts of an interval, each with how many nodes are left to the viewer in it.
    fn allowed_parts(&self, interval: Interval) -> impl Iterator<Item = (Interval, u32)> {
        let all = self.allowed.is_none().then_some((interval, u32::MAX));
        let steps = self.allowed.as_deref().unwrap_or_default();
        let first = steps.partition_point(|(from, _)| *from <= interval.start);
        let level_before = first.checked_sub(1).map_or(0, |before| steps[before].1);
        let inside = steps[first..]
            .iter()
            .copied()
            .take_while(move |(from, _)| *from < interval.end);
        let starts = std::iter::once((interval.start, level_before)).chain(inside.clone());
        let ends = inside.map(|(from, _)| from).chain([interval.end]);
        let parts = starts
            .zip(ends)
            .map(|((start, level), end)| (Interval::new(start, end), level));
        let bounded = self.allowed.is_some().then_some(parts);
        all.into_iter().chain(bounded.into_iter().flatten())
    }

    /// The first times in an interval, at most `most`, in which so many nodes are free for so long, in whole steps. O((k + 1) log n) for k
    /// times that are looked at.
    fn next_free(&self, interval: Interval, (nodes, seconds): (u32, Seconds), most: usize) -> Vec<Interval> {
        let enough = self
            .allowed_parts(interval)
            .filter(|(_, allowed)| *allowed >= nodes);
        let mut windows: Vec<Interval> = Vec::new();
        for (part, _) in enough {
            match windows.last_mut() {
                Some(last) if last.end == part.start => last.end = part.end,
                _ => windows.push(part),
            }
        }
        let gaps = windows.into_iter().flat_map(|window| {
            let mut from = window.start;
            std::iter::from_fn(move || {
                let left = Interval::new(from, window.end.max(from));
                let start = self.tree.earliest_fit(nodes, seconds, left)?;
                let gap = self
                    .tree
                    .search_gaps(Interval::new(start, window.end), nodes)
                    .next()?;
                from = gap.end;
                Some(gap)
            })
        });
        let told = gaps
            .take(GAPS_MAX)
            .map(|gap| free_time_in_whole_steps(gap, self.step));
        told.filter(|gap| gap.duration() >= seconds.max(1))
            .take(most)
            .collect()
    }
}

#[cfg(test)]
mod tests;
