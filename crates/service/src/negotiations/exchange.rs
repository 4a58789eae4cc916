//! Messages with offers, in either representation: each offer is answered on its own, and each message once, however
//! often it is sent under its key.

use std::collections::BTreeSet;

use domain::agreement::{NegotiationInstance, OfferState};
use planner::ExchangeOffers;
use serde_json::json;
use store::negotiations;
use uuid::Uuid;
use wsag::negotiations::{NegotiationOfferByItself, advertise_output, negotiate_output};
use wsag::{Document, Message, ValuePlaces, Violation, ns};

use super::flat_offers::{FlatOfferProperties, flat_offer, flat_offer_in_tree};
use crate::codec::json::Json;
use crate::codec::json_check::JsonCheck;
use crate::codec::kept_offer::{read_kept_offer, read_kept_offer_by_id};
use crate::codec::request::ReadRequest;
use crate::idempotency::{
    StoredAnswer, answer_of_repeated_request, earlier_answer, keep_answer, text_to_keep,
};
use crate::negotiations::answers::{answer_offer, earlier_negotiation_answers};
use crate::negotiations::counter_offers::rejecting_counter_offer;
use crate::negotiations::incoming_offer::{
    IncomingOffer, check_incoming_offer, invalid_offer, violation_below_offer,
};
use crate::negotiations::negotiation::{visible_negotiation, why_negotiation_is_over};
use crate::views::answers::AnswersView;
use crate::views::rejection::Rejection;
use crate::views::worded_offer::{documents_of_offers, view_offers};
use crate::{Error, Input, RequestKey, Result, Scope, Service};

/// Offers in one message: the tree has its own bound, and each costs a search of the plan.
const OFFERS_MAX: usize = 32;

/// The kinds of a message with offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfferMessage {
    /// Its offers are answered.
    Negotiate,
    /// Its offers are only made known.
    Advertise,
}

/// The form of a message, which its answer follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Document,
    /// One flat request.
    Request,
    /// A list of them.
    Requests,
}

/// An offer of a message, as it came.
enum RawOffer {
    /// A document, and what it asks for that cannot be had here.
    Document(Box<IncomingOffer>, Vec<Violation>),
    /// A request, and the pointer to it.
    Flat(Json, String),
    /// A request that was read, with its own properties in the negotiation.
    Read(Box<(ReadRequest, FlatOfferProperties)>),
}

/// Takes the offers of a message: a NegotiateInput, an AdvertiseInput, a flat request, which is one offer, or a list of them.
///
/// Each offer of a NegotiateInput is answered on its own: one that fails comes back Rejected with the reason. The offers of
/// an AdvertiseInput get no answer, and if one of them has a fault, none is accepted.
///
/// # Errors
/// [`Error::Malformed`], [`Error::MalformedJson`] and [`Error::Invalid`] for other messages, and for advertised offers that
/// do not fit into the tree, [`Error::NotFound`], [`Error::Conflict`] and [`Error::Gone`] where the negotiation is over,
/// [`Error::KeyReused`], [`Error::Unavailable`].
pub async fn exchange_offers(
    service: &Service,
    scope: &Scope,
    id: Uuid,
    message: OfferMessage,
    input: Input,
    key: Option<RequestKey>,
) -> Result<StoredAnswer> {
    let instance = visible_negotiation(service, scope, id).await?;
    if let Some(told) = earlier_answer(service, key.as_ref()).await? {
        return Ok(told);
    }
    let (form, offers) = service
        .run_document_work(move |_| read_exchange(&input, message))
        .await??;
    let steps = (0..offers.len()).map(|number| key.as_ref().map(|key| key.step(number)));
    let offers = offers.into_iter().zip(steps.collect::<Vec<_>>()).collect();
    let told = match message {
        OfferMessage::Negotiate => exchange_negotiated(service, &instance, form, offers).await?,
        OfferMessage::Advertise => exchange_advertised(service, &instance, offers).await?,
    };
    keep_answer(service, key, told).await
}

/// Answers one offer that was read from a form, once under its key.
///
/// # Errors
/// The errors of [`exchange_offers`] for such an offer.
pub(crate) async fn exchange_read_offer(
    service: &Service,
    instance: &NegotiationInstance,
    request: ReadRequest,
    of_itself: FlatOfferProperties,
    key: RequestKey,
) -> Result<StoredAnswer> {
    if let Some(told) = earlier_answer(service, Some(&key)).await? {
        return Ok(told);
    }
    let given = RawOffer::Read(Box::new((request, of_itself)));
    let offers = vec![(given, Some(key.step(0)))];
    let told = exchange_negotiated(service, instance, Form::Request, offers).await?;
    keep_answer(service, Some(key), told).await
}

