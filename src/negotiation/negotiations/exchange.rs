//! Messages with offers, in either representation: each offer is answered on its own, and each message once, however
//! often it is sent under its key.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;
use wsag::negotiations::{NegotiationOffer as OfferDocument, advertise_output};
use wsag::{Document, Message, Places};

use super::flat::AnswersView;
use super::offers::{Arrival, invalid, violation};
use crate::agreement::{NegotiationInstance, OfferState};
use crate::negotiation::idempotency::{kept, repeated};
use crate::negotiation::request::json::{Check, Json};
use crate::negotiation::views::offer::{Negotiated, WordedOffer};
use crate::negotiation::{Error, Input, Negotiation, RequestKey, Scope};
use crate::planner::{self, Bargain};

/// Offers in one message: the tree has its own bound, and each costs a search of the plan.
const OFFERS_MAX: usize = 32;

/// An answer in both representations, as it is kept for a repeated request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredAnswer {
    /// As a flat value.
    pub json: String,
    /// As a document.
    pub document: String,
}

/// The kinds of a message with offers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::negotiation) enum OfferMessage {
    Negotiate,
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
enum Given {
    Document(Box<Placed>),
    /// A request, and the pointer to it.
    Flat(Json, String),
}

/// An offer, and where its maker has it.
pub(in crate::negotiation) struct Placed {
    pub(in crate::negotiation) offer: OfferDocument,
    pub(in crate::negotiation) places: Places,
}

impl Negotiation {
    /// Answers the offers of a NegotiateInput, each on its own: one that fails comes back Rejected with the reason. A flat
    /// request is one offer, and a list of them are several.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::MalformedJson`] and [`Error::Invalid`] for other messages, [`Error::NotFound`],
    /// [`Error::Conflict`] and [`Error::Gone`] where the negotiation is over, [`Error::KeyReused`],
    /// [`Error::Unavailable`].
    pub async fn negotiate(
        &self,
        scope: &Scope,
        id: Uuid,
        input: Input,
        key: Option<RequestKey>,
    ) -> Result<StoredAnswer, Error> {
        let instance = self.instance(scope, id).await?;
        if let Some(told) = self.answered(key.as_ref()).await? {
            return Ok(told);
        }
        let (form, offers) = self
            .reading(move |_| read_message(&input, OfferMessage::Negotiate))
            .await??;
        let mut all = Negotiated { said: Vec::new() };
        let mut answers = Vec::with_capacity(offers.len());
        for (number, given) in offers.into_iter().enumerate() {
            let step = key.as_ref().map(|key| key.step(number));
            let said = match self.offer_of(&instance, given, OfferMessage::Negotiate).await {
                Ok(placed) => {
                    let arrival = Arrival {
                        key: step,
                        opening: None,
                    };
                    self.answer(&instance, placed, arrival).await?
                }
                Err(why) => match self.put_before(step.as_ref(), why).await {
                    Ok(before) => self.said_before(&before).await?,
                    Err(Error::Invalid(wrong) | Error::NotOffered(wrong)) if form == Form::Requests => {
                        answers.push(AnswersView::wrong(wrong));
                        continue;
                    }
                    Err(why) => return Err(why),
                },
            };
            answers.push(AnswersView::of(said.iter().map(WordedOffer::view).collect()));
            all.said.extend(said);
        }
        let json = match form {
            Form::Document => json!({ "offers": all.views() }),
            Form::Request => json!(answers.first()),
            Form::Requests => json!({ "answers": answers }),
        };
        let told = StoredAnswer {
            json: json.to_string(),
            document: all.document(),
        };
        self.keep(key, told).await
    }

    /// Takes the offers of an AdvertiseInput, or the offers of a flat request or a list of them. They get no answer. If one of
    /// them has a fault, none is accepted.
    ///
    /// # Errors
    /// The errors of [`Negotiation::negotiate`], and [`Error::Invalid`] for offers that do not fit into the tree.
    pub async fn advertise(
        &self,
        scope: &Scope,
        id: Uuid,
        input: Input,
        key: Option<RequestKey>,
    ) -> Result<StoredAnswer, Error> {
        let instance = self.instance(scope, id).await?;
        if let Some(told) = self.answered(key.as_ref()).await? {
            return Ok(told);
        }
        let (_, offers) = self
            .reading(move |_| read_message(&input, OfferMessage::Advertise))
            .await??;
        let mut understood = Vec::new();
        let mut names = BTreeSet::new();
        for (number, given) in offers.into_iter().enumerate() {
            let step = key.as_ref().map(|key| key.step(number));
            let placed = match self.offer_of(&instance, given, OfferMessage::Advertise).await {
                Ok(placed) => placed,
                Err(why) => {
                    let before = self.put_before(step.as_ref(), why).await?;
                    understood.push((Err(before), step));
                    continue;
                }
            };
            let bargain = if let Some(before) = self.answered::<Vec<Uuid>>(step.as_ref()).await? {
                Err(before)
            } else {
                let found = self.understand(&instance, &placed, false).await?;
                let (_, incoming) = found.map_err(invalid)?;
                let name = incoming.offer.name.clone();
                if self.store.offer_named(instance.id, &name).await?.is_some() || !names.insert(name) {
                    let message = "another offer of this negotiation has this OfferId";
                    let taken = invalid(vec![violation(&placed.places, "/@wsag-neg:OfferId", message)]);
                    Err(self.put_before(step.as_ref(), taken).await?)
                } else {
                    let bargain = Bargain {
                        negotiation: instance.id,
                        opening: None,
                        incoming: Some(incoming),
                        answers: Vec::new(),
                        otherwise: OfferState::Rejected,
                        idempotency: step.clone().map(|step| step.kept(kept)),
                    };
                    Ok((bargain, placed.places))
                }
            };
            understood.push((bargain, step));
        }
        let mut views = Vec::with_capacity(understood.len());
        for (bargain, step) in understood {
            let taken = match bargain {
                Ok((bargain, places)) => self.advertised(&instance, bargain, &places, step).await?,
                Err(before) => before,
            };
            for id in taken {
                let (row, document) = self.store.offer(id).await?.ok_or(Error::NotFound)?;
                views.push(WordedOffer::read(row, &document)?.view());
            }
        }
        let told = StoredAnswer {
            json: json!({ "offers": views }).to_string(),
            document: advertise_output(),
        };
        self.keep(key, told).await
    }

