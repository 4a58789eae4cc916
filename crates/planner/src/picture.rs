//! Pictures of the plan, from which pages are drawn: of each the part that a page shows, so that it takes as long whatever waits.

use domain::agreement::Agreement;
use domain::resources::UnusedNodes;
use scheduler::{Interval, Time};
use uuid::Uuid;

use crate::agreements::is_undecided_agreement;
use crate::context::View;
use crate::schedules::resource_plan::ResourcePlan;

/// Into how many parts a time is cut in which slots are too many to be shown one by one.
const PARTS: i64 = 200;

/// The plan of a resource in a time, as it was at an instant. All of it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// When it was taken.
    pub taken: Time,
    /// The names of the resources in the provider's order, the retired ones among them that still have something.
    pub names: Vec<String>,
    /// The resource; none where there is no such resource.
    pub shown: Option<PicturedResource>,
}

/// A resource on a [`Picture`].
#[derive(Debug, Clone, PartialEq)]
pub struct PicturedResource {
    /// Its name.
    pub name: String,
    /// How many nodes it has.
    pub capacity: u32,
    /// Its slots that meet the time and are not over, by start: the first ones where they are too many.
    pub slots: Vec<PicturedSlot>,
    /// How many more there are.
    pub more: usize,
    /// The time from the last of these slots on, where there are more: in parts, each with how many nodes are planned for something,
    /// rounded up from their mean.
    pub rest: Vec<(Interval, u32)>,
    /// Its nodes that are not used for a time, as far as is known which nodes these are.
    pub unused: Vec<UnusedNodes>,
}

/// Nodes of an agreement, or held, for a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PicturedSlot {
    /// What it is planned for.
    pub of: PicturedSlotOf,
    /// The party that has it.
    pub party: String,
    /// From when until when.
    pub interval: Interval,
    /// How many nodes.
    pub nodes: u32,
    /// Their numbers where these are known: they are bound when the slot begins, and on clusters kept some time before.
    pub numbers: Vec<u32>,
}

/// What a slot is planned for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PicturedSlotOf {
    /// An agreement, by its id.
    Agreement {
        /// Assigned by the service.
        id: Uuid,
        /// Whether the slot has begun.
        has_begun: bool,
    },
    /// Offers that are held, by the id of their negotiation.
    HeldOffers(Uuid),
}

impl PicturedSlotOf {
    /// The id of the agreement or the negotiation.
    pub fn id(self) -> Uuid {
        match self {
            Self::Agreement { id, .. } | Self::HeldOffers(id) => id,
        }
    }
}

/// The plan of a resource, or of the first one where none is named, in a time: at most `most` slots of it.
pub(crate) fn picture(view: View<'_>, resource: Option<&str>, period: Interval, most: usize) -> Picture {
    let mut plans = view.schedules.plans();
    let shown = match resource {
        Some(name) => view.schedules.named(name),
        None => plans.next(),
    };
    Picture {
        taken: view.present_second(),
        names: view
            .schedules
            .plans()
            .map(|plan| plan.resource.name.clone())
            .collect(),
        shown: shown.map(|plan| picture_of_resource(view, plan, period, most)),
    }
}

fn picture_of_resource(
    view: View<'_>,
    resource_plan: &ResourcePlan,
    period: Interval,
    most: usize,
) -> PicturedResource {
    let resource = &resource_plan.resource;
    let now = view.present_second();
    let (slots, more) = slots_of_all(view, resource_plan, period, most);
    let last = slots.last().map_or(period.start, |slot| slot.interval.start);
    let rest = Interval::new(last.max(period.start), period.end);
    PicturedResource {
        name: resource.name.clone(),
        capacity: resource.capacity,
        slots,
        more,
        rest: if more > 0 {
            cut_in_parts(rest, PARTS)
                .filter(|part| !part.is_empty())
                .map(|part| (part, mean_booked(resource_plan, part)))
                .collect()
        } else {
            Vec::new()
        },
        unused: resource_plan
            .nodes
            .unused(resource.capacity, now, &view.settings.failures),
    }
}

/// A time cut into parts that are equally long, to the second.
pub(crate) fn cut_in_parts(period: Interval, parts: i64) -> impl Iterator<Item = Interval> {
    let cut = move |part: i64| period.start + (period.end - period.start) * part / parts;
    (0..parts).map(move |part| Interval::new(cut(part), cut(part + 1)))
}

/// How many nodes of a resource are planned for something in an interval, rounded up from their mean.
fn mean_booked(resource_plan: &ResourcePlan, part: Interval) -> u32 {
    let seconds = part.duration().max(1).unsigned_abs();
    let mean = resource_plan.booked_within(part).div_ceil(seconds);
    u32::try_from(mean).map_or(resource_plan.resource.capacity, |mean| {
        mean.min(resource_plan.resource.capacity)
    })
}

