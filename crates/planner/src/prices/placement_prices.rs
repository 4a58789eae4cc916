//! The prices of placements by the provider's price list, and their energy.
//!
//! A requester sees the same number in every place, and an accepted price stays when placements move later.

use domain::agreement::{Agreement, EnergyUse, Money, PriceDiscounts, Slots};
use scheduler::{Fraction, Interval, counted};

use crate::context::View;
use crate::prices::payer::{Payer, ShapeFreedom};
use crate::prices::pricing::Priced;

/// The energy of slots on a resource; none where its power is not known.
pub(crate) fn placement_energy(view: View<'_>, resource: &str, slots: &Slots) -> Option<EnergyUse> {
    let pricing = view.settings.pricing.as_ref()?;
    let energy = pricing.energy.as_ref()?;
    energy.of_slots(resource, slots, pricing.currency)
}

/// The parts of the price of an agreement that is made now, in words; none where it has no price.
pub(crate) fn placement_price_in_words(view: View<'_>, agreement: &Agreement) -> Option<String> {
    let pricing = view.settings.pricing.as_ref()?;
    let price = agreement.price?;
    let end = agreement.placement().end;
    let payer = Payer::of_agreement(agreement);
    let at = view.schedules.place_of(&agreement.resource);
    let on = at.and_then(|at| view.schedules.get(at));
    let priced = Priced {
        payer,
        freedom: on.map_or(ShapeFreedom::NONE, |on| payer.shapes.on(&on.resource)),
        node_seconds: agreement.node_seconds(),
        slot: Interval::new(end - agreement.duration, end),
        window: agreement.window(),
    };
    let size = if agreement.slots.differ() {
        format!("pieces of up to {}", counted(agreement.nodes(), "node"))
    } else {
        counted(agreement.nodes(), "node")
    };
    let parts = pricing.parts(&agreement.resource, view.present_second(), (priced, &size), price)?;
    Some(format!("{price}: {parts}"))
}

/// The price of a placement on a resource of the plan at this moment, while the request is not on its tree yet;
/// none where nothing is priced, or where the price is more than an amount can hold. O(log n).
pub(crate) fn placement_price(view: View<'_>, resource: usize, priced: Priced<'_>) -> Option<Money> {
    placement_price_under_load(
        view,
        load_for_placement_price(view, resource, priced.window),
        resource,
        priced,
    )
}

/// The price of a placement under a load factor that was found before the request came on the tree.
pub(crate) fn placement_price_under_load(
    view: View<'_>,
    load: Fraction,
    resource: usize,
    priced: Priced<'_>,
) -> Option<Money> {
    let pricing = view.settings.pricing.as_ref()?;
    let on = &view.schedules.get(resource)?.resource;
    pricing.price(&on.name, load, view.present_second(), priced)
}

/// How much less a placement on a resource of the plan costs by the shapes that its request allows; none where it costs no less.
pub(crate) fn placement_discounts(
    view: View<'_>,
    resource: usize,
    priced: Priced<'_>,
) -> Option<PriceDiscounts> {
    let pricing = view.settings.pricing.as_ref()?;
    let on = &view.schedules.get(resource)?.resource;
    pricing.discounts(&on.name, view.present_second(), priced)
}

/// The load factor of a window on a resource of the plan. O(log n).
pub(crate) fn load_for_placement_price(view: View<'_>, resource: usize, window: Interval) -> Fraction {
    let pricing = view.settings.pricing.as_ref();
    match pricing.zip(view.schedules.get(resource)) {
        Some((pricing, resource_plan)) => pricing.load(resource_plan.schedule.tree(), window, 0),
        None => Fraction::percent(100),
    }
}
