//! Offers in JSON: in a negotiation that was opened, a flat request counters an offer, or only makes an offer known. Underneath
//! are the same offers and counter offers as in XML.

use domain::agreement::{Agreement, NegotiationInstance};
use store::negotiations;
use uuid::Uuid;
use wsag::agreements::AgreementOffer;
use wsag::negotiations::{
    NegotiationConstraints, NegotiationOffer as OfferDocument, NegotiationOfferContext, NegotiationRole,
    OfferState,
};
use wsag::time::DateTime;
use wsag::{NamedValue, ValuePlaces};

use crate::codec::json::Json;
use crate::codec::json_check::{JsonCheck, LocatedValue};
use crate::codec::json_request::read_json_request;
use crate::codec::kept_offer::{kept_offer_of_agreement, read_kept_offer};
use crate::codec::request::{DecisionTime, ReadRequest};
use crate::negotiations::demands::{self, read_demands};
use crate::negotiations::incoming_offer::IncomingOffer;
use crate::negotiations::negotiation::agreement_replaced_by_negotiation;
use crate::request::offer::requests_of_offer;
use crate::views::worded_offer::content_of_offer;
use crate::{Result, Service};

/// The members of a request in a negotiation, beside the wish.
const OF_ITSELF: [&str; 5] = ["id", "counterOfferTo", "state", "expires", demands::MEMBER];

/// The properties of a request in a negotiation.
#[derive(Debug, Clone, Default)]
pub(crate) struct FlatOfferProperties {
    pub(crate) id: Option<String>,
    pub(crate) to: Option<String>,
    pub(crate) state: Option<OfferState>,
    pub(crate) expires: Option<DateTime>,
    pub(crate) constraints: NegotiationConstraints,
}

impl FlatOfferProperties {
    /// The properties of an answer to the offer of this name, in a state where that is not the usual one.
    pub(crate) fn answering(offer: &str, state: Option<OfferState>) -> Self {
        Self {
            to: Some(offer.to_owned()),
            state,
            ..Self::default()
        }
    }
}

/// The offer that a flat request makes in a negotiation, found to be right: it is made from a template, or changes the
/// agreement that the negotiation is about, or the offer that it answers.
pub(crate) async fn flat_offer(
    service: &Service,
    instance: &NegotiationInstance,
    request: Json,
    pointer: String,
    otherwise: OfferState,
) -> Result<IncomingOffer> {
    let (request, of_itself) = service
        .run_document_work(move |service| {
            read_flat_offer(
                service,
                &LocatedValue {
                    value: &request,
                    pointer,
                },
            )
        })
        .await??;
    flat_offer_in_tree(service, instance, request, of_itself, otherwise).await
}

/// The offer of a request that was read, found to be right in the tree of its negotiation.
pub(crate) async fn flat_offer_in_tree(
    service: &Service,
    instance: &NegotiationInstance,
    request: ReadRequest,
    of_itself: FlatOfferProperties,
    otherwise: OfferState,
) -> Result<IncomingOffer> {
    let refused = |member: &str, message: &str| refuse_flat_offer_member(&request.places, member, message);
    if let Some(name) = &of_itself.id
        && negotiations::negotiation_offer_named(&service.store, instance.id, name)
            .await?
            .is_some()
    {
        return refused("/id", "another offer of this negotiation has this id");
    }
    let base = if let Some(name) = &of_itself.to {
        let Some((row, document)) =
            negotiations::negotiation_offer_named(&service.store, instance.id, name).await?
        else {
            let message = "the id of an offer of this negotiation is expected";
            return refused("/counterOfferTo", message);
        };
        Some(Box::new(content_of_offer(
            &read_kept_offer(row, &document)?.words,
        )))
    } else if let Some(agreement) = instance.agreement {
        Some(kept_offer_of_agreement(service, agreement).await?.offer)
    } else {
        None
    };
    let replaced = agreement_replaced_by_negotiation(service, instance).await?;
    flat_offer_from_request(
        service,
        &instance.party,
        request,
        of_itself,
        otherwise,
        base,
        replaced,
    )
    .await
}

