//! createAgreement: an offer becomes an agreement, or is refused with the reason.

use sha2::{Digest, Sha256};
use wsag::agreements::{AgreementOffer, CreateInput};
use wsag::{Document, Message};

use super::offer::Draft;
use super::{AcceptedView, Error, Negotiation, RefusalView, Scope};
use crate::planner;
use crate::store::{IDEMPOTENCY_KEPT, Idempotent, hex};

impl Negotiation {
    /// Takes an offer, bare or in its CreateAgreementInput. Once this answers, the agreement is stored; the same
    /// `idempotency_key` with the same body answers with the same agreement for a day.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Invalid`] and [`Error::NotOffered`] for what is wrong with the document,
    /// [`Error::Refused`] where the plan has no place, [`Error::KeyReused`], [`Error::Unavailable`].
    pub async fn create(
        &self,
        party: &str,
        body: Vec<u8>,
        idempotency_key: Option<String>,
    ) -> Result<AcceptedView, Error> {
        let (of, hash) = (party.to_owned(), hex(&Sha256::digest(&body)));
        if let Some(key) = &idempotency_key
            && let Some(earlier) = self.store.idempotent(party, key).await?
            && earlier.created > self.clock.micros() - IDEMPOTENCY_KEPT
        {
            // What was accepted once is so, even if the same offer would come too late by now.
            return self.repeated(&earlier, party, &hash).await;
        }
        let Draft { mut proposal, window } = self.reading(move |this| this.read_offer(&body, &of)).await??;
        proposal.idempotency = idempotency_key.map(|key| Idempotent {
            party: party.to_owned(),
            key,
            request_hash: hash.clone(),
            agreement: proposal.id,
            created: self.clock.micros(),
        });
        match self.planner.place(proposal).await {
            Ok(accepted) => Ok(AcceptedView::of(&accepted)),
            Err(planner::Error::Refused(refusal)) => Err(Error::Refused(RefusalView::of(&refusal, window))),
            Err(planner::Error::Repeated(earlier)) => self.repeated(&earlier, party, &hash).await,
            Err(why) => Err(why.into()),
        }
    }

    /// The answer to a request whose idempotency key came before.
    async fn repeated(&self, earlier: &Idempotent, party: &str, hash: &str) -> Result<AcceptedView, Error> {
        if earlier.request_hash != hash {
            return Err(Error::KeyReused);
        }
        let agreement = self
            .visible(&Scope::Party(party.to_owned()), earlier.agreement)
            .await?;
        Ok(AcceptedView {
            agreement,
            moved: Vec::new(),
        })
    }

    fn read_offer(&self, body: &[u8], party: &str) -> Result<Draft, Error> {
        let document = Document::parse(body).map_err(Error::Malformed)?;
        let offer = match wsag::read(&document).map_err(Error::Invalid)? {
            Message::AgreementOffer(offer) => *offer,
            Message::CreateAgreementInput(input) => create_input(&document, *input)?,
            Message::CreatePendingAgreementInput(_) => {
                let what = "pending agreements are not offered by this version; send CreateAgreementInput";
                return Err(Error::not_offered(&document, "", what));
            }
            _ => {
                let what = "wsag:AgreementOffer or wsag:CreateAgreementInput is expected here; negotiation is not \
                            offered by this version";
                return Err(Error::not_offered(&document, "", what));
            }
        };
        self.draft(&document, &offer, party)
    }
}

/// The offer of an input whose extensions ask for nothing more.
fn create_input(document: &Document<'_>, input: CreateInput) -> Result<AgreementOffer, Error> {
    let what = "agreements from negotiated offers are not offered by this version; send the offer without the extension";
    if input.negotiation.is_some() {
        return Err(Error::not_offered(document, "NegotiationExtension", what));
    }
    if input.renegotiation.is_some() {
        return Err(Error::not_offered(document, "RenegotiationExtension", what));
    }
    Ok(input.offer)
}
