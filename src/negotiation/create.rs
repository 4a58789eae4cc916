//! createAgreement: an offer becomes an agreement, or is refused with the reason.

use wsag::agreements::{AgreementOffer, CreateInput};
use wsag::{Document, Message};

use super::idempotency::{kept, repeated};
use super::offer::Draft;
use super::{AcceptedView, Error, Negotiation, RefusalView, RequestKey};
use crate::planner::{self, Accepted};

impl Negotiation {
    /// Takes an offer, bare or in its CreateAgreementInput. Once this answers, the agreement is stored, and the same
    /// request under the same key gets the same answer for a day.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Invalid`] and [`Error::NotOffered`] for what is wrong with the document,
    /// [`Error::Refused`] where the plan has no place, [`Error::KeyReused`], [`Error::Unavailable`].
    pub async fn create(
        &self,
        party: &str,
        body: Vec<u8>,
        key: Option<RequestKey>,
    ) -> Result<AcceptedView, Error> {
        // What was accepted once is so, even if the same offer would come too late by now.
        if let Some(answer) = self.answered(key.as_ref()).await? {
            return Ok(answer);
        }
        let of = party.to_owned();
        let Draft { mut proposal, window } = self.reading(move |this| this.read_offer(&body, &of)).await??;
        let hash = key.as_ref().map(RequestKey::hash);
        proposal.idempotency = key.map(|key| key.kept(|done: &Accepted| kept(&AcceptedView::of(done))));
        match self.planner.place(proposal).await {
            Ok(accepted) => Ok(AcceptedView::of(&accepted)),
            Err(planner::Error::Refused(refusal)) => Err(Error::Refused(RefusalView::of(&refusal, window))),
            Err(planner::Error::Repeated(earlier)) => repeated(&earlier, hash.as_deref()),
            Err(why) => Err(why.into()),
        }
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
