//! The calendar: when nodes are free, and what of the rest is the viewer's own.

use planner::{Calendar, CalendarCell, CalendarResource, PicturedSlot, Pricing, ShowCalendar};
use scheduler::{Fraction, Interval, Seconds, Time};

use crate::chart_rows::chart_rows_of_slots;
use crate::views::chart_slot::ChartSlotView;
use crate::views::money_and_time::MoneyView;
use crate::{Result, Service};

/// The plan as a party may see it: never which parties have what is not its own, unless it sees all.
///
/// # Errors
/// [`Error::Unavailable`](super::Error::Unavailable).
pub async fn show_calendar(service: &Service, query: CalendarQuery) -> Result<CalendarView> {
    let calendar = service.send(query.to_planner()).await?;
    let templates = service.templates.now();
    service
        .run_document_work(move |_| CalendarView::of(calendar, templates.pricing(), &query))
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

impl CalendarQuery {
    /// The question as the planner is asked it.
    fn to_planner(&self) -> ShowCalendar {
        let cells = self.cells.iter();
        ShowCalendar {
            party: (!self.sees_all).then(|| self.party.clone()),
            wanted: self.wanted,
            resource: self.resource.clone(),
            skip: self.skip,
            resources_max: RESOURCES_MAX,
            cells: cells
                .map(|(start, end)| Interval::new(Time(*start), Time(*end)))
                .collect(),
            parts: self.parts,
            slots_max: SLOTS_MAX,
            free_max: NEXT_FREE_MAX,
        }
    }
}

impl CalendarView {
    /// What the planner has told, with prices and with rows for the slots.
    pub(super) fn of(calendar: Calendar, pricing: Option<&Pricing>, query: &CalendarQuery) -> Self {
        let pricing = pricing.map(|pricing| Pricing {
            busy: if calendar.is_published {
                pricing.busy
            } else {
                Fraction::percent(0)
            },
            ..pricing.clone()
        });
        let context = CalendarContext {
            taken: calendar.taken,
            horizon: calendar.horizon,
            query,
            pricing,
        };
        let resources = calendar.resources.into_iter();
        Self {
            taken: calendar.taken.seconds(),
            horizon: calendar.horizon.seconds(),
            is_published: calendar.is_published,
            names: calendar.names.into_iter().take(NAMES_MAX).collect(),
            resources: resources
                .map(|resource| context.view_resource(resource))
                .collect(),
            next: calendar.next,
        }
    }
}

/// What all cells are shown by.
struct CalendarContext<'a> {
    taken: Time,
    horizon: Time,
    query: &'a CalendarQuery,
    pricing: Option<Pricing>,
}

impl CalendarContext<'_> {
    fn view_resource(&self, resource: CalendarResource) -> CalendarResourceView {
        let cells = resource.cells.iter();
        let next_free = resource.next_free.iter();
        CalendarResourceView {
            nodes: resource.capacity,
            takes_new: resource.takes_new,
            cells: cells.map(|cell| self.view_cell(&resource, cell)).collect(),
            next_free: next_free
                .map(|gap| (gap.start.seconds(), gap.end.seconds()))
                .collect(),
            slots: view_slots(resource.capacity, resource.slots),
            more_slots: resource.more_slots,
            parts: resource.parts,
            name: resource.name,
        }
    }

    fn view_cell(&self, resource: &CalendarResource, cell: &CalendarCell) -> CalendarCellView {
        let is_ahead = cell.interval.end > self.taken && cell.interval.start < self.horizon;
        let has_room = cell.free.is_none_or(|(_, most)| most >= self.query.wanted.0);
        let fits = resource.capacity >= self.query.wanted.0;
        let priced = self.pricing.as_ref().filter(|_| is_ahead);
        let node_hour =
            priced.and_then(|pricing| resource.node_hour(pricing, &self.query.party, cell, self.taken));
        CalendarCellView {
            start: cell.interval.start.seconds(),
            end: cell.interval.end.seconds(),
            free: cell.free,
            node_hour: node_hour.map(MoneyView::of),
            is_open: resource.takes_new && is_ahead && has_room && fits,
        }
    }
}

fn view_slots(capacity: u32, mut slots: Vec<PicturedSlot>) -> Vec<ChartSlotView> {
    for slot in &mut slots {
        // Whichever nodes they have, the picture needs no gaps between them.
        slot.numbers.clear();
    }
    let lanes = chart_rows_of_slots(capacity, &slots, &[]);
    let slots = slots.iter().zip(lanes);
    slots.map(|(slot, rows)| ChartSlotView::of(slot, rows)).collect()
}

#[cfg(test)]
mod tests;
