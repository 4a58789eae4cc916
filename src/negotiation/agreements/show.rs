//! One agreement: the whole, its parts, and the output of its job.

use std::fs::File;
use std::io::Read;

use uuid::Uuid;

use crate::agreement::{Agreement, Run};
use crate::execution::job::folder::Folder;
use crate::execution::slurm::name_of;
use crate::negotiation::views::documents;
use crate::negotiation::{AgreementView, ContextView, Error, Negotiation, Scope, TermsView};

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

/// The most bytes that one read returns.
const PAGE_MAX: u64 = 1 << 20;

/// An agreement as it is shown.
#[derive(Debug)]
pub struct Shown {
    /// The whole of it, flat.
    pub view: AgreementView,
    /// The context of the offer, flat.
    pub context: ContextView,
    /// The terms of the offer, flat.
    pub terms: TermsView,
    /// The document of the part that was asked for.
    pub document: String,
}

/// A file, a page at a time: the whole of it may be larger than many readers at once leave memory for.
#[derive(Debug)]
pub struct Output(Option<File>);

impl Output {
    /// The content of a file.
    pub(in crate::negotiation) fn of(file: Option<File>) -> Self {
        Self(file)
    }

    /// The next page; empty where nothing more has been written.
    ///
    /// # Errors
    /// [`Error::Internal`] when the system refuses.
    pub async fn page(&mut self) -> Result<Vec<u8>, Error> {
        let Some(mut file) = self.0.take() else {
            return Ok(Vec::new());
        };
        let (file, page) = super::files::blocking(move || {
            let mut page = Vec::new();
            file.by_ref().take(PAGE_MAX).read_to_end(&mut page)?;
            Ok((file, page))
        })
        .await?;
        self.0 = Some(file);
        Ok(page)
    }
}

impl Negotiation {
    /// An agreement, with the document of one of its parts.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none or it is another party's, [`Error::Unavailable`].
    pub async fn show(&self, scope: Scope, id: Uuid, part: Part) -> Result<Shown, Error> {
        let agreement = self.stored(&scope, id).await?;
        let words = self.words_of(id).await?;
        let succession = self.store.succession(id).await?;
        let proposals = self.proposals_about(&agreement).await?;
        let view = AgreementView {
            proposals,
            reservation: self.reservation_of(&agreement),
            ..self.view(&agreement).between(succession)
        };
        self.reading(move |_| documents::shown(&agreement, view, words, part))
            .await?
    }

    /// The name by which its party's user finds the nodes of an agreement that runs nothing, where it is given them.
    fn reservation_of(&self, agreement: &Agreement) -> Option<String> {
        let handed = agreement.job.is_none()
            && !agreement.state.is_final()
            && self.planner.kind_of(&agreement.resource) == Some("slurm");
        handed.then(|| name_of(&agreement.resource, Run::first(agreement.execution_id())))
    }

    /// The output of an agreement's job, from its beginning: to `stdout`, to `stderr`, or to a file of its working
    /// folder.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is no such output, [`Error::Unavailable`].
    pub async fn output(&self, scope: Scope, id: Uuid, name: &str) -> Result<Output, Error> {
        let agreement = self.stored(&scope, id).await?;
        let (folder, name) = (
            Folder::of(self.jobs.path(), Run::first(agreement.execution_id())),
            name.to_owned(),
        );
        super::files::still_kept(&agreement, &folder)?;
        let file = super::files::blocking(move || match folder.written(&name)? {
            None => Ok(None),
            Some(written) => Ok(Some(folder.open(&written)?)),
        });
        file.await?.map(Output::of).ok_or(Error::NotFound)
    }

    /// An agreement, if there is one and the caller may see it.
    pub(in crate::negotiation) async fn visible(
        &self,
        scope: &Scope,
        id: Uuid,
    ) -> Result<AgreementView, Error> {
        self.stored(scope, id)
            .await
            .map(|agreement| self.view(&agreement))
    }

    pub(in crate::negotiation) async fn stored(&self, scope: &Scope, id: Uuid) -> Result<Agreement, Error> {
        let agreement = self.store.agreement(id).await?.ok_or(Error::NotFound)?;
        match scope.party() {
            Some(party) if party != agreement.party => Err(Error::NotFound),
            _ => Ok(agreement),
        }
    }
}
