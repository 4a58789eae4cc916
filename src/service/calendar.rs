//! The calendar: when nodes are free, and what of the rest is the viewer's own.

use std::borrow::Cow;

use planner::{Allowance, Picture, PicturedResource, PicturedSlot, Pricing};
use scheduler::{Fraction, Interval, Seconds, Time};

use crate::service::chart_rows::chart_rows_of_slots;
use crate::service::views::chart_slot::ChartSlotView;
use crate::service::views::money_and_time::MoneyView;
use crate::service::{Result, Service};

/// The plan as a party may see it: never which parties have what is not its own, unless it sees all. It is read from a picture of the
/// plan that may be a second old.
///
/// # Errors
/// [`Error::Unavailable`](super::Error::Unavailable).
pub async fn show_calendar(service: &Service, query: CalendarQuery) -> Result<CalendarView> {
    let picture = service.planner.picture().await?;
    let templates = service.templates.now();
    service
        .run_document_work(move |_| CalendarView::of(&picture, templates.pricing(), &query))
        .await
}

/// Resources on a page.
const RESOURCES_MAX: usize = 6;
/// Names of resources to choose from.
const NAMES_MAX: usize = 200;
/// Slots of the viewer that are shown of a resource, the first ones.
const SLOTS_MAX: usize = 100;
/// Free times that are listed of a resource, the first ones.
const NEXT_FREE_MAX: usize = 5;
/// Free times that are looked at for these.
const GAPS_MAX: usize = 1_000;

/// A question for the calendar. Times are seconds since the epoch.
#[derive(Debug, Clone)]
pub struct CalendarQuery {
    /// The party that looks.
    pub party: String,
    /// Whether it sees the slots of every party.
    pub sees_all: bool,
    /// How many nodes it wants, and for how many seconds.
    pub wanted: (u32, Seconds),
    /// On which resource; on each where none is named.
    pub resource: Option<String>,
    /// How many resources are passed over.
    pub skip: usize,
    /// The times that are told, in order.
    pub cells: Vec<(i64, i64)>,
    /// How many parts of each are told beside that.
    pub parts: i64,
}

/// The plan as a party may see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalendarView {
    /// The second of the plan.
    pub taken: i64,
    /// Until when the provider plans.
    pub horizon: i64,
    /// Whether it is told when nodes are free.
    pub is_published: bool,
    /// The resources to choose from.
    pub names: Vec<String>,
    /// Those that are shown.
    pub resources: Vec<CalendarResourceView>,
    /// How many are passed over on the next page, where there is one.
    pub next: Option<usize>,
}

/// A resource on the calendar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalendarResourceView {
    /// Its name.
    pub name: String,
    /// How many nodes it has.
    pub nodes: u32,
    /// Whether something new is placed on it.
    pub takes_new: bool,
    /// As asked for.
    pub cells: Vec<CalendarCellView>,
    /// The fewest nodes that are free in each part of each cell; none where that is over or not told.
    pub parts: Vec<Option<u32>>,
    /// The viewer's slots in the time that is shown.
    pub slots: Vec<ChartSlotView>,
    /// How many more there are.
    pub more_slots: usize,
    /// When the wanted nodes are free next for long enough, from now on or from the first cell on.
    pub next_free: Vec<(i64, i64)>,
}

/// A time on the calendar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalendarCellView {
    /// Its first second.
    pub start: i64,
    /// The second after its last.
    pub end: i64,
    /// The fewest and the most nodes that are free for the viewer at a time in it; none where that is over or not told.
    pub free: Option<(u32, u32)>,
    /// The price of a node for an hour in it, where it has one.
    pub node_hour: Option<MoneyView>,
    /// Whether asking for the wanted nodes makes sense.
    pub is_open: bool,
}

impl CalendarView {
    /// What a picture of the plan tells a party. O(n log n) for n slots and changes of free nodes of the resources on the page.
    pub(super) fn of(picture: &Picture, pricing: Option<&Pricing>, query: &CalendarQuery) -> Self {
        let is_shown = |resource: &&PicturedResource| {
            let has_own = || resource.slots.iter().any(|slot| query.sees(slot));
            resource.takes_new || has_own()
        };
        let shown: Vec<&PicturedResource> = picture.resources.iter().filter(is_shown).collect();
        let is_named =
            |resource: &&&PicturedResource| query.resource.as_ref().is_none_or(|name| *name == resource.name);
        let named: Vec<_> = shown.iter().filter(is_named).collect();
        let is_published = query.sees_all || picture.is_published;
        let telling = CalendarContext {
            picture,
            query,
            is_published,
            step: if query.sees_all { 1 } else { picture.step },
            allowance: (!query.sees_all).then(|| picture.allowance(&query.party)),
            pricing: pricing.map(|pricing| Pricing {
                busy: if is_published {
                    pricing.busy
                } else {
                    Fraction::percent(0)
                },
                ..pricing.clone()
            }),
        };
        let page = named.iter().skip(query.skip).take(RESOURCES_MAX);
        let next = query.skip.saturating_add(RESOURCES_MAX);
        Self {
            taken: picture.taken.seconds(),
            horizon: picture.horizon.seconds(),
            is_published,
            names: shown
                .iter()
                .take(NAMES_MAX)
                .map(|shown| shown.name.clone())
                .collect(),
            resources: page.map(|page| telling.view_resource(page)).collect(),
            next: (next < named.len()).then_some(next),
        }
    }
}

impl CalendarQuery {
    fn sees(&self, slot: &PicturedSlot) -> bool {
        self.sees_all || slot.party == self.party
    }