/// The first slots on a resource that meet a time and are not over, by start, and how many more there are.
pub(crate) fn slots_of_all(
    view: View<'_>,
    resource_plan: &ResourcePlan,
    period: Interval,
    most: usize,
) -> (Vec<PicturedSlot>, usize) {
    let (placed, count) = resource_plan.schedule.slots_in(period, most);
    let more = count - placed.len();
    let slots = placed
        .iter()
        .filter_map(|placed| pictured_slot_by_number(view, resource_plan, placed.id, placed.slot.start));
    (sort_slots(slots.collect()), more)
}

/// The first slots of a party on a resource that meet a time and are not over, by start, and how many more there are.
pub(crate) fn slots_of_party(
    view: View<'_>,
    resource_plan: &ResourcePlan,
    party: &str,
    period: Interval,
    most: usize,
) -> (Vec<PicturedSlot>, usize) {
    let first = Interval::new(period.start, (period.start + 1).min(period.end));
    let (lying, _) = slots_of_all(view, resource_plan, first, usize::MAX);
    let lying = lying.into_iter().filter(|slot| slot.party == party);
    let mut found: Vec<PicturedSlot> = lying.filter(|slot| slot.interval.start < period.start).collect();
    let name = &resource_plan.resource.name;
    let held = view.table.holds().starting_in(name, period);
    let held = held.filter_map(|(start, number)| pictured_slot_by_number(view, resource_plan, number, start));
    found.extend(held.filter(|slot| slot.party == party));
    let (starting, many) = view.limits.starts_of(party, name, period, most);
    for (start, id) in starting {
        let Some(agreement) = view.agreements.get(id) else {
            continue;
        };
        let starts = |index: &usize| {
            let slot = agreement.slots.get(*index);
            slot.is_some_and(|slot| slot.placement.start == start)
        };
        let slots = (agreement.slots_over()..agreement.slots.len()).filter(starts);
        found.extend(slots.filter_map(|index| pictured_slot(view, resource_plan, agreement, index)));
    }
    // Those that were not looked at, and those for which there is no room.
    let more = many.saturating_sub(most) + found.len().saturating_sub(most);
    let mut slots = sort_slots(found);
    slots.truncate(most);
    (slots, more)
}

fn sort_slots(mut slots: Vec<PicturedSlot>) -> Vec<PicturedSlot> {
    slots.sort_by_key(|slot| (slot.interval.start, slot.of.id(), slot.interval.end));
    slots
}

/// The slot that the schedule of a resource knows by a number; none of what waits for its cluster.
fn pictured_slot_by_number(
    view: View<'_>,
    resource_plan: &ResourcePlan,
    number: u64,
    start: Time,
) -> Option<PicturedSlot> {
    if let Some((agreement, index)) = view.placement.slot_by_number(view.agreements, number) {
        return pictured_slot(view, resource_plan, agreement, index);
    }
    let (choice, stretch) = view
        .table
        .holds()
        .numbered(&resource_plan.resource.name, start, number)?;
    let offer = view.table.held_offers_of(choice).next()?;
    let negotiation = view.table.get(offer.negotiation)?;
    let (interval, nodes) = stretch;
    Some(PicturedSlot {
        of: PicturedSlotOf::HeldOffers(negotiation.instance.id),
        party: negotiation.instance.party.clone(),
        interval,
        nodes,
        numbers: Vec::new(),
    })
}

/// A slot of an agreement; none where it is over.
fn pictured_slot(
    view: View<'_>,
    resource_plan: &ResourcePlan,
    agreement: &Agreement,
    index: usize,
) -> Option<PicturedSlot> {
    let slot = agreement.slots.get(index)?;
    let present = agreement.slots_over();
    if index < present || slot.taken_over || is_undecided_agreement(agreement) {
        return None;
    }
    let has_begun = index == present && agreement.has_nodes();
    let bound = view.life.nodes_of(agreement.id).filter(|_| has_begun);
    let kept = || {
        let kept = resource_plan.kept_for(agreement).filter(|_| index == present);
        kept.map(|kept| &kept.nodes)
    };
    Some(PicturedSlot {
        of: PicturedSlotOf::Agreement {
            id: agreement.id,
            has_begun,
        },
        party: agreement.party.clone(),
        interval: slot.placement,
        nodes: slot.nodes,
        numbers: bound.or_else(kept).cloned().unwrap_or_default(),
    })
}
