//! The acceptance of a counter offer, from a document or from JSON.

use std::time::Duration;

use address::is_no_place;
use domain::change::AcceptanceEndpoint;
use serde_json::json;
use uuid::Uuid;
use wsag::endpoint::EndpointReference;
use wsag::negotiations::OfferState;
use wsag::operations::CreateInput;
use wsag::{Document, Fragment, NamedValue, ns};

use crate::codec::json::Json;
use crate::codec::json_check::{JsonCheck, LocatedValue};
use crate::codec::json_request::read_decision_of_request;
use crate::codec::kept_offer::KeptOffer;
use crate::codec::request::DecisionTime;
use crate::error::violation_at_path;
use crate::{Error, Result, Service};

/// How long a requester waits for a peer's word; it asks again under its key after that.
pub(crate) const ACCEPT_WITHIN: Duration = Duration::from_secs(8);

/// The data of an acceptance.
#[derive(Clone)]
pub(crate) struct AcceptanceInput {
    /// The `OfferId` of the counter offer.
    pub(crate) offer: Uuid,
    /// The negotiation, where it is named.
    pub(crate) negotiation: Option<Uuid>,
    /// The agreement that is to be replaced, where it is named.
    pub(crate) replaced: Option<Uuid>,
    /// The offer in its requester's own words; none where it is accepted as it stands.
    pub(crate) words: Option<KeptOffer>,
    /// The path of the input; none where there is no document.
    pub(crate) input: &'static str,
    /// Whether the fresh offers are held, where it comes too late.
    pub(crate) holds: bool,
    /// How long the word of a peer is waited for, where one carries it out.
    pub(crate) within: Duration,
}

impl AcceptanceInput {
    /// All that distinguishes it from other acceptances of the same offer: also where its decision is to be told.
    pub(crate) fn content(&self, told: Option<&AcceptanceEndpoint>) -> String {
        let told = told.map(|told| (&told.address, &told.parameters));
        json!((self.negotiation, self.replaced, &self.words, told)).to_string()
    }

    /// The acceptance of a counter offer as it stands.
    pub(crate) fn as_it_stands(offer: Uuid) -> Self {
        Self {
            offer,
            negotiation: None,
            replaced: None,
            words: None,
            input: "",
            holds: false,
            within: ACCEPT_WITHIN,
        }
    }
}

/// The name of the element that says which offer is accepted.
pub(crate) fn element_of_acceptance(is_replacing: bool) -> &'static str {
    if is_replacing {
        "RenegotiationExtension"
    } else {
        "NegotiationExtension"
    }
}

/// The words of an input at the path `root` about the counter offer that it accepts; none where it accepts none.
pub(crate) fn read_acceptance(
    document: &Document<'_>,
    input: &CreateInput,
    root: &'static str,
) -> Result<Option<AcceptanceInput>> {
    let (context, negotiation, replaced) = match (&input.negotiation, &input.renegotiation) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            let message = "either a NegotiationExtension or a RenegotiationExtension is expected";
            return Err(violation_at_path(format!("{root}/wsag-neg:RenegotiationExtension"), message).into());
        }
        (Some(offer), None) => (&offer.context, offer.negotiation.as_ref(), None),
        (None, Some(extension)) => (
            &extension.context,
            Some(&extension.negotiation),
            Some(&extension.responder_agreement),
        ),
    };
    let extension = element_of_acceptance(replaced.is_some());
    let at = |below: &str, message: &str| {
        Error::from(violation_at_path(
            format!("{root}/wsag-neg:{extension}/wsag-neg:{below}"),
            message,
        ))
    };
    let id = |endpoint: &EndpointReference, local: &str, what: &str| {
        id_in_address(endpoint).ok_or_else(|| at(local, &format!("the address of {what} here is expected")))
    };
    if context.state != OfferState::Acceptable {
        let message = format!(
            "wsag-neg:Acceptable is expected: nothing is concluded from an offer that is {}",
            context.state.name()
        );
        return Err(at("NegotiationOfferContext/wsag-neg:State", &message));
    }
    let negotiation = negotiation
        .map(|negotiation| id(negotiation, "ResponderNegotiationEPR", "a negotiation"))
        .transpose()?;
    let replaced = replaced
        .map(|replaced| id(replaced, "ResponderAgreementEPR", "an agreement"))
        .transpose()?;
    let Ok(offer) = context.counter_offer_to.parse() else {
        return Err(at(
            "NegotiationOfferContext/wsag-neg:CounterOfferTo",
            "the OfferId of a counter offer of this service is expected",
        ));
    };
    Ok(Some(AcceptanceInput {
        negotiation,
        replaced,
        words: Some(KeptOffer::of_document(document, Box::new(input.offer.clone()))?),
        input: root,
        ..AcceptanceInput::as_it_stands(offer)
    }))
}

