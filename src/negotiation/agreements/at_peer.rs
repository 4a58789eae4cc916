//! An offer that a peer holds is accepted there first. Ours is stored as Pending meanwhile, with the peer's offer; the peer's
//! agreement is made under a key that follows from ours, so that after any cut the question is asked again and answered the same.

use std::time::{Duration, Instant};

use domain::agreement::{
    Agreement, AgreementState, AtPeer, EventKind, HeldAtPeer, Money, NegotiationOffer, OfferKind, OfferTerms,
};
use planner::{
    CallBackTarget, CheckChangeAtPeer, DecidePending, EndNegotiation, Initiate, MadeAtPeer, OfferLoss,
    PendingRequest, Request, SubmitPending,
};
use store::UndecidedAgreement;
use tokio::sync::MutexGuard;
use uuid::Uuid;
use wsag::ValuePlaces;
use wsag::agreements::AgreementOffer;
use wsag::negotiations::NegotiationOfferState;

use crate::federation::client::{Peer, PeerError};
use crate::federation::{Federation, is_over_there};
use crate::negotiation::agreements::pending::call_back_target;
use crate::negotiation::codec::acceptance::AcceptanceInput;
use crate::negotiation::idempotency::answer_of_repeated_request;
use crate::negotiation::negotiations::flat_offers::{OfItself, offer_in_negotiation};
use crate::negotiation::negotiations::offers::{Arrival, IncomingOffer};
use crate::negotiation::negotiations::peer_offers::{has_credit, may_ask_peers};
use crate::negotiation::negotiations::{OpeningRequest, opening_to_keep};
use crate::negotiation::views::offer::{LostOffer, WordedOffer};
use crate::negotiation::{AcceptedView, Error, RefusalView, RequestKey, Result, Service};

/// How long a requester waits for a peer's word where peers are asked first.
const FORWARD_WITHIN: Duration = Duration::from_secs(9);
/// How often it is looked whether that has come, beside every change of the plan.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

impl Service {
    /// Accepts an offer that a peer holds: stores ours as Pending, has the peer asked, and waits for its word.
    ///
    /// # Errors
    /// [`Error::Lost`] where the peer refuses, [`Error::AskingPeer`] where its word has not come in time, and those of
    /// accepting any offer.
    pub(super) async fn accept_at_peer(
        &self,
        party: &str,
        accepting: &AcceptanceInput,
        (offer, mut proposal): (NegotiationOffer, Request),
        key: Option<RequestKey>,
    ) -> Result<AcceptedView> {
        // The offer does not say that it was accepted until it is decided. A repeated acceptance gets the same agreement.
        let target = format!("the acceptance of {} at its peer", offer.id);
        let own = RequestKey::of_content(party, &target, "");
        proposal.idempotency = Some(own.of_acceptance());
        self.check_may_change_there(&offer).await?;
        proposal.spender = self.spender;
        let lock = match (&self.federation, offer.terms.as_ref()) {
            (Some(federation), Some(terms)) => {
                let price = terms.peer.as_ref().and_then(|held| held.price);
                let replaces = terms.peer.as_ref().and_then(|held| held.replaces.as_deref());
                let at = (terms.resource.as_str(), replaces);
                Some(self.take_credit(federation, at, offer.id, price).await?)
            }
            _ => None,
        };
        let taken = self
            .send(SubmitPending {
                proposal,
                acceptance: None,
                offer: Some(offer.id),
            })
            .await;
        drop(lock);
        let taken = answer_of_repeated_request(taken, |accepted| AcceptedView::of(&accepted))?;
        if self.options.is_dry {
            return Ok(taken);
        }
        let taken = self.keep_answer(key, taken).await?;
        self.undecided.notify_one();
        match self.word_of_peer(taken, accepting.within).await {
            Err(Error::Lost(lost)) => {
                let before = self.accepted_before(party, accepting, false).await?;
                before.ok_or(Error::Lost(lost))
            }
            told => told,
        }
    }

