//! The window that an offer asks for, within what there is.

use domain::agreement::{Filter, RESOURCE};
use scheduler::domain::Attribute;
use scheduler::{Interval, Reason, Seconds, counted};

use crate::context::View;
use crate::refusal::{Refusal, bare_refusal};
use crate::request::Request;
use crate::schedules::resource_choice;

/// The window that an offer asks for, from now on and within the horizon.
pub(crate) fn window_within_limits(view: View<'_>, proposal: &Request) -> Result<Interval, Refusal> {
    let now = view.present_second();
    let horizon = now + view.settings.horizon;
    let asked = proposal.window(now, horizon);
    let Interval {
        start: ready,
        end: deadline,
    } = asked;
    let (capacity, rate) =
        resource_choice::largest_and_fastest(view.schedules, &proposal.filters).unwrap_or_default();
    let nodes = proposal.shapes.iter().map(|shape| shape.nodes).min().unwrap_or(0);
    // Of the sizes that there are nodes for.
    let durations = proposal.shapes.iter().filter(|shape| shape.nodes <= capacity);
    let durations = durations.map(|shape| {
        let foreseen = view.schedules.foreseen_least_hold(proposal, *shape);
        foreseen.unwrap_or(proposal.scaling.shape(*shape, rate).duration)
    });
    let duration = durations.min().unwrap_or(Seconds::MAX);
    let (reason, binding) = if capacity == 0 {
        (
            Reason::ResourceNotOffered,
            unmet_condition_in_words(view, &proposal.filters),
        )
    } else if nodes > capacity {
        (
            Reason::SizeExceedsCapacity,
            format!(
                "the largest resource has {}, and {nodes} are asked for",
                counted(capacity, "node")
            ),
        )
    } else if deadline > horizon || ready + duration > horizon {
        let days = view.settings.horizon / 86_400;
        (
            Reason::HorizonExceeded,
            format!("the provider plans {} ahead", counted(days, "day")),
        )
    } else if deadline - duration < now {
        (
            Reason::WindowInThePast,
            "the window ends too soon from now for the duration".to_owned(),
        )
    } else if deadline - ready < duration {
        (
            Reason::WindowContradictory,
            "the window is shorter than the duration".to_owned(),
        )
    } else {
        return Ok(asked);
    };
    Err(bare_refusal(reason, binding))
}

/// The condition that no resource meets, and the values of the nodes, in words.
pub(crate) fn unmet_condition_in_words(view: View<'_>, filters: &[Filter]) -> String {
    if view.schedules.in_service().next().is_none() {
        return "no resource is in service".to_owned();
    }
    let wanting = filters.iter().find(|filter| {
        resource_choice::largest_and_fastest(view.schedules, std::slice::from_ref(filter)).is_none()
    });
    // Each alone may be met, and a total not by as many nodes as are asked for.
    let Some(filter) = wanting.or_else(|| filters.iter().find(|filter| filter.is_total())) else {
        return "no resource has all of what is asked for together".to_owned();
    };
    let attribute = filter.attribute();
    let values: Vec<String> = view
        .schedules
        .values(attribute)
        .iter()
        .take(VALUES_MAX)
        .map(|value| match value {
            Attribute::Word(word) => word.clone(),
            Attribute::Number(number) => number.to_string(),
        })
        .collect();
    if attribute == RESOURCE {
        format!(
            "there is no resource of this name; there are {}",
            values.join(", ")
        )
    } else if values.is_empty() {
        format!("no resource says what its {attribute} is")
    } else {
        format!(
            "no resource has the {attribute} that is asked for; nodes have {}",
            values.join(", ")
        )
    }
}

/// Values of an attribute that a refusal lists.
const VALUES_MAX: usize = 10;
