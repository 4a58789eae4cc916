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

/// What a job writes, a page at a time: the whole of it may be larger than many readers at once leave memory for.
#[derive(Debug)]
pub struct Output {
    folder: Folder,
    stream: Stream,
    /// Bytes read so far.
    read: u64,
}

impl Output {
    /// The next page; empty where nothing more has been written.
    ///
    /// # Errors
    /// [`Error::Internal`] when the system refuses.
    pub async fn page(&mut self) -> Result<Vec<u8>, Error> {
        let (folder, stream, offset) = (self.folder.clone(), self.stream, self.read);
        let page = tokio::task::spawn_blocking(move || folder.output(stream, offset))
            .await
            .map_err(|why| Error::Internal(why.to_string()))?
            .map_err(|why| Error::Internal(why.to_string()))?;
        self.read += page.bytes.len() as u64;
        Ok(page.bytes)
    }
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

    /// What an agreement's job writes to `stdout` or `stderr`, from its beginning.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is no such output, [`Error::Unavailable`].
    pub async fn output(&self, scope: Scope, id: Uuid, name: &str) -> Result<Output, Error> {
        self.stored(&scope, id).await?;
        let stream = [Stream::Out, Stream::Err]
            .into_iter()
            .find(|stream| stream.name() == name)
            .ok_or(Error::NotFound)?;
        Ok(Output {
            folder: Folder::of(&self.jobs, id),
            stream,
            read: 0,
        })
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