    /// The offers that a step of a request made when it was sent first, or just now by the same request at the same time.
    /// The step cannot be taken any more, and these offers may be the reason.
    async fn put_before(&self, step: Option<&RequestKey>, why: Error) -> Result<Vec<Uuid>, Error> {
        self.answered(step).await?.ok_or(why)
    }

    /// Puts an offer on the table that asks for no answer; its id.
    async fn advertised(
        &self,
        instance: &NegotiationInstance,
        bargain: Bargain,
        places: &Places,
        step: Option<RequestKey>,
    ) -> Result<Vec<Uuid>, Error> {
        let put = bargain.incoming.iter().map(|of| of.offer.id).collect();
        match self.planner.bargain(bargain).await {
            Ok(_) => Ok(put),
            Err(planner::Error::NotFound) => {
                let scope = Scope::Party(instance.party.clone());
                Err(self.is_over(&scope, instance.id).await)
            }
            Err(planner::Error::Stale(why)) => Err(invalid(vec![violation(places, "", why)])),
            Err(planner::Error::Repeated(earlier)) => {
                repeated(&earlier, step.as_ref().map(RequestKey::hash).as_deref())
            }
            Err(why) => Err(why.into()),
        }
    }

    /// An offer in its own words, once the offer that it answers is stored.
    async fn offer_of(
        &self,
        instance: &NegotiationInstance,
        given: Given,
        asked: OfferMessage,
    ) -> Result<Placed, Error> {
        match given {
            Given::Document(placed) => Ok(*placed),
            Given::Flat(request, pointer) => self.flat_offer(instance, request, pointer, asked).await,
        }
    }
}

/// The offers of a message, and its form.
fn read_message(input: &Input, asked: OfferMessage) -> Result<(Form, Vec<Given>), Error> {
    let body = match input {
        Input::Xml(body) => {
            let offers = read_offers(body, asked)?;
            let given = offers.into_iter().map(|placed| Given::Document(Box::new(placed)));
            return Ok((Form::Document, given.collect()));
        }
        Input::Json(body) => body,
    };
    let requests = match Json::parse(body)? {
        Json::List(requests) => requests,
        request => return Ok((Form::Request, vec![Given::Flat(request, String::new())])),
    };
    let mut check = Check::default();
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
        Given::Flat(request, pointer)
    });
    Ok((Form::Requests, given.collect()))
}

fn read_offers(body: &[u8], asked: OfferMessage) -> Result<Vec<Placed>, Error> {
    let document = Document::parse(body).map_err(Error::Malformed)?;
    let (offers, message) = match (wsag::read(&document).map_err(Error::Invalid)?, asked) {
        (Message::NegotiationOffer(offer), _) => {
            let places = Places::document("/wsag-neg:NegotiationOffer");
            return Ok(vec![Placed {
                offer: *offer,
                places,
            }]);
        }
        (Message::NegotiateInput(offers), OfferMessage::Negotiate) => (offers, "NegotiateInput"),
        (Message::AdvertiseInput(offers), OfferMessage::Advertise) => (offers, "AdvertiseInput"),
        (_, OfferMessage::Negotiate) => {
            let what = "wsag-neg:NegotiateInput or wsag-neg:NegotiationOffer is expected here";
            return Err(Error::not_offered(&document, "", what));
        }
        (_, OfferMessage::Advertise) => {
            let what = "wsag-neg:AdvertiseInput or wsag-neg:NegotiationOffer is expected here";
            return Err(Error::not_offered(&document, "", what));
        }
    };
    let count = offers.len();
    if count > OFFERS_MAX {
        let what = format!("at most {OFFERS_MAX} offers are taken at a time, these are {count}");
        return Err(Error::not_offered(&document, "", &what));
    }
    let placed = offers.into_iter().enumerate().map(|(index, offer)| Placed {
        offer,
        places: Places::document(place(message, index, count)),
    });
    Ok(placed.collect())
}

/// The path of an offer in its message.
fn place(message: &str, index: usize, count: usize) -> String {
    let path = format!("/wsag-neg:{message}/wsag-neg:NegotiationOffer");
    if count == 1 {
        path
    } else {
        format!("{path}[{}]", index + 1)
    }
}
