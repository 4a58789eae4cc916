//! A peer: its questions and messages, one deed each.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::agreement::{Currency, Money};
use domain::clock::{Clock, MICROS_PER_SECOND, Micros};
use serde::Deserialize;
use task::lock::lock;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tracing::debug;
use uuid::Uuid;
use wsag::agreement_state::AgreementState;
use wsag::agreements::AgreementOffer;
use wsag::answers::Answer;
use wsag::budget::parse_amount;
use wsag::endpoint::EndpointReference;
use wsag::negotiations::{negotiate_input, terminate_negotiation_input};
use wsag::operations::{acceptance_input, reason_fragment, terminate_input};
use wsag::travel::Travel;
use wsag::{Document, Message};

use super::breaker::{Breaker, PeerHealth, QuestionOutcome};
use super::error::{PeerError, Result};
use super::exchange::{self, PeerConnection, Reply, exchange, fetch_bounded};
use super::words::{PeerAnswer, PeerStatus, negotiation_input, read_counter_offers, words_of_question};
use crate::settings::PeerSettings;

/// How long the name of a peer's template is believed.
const TEMPLATE_KNOWN: Micros = 300 * MICROS_PER_SECOND;
/// Names of templates that are kept.
const TEMPLATES_MAX: usize = 1_000;
/// The longest time for all messages of one question, also after its asker has gone.
const QUESTION_WAIT: Duration = Duration::from_secs(30);

/// Agreements that are asked for at a time.
const PAGE: u32 = 200;
/// Pages that are read at most: a peer that lists without end is stopped.
const PAGES_MAX: usize = 10_000;

/// A peer. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Peer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: PeerSettings,
    clock: Clock,
    line: PeerConnection,
    breaker: Breaker,
    /// The names of its templates by their ids, and when they were read.
    templates: Mutex<BTreeMap<String, (String, Micros)>>,
}

/// An answer on its way to the asker. Its negotiation is ended at the peer if the asker has gone.
struct PeerParcel {
    peer: Peer,
    answer: Option<PeerAnswer>,
}

impl PeerParcel {
    fn open(mut self) -> Option<PeerAnswer> {
        self.answer.take()
    }
}

impl Drop for PeerParcel {
    fn drop(&mut self) {
        if let Some(answer) = self.answer.take() {
            self.peer.end_behind(answer.negotiation);
        }
    }
}

/// An agreement as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ListedAgreement {
    /// Its id there.
    pub id: String,
    /// Its state, in the word of the specification.
    pub state: String,
}

#[derive(Debug, Deserialize)]
struct Page {
    agreements: Vec<ListedAgreement>,
    next: Option<String>,
}

/// The part of a cost of an end that is read.
#[derive(Debug, Deserialize)]
struct EndingCost {
    charges: Vec<Charge>,
}

#[derive(Debug, Deserialize)]
struct Charge {
    amount: Sum,
}

#[derive(Debug, Deserialize)]
struct Sum {
    amount: String,
    currency: String,
}

impl Peer {
    /// The peer of these settings. Nothing is sent yet.
    ///
    /// # Errors
    /// Why it cannot be spoken to, in words: the system's certificates cannot be read, above all.
    pub fn new(settings: PeerSettings, clock: Clock) -> std::result::Result<Self, String> {
        Ok(Self(Arc::new(Inner {
            line: PeerConnection::new(&settings)?,
            breaker: Breaker::new(clock.clone(), settings.requests_per_minute),
            templates: Mutex::default(),
            clock,
            settings,
        })))
    }

    /// Its name here.
    pub fn name(&self) -> &str {
        &self.0.settings.name
    }

    /// What the configuration says of it.
    pub fn settings(&self) -> &PeerSettings {
        &self.0.settings
    }

    /// The way of messages to it.
    pub(super) fn connection(&self) -> &PeerConnection {
        &self.0.line
    }

    /// How it does.
    pub fn health(&self) -> PeerHealth {
        self.0.breaker.health()
    }

