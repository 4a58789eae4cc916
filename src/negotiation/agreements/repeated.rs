//! Offers with an AgreementId that come again: the same words have the answer of the first time, also where both came at once.

use uuid::Uuid;
use wsag::agreements::AgreementOffer;
use wsag::operations::CreateInput;
use wsag::{Document, Message};

use super::accept::Accepting;
use crate::agreement::{Agreement, AgreementState, EventKind, Wording};
use crate::negotiation::request::wording::verbatim_offer;
use crate::negotiation::{AcceptedView, Error, Input, Negotiation, Result};
use crate::store::AgreementFilter;

/// The name of the attribute with the id that an initiator gives its agreement.
const ATTRIBUTE: &[u8] = b"AgreementId";

/// An offer with an AgreementId, by which the same offer is known when it comes again.
pub(super) struct Named {
    id: String,
    words: Wording,
    /// Whether it asks to be decided later.
    is_pending: bool,
}

impl Named {
    /// The name of an offer that has one. An offer that accepts a counter offer is known by that too, and has another: see
    /// [`Negotiation::accepted_before`]. The faults of an offer are told where it is read.
    pub(super) fn of(input: &Input) -> Option<Self> {
        let Input::Xml(body) = input else { return None };
        // Most offers have none, and are read once.
        body.windows(ATTRIBUTE.len()).find(|part| *part == ATTRIBUTE)?;
        let document = Document::parse(body).ok()?;
        let (offer, is_pending) = match wsag::read(&document).ok()? {
            Message::AgreementOffer(offer) => (offer, false),
            Message::CreateAgreementInput(input) => (Box::new(by_itself(*input)?), false),
            Message::CreatePendingAgreementInput(input) => (Box::new(by_itself(*input)?), true),
            _ => return None,
        };
        Some(Self {
            id: offer.agreement_id?,
            words: verbatim_offer(&document).ok()?.into(),
            is_pending,
        })
    }

    /// That of the words that accept a counter offer.
    fn of_acceptance(words: &str, is_pending: bool) -> Option<Self> {
        let document = Document::parse(words.as_bytes()).ok()?;
        let Message::AgreementOffer(offer) = wsag::read(&document).ok()? else {
            return None;
        };
        Some(Self {
            id: offer.agreement_id?,
            words: verbatim_offer(&document).ok()?.into(),
            is_pending,
        })
    }
}

/// The offer of an input that accepts no counter offer.
fn by_itself(input: CreateInput) -> Option<AgreementOffer> {
    (input.negotiation.is_none() && input.renegotiation.is_none()).then_some(input.offer)
}

impl Negotiation {
    /// The answer to an offer with an AgreementId, if the same offer came before under this id.
    ///
    /// # Errors
    /// [`Error::IdTaken`] where that was another offer, or it came by the other operation; [`Error::Unavailable`].
    pub(super) async fn first_answer(&self, party: &str, named: &Named) -> Result<Option<AcceptedView>> {
        let Some(first) = self.store.first_with_id(party, &named.id).await? else {
            return Ok(None);
        };
        match self.answer_of(&first, named).await? {
            None => Err(Error::IdTaken(named.id.clone())),
            answer => Ok(answer),
        }
    }

    /// The answer to the acceptance of a counter offer with an AgreementId, if the same words have accepted the same counter
    /// offer before.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub(super) async fn accepted_before(
        &self,
        party: &str,
        accepting: &Accepting,
        is_pending: bool,
    ) -> Result<Option<AcceptedView>> {
        let Some(words) = accepting.words.clone() else {
            return Ok(None);
        };
        let named = self.reading(move |_| Named::of_acceptance(&words, is_pending));
        let Some(named) = named.await? else {
            return Ok(None);
        };
        let waiting = if is_pending {
            self.waiting_for(party, &named.id, accepting.offer).await?
        } else {
            None
        };
        // Where it is decided meanwhile, the offer has the agreement by now.
        let first = match waiting {
            Some(waiting) => Some(waiting),
            None => match self.worded(accepting.offer).await?.row.agreement {
                Some(agreement) => self.store.agreement(agreement).await?,
                None => None,
            },
        };
        let is_same = |of: &Agreement| of.party == party && of.initiator_id.as_ref() == Some(&named.id);
        match first.filter(is_same) {
            Some(first) => self.answer_of(&first, &named).await,
            None => Ok(None),
        }
    }

    /// The agreement of a party with an AgreementId that is to be decided about a counter offer.
    async fn waiting_for(&self, party: &str, id: &str, offer: Uuid) -> Result<Option<Agreement>> {
        let filter = AgreementFilter {
            party: Some(party.to_owned()),
            initiator_id: Some(id.to_owned()),
            ..AgreementFilter::default()
        };
        // An agreement that takes the place of another under the same id is newer than that.
        let newest = self.store.agreements_page(&filter, None, 1).await?;
        let Some((newest, _)) = newest.into_iter().next() else {
            return Ok(None);
        };
        let before = Uuid::from_u128(newest.id.as_u128().saturating_sub(1));
        let waiting = self.store.undecided(before, 1).await?;
        let is_this = waiting
            .first()
            .is_some_and(|of| of.agreement == newest.id && of.offer == Some(offer));
        Ok(is_this.then_some(newest))
    }

    /// The answer to an offer that an agreement was made of; none where its words or its operation were others.
    async fn answer_of(&self, first: &Agreement, named: &Named) -> Result<Option<AcceptedView>> {
        let words = self.store.agreement_document(first.id).await?;
        // One operation answers with what is decided, the other with what is pending: neither has the answer of the other.
        let events = self.store.timeline(first.id).await?;
        let was_pending = events.iter().any(|of| of.kind == EventKind::Offered.word());
        if words.as_ref() != Some(&named.words) || was_pending != named.is_pending {
            return Ok(None);
        }
        let mut agreement = self.view(first);
        if named.is_pending {
            AgreementState::Pending.word().clone_into(&mut agreement.state);
        }
        Ok(Some(AcceptedView {
            agreement,
            moved: Vec::new(),
        }))
    }
}