    /// All of its cells together.
    fn period(&self) -> Interval {
        let ends = self.cells.first().zip(self.cells.last());
        ends.map_or(Interval::of(Time(0), 0), |(first, last)| {
            Interval::new(Time(first.0), Time(last.1))
        })
    }
}

/// What is told, and how exactly.
struct CalendarContext<'a> {
    picture: &'a Picture,
    query: &'a CalendarQuery,
    is_published: bool,
    step: Seconds,
    /// What the quotas of the viewer leave it; none where it sees all.
    allowance: Option<Allowance>,
    pricing: Option<Pricing>,
}

impl CalendarContext<'_> {
    fn view_resource(&self, resource: &PicturedResource) -> CalendarResourceView {
        let free = self.limited(resource);
        let cells = self
            .query
            .cells
            .iter()
            .map(|cell| self.view_cell((resource, &free), *cell));
        let parts = self
            .query
            .cells
            .iter()
            .flat_map(|cell| parts_of_calendar_cell(*cell, self.query.parts));
        let (slots, more_slots) = self.view_slots(resource);
        CalendarResourceView {
            name: resource.name.clone(),
            nodes: resource.capacity,
            takes_new: resource.takes_new,
            cells: cells.collect(),
            parts: parts.map(|part| Some(self.free(&free, part)?.0)).collect(),
            slots,
            more_slots,
            next_free: self.next_free(&free),
        }
    }

    /// The resource with no more free nodes than the viewer may use for as long as it wants them.
    fn limited<'r>(&self, resource: &'r PicturedResource) -> Cow<'r, PicturedResource> {
        let Some(allowance) = &self.allowance else {
            return Cow::Borrowed(resource);
        };
        let now = self.picture.taken;
        let end = self.picture.horizon.max(self.query.period().end).max(now);
        Cow::Owned(resource.limited_to(allowance, self.query.wanted, Interval::new(now, end)))
    }

    fn view_cell(
        &self,
        (resource, limited): (&PicturedResource, &PicturedResource),
        (start, end): (i64, i64),
    ) -> CalendarCellView {
        let free = self.free(limited, (start, end));
        let is_ahead = end > self.picture.taken.seconds() && start < self.picture.horizon.seconds();
        let has_room = free.is_none_or(|(_, most)| most >= self.query.wanted.0);
        let fits = resource.capacity >= self.query.wanted.0;
        let priced = self.pricing.as_ref().filter(|_| is_ahead);
        let node_hour = priced.and_then(|pricing| {
            let within = self.in_steps((start, end));
            resource.node_hour(pricing, &self.query.party, within, self.picture.taken)
        });
        CalendarCellView {
            start,
            end,
            free,
            node_hour: node_hour.map(MoneyView::of),
            is_open: resource.takes_new && is_ahead && has_room && fits,
        }
    }

    /// The fewest and the most free nodes; none where it is over or not told.
    fn free(&self, resource: &PicturedResource, time: (i64, i64)) -> Option<(u32, u32)> {
        let within = self.in_steps(time);
        (self.is_published && !within.is_empty()).then(|| resource.free_within(within))
    }

    /// The steps that a time touches, from now on. Several of them do not tell where between two steps a slot ends.
    fn in_steps(&self, (start, end): (i64, i64)) -> Interval {
        let now = self.picture.taken;
        if Time(end) <= now {
            return Interval::of(now, 0);
        }
        let down = start.max(now.seconds()).div_euclid(self.step) * self.step;
        let up = -(-end).div_euclid(self.step) * self.step;
        Interval::new(Time(down).max(now), Time(up))
    }

    fn view_slots(&self, resource: &PicturedResource) -> (Vec<ChartSlotView>, usize) {
        let period = self.query.period();
        let seen = resource
            .slots
            .iter()
            .filter(|slot| self.query.sees(slot) && slot.interval.meets(period));
        let seen: Vec<&PicturedSlot> = seen.collect();
        let more = seen.len().saturating_sub(SLOTS_MAX);
        // Whichever nodes they have, the picture needs no gaps between them.
        let unbound = seen.iter().take(SLOTS_MAX).map(|slot| PicturedSlot {
            numbers: Vec::new(),
            ..(*slot).clone()
        });
        let lanes = chart_rows_of_slots(resource.capacity, &unbound.collect::<Vec<_>>(), &[]);
        let slots = seen.into_iter().zip(lanes);
        let views = slots.map(|(slot, rows)| ChartSlotView::of(slot, rows));
        (views.collect(), more)
    }

    fn next_free(&self, resource: &PicturedResource) -> Vec<(i64, i64)> {
        let (nodes, seconds) = self.query.wanted;
        if !self.is_published || !resource.takes_new || resource.capacity < nodes {
            return Vec::new();
        }
        let from = self.query.period().start.max(self.picture.taken);
        let within = Interval::new(from, self.picture.horizon.max(from));
        let gaps = resource.gaps(within, nodes, self.step, GAPS_MAX).into_iter();
        let gaps = gaps.filter(|gap| gap.duration() >= seconds).take(NEXT_FREE_MAX);
        gaps.map(|gap| (gap.start.seconds(), gap.end.seconds())).collect()
    }
}

/// A time cut into parts that are equally long, to the second.
fn parts_of_calendar_cell((start, end): (i64, i64), parts: i64) -> impl Iterator<Item = (i64, i64)> {
    let cut = move |part: i64| start + (end - start) * part / parts;
    (0..parts).map(move |part| (cut(part), cut(part + 1)))
}

#[cfg(test)]
mod tests;
