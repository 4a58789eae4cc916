//! The words of a negotiation with a peer: the question as it is sent, and what is taken from the answers.

use std::time::Duration;

use domain::agreement::{Currency, Money};
use wsag::agreement_state::AgreementState;
use wsag::agreements::{AgreementOffer, AgreementProperties, Context};
use wsag::answers::CounterOffer;
use wsag::budget::Budget;
use wsag::endpoint::EndpointReference;
use wsag::negotiations::{
    InitiateNegotiationInput, NegotiationConstraints, NegotiationOffer, NegotiationOfferContext,
    NegotiationRole, OfferState,
};
use wsag::quotation::{OfferKind, Quotation};
use wsag::states::{GuaranteeState, ServiceState};
use wsag::terms::{ServiceDescription, Terms};
use wsag::time::DateTime;
use wsag::travel::Travel;
use wsag::{NamedValue, Violations};

use super::error::PeerError;

/// How exact the time of an answer is: whole seconds.
const DATE_STEP: Duration = Duration::from_secs(1);
/// The longest time for which a peer counts as holding an offer, whatever it says: as long as the configuration of a service allows.
const HELD_MAX: Duration = Duration::from_hours(24);

/// The answer of a peer.
#[derive(Debug, Clone, PartialEq)]
pub struct PeerAnswer {
    /// The address of the negotiation. It is over where there are no offers.
    pub negotiation: String,
    /// The counter offers that can be accepted, in the peer's order.
    pub offers: Vec<PeerOffer>,
    /// Why there are none, in the peer's words, where it says that.
    pub refusal: Option<String>,
}

/// A counter offer of a peer that can be accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct PeerOffer {
    /// Its `OfferId`.
    pub id: String,
    /// Its own XML, which is repeated word by word at the acceptance.
    pub document: String,
    /// What it amounts to; as far as its terms tell where the peer does not say it.
    pub quotation: Quotation,
    /// The earliest start and the latest end that its words state.
    pub window: (Option<DateTime>, Option<DateTime>),
    /// For how long, from its receipt on, it is held; none where that is not said. It is the least that the peer's own clock
    /// tells: no clock is compared with another.
    pub held_for: Option<Duration>,
}

/// How an agreement stands at a peer.
#[derive(Debug, Clone, PartialEq)]
pub struct PeerStatus {
    /// Its state.
    pub state: AgreementState,
    /// The state of its service; none where it has no service term.
    pub service: Option<ServiceState>,
    /// Planned start and end.
    pub planned: Option<(DateTime, DateTime)>,
    /// Granted nodes.
    pub nodes: Option<u32>,
    /// Real start.
    pub started: Option<DateTime>,
    /// Real end.
    pub ended: Option<DateTime>,
    /// How its work ended, in a word.
    pub outcome: Option<String>,
    /// The exit status of its job.
    pub exit_status: Option<i32>,
    /// The states of its guarantees, by their names.
    pub guarantees: Vec<(String, GuaranteeState)>,
    /// Its price.
    pub price: Option<Money>,
    /// What it has been charged so far, a sum for each currency.
    pub charged: Vec<Money>,
    /// What the peer has paid for it so far, a sum for each currency.
    pub paid: Vec<Money>,
    /// Why it was rejected, where it was.
    pub reason: Option<String>,
    /// The agreement in its place, where there is one.
    pub superseded_by: Option<String>,
}

impl PeerStatus {
    pub(super) fn of(properties: &AgreementProperties) -> Self {
        let placement = properties
            .services
            .iter()
            .find_map(|service| service.placement.as_ref());
        let details = &properties.details;
        let sums = |sums: &[Budget]| sums.iter().filter_map(money_of_sum).collect();
        Self {
            state: properties.state,
            service: properties.services.first().map(|service| service.state.clone()),
            planned: placement.map(|placement| (placement.planned_start, placement.planned_end)),
            nodes: placement.map(|placement| placement.nodes),
            started: placement.and_then(|placement| placement.started),
            ended: placement.and_then(|placement| placement.ended),
            outcome: placement.and_then(|placement| placement.outcome.clone()),
            exit_status: placement.and_then(|placement| placement.exit_status),
            guarantees: properties.guarantees.clone(),
            price: placement.and_then(|placement| money_of_sum(placement.price.as_ref()?)),
            charged: sums(&details.charged),
            paid: sums(&details.paid),
            reason: details.reason.clone(),
            superseded_by: details.superseded_by.clone(),
        }
    }
}

