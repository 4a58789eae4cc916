//! Keys, for operators. In JSON alone: WS-Agreement knows none.

use std::collections::HashMap;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::agreement::{Currency, Money};
use domain::clock::{Micros, second_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use wsag::time::DateTime;

use super::body::PostedBody;
use super::call::Call;
use super::operation::Operation;
use super::path::Id;
use super::query::{NoParameters, Query};
use super::rights::{require_key_keeper, require_key_maker, require_operator};
use super::routes::Routes;
use super::{Answer, Api, Error, body, requests};
use access::{Caller, KeyLimits, KeyRow, KeyWish, Role};
use service::{Input, KeyRequest, MoneyView, RequestKey, read_key_expiry, schemas};

/// A key as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyView {
    /// The id by which it is revoked.
    pub id: Uuid,
    /// The party that it identifies.
    #[schemars(example = &"physics")]
    pub party: String,
    /// The rights of its owner.
    #[schemars(extend("enum" = ["consumer", "operator", "monitor"]))]
    pub role: String,
    /// The name that its maker gave it.
    #[schemars(example = &"laptop")]
    pub label: Option<String>,
    /// The state.
    #[schemars(extend("enum" = ["works", "expired", "revoked"]))]
    pub state: String,
    /// When it was made.
    #[schemars(extend("format" = "date-time"))]
    pub created: String,
    /// From when on it is worth nothing; null for never.
    #[schemars(extend("format" = "date-time"))]
    pub expires: Option<String>,
    /// When it was revoked; null where it was not.
    #[schemars(extend("format" = "date-time"))]
    pub revoked: Option<String>,
    /// Whether it may only read.
    pub read_only: bool,
    /// The most that the agreements made with it may cost together.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub spending_cap: Option<MoneyView>,
    /// What they have cost, where it has a cap.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub spent: Option<MoneyView>,
    /// The text that its owner sends: shown once, in the answer to its making.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(example = &"bsp_0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0")]
    pub key: Option<String>,
}

impl KeyView {
    /// A key as it stands at an instant, where keys with a cap have spent this.
    pub fn of(key: &KeyRow, now: Micros, spent: &HashMap<Uuid, i64>) -> Self {
        let state = match key.revoked {
            Some(_) => "revoked",
            None if key.works(now) => "works",
            None => "expired",
        };
        let cap = key.spending_cap;
        let spent = spent.get(&key.id).copied().unwrap_or(0);
        let instant = |at| DateTime::from_seconds(second_of(at).seconds()).to_string();
        Self {
            id: key.id,
            party: key.party.clone(),
            role: key.role.word().to_owned(),
            label: key.label.clone(),
            state: state.to_owned(),
            created: instant(key.created),
            expires: key.expires.map(instant),
            revoked: key.revoked.map(instant),
            read_only: key.read_only,
            spending_cap: cap.map(MoneyView::of),
            spent: cap.map(|cap| MoneyView::of(Money::new(spent, cap.currency))),
            key: None,
        }
    }
}

/// The keys of all parties.
#[derive(Serialize, JsonSchema)]
struct KeysView {
    /// The keys, oldest first.
    keys: Vec<KeyView>,
}

/// A key that is to be made.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "the use case reads it, with the place of each mistake")]
struct NewKey {
    /// The party.
    #[schemars(length(max = 100), example = &"physics")] // NAME_LENGTH_MAX
    party: String,
    /// The rights of its owner: consumers have their own agreements, operators all, monitors only /metrics.
    #[schemars(extend("enum" = Role::ALL.map(Role::word)))]
    role: String,
    /// A name for people.
    #[schemars(length(max = 100), example = &"laptop")] // NAME_LENGTH_MAX
    label: Option<String>,
    /// From when on it is worth nothing; never where it is left out.
    #[schemars(with = "Option<schemas::Instant>", example = &"2026-12-21T08:00:00Z")]
    expires: Option<String>,
    /// Whether nothing can be changed with it.
    #[serde(default)]
    read_only: bool,
    /// The most that the agreements made with it may cost together, in the currency that they are charged in.
    spending_cap: Option<requests::Budget>,
}

/// When a key is to expire.
#[derive(JsonSchema)]
#[schemars(extend("required" = ["expires"]))]
#[expect(dead_code, reason = "the use case reads it, with the place of each mistake")]
struct KeyExpiry {
    /// From when on it is worth nothing; null for never.
    #[schemars(with = "Option<schemas::Instant>", example = &"2026-12-21T08:00:00Z")]
    expires: Option<String>,
}

/// The routes of the keys of all parties.
pub(super) fn key_routes() -> Routes {
    let key = |id, summary| Operation::new(id, "operation", summary).for_operators();
    Routes::default()
        .get(
            "/keys",
            get_keys,
            key("listKeys", "Every key that was made, oldest first, without their secrets").answers::<KeysView>(),
        )
        .post(
            "/keys",
            post_key,
            key(
                "createKey",
                "Makes a key, and shows it once; the same request again under the same Idempotency-Key makes no other and does \
                 not show it again",
            )
            .once()
            .takes::<NewKey>()
            .makes::<KeyView>(),
        )
        .get("/keys/{id}", get_key, key("getKey", "A key, without its secret").answers::<KeyView>())
        .delete(
            "/keys/{id}",
            delete_key,
            key(
                "revokeKey",
                "Revokes a key with its sessions at once; of operators' keys that work the last one stays",
            )
            .answers_nothing(),
        )
        .put(
            "/keys/{id}/expiry",
            put_key_expiry,
            key(
                "putKeyExpiry",
                "Has a key that works expire at another time, or never; the last key of operators does not end earlier than it \
                 does",
            )
            .takes::<KeyExpiry>()
            .answers::<KeyView>(),
        )
}