    /// Makes sure that a change that a peer is to make has room here: it cannot be taken back there.
    async fn check_may_change_there(&self, offer: &NegotiationOffer) -> Result<()> {
        let changes = |terms: &&OfferTerms| terms.peer.as_ref().is_some_and(|held| held.replaces.is_some());
        let Some(terms) = offer.terms.as_ref().filter(changes) else {
            return Ok(());
        };
        let instance = self.store.negotiation(offer.negotiation).await?;
        match instance.and_then(|instance| instance.agreement) {
            // Where it is over, the acceptance was decided before, or is refused as any other.
            Some(old) => match self
                .send(CheckChangeAtPeer {
                    agreement: old,
                    slots: terms.slots.clone(),
                    answer: offer.parent,
                })
                .await
            {
                Err(planner::Error::NotFound) => Ok(()),
                checked => Ok(checked?),
            },
            None => Ok(()),
        }
    }

    /// Has peers asked for an offer that the own domain has refused, and accepts at once what one of them holds of exactly that. None
    /// where no peer does, or may be asked.
    ///
    /// # Errors
    /// Those of [`Service::accept_at_peer`].
    pub(super) async fn forward_offer(
        &self,
        party: &str,
        offer: &AgreementOffer,
        refusal: &RefusalView,
        key: Option<RequestKey>,
    ) -> Result<Option<AcceptedView>> {
        let asks = self.federation.is_some() && may_ask_peers(refusal.reason) && !self.options.is_dry;
        if !asks {
            return Ok(None);
        }
        let since = Instant::now();
        let instance = self.opened_by(party, &OpeningRequest::default()).await?;
        let arrival = Arrival {
            key: key.as_ref().map(|key| key.step(1)),
            opening: Some(Initiate {
                negotiation: instance.clone(),
                document: opening_to_keep(None),
                idempotency: None,
            }),
        };
        let placed = IncomingOffer::new(
            offer_in_negotiation(
                offer.clone(),
                OfItself::default(),
                NegotiationOfferState::Solicited,
            ),
            ValuePlaces::document("/wsag:AgreementOffer"),
        );
        let said = self.answer_offer(&instance, placed, arrival).await?;
        let negotiation = said.first().map_or(instance.id, |said| said.row.negotiation);
        let is_it = |offer: &&WordedOffer| {
            let terms = offer.row.terms.as_ref();
            let exact = terms.filter(|terms| terms.kind == OfferKind::Exact && terms.peer.is_some());
            offer.row.is_held() && exact.is_some()
        };
        let accepted = match said.iter().find(is_it) {
            Some(found) => {
                let accepting = AcceptanceInput {
                    within: FORWARD_WITHIN.saturating_sub(since.elapsed()),
                    ..AcceptanceInput::as_it_stands(found.row.id)
                };
                Box::pin(self.accept(party, accepting, key)).await.map(Some)
            }
            None => Ok(None),
        };
        if !matches!(accepted, Ok(Some(_)) | Err(Error::AskingPeer)) {
            self.end_forwarded(negotiation).await;
        }
        accepted
    }

