//! The request of a form of the portal: it is read field by field by the page, and its mistakes are told at the members that the fields
//! fill.

use domain::request::Request;
use wsag::ValuePlaces;

use crate::negotiation::codec::members::{ARGUMENT, put_members};
use crate::negotiation::codec::{DecisionTime, ReadRequest};
use crate::negotiation::{Result, Service};

/// The places in the request of a form of all parts of its offer, of each argument and of what the form leaves out, too.
pub(in crate::negotiation) fn places_of_form(request: &Request) -> ValuePlaces {
    let mut places = ValuePlaces::form("");
    put_arguments(&mut places, request);
    put_members(&mut places, |_| true);
    places
}

/// The places in the request of a form that changes something of the parts that it says. What it leaves as it is has no place there.
pub(in crate::negotiation) fn places_of_change(request: &Request) -> ValuePlaces {
    let mut places = ValuePlaces::form("");
    put_arguments(&mut places, request);
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
        "counterOfferTo" => true,
        other => other
            .strip_prefix("attributes/")
            .is_some_and(|attribute| request.attributes.contains_key(attribute)),
    });
    places
}

fn put_arguments(places: &mut ValuePlaces, request: &Request) {
    let arguments = request.run.as_ref().map_or(0, |run| run.arguments.len());
    for index in 0..arguments {
        places.put(ARGUMENT, Some(index), format!("/arguments/{index}"));
    }
}

impl Service {
    /// The request of a form that says all that it wants, as a request that was read.
    ///
    /// # Errors
    /// `Error::Internal` where no template is offered.
    pub(in crate::negotiation) fn request_of_form(&self, request: Request) -> Result<ReadRequest> {
        let places = places_of_form(&request);
        self.request_at(request, places)
    }

    /// The request of a form that says what it wants otherwise, as a request that was read.
    ///
    /// # Errors
    /// `Error::Internal` where no template is offered.
    pub(in crate::negotiation) fn request_of_change(&self, request: Request) -> Result<ReadRequest> {
        let places = places_of_change(&request);
        self.request_at(request, places)
    }

    fn request_at(&self, wish: Request, places: ValuePlaces) -> Result<ReadRequest> {
        Ok(ReadRequest {
            wish,
            places,
            named: None,
            offered: self.first_template()?,
            decision: DecisionTime::Now,
        })
    }
}