    /// Asks for offers in place of `offer`, which is of a template of this domain: in a new negotiation there, or a renegotiation of the
    /// peer's agreement at the address `about`. The negotiation stays open where there are offers, and is the caller's to end.
    ///
    /// # Errors
    /// [`PeerError::NotAsked`], [`PeerError::Refused`], and [`PeerError::Unknown`] after `within` at the latest. The negotiation is
    /// ended at the peer then.
    pub async fn ask(
        &self,
        offer: &AgreementOffer,
        travel: &Travel,
        about: Option<&str>,
        within: Duration,
    ) -> Result<PeerAnswer> {
        let admission = self.0.breaker.admit().map_err(PeerError::NotAsked)?;
        let (tell, mut told) = oneshot::channel();
        let (peer, offer, travel) = (self.clone(), offer.clone(), travel.clone());
        let about = about.map(ToOwned::to_owned);
        // It goes on after its asker has gone, so that the negotiation that it opens at the peer is ended there.
        task::spawn(async move {
            let asked = peer.negotiate(&offer, &travel, about.as_deref());
            let asked = exchange::within(QUESTION_WAIT, asked).await;
            let parcel = asked.map(|answer| PeerParcel {
                peer,
                answer: Some(answer),
            });
            let _ = tell.send(parcel);
        });
        let answer = match tokio::time::timeout(within, &mut told).await {
            Ok(Ok(answer)) => Some(answer),
            Ok(Err(_)) => Some(Err(PeerError::rubbish("the question ended without an answer"))),
            // It may have come at the same moment.
            Err(_) => {
                told.close();
                told.try_recv().ok()
            }
        };
        let Some(answer) = answer else {
            admission.tell(QuestionOutcome::Late);
            return Err(PeerError::silent(within));
        };
        admission.tell(match &answer {
            Ok(PeerParcel { answer, .. }) => QuestionOutcome::Answered {
                has_offers: answer.as_ref().is_some_and(|answer| !answer.offers.is_empty()),
            },
            Err(PeerError::Unknown(why, wait)) => QuestionOutcome::Failed(why.clone(), *wait),
            Err(_) => QuestionOutcome::Answered { has_offers: false },
        });
        answer?
            .open()
            .ok_or_else(|| PeerError::rubbish("the question ended without an answer"))
    }

    /// Makes an agreement of an offer that the peer has made in a negotiation, in the words of [`PeerOffer::document`](super::PeerOffer::document); in place of the
    /// peer's agreement at the address `agreement` where the negotiation is about that. Returns the address of the new one. Under the
    /// same key it is made once, however often this is called.
    ///
    /// # Errors
    /// [`PeerError::Refused`] for good; after [`PeerError::Unknown`] it is to be called again.
    pub async fn create(
        &self,
        negotiation: &str,
        document: &str,
        agreement: Option<&str>,
        key: Uuid,
    ) -> Result<String> {
        let replaced = agreement.map(EndpointReference::new);
        let input = acceptance_input(document, &EndpointReference::new(negotiation), replaced.as_ref());
        let input =
            input.map_err(|why| PeerError::rubbish(&format!("its offer is not kept whole: {why}")))?;
        let line = &self.0.line;
        let request = line.post(line.below_base(&["agreements"]), input);
        let reply = self
            .tell_peer(request.header("Idempotency-Key", key.to_string()))
            .await?;
        let answer = self.note(reply.answer())?;
        if let Answer::AgreementPending(at) = &answer {
            line.below(&at.address, &[])?;
            return self.decided(&at.address).await;
        }
        let created = Ok(answer).and_then(|answer| match answer {
            Answer::AgreementCreated(at) => line.below(&at.address, &[]).map(|_| at.address),
            _ => Err(PeerError::rubbish("it does not say which agreement it has made")),
        });
        self.note(created)
    }

    /// The address of an agreement that the peer was to decide later, once it has.
    async fn decided(&self, agreement: &str) -> Result<String> {
        let status = self.status(agreement).await?;
        match status.state {
            AgreementState::Pending | AgreementState::PendingAndTerminating => {
                Err(PeerError::Unknown("it has not decided yet".to_owned(), None))
            }
            AgreementState::Rejected => Err(PeerError::Refused {
                code: String::new(),
                words: status
                    .reason
                    .unwrap_or_else(|| "it has rejected the offer".to_owned()),
            }),
            _ => Ok(agreement.to_owned()),
        }
    }

