//! Where a party has its events told, and these events again; and the call that tells a decision.

use domain::change::AcceptanceEndpoint;
use domain::resources::is_resource_name;
use planner::CallBackTarget;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::party_events;
use store::registrations::{self, Registration};
use uuid::Uuid;
use wsag::Fragment;
use wsag::endpoint::EndpointReference;
use wsag::operations::{accept_agreement_input, reason_fragment, reject_agreement_input};

use super::codec::json::Json;
use super::error::{Error, Result, violation_at_path};
use super::handle::Service;
use super::views::money_and_time::instant_as_date_time;
use crate::codec::json_check::{JsonCheck, LocatedValue};
use crate::pages::{cut_page, length_of_page};
use crate::views::schemas;
use callbacks::{EventBody, new_signing_secret};

/// Call-backs that a party may have registered: one for each of its programs, in two places.
const REGISTERED_MAX: usize = 8;
/// The name of the one that has no address: its secret signs the decisions that are told to the addresses of single offers.
const DECISIONS: &str = "decisions";
/// Events on a page where the caller does not say.
const PAGE: u32 = 100;

/// A registered call-back.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallBackView {
    /// The name that its party has given.
    #[schemars(example = &"nightly")]
    pub name: String,
    /// Where events are told; none where it signs the decisions about single offers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(example = &"https://storage.example.org/data")]
    pub address: Option<String>,
    /// When it was registered.
    #[schemars(with = "schemas::Instant")]
    pub created: String,
    /// The cursor of the last event that was told.
    #[schemars(example = 1_200)]
    pub cursor: i64,
    /// How often the next event was tried in vain.
    #[schemars(example = 0)]
    pub failures: u32,
    /// When it is tried again, where it was tried in vain.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(with = "Option<schemas::Instant>")]
    pub next_attempt: Option<String>,
    /// The secret that signs the calls: shown once, in the answer to its registration.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(example = &"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]
    pub secret: Option<String>,
}

/// The registered call-backs of a party.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallBacksView {
    /// The call-backs, by name.
    pub call_backs: Vec<CallBackView>,
}

/// A page of the events of a party.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "PartyEvents")]
pub struct EventsView {
    /// In order, as its call-backs were told them.
    pub events: Vec<EventBody>,
    /// The value of `after` for the next page; none on the last.
    #[schemars(example = 100)]
    pub next: Option<i64>,
}

impl CallBackView {
    fn of(one_registration: Registration) -> Self {
        Self {
            name: one_registration.name,
            address: one_registration.address,
            created: instant_as_date_time(one_registration.created),
            cursor: one_registration.told,
            failures: one_registration.attempts,
            next_attempt: (one_registration.attempts > 0).then(|| instant_as_date_time(one_registration.due)),
            secret: None,
        }
    }
}

/// Has the events of a party told to an address from now on, under a name and with a new secret, which is answered. What had the
/// name before is replaced, and its address is told nothing more. The body is an object with `address`; for the name `decisions` it
/// is empty.
///
/// # Errors
/// The errors of the body, [`Error::Conflict`] where there are too many, [`Error::Unavailable`].
pub async fn register_call_back(
    service: &Service,
    party: &str,
    name: &str,
    body: &[u8],
) -> Result<CallBackView> {
    if !is_resource_name(name) {
        let message = format!("1 to 64 letters, digits, '-', '_' or '.' are expected, not {name:?}");
        return Err(violation_at_path("", message).into());
    }
    let address = read_call_back_address(service, name, body)?;
    let secret = new_signing_secret().map_err(|why| Error::Internal(format!("no randomness: {why}")))?;
    let now = service.clock.micros();
    let registration = Registration {
        id: Uuid::now_v7(),
        party: party.to_owned(),
        name: name.to_owned(),
        address,
        secret: secret.clone(),
        created: now,
        told: 0,
        attempts: 0,
        failing: None,
        due: now,
    };
    if !registrations::put_registration(&service.store, registration, REGISTERED_MAX).await? {
        let why = format!("you have {REGISTERED_MAX} call-backs, and may have no more: remove one");
        return Err(Error::Conflict(why));
    }
    Ok(CallBackView {
        secret: Some(secret),
        ..show_call_back(service, party, name).await?
    })
}

fn read_call_back_address(service: &Service, name: &str, body: &[u8]) -> Result<Option<String>> {
    let body = Json::parse(body)?;
    let mut check = JsonCheck::default();
    if name == DECISIONS {
        let read = check.object(&LocatedValue::root(&body), &[]).map(|_| None);
        return check.finish(read);
    }
    let object = check.object(&LocatedValue::root(&body), &["address"]);
    let address = object.and_then(|object| {
        object.read_required(&mut check, "address", |check, at| {
            let address = check.text(at)?;
            match service.may_call.check(&address) {
                Ok(()) => Some(address),
                Err(why) => check.wrong(at, why),
            }
        })
    });
    check.finish(address).map(Some)
}

/// The call-backs of a party.
///
/// # Errors
/// [`Error::Unavailable`].
pub async fn list_call_backs(service: &Service, party: &str) -> Result<CallBacksView> {
    let found = registrations::registrations_of_party(&service.store, party).await?;
    let call_backs = found.into_iter().map(CallBackView::of).collect();
    Ok(CallBacksView { call_backs })
}

/// A registered call-back of a party, by its name.
///
/// # Errors
/// [`Error::NotFound`], [`Error::Unavailable`].
pub async fn show_call_back(service: &Service, party: &str, name: &str) -> Result<CallBackView> {
    let all = list_call_backs(service, party).await?.call_backs;
    all.into_iter()
        .find(|each| each.name == name)
        .ok_or(Error::NotFound)
}

/// Removes a registered call-back of a party: its address is told nothing more.
///
/// # Errors
/// [`Error::NotFound`], [`Error::Unavailable`].
pub async fn unregister_call_back(service: &Service, party: &str, name: &str) -> Result<()> {
    let found = is_resource_name(name)
        && registrations::remove_registration_named(&service.store, party, name).await?;
    found.then_some(()).ok_or(Error::NotFound)
}

/// A page of the events of a party after a cursor, in order, as its call-backs were told them.
///
/// # Errors
/// [`Error::Unavailable`].
pub async fn list_call_back_events(
    service: &Service,
    party: &str,
    after: Option<i64>,
    limit: Option<u32>,
) -> Result<EventsView> {
    let limit = length_of_page(limit, PAGE)?;
    let found = party_events::events_of_party_after(&service.store, party, after.unwrap_or(0), limit + 1);
    let (found, next) = cut_page(found.await?, limit, |each| each.number);
    let events = found
        .into_iter()
        .map(|found| EventBody::of(found, &service.address));
    Ok(EventsView {
        events: events.collect(),
        next,
    })
}

/// The call that tells the decision about the agreement at an address.
pub(super) fn call_back_target(agreement: String, endpoint: AcceptanceEndpoint) -> CallBackTarget {
    CallBackTarget {
        endpoint,
        agreement,
        accepted: |each| {
            accept_agreement_input(call_back_parameters(each).as_ref(), &call_back_reference(each))
        },
        rejected: |each, why| {
            reject_agreement_input(
                call_back_parameters(each).as_ref(),
                &call_back_reference(each),
                &[reason_fragment(why)],
            )
        },
    }
}

fn call_back_parameters(target: &CallBackTarget) -> Option<Fragment> {
    target.endpoint.parameters.as_deref().map(Fragment::of_kept)
}

fn call_back_reference(target: &CallBackTarget) -> EndpointReference {
    EndpointReference::new(&*target.agreement)
}