/// The money that a document names; none where its currency is none.
pub fn money_of_sum(sum: &Budget) -> Option<Money> {
    Some(Money::new(sum.amount_micros, Currency::parse(&sum.currency)?))
}

/// The message that opens a negotiation, or a renegotiation about the peer's agreement at this address.
pub(super) fn negotiation_input(about: Option<&str>) -> String {
    InitiateNegotiationInput::about(about.map(EndpointReference::new)).to_xml()
}

/// The offer as the peer is asked: of its own template, with the way that the request has come, and without the words of its context,
/// which say who asks.
pub(super) fn words_of_question(
    offer: &AgreementOffer,
    travel: &Travel,
    id: &str,
    name: &str,
) -> NegotiationOffer {
    NegotiationOffer {
        offer_id: Some(travel.request.to_string()),
        agreement_id: None,
        name: offer.name.clone(),
        context: Context {
            expiration_time: offer.context.expiration_time,
            ..Context::for_template(id, name)
        },
        terms: offer.terms.clone(),
        offer_context: NegotiationOfferContext {
            counter_offer_to: id.to_owned(),
            expiration_time: None,
            creator: NegotiationRole::Initiator,
            state: OfferState::Solicited,
            state_extensions: Vec::new(),
            extensions: vec![travel.to_fragment()],
        },
        constraints: NegotiationConstraints::default(),
    }
}

/// The counter offers that can be accepted, and the reasons of the others. The answer was sent at a second of the peer's clock, and
/// came so long after the question.
///
/// # Errors
/// [`PeerError::Unknown`] where one is not what it has to be.
pub(super) fn read_counter_offers(
    offers: Vec<CounterOffer>,
    received: Option<(i64, Duration)>,
) -> Result<(Vec<PeerOffer>, Option<String>), PeerError> {
    let wrong = |why: Violations| PeerError::rubbish(&format!("its offer cannot be read: {why}"));
    let (mut acceptable, mut reasons) = (Vec::new(), Vec::new());
    for CounterOffer { offer, source } in offers {
        let context = &offer.offer_context;
        if context.state == OfferState::Rejected {
            let refusal = context.refusal().map_err(wrong)?;
            let violations = context.violations().map_err(wrong)?;
            let refusal = refusal.map(|refusal| match refusal.binding_constraint {
                Some(binding) => format!("{}: {binding}", refusal.reason.name()),
                None => refusal.reason.name().to_owned(),
            });
            let violations = violations
                .iter()
                .map(|violation| format!("{}: {}", violation.path, violation.message));
            reasons.extend(refusal.into_iter().chain(violations));
        }
        if context.state != OfferState::Acceptable {
            continue;
        }
        let quotation = context.quotation().map_err(wrong)?;
        let quotation = quotation.or_else(|| quotation_in_peer_words(&offer.terms, context.expiration_time));
        let id = offer.offer_id.clone();
        let (Some(id), Some(quotation)) = (id, quotation) else {
            continue;
        };
        let until = quotation.held_until.or(context.expiration_time);
        acceptable.push(PeerOffer {
            id,
            window: window_in_peer_words(&offer.terms),
            held_for: until.zip(received).map(|(until, (sent, waited))| {
                let held = u64::try_from(until.floor().saturating_sub(sent)).unwrap_or(0);
                let held = Duration::from_secs(held).saturating_sub(DATE_STEP + waited);
                held.min(HELD_MAX)
            }),
            quotation,
            document: source.to_string(),
        });
    }
    let refusal = Some(reasons.join("; ")).filter(|_| acceptable.is_empty() && !reasons.is_empty());
    Ok((acceptable, refusal))
}

fn window_in_peer_words(terms: &Terms) -> (Option<DateTime>, Option<DateTime>) {
    let times = terms.descriptions().find_map(|term| match &term.content {
        ServiceDescription::AllocationTime(time) => Some((time.start, time.end)),
        _ => None,
    });
    times.unwrap_or_default()
}