    /// What the peer says of itself, to everybody: it is asked without its key.
    ///
    /// # Errors
    /// [`PeerError::Refused`], [`PeerError::Unknown`].
    pub(crate) async fn description(&self) -> Result<Vec<u8>> {
        let line = &self.0.line;
        fetch_bounded(line.open(line.below_base(&[".well-known", "bespeak"]))).await
    }

    /// How an agreement stands at the peer.
    ///
    /// # Errors
    /// [`PeerError::Refused`] where the peer does not know it, [`PeerError::Unknown`].
    pub async fn status(&self, agreement: &str) -> Result<PeerStatus> {
        let url = self.0.line.below(agreement, &[])?;
        let reply = self.tell_peer(self.0.line.get(url)).await?;
        let status = reply.answer().and_then(|answer| match answer {
            Answer::AgreementProperties(properties) => Ok(PeerStatus::of(&properties)),
            _ => Err(PeerError::rubbish("it does not say how the agreement stands")),
        });
        self.note(status)
    }

    /// Ends an agreement at the peer.
    ///
    /// # Errors
    /// [`PeerError::Refused`] where it is over or not known there, [`PeerError::Unknown`].
    pub async fn terminate(&self, agreement: &str, reason: &str) -> Result<()> {
        let url = self.0.line.below(agreement, &["terminate"])?;
        let input = terminate_input(&reason_fragment(reason));
        let reply = self.tell_peer(self.0.line.post(url, input)).await?;
        reply.success()
    }

    /// Ends a negotiation at the peer, and with it what is held there for its offers. One that is over there stays so.
    ///
    /// # Errors
    /// [`PeerError::Unknown`].
    pub async fn end_negotiation(&self, negotiation: &str) -> Result<()> {
        let url = self.0.line.below(negotiation, &["terminate"])?;
        let input = terminate_negotiation_input(&[]);
        let reply = self.tell_peer(self.0.line.post(url, input)).await?;
        match reply.success() {
            Err(PeerError::Refused { .. }) => Ok(()),
            ended => ended,
        }
    }

    /// Ends a negotiation in the background. Where that fails, the peer ends it when its time is over.
    pub(crate) fn end_behind(&self, negotiation: String) {
        // Answers that nobody has taken are dropped with the runtime, too.
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let peer = self.clone();
        runtime.spawn(async move {
            if let Err(why) = peer.end_negotiation(&negotiation).await {
                debug!(peer = peer.name(), %why, "a negotiation at a peer was not ended");
            }
        });
    }

    /// Opens a negotiation, and sends the question in it.
    async fn negotiate(
        &self,
        offer: &AgreementOffer,
        travel: &Travel,
        about: Option<&str>,
    ) -> Result<PeerAnswer> {
        let own = offer.context.template_id.as_deref().unwrap_or_default();
        let id = self.0.settings.template(own);
        let name = self.template_name(id).await?;
        let line = &self.0.line;
        let opening = line.post(line.below_base(&["negotiations"]), negotiation_input(about));
        let negotiation = match exchange(opening).await?.answer()? {
            Answer::NegotiationOpened(at) => at.address,
            _ => {
                return Err(PeerError::rubbish(
                    "it does not say which negotiation it has opened",
                ));
            }
        };
        let offers = line.below(&negotiation, &["offers"])?;
        let asked = Instant::now();
        let said = words_of_question(offer, travel, id, &name);
        let answered = async {
            let reply = exchange(line.post(offers, negotiate_input(&[said]))).await?;
            let received = reply.date().map(|date| (date, asked.elapsed()));
            match reply.answer()? {
                Answer::CounterOffers(offers) => read_counter_offers(offers, received),
                _ => Err(PeerError::rubbish("it does not answer with counter offers")),
            }
        };
        let answered = answered.await;
        // Nothing is left to be taken there.
        if !matches!(&answered, Ok((offers, _)) if !offers.is_empty()) {
            self.end_behind(negotiation.clone());
        }
        let (offers, refusal) = answered?;
        Ok(PeerAnswer {
            negotiation,
            offers,
            refusal,
        })
    }

