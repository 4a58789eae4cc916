//! One agreement: the whole, its parts, and what its job wrote.

use uuid::Uuid;

use super::{AgreementView, Error, Negotiation, Scope};
use crate::agreement::Agreement;
use crate::execution::folder::{Folder, Stream};

/// The whole of an agreement, or a part that has an address of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// AgreementProperties.
    Whole,
    /// Its state.
    State,
    /// The terms of the offer.
    Terms,
    /// The context of the offer.
    Context,
    /// The states of the service terms, with the placement.
    ServiceTerms,
    /// The states of the guarantee terms.
    GuaranteeTerms,
}

impl Negotiation {
    /// An agreement and the document of one of its parts.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none or it is another party's, [`Error::Unavailable`].
    pub async fn show(&self, scope: Scope, id: Uuid, part: Part) -> Result<(AgreementView, String), Error> {
        let agreement = self.stored(&scope, id).await?;
        let offer = self.store.agreement_document(id).await?.ok_or(Error::NotFound)?;
        let view = AgreementView::of(&agreement);
        let document = self
            .reading(move |_| super::documents::properties(&agreement, &offer, part))
            .await??;
        Ok((view, document))
    }

    /// What an agreement's job has written to `stdout` or `stderr` so far.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is no such output.
    pub async fn file(&self, scope: Scope, id: Uuid, name: &str) -> Result<Vec<u8>, Error> {
        self.stored(&scope, id).await?;
        let stream = [Stream::Out, Stream::Err]
            .into_iter()
            .find(|stream| stream.name() == name)
            .ok_or(Error::NotFound)?;
        let folder = Folder::of(&self.jobs, id);
        let read = tokio::task::spawn_blocking(move || folder.output(stream, 0)).await;
        match read {
            Ok(Ok(page)) => Ok(page.bytes),
            Ok(Err(_)) => Err(Error::NotFound),
            Err(why) => Err(Error::Internal(why.to_string())),
        }
    }

    /// An agreement, if there is one and the caller may see it.
    pub(super) async fn visible(&self, scope: &Scope, id: Uuid) -> Result<AgreementView, Error> {
        self.stored(scope, id)
            .await
            .map(|agreement| AgreementView::of(&agreement))
    }

    async fn stored(&self, scope: &Scope, id: Uuid) -> Result<Agreement, Error> {
        let agreement = self.store.agreement(id).await?.ok_or(Error::NotFound)?;
        match scope.party() {
            Some(party) if party != agreement.party => Err(Error::NotFound),
            _ => Ok(agreement),
        }
    }
}