/// Answers offers, each on its own.
async fn exchange_negotiated(
    service: &Service,
    instance: &NegotiationInstance,
    form: Form,
    offers: Vec<(RawOffer, Option<RequestKey>)>,
) -> Result<StoredAnswer> {
    let mut all = Vec::new();
    let mut answers = Vec::with_capacity(offers.len());
    for (given, key) in offers {
        let given = match given {
            RawOffer::Document(placed, unsupported) if !unsupported.is_empty() => {
                let rejection = Rejection::Violations(unsupported);
                let said = rejecting_counter_offer(service, instance.id, None, &placed.offer, &rejection);
                all.push(said);
                continue;
            }
            given => given,
        };
        let said = match read_exchanged_offer(service, instance, given, OfferMessage::Negotiate).await {
            Ok(placed) => answer_offer(service, instance, &placed, key, None).await?,
            Err(why) => match put_before(service, key.as_ref(), why).await {
                Ok(before) => earlier_negotiation_answers(service, &before).await?,
                Err(Error::Invalid(wrong) | Error::NotOffered(wrong)) if form == Form::Requests => {
                    answers.push(AnswersView::wrong(wrong));
                    continue;
                }
                Err(why) => return Err(why),
            },
        };
        answers.push(AnswersView::of(view_offers(&said)));
        all.extend(said);
    }
    let json = match form {
        Form::Document => json!({ "offers": view_offers(&all) }),
        Form::Request => json!(answers.first()),
        Form::Requests => json!({ "answers": answers }),
    };
    Ok(StoredAnswer {
        json: json.to_string(),
        document: negotiate_output(&documents_of_offers(&all)),
    })
}

/// Takes offers that get no answer: all of them, or none.
async fn exchange_advertised(
    service: &Service,
    instance: &NegotiationInstance,
    offers: Vec<(RawOffer, Option<RequestKey>)>,
) -> Result<StoredAnswer> {
    let mut names = BTreeSet::new();
    let mut fitting = Vec::with_capacity(offers.len());
    for (given, key) in offers {
        fitting.push(
            match check_exchanged_advertisement(service, instance, given, key.as_ref(), &mut names).await {
                Ok(fits) => fits,
                Err(why) => Err(put_before(service, key.as_ref(), why).await?),
            },
        );
    }
    let mut views = Vec::with_capacity(fitting.len());
    for fits in fitting {
        let taken: Vec<Uuid> = match fits {
            Ok((bargain, places)) => {
                if service.options.is_dry {
                    // It will be in no store.
                    for incoming in bargain.incoming.iter().cloned() {
                        views.push(read_kept_offer(incoming.offer, &incoming.document)?.view());
                    }
                }
                let put = bargain
                    .incoming
                    .iter()
                    .map(|incoming| incoming.offer.id)
                    .collect();
                match service.send(bargain).await {
                    Err(planner::Error::NotFound) => {
                        return Err(why_negotiation_is_over(service, instance).await);
                    }
                    Err(planner::Error::Stale(why)) => {
                        return Err(invalid_offer(vec![violation_below_offer(&places, "", why)]));
                    }
                    done => answer_of_repeated_request(done, |_| put)?,
                }
            }
            Err(before) => before,
        };
        for id in taken.into_iter().filter(|_| !service.options.is_dry) {
            views.push(read_kept_offer_by_id(service, id).await?.view());
        }
    }
    Ok(StoredAnswer {
        json: json!({ "offers": views }).to_string(),
        document: advertise_output(),
    })
}

/// An offer that asks for no answer, found to fit into the tree beside the offers of these names; or the offers that its
/// step made before.
async fn check_exchanged_advertisement(
    service: &Service,
    instance: &NegotiationInstance,
    given: RawOffer,
    key: Option<&RequestKey>,
    names: &mut BTreeSet<String>,
) -> Result<Result<(ExchangeOffers, ValuePlaces), Vec<Uuid>>> {
    let placed = read_exchanged_offer(service, instance, given, OfferMessage::Advertise).await?;
    if let Some(before) = earlier_answer(service, key).await? {
        return Ok(Err(before));
    }
    let (_, incoming) = check_incoming_offer(service, instance, &placed, false)
        .await?
        .map_err(invalid_offer)?;
    let name = incoming.offer.name.clone();
    if negotiations::negotiation_offer_named(&service.store, instance.id, &name)
        .await?
        .is_some()
        || !names.insert(name)
    {
        let message = "another offer of this negotiation has this OfferId";
        return Err(invalid_offer(vec![violation_below_offer(
            &placed.places,
            "/@wsag-neg:OfferId",
            message,
        )]));
    }
    let bargain = ExchangeOffers {
        negotiation: instance.id,
        opening: None,
        incoming: Some(incoming),
        answers: Vec::new(),
        otherwise: OfferState::Rejected,
        idempotency: key.map(|key| key.clone().kept(text_to_keep)),
    };
    Ok(Ok((bargain, placed.places)))
}

