//! The request of a form of the portal: it is read field by field by the page, and its mistakes are told at the members that the fields
//! fill.

use std::sync::Arc;

use domain::request::Request;
use wsag::ValuePlaces;

use crate::codec::members::{ARGUMENT, put_members};
use crate::codec::request::{DecisionTime, ReadRequest};
use crate::templates::OfferedTemplate;
use crate::{Error, Result, Service};

/// The places in the request of a form of all parts of its offer, of each argument and of what the form leaves out, too.
pub(crate) fn places_of_form(request: &Request) -> ValuePlaces {
    let mut places = ValuePlaces::form("");
    put_form_arguments(&mut places, request);
    put_members(&mut places, |_| true);
    places
}

/// The places in the request of a form that changes something of the parts that it says. What it leaves as it is has no place there.
pub(crate) fn form_places_of_change(request: &Request) -> ValuePlaces {
    let mut places = ValuePlaces::form("");
    put_form_arguments(&mut places, request);
    let scheduling = &request.scheduling;
    put_members(&mut places, |member| match member {
        "name" => request.name.is_some(),
        "application" | "version" => request.run.is_some(),
        "nodes" => request.nodes.is_some(),
        "durationSeconds" => request.duration.is_some(),
        "window" => request.start.or(request.end).is_some(),
        "window/start" => request.start.is_some(),
        "window/end" => request.end.is_some(),
        "moldability" => scheduling.moldability.is_some(),
        "preemption" => scheduling.preemption.is_some(),
        "budget" => scheduling.budget.is_some(),
        "maxDeviation" => scheduling.max_deviation.is_some(),
        "fixAt" => scheduling.fix_at.is_some(),
        "weights" => scheduling.preference.is_some(),
        "resource" => scheduling.resource.is_some(),
        "mayChange" => scheduling.may_change.is_some(),
        "counterOfferTo" => true,
        other => other
            .strip_prefix("attributes/")
            .is_some_and(|attribute| request.attributes.contains_key(attribute)),
    });
    places
}

fn put_form_arguments(places: &mut ValuePlaces, request: &Request) {
    let arguments = request.run.as_ref().map_or(0, |run| run.arguments.len());
    for index in 0..arguments {
        places.put(ARGUMENT, Some(index), format!("/arguments/{index}"));
    }
}

/// The request of a form that says what it wants otherwise, as a request that was read.
///
/// # Errors
/// `Error::Internal` where no template is offered.
pub(crate) fn form_of_change(service: &Service, wish: Request) -> Result<ReadRequest> {
    Ok(ReadRequest {
        places: form_places_of_change(&wish),
        wish,
        named: None,
        offered: template_of_form(service)?,
        decision: DecisionTime::Now,
    })
}

/// The template that forms make their offers from.
///
/// # Errors
/// [`Error::Internal`] where none is offered.
pub(crate) fn template_of_form(service: &Service) -> Result<Arc<OfferedTemplate>> {
    let offered = service.templates.first();
    offered.ok_or_else(|| Error::Internal("no template is offered".to_owned()))
}
