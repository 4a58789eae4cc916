//! Eviction: an operator ends an agreement of a party, with the reason.

use domain::agreement::{Currency, Money};
use planner::{Evict, EvictedAgreement};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use crate::agreements::find::{find_visible_agreement, find_why_agreement_is_over};
use crate::codec::json::Json;
use crate::codec::json_check::{JsonCheck, LocatedValue};
use crate::codec::json_request::read_budget;
use crate::idempotency::{answer_of_repeated_request, earlier_answer, text_to_keep};
use crate::nodes::REASON_MAX;
use crate::{AgreementView, Error, MoneyView, RequestKey, Result, Scope, Service};

/// A request to end an agreement of a party.
#[derive(Debug)]
pub struct EvictRequest {
    /// Which.
    pub id: Uuid,
    /// An object with `reason` and `compensation`.
    pub body: Vec<u8>,
    /// The versions that the agreement may have; none for any.
    pub versions: Option<Vec<i64>>,
    /// The party of the operator.
    pub by: String,
    /// The key of the request.
    pub key: Option<RequestKey>,
}

/// An agreement that was ended by an operator, and what its party gets for that.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct EvictedView {
    /// As it is now.
    pub agreement: AgreementView,
    /// What the provider pays because its guarantees are violated, a sum for each currency.
    #[schemars(example = json!([]))]
    pub penalties: Vec<MoneyView>,
    /// What it pays beside these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = json!({"amount": "20", "currency": "EUR"}))]
    pub compensation: Option<MoneyView>,
}

impl EvictedView {
    fn of(agreement: &EvictedAgreement) -> Self {
        Self {
            agreement: AgreementView::of(&agreement.agreement),
            penalties: MoneyView::all(&agreement.penalties),
            compensation: agreement.compensation.map(MoneyView::of),
        }
    }
}

/// Ends an agreement of a party at once. Its party is told the reason, and the provider pays its penalties as for lost work, and
/// the compensation that is named. For operators.
///
/// # Errors
/// The errors of the body, [`Error::NotFound`], [`Error::Conflict`] when it has ended already, [`Error::Changed`] when it is
/// in another version, [`Error::KeyReused`], [`Error::Unavailable`].
pub async fn evict_agreement(service: &Service, request: EvictRequest) -> Result<EvictedView> {
    let before = find_visible_agreement(service, &Scope::All, request.id).await?;
    if let Some(answer) = earlier_answer(service, request.key.as_ref()).await? {
        return Ok(answer);
    }
    let (reason, compensation) = read_eviction(&request.body)?;
    let (paid, charged) = (
        compensation.map(|compensation| compensation.currency),
        service.currency(),
    );
    if let (Some(paid), Some(charged)) = (paid, charged)
        && paid != charged
    {
        return Err(Error::Conflict(format!(
            "agreements are charged in {charged}, and the compensation is in {paid}"
        )));
    }
    let kept = |key: RequestKey| key.kept(|done: &EvictedAgreement| text_to_keep(&EvictedView::of(done)));
    let order = Evict {
        id: request.id,
        by: request.by,
        reason,
        compensation,
        versions: request.versions,
        idempotency: request.key.map(kept),
    };
    match service.send(order).await {
        Err(planner::Error::NotFound) => Err(find_why_agreement_is_over(service, &Scope::All, before).await),
        evicted => answer_of_repeated_request(evicted, |evicted| EvictedView::of(&evicted)),
    }
}

/// The reason and the compensation that a body has. A compensation of nothing is none.
fn read_eviction(body: &[u8]) -> Result<(String, Option<Money>)> {
    let value = Json::parse(body)?;
    let mut check = JsonCheck::default();
    let read = check
        .object(&LocatedValue::root(&value), &["reason", "compensation"])
        .and_then(|object| {
            let paid = object.read(&mut check, "compensation", read_budget);
            let reason = object.read_required(&mut check, "reason", |check, at| check.line(at, REASON_MAX));
            let amount = paid.and_then(|budget| {
                Some(Money::new(
                    budget.amount_micros,
                    Currency::parse(&budget.currency)?,
                ))
            });
            Some((reason?, amount.filter(|amount| amount.micros > 0)))
        });
    check.finish(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_eviction_has_a_reason_and_perhaps_more_than_nothing() {
        let read = |text: &str| read_eviction(text.as_bytes());
        assert_eq!(
            read(r#"{"reason": "misuse"}"#).unwrap(),
            ("misuse".to_owned(), None)
        );
        let paid = |amount: &str| {
            let text =
                format!(r#"{{"reason": "r", "compensation": {{"amount": {amount}, "currency": "EUR"}}}}"#);
            read(&text).map(|(_, paid)| paid.map(|paid| paid.micros))
        };
        assert_eq!(paid("\"2.5\"").unwrap(), Some(2_500_000));
        assert_eq!(paid("0").unwrap(), None);
        assert!(paid("-1").is_err());
        for (wrong, path) in [
            ("{}", ""),
            (r#"{"reason": "a\nb"}"#, "/reason"),
            (r#"{"reason": "r", "compensation": 5}"#, "/compensation"),
        ] {
            match read(wrong) {
                Err(Error::Invalid(violations)) => assert_eq!(violations.0[0].path, path, "{wrong}"),
                other => panic!("{wrong}: {other:?}"),
            }
        }
    }
}