/// GET /keys: every key that was ever made, oldest first.
async fn get_keys(State(api): State<Api>, call: Call) -> Answer {
    require_operator(&call.caller)?;
    let keys = get_listed_keys(&api).await?;
    Ok(Json(KeysView { keys }).into_response())
}

/// Every key that was ever made, oldest first.
///
/// # Errors
/// Those of the store.
pub async fn get_listed_keys(api: &Api) -> Result<Vec<KeyView>, Error> {
    let keys = api.access.keys().await.map_err(service::Error::from)?;
    let spent = api.access.spent().await.map_err(service::Error::from)?;
    let now = api.service.clock().micros();
    Ok(keys.iter().map(|key| KeyView::of(key, now, &spent)).collect())
}

/// GET /keys/{id}.
async fn get_key(State(api): State<Api>, call: Call, Id(id): Id) -> Answer {
    require_operator(&call.caller)?;
    answer_key(&api, id).await
}

/// POST /keys: makes a key. Of its secret nothing is kept, so the same request again under the same Idempotency-Key gets the answer
/// without it.
async fn post_key(
    State(api): State<Api>,
    call: Call,
    Query(NoParameters {}): Query<NoParameters>,
    PostedBody { input, key: once }: PostedBody,
) -> Answer {
    require_key_maker(&call.caller)?;
    let Input::Json(body) = input else {
        return Err(body::body_is_not_json());
    };
    Ok(answer_new_key(&make_key(&api, &call.caller, &body, once).await?))
}

/// Makes a key as a body asks for it. The same request again gets the answer without the secret.
///
/// # Errors
/// Where the body asks for no key that can be made, and those of the store.
pub async fn make_key(
    api: &Api,
    caller: &Caller,
    body: &[u8],
    once: Option<RequestKey>,
) -> Result<KeyView, Error> {
    let service = &api.service;
    if let Some(earlier) = service::earlier_answer::<KeyView>(service, once.as_ref()).await? {
        return view_key(api, earlier.id).await;
    }
    let asked = KeyRequest::read(body, &Role::ALL.map(Role::word))?;
    let role = Role::from_word(&asked.role);
    let wish = KeyWish {
        party: asked.party,
        // Other words were refused when it was read.
        role: role.ok_or(Error::Internal)?,
        label: asked.label,
        expires: asked.expires,
        limits: KeyLimits {
            read_only: asked.read_only,
            spending_cap: asked.spending_cap,
        },
    };
    check_cap_of_key(&wish.limits, service.currency())?;
    let by = Some(caller.key);
    let made = api.access.add_key(wish, by).await?;
    let view = KeyView::of(&made.info, service.clock().micros(), &HashMap::new());
    let kept = service::keep_answer(service, once, view).await;
    if kept.as_ref().map(|kept| kept.id).ok() != Some(made.info.id) {
        // The client does not get its secret.
        api.access.revoke(made.info.id, by).await?;
        return Ok(kept?);
    }
    tracing::info!(new_key = %made.info.id, of = made.info.party, "an operator has made a key");
    let key = Some(made.secret.expose().to_owned());
    Ok(KeyView { key, ..kept? })
}

/// DELETE /keys/{id}: revokes a key and its sessions.
async fn delete_key(
    State(api): State<Api>,
    call: Call,
    Id(id): Id,
    Query(NoParameters {}): Query<NoParameters>,
) -> Answer {
    require_key_keeper(&call.caller)?;
    if !api.access.revoke(id, Some(call.caller.key)).await? {
        return Err(service::Error::NotFound.into());
    }
    tracing::info!(revoked = %id, "an operator has revoked a key");
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// PUT /keys/{id}/expiry: it expires at another time, or never.
async fn put_key_expiry(
    State(api): State<Api>,
    call: Call,
    Id(id): Id,
    Query(NoParameters {}): Query<NoParameters>,
    request: Request,
) -> Answer {
    require_key_maker(&call.caller)?;
    let expires = read_key_expiry(&body::read_json_body(&api, request).await?)?;
    let by = Some(call.caller.key);
    if !api.access.set_expiry(id, expires, by).await? {
        return Err(service::Error::NotFound.into());
    }
    tracing::info!(changed = %id, "an operator has changed when a key expires");
    answer_key(&api, id).await
}

/// A cap is in the currency that agreements are charged in.
///
/// # Errors
/// [`access::Error::Invalid`], where it is in another, or nothing is charged.
pub fn check_cap_of_key(limits: &KeyLimits, charged: Option<Currency>) -> Result<(), access::Error> {
    match (limits.spending_cap, charged) {
        (Some(cap), Some(currency)) if cap.currency != currency => Err(access::Error::Invalid(format!(
            "agreements are charged in {currency}: a spending cap is in it, too"
        ))),
        (Some(_), None) => Err(access::Error::Invalid(
            "agreements are charged in no currency, so that nothing can be spent".to_owned(),
        )),
        _ => Ok(()),
    }
}

async fn answer_key(api: &Api, id: Uuid) -> Answer {
    Ok(Json(view_key(api, id).await?).into_response())
}

async fn view_key(api: &Api, id: Uuid) -> Result<KeyView, Error> {
    let key = api.access.key(id).await.map_err(service::Error::from)?;
    let key = key.ok_or(service::Error::NotFound)?;
    let spent = api.access.spent().await.map_err(service::Error::from)?;
    Ok(KeyView::of(&key, api.service.clock().micros(), &spent))
}

fn answer_new_key(view: &KeyView) -> Response {
    let location = [(header::LOCATION, format!("/keys/{}", view.id))];
    (StatusCode::CREATED, location, Json(view)).into_response()
}
