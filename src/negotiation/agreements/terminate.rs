//! Termination.

use uuid::Uuid;
use wsag::{Document, Message};

use crate::agreement::Agreement;
use crate::negotiation::idempotency::{kept, repeated};
use crate::negotiation::request::json::{At, Check, Json};
use crate::negotiation::{AgreementView, Error, Input, Negotiation, RequestKey, Scope};
use crate::planner::{self, Termination};

/// A request to end an agreement.
#[derive(Debug)]
pub struct TerminateRequest {
    /// Which.
    pub id: Uuid,
    /// The TerminateInput, or an object with a reason; nothing asks for it too.
    pub input: Input,
    /// The versions that the agreement may have; none for any.
    pub versions: Option<Vec<i64>>,
    /// The party of the caller. An operator that ends another party's agreement takes its time back for the provider.
    pub by: String,
    /// The key of the request.
    pub key: Option<RequestKey>,
}

impl Negotiation {
    /// Ends an agreement before its time.
    ///
    /// # Errors
    /// [`Error::Malformed`] and [`Error::Invalid`] for faults of the document, [`Error::NotFound`], [`Error::Conflict`]
    /// when it has ended already, [`Error::Changed`] when it is in another version, [`Error::KeyReused`],
    /// [`Error::Unavailable`].
    pub async fn terminate(&self, scope: Scope, request: TerminateRequest) -> Result<AgreementView, Error> {
        let TerminateRequest {
            id,
            input,
            by,
            versions,
            key,
        } = request;
        let before = self.visible(&scope, id).await?;
        if let Some(answer) = self.answered(key.as_ref()).await? {
            return Ok(answer);
        }
        if !input.bytes().is_empty() {
            self.reading(move |_| read_input(&input)).await??;
        }
        let hash = key.as_ref().map(RequestKey::hash);
        let order = Termination {
            id,
            party: scope.party().map(ToOwned::to_owned),
            by_provider: scope == Scope::All && before.party != by,
            versions,
            idempotency: key.map(|key| key.kept(|done: &Agreement| kept(&AgreementView::of(done)))),
        };
        match self.planner.terminate(order).await {
            Ok(agreement) => Ok(AgreementView::of(&agreement)),
            Err(planner::Error::Repeated(earlier)) => repeated(&earlier, hash.as_deref()),
            // It exists, so it has left the plan: it is over.
            Err(planner::Error::NotFound) => {
                let now = self.visible(&scope, id).await.unwrap_or(before);
                Err(Error::Conflict(format!("the agreement is {} already", now.state)))
            }
            Err(why) => Err(why.into()),
        }
    }
}

fn read_input(input: &Input) -> Result<(), Error> {
    let body = match input {
        Input::Xml(body) => body,
        Input::Json(body) => return read_reason(body),
    };
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

/// An object with a reason, which need not be given.
pub(in crate::negotiation) fn read_reason(body: &[u8]) -> Result<(), Error> {
    let value = Json::parse(body)?;
    let mut check = Check::default();
    let read = check.object(&At::root(&value), &["reason"]);
    if let Some(at) = read.as_ref().and_then(|object| object.get("reason")) {
        check.text(&at);
    }
    check.finish(read).map(drop)
}

/// The TerminateInput that our own client sends.
pub fn terminate_input() -> String {
    wsag::agreements::terminate_input(&wsag::agreements::reason("asked for at the command line"))
}
