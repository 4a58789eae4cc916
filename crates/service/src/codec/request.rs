//! A request that was read, from any form, and the request to end something.

use std::sync::Arc;

use domain::change::AcceptanceEndpoint;
use domain::request::Request;
use wsag::{Document, Message, ValuePlaces};

use crate::codec::json::Json;
use crate::codec::json_check::{JsonCheck, LocatedValue};
use crate::templates::OfferedTemplate;
use crate::{Error, Input, Result};

/// How an offer asks to be decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DecisionTime {
    /// Before it is answered.
    Now,
    /// Afterwards; told to this endpoint, if there is one.
    Later(Option<AcceptanceEndpoint>),
}

/// A request that was read, from JSON or from a form.
pub(crate) struct ReadRequest {
    /// What somebody wants.
    pub(crate) wish: Request,
    /// Where each part of that stands in its form.
    pub(crate) places: ValuePlaces,
    /// The id of the template that it names.
    pub(crate) named: Option<String>,
    /// The template that it is to become an offer of: the first one where it names none.
    pub(crate) offered: Arc<OfferedTemplate>,
    /// When it is to be decided.
    pub(crate) decision: DecisionTime,
}

/// Reads a request to end something: a document of the right kind, which is expected, or an object with a reason, which need not
/// be given. An empty body asks for it too.
pub(crate) fn read_request_to_end(
    input: &Input,
    is_right: impl Fn(&Message) -> bool,
    expected: &str,
) -> Result<()> {
    match input {
        _ if input.bytes().is_empty() => Ok(()),
        Input::Xml(body) => {
            let document = Document::parse(body).map_err(Error::Malformed)?;
            let message = wsag::read(&document).map_err(Error::Invalid)?;
            let wrong = || Error::not_offered(&document, &format!("{expected} is expected here"));
            is_right(&message).then_some(()).ok_or_else(wrong)
        }
        Input::Json(body) => {
            let value = Json::parse(body)?;
            let mut check = JsonCheck::default();
            let read = check.object(&LocatedValue::root(&value), &["reason"]);
            if let Some(object) = &read {
                object.read(&mut check, "reason", JsonCheck::text);
            }
            check.finish(read).map(drop)
        }
    }
}