    /// Makes sure that what is agreed at a peer may cost this much more, beside what is agreed there and what it is still to be asked
    /// about, for the offer or agreement `id`, which takes the place of the peer's at the address `replaces`. Until the lock is given back, nothing else is agreed there.
    ///
    /// # Errors
    /// [`Error::Lost`] where it may not.
    pub(super) async fn take_credit<'a>(
        &self,
        federation: &'a Federation,
        (peer, replaces): (&str, Option<&str>),
        id: Uuid,
        price: Option<Money>,
    ) -> Result<MutexGuard<'a, ()>> {
        let lock = federation.credit_lock().await;
        let found_peer = federation
            .peer(peer)
            .filter(|found_peer| found_peer.settings().credit.is_some());
        let (Some(peer_with_credit), Some(price)) = (found_peer, price) else {
            return Ok(lock);
        };
        let mut open = federation.followed().cost(peer, replaces);
        for (other, terms) in self.store.offers_being_accepted().await? {
            let held = terms.peer.filter(|_| other != id && terms.resource == peer);
            let price = held.and_then(|held| held.price);
            open = open.saturating_add(price.map_or(0, |price| price.micros));
        }
        if has_credit(&peer_with_credit, price.micros, open) {
            return Ok(lock);
        }
        Err(Error::Lost(Box::new(LostOffer {
            lost: OfferLoss::AtPeer(format!("what is agreed with {peer} may cost no more")),
            fresh: Vec::new(),
        })))
    }

    /// Ends the negotiation that was opened to forward an offer.
    async fn end_forwarded(&self, negotiation: Uuid) {
        let end = EndNegotiation {
            id: negotiation,
            party: None,
            idempotency: None,
        };
        if let Some(federation) = &self.federation {
            federation.end_unused(negotiation, None, &[]);
        }
        // It lapses by itself otherwise.
        if let Err(why) = self.send(end).await {
            tracing::debug!(%negotiation, error = %why, "a negotiation with peers is not ended");
        }
    }

    /// The present answer to an acceptance that a peer was asked about, once its word has come. Any other answer stays as it is.
    ///
    /// # Errors
    /// Those of [`Service::accept_at_peer`].
    pub(in crate::negotiation) async fn word_of_peer(
        &self,
        taken: AcceptedView,
        within: Duration,
    ) -> Result<AcceptedView> {
        if taken.agreement.state != AgreementState::Pending.word() {
            return Ok(taken);
        }
        let id = taken.agreement.id;
        if !self.was_forwarded(id).await? {
            return Ok(taken);
        }
        let mut changes = self.planner.subscribe_changes();
        let told = async {
            loop {
                changes.borrow_and_update();
                let agreement = self.store.agreement(id).await?.ok_or(Error::NotFound)?;
                if agreement.state != AgreementState::Pending {
                    return self.told_by_peer(&agreement).await;
                }
                let _ = tokio::time::timeout(LOOK_AGAIN, changes.changed()).await;
            }
        };
        let told = tokio::time::timeout(within, told).await;
        told.unwrap_or(Err(Error::AskingPeer))
    }

    /// The answer about an agreement after its peer's word.
    async fn told_by_peer(&self, agreement: &Agreement) -> Result<AcceptedView> {
        match self.rejection_of(agreement).await? {
            Some(why) => Err(Error::Lost(Box::new(LostOffer {
                lost: OfferLoss::AtPeer(why),
                fresh: Vec::new(),
            }))),
            None => Ok(AcceptedView {
                agreement: self.view(agreement),
                moved: Vec::new(),
            }),
        }
    }

    /// Whether a peer was asked to carry an agreement out when it was accepted.
    async fn was_forwarded(&self, id: Uuid) -> Result<bool> {
        let lines = self.store.timeline(id).await?;
        Ok(lines.iter().any(|line| line.kind == EventKind::Forwarded.word()))
    }

    /// Asks the peer that holds the offer behind a pending agreement for its agreement, and decides ours by its word.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the peer's word is not known: it has to be asked again.
    pub(super) async fn settle_at_peer(
        &self,
        undecided: &UndecidedAgreement,
        offer: NegotiationOffer,
        held: &HeldAtPeer,
    ) -> Result<()> {
        let id = undecided.agreement;
        let name = offer.terms.as_ref().map_or("", |terms| terms.resource.as_str());
        let Some((federation, peer)) = self
            .federation
            .as_ref()
            .and_then(|federation| Some((federation, federation.peer(name)?)))
        else {
            tracing::error!(agreement = %id, peer = name, "it waits for a peer that the configuration has no more");
            return Err(Error::Unavailable);
        };
        let replaces = held.replaces.as_deref();
        let address = match peer.create(&held.negotiation, &held.document, replaces, id).await {
            Ok(address) => address,
            Err(PeerError::Refused { words, .. }) => return self.reject_at_peer(undecided, words).await,
            Err(why) => {
                tracing::info!(agreement = %id, peer = name, error = %why, "the peer's word is not known; it is asked again");
                return Err(Error::Unavailable);
            }
        };
        let negotiation = offer.negotiation;
        let row = AtPeer {
            id,
            agreement: id,
            peer: name.to_owned(),
            address: Some(address),
            intent: None,
            price: held.price,
            made: self.clock.micros(),
            state: AgreementState::Observed.word().to_owned(),
            charged: 0,
            paid_back: 0,
            lost: false,
            guarantees: Vec::new(),
            settled: None,
        };
        let address = row.address.clone().unwrap_or_default();
        if federation.followed().is_of_another(name, &address, id) {
            return self
                .reject_at_peer(
                    undecided,
                    "the peer has given its agreement to another one".to_owned(),
                )
                .await;
        }
        let made = match self.made_at_peer(undecided, offer, row.clone()).await {
            Err(why @ (Error::Unavailable | Error::Short(_))) => return Err(why),
            Err(why) => {
                return self
                    .undo_at_peer(&peer, undecided, &address, why.to_string())
                    .await;
            }
            Ok(made) => made,
        };
        let settlement = DecidePending {
            id,
            ways: Ok(PendingRequest::AtPeer(Box::new(made))),
            telling: self.telling_of(undecided),
        };
        let lock = federation.credit_lock().await;
        let decided = self.send(settlement).await;
        match decided {
            Ok(agreement) => {
                federation.followed().add(row.clone(), agreement.execution_id());
                drop(lock);
                federation.end_unused(negotiation, None, &[&held.negotiation]);
            }
            Err(planner::Error::Unfit(why)) => {
                drop(lock);
                return self.undo_at_peer(&peer, undecided, &address, why).await;
            }
            Err(why) => return Err(why.into()),
        }
        Ok(())
    }

    async fn made_at_peer(
        &self,
        undecided: &UndecidedAgreement,
        offer: NegotiationOffer,
        row: AtPeer,
    ) -> Result<MadeAtPeer> {
        let said = self.worded_offer(offer.id).await?;
        let instance = self.store.negotiation(offer.negotiation).await?;
        let instance = instance.ok_or(Error::NotFound)?;
        let party = undecided.party.clone();
        let replaced = self.replaced(&instance).await?;
        let (proposal, replaced) = self
            .run_work_with_files(move |this| {
                let drafted = this.draft_accepted(&said, None, &party, replaced.as_ref());
                drafted.map(|proposal| (proposal, replaced.map(|old| old.id)))
            })
            .await??;
        Ok(MadeAtPeer {
            proposal: Request {
                spender: undecided.spender,
                ..proposal
            },
            offer,
            replaced,
            row,
        })
    }

    /// Where the decision about a pending agreement is told, if it is.
    fn telling_of(&self, undecided: &UndecidedAgreement) -> Option<CallBackTarget> {
        let address = self.agreement_address(undecided.agreement);
        let acceptance = undecided.acceptance.clone();
        acceptance.map(|acceptance| call_back_target(address, acceptance))
    }

    async fn reject_at_peer(&self, undecided: &UndecidedAgreement, why: String) -> Result<()> {
        let settlement = DecidePending {
            id: undecided.agreement,
            ways: Err(why),
            telling: self.telling_of(undecided),
        };
        self.send(settlement).await?;
        Ok(())
    }

    /// Ends the peer's agreement where ours cannot come into force, and rejects ours once theirs is known to be over.
    async fn undo_at_peer(
        &self,
        peer: &Peer,
        undecided: &UndecidedAgreement,
        address: &str,
        why: String,
    ) -> Result<()> {
        let ended = match peer.terminate(address, "there is no room for it").await {
            Ok(()) => true,
            // It may be over already: an earlier answer was lost.
            Err(PeerError::Refused { .. }) => match peer.status(address).await {
                Ok(status) => is_over_there(&status),
                Err(PeerError::Refused { .. }) => true,
                Err(_) => false,
            },
            Err(_) => false,
        };
        if !ended {
            tracing::warn!(agreement = %undecided.agreement, "the peer's agreement is to be ended");
            return Err(Error::Unavailable);
        }
        self.reject_at_peer(undecided, why).await
    }
}
