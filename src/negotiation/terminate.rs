//! Termination.

use uuid::Uuid;
use wsag::{Document, Message};

use super::{AgreementView, Error, Negotiation, Scope};
use crate::planner;

impl Negotiation {
    /// Ends an agreement before its time, as a TerminateInput asks; an empty body asks for it too.
    ///
    /// # Errors
    /// [`Error::Malformed`] and [`Error::Invalid`] for what is wrong with the document, [`Error::NotFound`],
    /// [`Error::Conflict`] when it has ended already, [`Error::Unavailable`].
    pub async fn terminate(&self, scope: Scope, id: Uuid, body: Vec<u8>) -> Result<AgreementView, Error> {
        let before = self.visible(&scope, id).await?;
        if !body.is_empty() {
            self.reading(move |_| read_input(&body)).await??;
        }
        match self
            .planner
            .terminate(id, scope.party().map(ToOwned::to_owned))
            .await
        {
            Ok(agreement) => Ok(AgreementView::of(&agreement)),
            // It exists, so it has left the plan: it is over.
            Err(planner::Error::NotFound) => {
                let now = self.visible(&scope, id).await.unwrap_or(before);
                Err(Error::Conflict(format!("the agreement is {} already", now.state)))
            }
            Err(why) => Err(why.into()),
        }
    }
}

fn read_input(body: &[u8]) -> Result<(), Error> {
    let document = Document::parse(body).map_err(Error::Malformed)?;
    match wsag::read(&document).map_err(Error::Invalid)? {
        Message::TerminateInput(_) => Ok(()),
        _ => Err(Error::not_offered(
            &document,
            "",
            "wsag:TerminateInput is expected here",
        )),
    }
}

/// The TerminateInput that our own client sends.
pub fn terminate_input() -> String {
    wsag::agreements::terminate_input(&wsag::agreements::reason("asked for at the command line"))
}
