//! Moves that operators order.

use domain::agreement::Agreement;
use planner::MoveAgreement;
use scheduler::Time;
use uuid::Uuid;

use crate::agreements::find::{find_visible_agreement, find_why_agreement_is_over};
use crate::codec::json::Json;
use crate::codec::json_check::{JsonCheck, LocatedValue};
use crate::idempotency::{answer_of_repeated_request, earlier_answer, text_to_keep};
use crate::nodes::REASON_MAX;
use crate::{AgreementView, RequestKey, Result, Scope, Service};

/// A request to move an agreement.
#[derive(Debug)]
pub struct MoveRequest {
    /// Which.
    pub id: Uuid,
    /// An object with `resource`, `start` and `reason`.
    pub body: Vec<u8>,
    /// The versions that the agreement may have; none for any.
    pub versions: Option<Vec<i64>>,
    /// The party of the operator.
    pub by: String,
    /// The key of the request.
    pub key: Option<RequestKey>,
}

/// Where an agreement is to go, and why.
#[derive(Debug, PartialEq)]
struct MoveTarget {
    resource: Option<String>,
    start: Option<Time>,
    reason: Option<String>,
}

/// Moves a waiting agreement to another resource or start, inside what was agreed. Its party is told. For operators.
///
/// # Errors
/// The errors of the body and, of [`crate::Error`], `NotFound`, `Conflict` where it may not go there or
/// does not wait, `Changed` when it is in another version, `KeyReused`, `Unavailable`.
pub async fn move_agreement(service: &Service, request: MoveRequest) -> Result<AgreementView> {
    let before = find_visible_agreement(service, &Scope::All, request.id).await?;
    if let Some(answer) = earlier_answer(service, request.key.as_ref()).await? {
        return Ok(answer);
    }
    let MoveTarget {
        resource,
        start,
        reason,
    } = read_move(&request.body)?;
    let kept = |key: RequestKey| key.kept(|done: &Agreement| text_to_keep(&AgreementView::of(done)));
    let order = MoveAgreement {
        id: request.id,
        by: request.by,
        resource,
        start,
        reason,
        versions: request.versions,
        idempotency: request.key.map(kept),
    };
    match service.send(order).await {
        Err(planner::Error::NotFound) => Err(find_why_agreement_is_over(service, &Scope::All, before).await),
        moved => answer_of_repeated_request(moved, |moved| AgreementView::of(&moved)),
    }
}

/// Where to and why, as a body says.
fn read_move(body: &[u8]) -> Result<MoveTarget> {
    let value = Json::parse(body)?;
    let mut check = JsonCheck::default();
    let root = LocatedValue::root(&value);
    let read = check
        .object(&root, &["resource", "start", "reason"])
        .and_then(|object| {
            let wanted = MoveTarget {
                resource: object.read(&mut check, "resource", JsonCheck::token),
                start: object
                    .read(&mut check, "start", JsonCheck::date_time)
                    .map(|start| Time(start.ceil())),
                reason: object.read(&mut check, "reason", |check, at| check.line(at, REASON_MAX)),
            };
            if wanted.resource.is_none() && wanted.start.is_none() {
                return check.wrong(&root, "a resource or a start is expected");
            }
            Some(wanted)
        });
    check.finish(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn a_move_names_a_resource_or_a_start() {
        let read = |text: &str| read_move(text.as_bytes());
        let wanted = read(r#"{"start": "1970-01-01T00:00:01.5Z"}"#).unwrap();
        assert_eq!((wanted.resource, wanted.start), (None, Some(Time(2))));
        for (wrong, path) in [
            ("{}", ""),
            (r#"{"reason": "r"}"#, ""),
            (r#"{"start": "soon"}"#, "/start"),
            (r#"{"resource": "a b"}"#, "/resource"),
        ] {
            match read(wrong) {
                Err(Error::Invalid(violations)) => assert_eq!(violations.0[0].path, path, "{wrong}"),
                other => panic!("{wrong}: {other:?}"),
            }
        }
    }
}