/// A request in a negotiation, with its own properties.
fn read_flat_offer(
    service: &Service,
    request: &LocatedValue<'_>,
) -> Result<(ReadRequest, FlatOfferProperties)> {
    read_json_request(service, request, &OF_ITSELF, |check, object| {
        FlatOfferProperties {
            constraints: read_demands(check, object),
            id: object.read(check, "id", JsonCheck::token),
            to: object.read(check, "counterOfferTo", JsonCheck::token),
            state: object.read(check, "state", |check, at| {
                let state = OfferState::parse(&check.text(at)?);
                let message = "Advisory, Solicited, Acceptable or Rejected is expected";
                state.or_else(|| check.wrong(at, message))
            }),
            expires: object.read(check, "expires", |check, at| {
                read_future_time_of_flat_offer(service, check, at)
            }),
        }
    })
}

pub(crate) fn read_future_time_of_flat_offer(
    service: &Service,
    check: &mut JsonCheck,
    at: &LocatedValue<'_>,
) -> Option<DateTime> {
    let time = check.date_time(at)?;
    if time.floor() <= service.clock.now().seconds() {
        check.add(&at.pointer, "an instant in the future is expected");
    }
    Some(time)
}

/// The offer that a request asks with, found to be right: a change of the offer `base`, or else made from a template. It is in
/// the state `otherwise` where the request names none.
pub(crate) async fn flat_offer_from_request(
    service: &Service,
    party: &str,
    request: ReadRequest,
    of_itself: FlatOfferProperties,
    otherwise: OfferState,
    base: Option<Box<AgreementOffer>>,
    replaced: Option<Agreement>,
) -> Result<IncomingOffer> {
    let party = party.to_owned();
    service
        .run_work_with_files(move |service| {
            let ReadRequest { wish, places, .. } = &request;
            if request.decision != DecisionTime::Now {
                let message = "an offer of a negotiation is decided by its acceptance";
                return refuse_flat_offer_member(places, "/pending", message);
            }
            let offer = match &base {
                None => {
                    let template = &request.offered.template;
                    wish.saying_duration(template, service.clock.now())
                        .offer(template)
                }
                Some(offer) => {
                    let template_id = offer.context.template_id.as_deref().unwrap_or_default();
                    if let Some(named) = &request.named
                        && named != template_id
                    {
                        let message = format!("what it changes was made from the template {template_id:?}");
                        return refuse_flat_offer_member(places, "/template", &message);
                    }
                    let offered = service.templates.get(template_id);
                    wish.change(offer, offered.as_ref().map(|offered| &offered.template))
                }
            };
            let requests = requests_of_offer(service, &offer, places, &party, replaced.as_ref())?;
            let offer = flat_offer_in_negotiation(offer, of_itself.clone(), otherwise);
            Ok(IncomingOffer::checked(offer, requests, places.clone()))
        })
        .await?
}

/// The refusal of a request for one of its members.
fn refuse_flat_offer_member<T>(places: &ValuePlaces, member: &str, message: &str) -> Result<T> {
    let mut check = JsonCheck::default();
    check.add(&format!("{}{member}", places.root()), message);
    check.finish(None)
}

/// An offer as it enters a negotiation, with the defaults of the members that it leaves out.
pub(crate) fn flat_offer_in_negotiation(
    offer: AgreementOffer,
    of_itself: FlatOfferProperties,
    otherwise: OfferState,
) -> OfferDocument {
    let template = offer.context.template_id.clone().unwrap_or_default();
    OfferDocument {
        offer_id: Some(of_itself.id.unwrap_or_else(|| Uuid::now_v7().to_string())),
        agreement_id: None,
        name: offer.name,
        offer_context: NegotiationOfferContext {
            counter_offer_to: of_itself.to.unwrap_or(template),
            expiration_time: of_itself.expires,
            creator: NegotiationRole::Initiator,
            state: of_itself.state.unwrap_or(otherwise),
            state_extensions: Vec::new(),
            extensions: Vec::new(),
        },
        context: offer.context,
        terms: offer.terms,
        constraints: of_itself.constraints,
    }
}
