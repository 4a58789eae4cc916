//! createAgreement: an offer becomes an agreement, or is refused with the reason.

use sha2::{Digest, Sha256};
use wsag::agreements::{AgreementOffer, CreateInput};
use wsag::{Document, Message};

use super::offer::Draft;
use super::{AcceptedView, Error, Negotiation, RefusalView, Scope};
use crate::planner;
use crate::store::{Idempotent, hex};

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
            Err(planner::Error::Repeated(earlier)) if earlier.request_hash == hash => {
                let agreement = self
                    .visible(&Scope::Party(party.to_owned()), earlier.agreement)
                    .await?;
                Ok(AcceptedView {
                    agreement,
                    moved: Vec::new(),
                })
            }
            Err(planner::Error::Repeated(_)) => Err(Error::KeyReused),
            Err(why) => Err(why.into()),
        }
    }

    fn read_offer(&self, body: &[u8], party: &str) -> Result<Draft, Error> {
        let document = Document::parse(body).map_err(Error::Malformed)?;
        let offer = match wsag::read(&document).map_err(Error::Invalid)? {
            Message::AgreementOffer(offer) => *offer,
            Message::CreateAgreementInput(input) => create_input(*input)?,
            Message::CreatePendingAgreementInput(_) => {
                return Err(Error::NotOffered(
                    "pending agreements are not offered by this version; send CreateAgreementInput"
                        .to_owned(),
                ));
            }
            _ => {
                return Err(Error::NotOffered(
                    "expected wsag:AgreementOffer or wsag:CreateAgreementInput; this message is for another address"
                        .to_owned(),
                ));
            }
        };
        self.draft(&document, &offer, party)
    }
}

/// The offer of an input whose extensions ask for nothing more.
fn create_input(input: CreateInput) -> Result<AgreementOffer, Error> {
    if input.negotiation.is_some() || input.renegotiation.is_some() {
        return Err(Error::NotOffered(
            "agreements from negotiated offers are not offered by this version; send the offer without the extension"
                .to_owned(),
        ));
    }
    Ok(input.offer)
}