    /// The name of a template of the peer, which offers have to name beside its id.
    async fn template_name(&self, id: &str) -> Result<String> {
        let now = self.0.clock.since_boot();
        let known = || lock(&self.0.templates);
        if let Some((name, read)) = known().get(id)
            && now - read < TEMPLATE_KNOWN
        {
            return Ok(name.clone());
        }
        let line = &self.0.line;
        let reply = exchange(line.get(line.below_base(&["templates", id]))).await?;
        reply.success()?;
        let name = name_in_peer_template(&reply);
        let name = name.ok_or_else(|| PeerError::rubbish("its template cannot be read, or has no name"))?;
        let mut known = known();
        if known.len() >= TEMPLATES_MAX {
            known.clear();
        }
        known.insert(id.to_owned(), (name.clone(), now));
        Ok(name)
    }

    /// Sends a message that is no question, whatever the breaker says.
    async fn tell_peer(&self, request: reqwest::RequestBuilder) -> Result<Reply> {
        let reply = exchange(request).await;
        let failure = match &reply {
            Ok(reply) => reply.success().err(),
            Err(why) => Some(why.clone()),
        };
        self.0.breaker.note(match failure {
            Some(PeerError::Unknown(why, wait)) => Some((why, wait)),
            _ => None,
        });
        reply
    }

    /// Notes an answer that came and cannot be read.
    fn note<T>(&self, read: Result<T>) -> Result<T> {
        if let Err(PeerError::Unknown(why, wait)) = &read {
            self.0.breaker.note(Some((why.clone(), *wait)));
        }
        read
    }

    /// The peer's charge for ending one of its agreements now; none where it is nothing. Only another Bespeak service tells it.
    ///
    /// # Errors
    /// [`PeerError::Refused`], [`PeerError::Unknown`].
    pub async fn charge_of_ending(&self, agreement: &str) -> Result<Option<Money>> {
        let line = &self.0.line;
        let url = line.below(agreement, &["ending"])?;
        let reply = self.tell_peer(line.get_json(url)).await?;
        self.note(read_peer_charge(&reply))
    }

    /// All agreements that the peer has with us, newest first. Only another Bespeak service lists them.
    ///
    /// # Errors
    /// [`PeerError::Refused`], [`PeerError::Unknown`].
    pub async fn agreements(&self) -> Result<Vec<ListedAgreement>> {
        let line = &self.0.line;
        let mut all = Vec::new();
        let mut after: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let mut url = line.below_base(&["agreements"]);
            url.query_pairs_mut().append_pair("limit", &PAGE.to_string());
            if let Some(after) = &after {
                url.query_pairs_mut().append_pair("after", after);
            }
            let page: Page = exchange(line.get_json(url)).await?.json("list of agreements")?;
            all.extend(page.agreements);
            after = page.next;
            if after.is_none() {
                return Ok(all);
            }
        }
        Err(PeerError::rubbish("its list of agreements has no end"))
    }
}

fn name_in_peer_template(reply: &Reply) -> Option<String> {
    let document = Document::parse(&reply.body).ok()?;
    match wsag::read(&document).ok()? {
        Message::Template(template) => template.name.clone(),
        _ => None,
    }
}

/// The sum of the charges in a cost of an end.
fn read_peer_charge(reply: &Reply) -> Result<Option<Money>> {
    let ending: EndingCost = reply.json("cost of an end")?;
    let wrong = |why: &dyn std::fmt::Display| {
        PeerError::rubbish(&format!("its cost of an end cannot be read: {why}"))
    };
    let mut all: Option<Money> = None;
    for Charge {
        amount: Sum { amount, currency },
    } in ending.charges
    {
        let micros = parse_amount(&amount).map_err(|why| wrong(&why))?;
        let currency = Currency::parse(&currency).ok_or_else(|| wrong(&"no currency"))?;
        let before = all.map_or(Some(0), |all| (all.currency == currency).then_some(all.micros));
        let sum = before.and_then(|before| before.checked_add(micros));
        all = Some(Money::new(sum.ok_or_else(|| wrong(&"no sum"))?, currency));
    }
    Ok(all)
}