/// The offers that a step of a request made when it was sent first, or just now by the same request at the same time.
/// The step cannot be taken any more, and these offers may be the reason.
async fn put_before(service: &Service, step: Option<&RequestKey>, why: Error) -> Result<Vec<Uuid>> {
    earlier_answer(service, step).await?.ok_or(why)
}

/// An offer in its own words, once the offer that it answers is stored.
async fn read_exchanged_offer(
    service: &Service,
    instance: &NegotiationInstance,
    given: RawOffer,
    asked: OfferMessage,
) -> Result<IncomingOffer> {
    let otherwise = match asked {
        OfferMessage::Negotiate => OfferState::Solicited,
        OfferMessage::Advertise => OfferState::Advisory,
    };
    match given {
        RawOffer::Document(placed, _) => Ok(*placed),
        RawOffer::Flat(request, pointer) => flat_offer(service, instance, request, pointer, otherwise).await,
        RawOffer::Read(read) => {
            let (request, of_itself) = *read;
            flat_offer_in_tree(service, instance, request, of_itself, otherwise).await
        }
    }
}

/// The offers of a message, and its form.
fn read_exchange(input: &Input, asked: OfferMessage) -> Result<(Form, Vec<RawOffer>)> {
    let body = match input {
        Input::Xml(body) => {
            return Ok((Form::Document, read_exchanged_offers(body, asked)?));
        }
        Input::Json(body) => body,
    };
    let requests = match Json::parse(body)? {
        Json::List(requests) => requests,
        request => return Ok((Form::Request, vec![RawOffer::Flat(request, String::new())])),
    };
    let mut check = JsonCheck::default();
    if requests.is_empty() || requests.len() > OFFERS_MAX {
        check.add("", format!("a list of 1 to {OFFERS_MAX} requests is expected"));
    }
    for (number, request) in requests.iter().enumerate() {
        if !matches!(request, Json::Object(_)) {
            check.add(&format!("/{number}"), "an object is expected");
        }
    }
    check.finish(Some(()))?;
    let given = requests.into_iter().enumerate().map(|(number, request)| {
        // Each is answered on its own, or all are taken together.
        let pointer = match asked {
            OfferMessage::Negotiate => String::new(),
            OfferMessage::Advertise => format!("/{number}"),
        };
        RawOffer::Flat(request, pointer)
    });
    Ok((Form::Requests, given.collect()))
}

fn read_exchanged_offers(body: &[u8], asked: OfferMessage) -> Result<Vec<RawOffer>> {
    let document = Document::parse(body).map_err(Error::Malformed)?;
    let message = match asked {
        OfferMessage::Negotiate => "NegotiateInput",
        OfferMessage::Advertise => "AdvertiseInput",
    };
    let expected = || {
        let what = format!("wsag-neg:{message} or wsag-neg:NegotiationOffer is expected here");
        Error::not_offered(&document, &what)
    };
    let offers = match asked {
        OfferMessage::Negotiate => {
            if let Some(offers) = wsag::read_each_offer(&document).map_err(Error::Invalid)? {
                offers
            } else {
                wsag::read(&document).map_err(Error::Invalid)?;
                return Err(expected());
            }
        }
        OfferMessage::Advertise => {
            let offers = match wsag::read(&document).map_err(Error::Invalid)? {
                Message::NegotiationOffer(offer) => vec![*offer],
                Message::AdvertiseInput(offers) => offers,
                _ => return Err(expected()),
            };
            let known = |offer| NegotiationOfferByItself {
                offer,
                unsupported: Vec::new(),
            };
            offers.into_iter().map(known).collect()
        }
    };
    let count = offers.len();
    if count > OFFERS_MAX {
        let what = format!("at most {OFFERS_MAX} offers are taken at a time, these are {count}");
        return Err(Error::not_offered(&document, &what));
    }
    // There is no such element: the root.
    let root = document.path_outside_unknown_terms(ns::WSAG, "", 0);
    let given = offers.into_iter().enumerate().map(|(index, itself)| {
        let places = ValuePlaces::document(place_of_exchanged_offer(&root, index, count));
        RawOffer::Document(
            Box::new(IncomingOffer::new(itself.offer, places)),
            itself.unsupported,
        )
    });
    Ok(given.collect())
}

/// The path of an offer in the message with this root, which may be the offer.
fn place_of_exchanged_offer(root: &str, index: usize, count: usize) -> String {
    const OFFER: &str = "/wsag-neg:NegotiationOffer";
    match count {
        _ if root == OFFER => root.to_owned(),
        1 => format!("{root}{OFFER}"),
        _ => format!("{root}{OFFER}[{}]", index + 1),
    }
}