/// What a counter offer amounts to by its terms alone: it starts when it may.
fn quotation_in_peer_words(terms: &Terms, held_until: Option<DateTime>) -> Option<Quotation> {
    let descriptions = || terms.descriptions().map(|term| &term.content);
    let nodes = descriptions().find_map(|content| match content {
        ServiceDescription::JobDefinition(job) => job.resources.nodes.as_ref(),
        _ => None,
    })?;
    let time = descriptions().find_map(|content| match content {
        ServiceDescription::AllocationTime(time) => Some(time),
        _ => None,
    })?;
    let (start, duration) = (time.start?, i64::from(time.duration?));
    Some(Quotation {
        kind: OfferKind::Exact,
        start,
        end: DateTime::from_seconds(start.ceil().checked_add(duration)?),
        // A whole number is shown without a point.
        nodes: nodes.exact.first()?.value.to_string().parse().ok()?,
        pieces: Vec::new(),
        may_change: None,
        deviation: 0.0,
        confidence: None,
        price: None,
        preemptive_discount: None,
        shapes_discount: None,
        difference: None,
        fee: None,
        fee_reason: None,
        energy: None,
        carried_out_by: None,
        added: None,
        held_until,
    })
}

#[cfg(test)]
mod tests {
    use wsag::Document;
    use wsag::answers::{Answer, read_answer};

    use super::*;

    /// The published counter offers: one that can be accepted, an advisory one, and a rejected one.
    fn published() -> Vec<CounterOffer> {
        let text = include_str!("../../../../tests/messages/m15-negotiate-output.xml");
        let document = Document::parse(text.as_bytes()).unwrap();
        match read_answer(&document).unwrap() {
            Answer::CounterOffers(offers) => offers,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn published_counter_offers_are_offers_of_a_peer() {
        let time = |text: &str| text.parse::<DateTime>().unwrap();
        let expires = time("2026-01-09T12:00:00Z");
        let sent = expires.floor() - 60;
        let (offers, refusal) =
            read_counter_offers(published(), Some((sent, Duration::from_secs(3)))).unwrap();
        assert_eq!(refusal, None);
        let [offer] = &offers[..] else {
            panic!("{offers:?}");
        };
        assert_eq!(offer.id, "o-1");
        assert_eq!(offer.held_for, Some(Duration::from_secs(56)));
        assert_eq!(
            offer.window,
            (
                Some(time("2026-01-10T09:00:00Z")),
                Some(time("2026-01-10T20:00:00Z"))
            )
        );
        let quotation = &offer.quotation;
        assert_eq!(
            (quotation.nodes, quotation.end),
            (16, time("2026-01-10T10:00:00Z"))
        );
        assert!(offer.document.starts_with("<wsag-neg:NegotiationCounterOffer"));
    }

    #[test]
    fn an_offer_is_held_for_a_day_at_most_for_no_time_when_it_is_over_and_for_none_that_is_known_without_a_date()
     {
        for (sent, held) in [
            (Some((i64::MAX, Duration::ZERO)), Some(Duration::ZERO)),
            // It says that it holds it for hundreds of years, and more.
            (Some((-10_000_000_000, Duration::ZERO)), Some(HELD_MAX)),
            (Some((i64::MIN, Duration::ZERO)), Some(HELD_MAX)),
            (None, None),
        ] {
            let (offers, _) = read_counter_offers(published(), sent).unwrap();
            assert_eq!(offers[0].held_for, held);
        }
    }

    #[test]
    fn a_counter_offer_with_a_malformed_quotation_is_refused() {
        let mut offers = published();
        let wrong =
            "<bsp:Quotation xmlns:bsp=\"urn:bespeak:terms:1\"><bsp:Kind>Free</bsp:Kind></bsp:Quotation>";
        let wrong = wsag::Fragment::parse(wrong).unwrap();
        offers[0].offer.offer_context.extensions.push(wrong);
        let refused = read_counter_offers(offers, None).unwrap_err();
        assert!(refused.to_string().contains("bsp:Kind"), "{refused}");
    }

    #[test]
    fn reasons_of_rejected_offers_are_told() {
        let mut offers = published();
        let refusal = wsag::refusals::Refusal {
            reason: wsag::refusals::Reason::NoCapacityInWindow,
            binding_constraint: Some("no 16 nodes".into()),
            cut_short: false,
            alternatives: Vec::new(),
            relaxations: Vec::new(),
        };
        offers.remove(0);
        offers[1].offer.offer_context.state_extensions = vec![refusal.to_fragment()];
        let (offers, said) = read_counter_offers(offers, None).unwrap();
        assert!(offers.is_empty());
        assert_eq!(said.as_deref(), Some("NO_CAPACITY_IN_WINDOW: no 16 nodes"));
    }
}