/// The id at the end of an address of ours.
pub(crate) fn id_in_address(endpoint: &EndpointReference) -> Option<Uuid> {
    endpoint
        .address
        .trim_end_matches('/')
        .rsplit('/')
        .next()?
        .parse()
        .ok()
}

/// Where the decision is to be told; nowhere where that is no place, and its party polls.
pub(crate) fn read_acceptance_endpoint(
    service: &Service,
    document: &Document<'_>,
    input: &CreateInput,
) -> Result<Option<AcceptanceEndpoint>> {
    let named = input.acceptance.as_ref();
    let Some(endpoint) = named.filter(|named| !is_no_place(&named.address)) else {
        return Ok(None);
    };
    let faulty = |element, message| {
        Error::from(violation_at_path(
            document.path_outside_unknown_terms(ns::WSA, element, 0),
            message,
        ))
    };
    let address = endpoint.address.clone();
    service
        .may_call
        .check(&address)
        .map_err(|why| faulty("Address", why))?;
    let parameters = endpoint.parameters.as_ref().map(ToString::to_string);
    // With the declarations of the elements around it, it may be more than is read again when the decision is told.
    if let Some(Err(why)) = parameters.as_deref().map(Fragment::parse) {
        let message = format!("it cannot stand alone in the call, with the namespaces that it uses: {why}");
        return Err(faulty("ReferenceParameters", message));
    }
    Ok(Some(AcceptanceEndpoint { address, parameters }))
}

/// The counter offer that a request accepts, if it says nothing else but when that is to be decided.
pub(crate) fn accepted_offer_in_json(
    service: &Service,
    request: &Json,
) -> Result<Option<(Uuid, DecisionTime)>> {
    let Json::Object(members) = request else {
        return Ok(None);
    };
    if !members.iter().any(|(name, _)| name == "offer") {
        return Ok(None);
    }
    let mut check = JsonCheck::default();
    let object = check.object(&LocatedValue::root(request), &["offer", "pending", "callback"]);
    let read = object.and_then(|object| {
        let decision = read_decision_of_request(service, &mut check, &object);
        let id = object.read_required(&mut check, "offer", |check, at| {
            let id = check.text(at)?.parse().ok();
            id.or_else(|| check.wrong(at, "the id of an offer is expected"))
        });
        Some((id?, decision))
    });
    check.finish(read).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acceptance_that_is_told_elsewhere_is_another_one() {
        let accepting = AcceptanceInput::as_it_stands(Uuid::from_u128(1));
        let told_at = |address: &str| AcceptanceEndpoint {
            address: address.to_owned(),
            parameters: None,
        };
        let (one, two) = (told_at("https://a.example"), told_at("https://b.example"));
        let content = |told| accepting.content(told);
        assert_eq!(content(Some(&one)), content(Some(&one)));
        assert_ne!(content(Some(&one)), content(Some(&two)));
        assert_ne!(content(Some(&one)), content(None));
        let named = AcceptanceInput {
            negotiation: Some(Uuid::from_u128(2)),
            ..accepting.clone()
        };
        assert_ne!(named.content(None), content(None));
    }
}
