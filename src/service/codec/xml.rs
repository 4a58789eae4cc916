//! Documents of WS-Agreement that ask for an agreement, read into values.

use wsag::endpoint::EndpointReference;
use wsag::negotiations::OfferState;
use wsag::operations::CreateInput;
use wsag::{Document, NamedValue};

use crate::service::codec::acceptance::AcceptanceInput;
use crate::service::codec::kept::KeptOffer;
use crate::service::error::violation_at_path;
use crate::service::negotiations::id_in_address;
use crate::service::{Error, Result};

/// The name of the element that says which offer is accepted.
pub(in crate::service) fn extension_of(is_replacing: bool) -> &'static str {
    if is_replacing {
        "RenegotiationExtension"
    } else {
        "NegotiationExtension"
    }
}

/// The words of an input at the path `root` about the counter offer that it accepts; none where it accepts none.
pub(in crate::service) fn read_accepting(
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
    let extension = extension_of(replaced.is_some());
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
