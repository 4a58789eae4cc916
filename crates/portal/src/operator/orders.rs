//! Orders of operators. The first form asks for the consequences, which a dry run answers; the page that shows it has the same form
//! again, and that one does it.

use std::borrow::Cow;
use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::affected_reservations::AffectedReservations;
use crate::failure::Failure;
use crate::path::PagePath;
use crate::request::field_names;
use crate::request::form_reader::{self};
use crate::session::{self, Visitor};
use crate::values::Values;
use crate::zone::Zone;
use crate::{Answer, Frame, render_page, text};
use api::Api;
use service::{
    AgreementView, EvictRequest, MoneyView, MoveRequest, NAMED_VERBS, NamedVerb, NodeView, PlaceChangeView,
    RepairedView, RequestKey, ResourceChangesView, Scope, Service, read_key_expiry,
};

/// Nodes that one sentence names.
const NODES_NAMED_MAX: usize = 50;

/// The field that confirms that the consequences were seen.
const CONFIRMED: &str = "confirmed";
/// The field with the version of the agreement for which they hold.
const VERSION: &str = "version";

/// The consequences of an order.
#[derive(Template)]
#[template(path = "portal/operator/confirm.html")]
struct Confirm {
    frame: Frame,
    verb: OrderVerb,
    effects: OrderEffects,
    concerned: AffectedReservations,
    /// The fields of the order, to be sent again.
    fields: Vec<(String, String)>,
    once: Uuid,
    /// Whether the agreement has changed since they were shown before.
    has_changed: bool,
    back: String,
}

/// The orders about one agreement.
#[derive(Template)]
#[template(path = "portal/operator/agreement.html")]
struct AgreementOrders {
    frame: Frame,
    name: String,
    agreement: AgreementView,
    resources: Vec<String>,
    currency: Option<String>,
}

/// An order of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OrderVerb {
    SetNodes,
    Named(&'static NamedVerb),
    AddMaintenance,
    RemoveMaintenance,
    Move,
    Evict,
    RevokeKey,
    ExpireKey,
}

/// The verbs that are not among [`NAMED_VERBS`].
const OTHER_VERBS: [OrderVerb; 7] = [
    OrderVerb::SetNodes,
    OrderVerb::AddMaintenance,
    OrderVerb::RemoveMaintenance,
    OrderVerb::Move,
    OrderVerb::Evict,
    OrderVerb::RevokeKey,
    OrderVerb::ExpireKey,
];

const RESOURCES: &str = "/portal/operator/resources";
const MAINTENANCE: &str = "/portal/operator/maintenance";
const KEYS: &str = "/portal/operator/keys";

/// What follows from an order.
#[derive(Default)]
struct OrderEffects {
    sentences: Vec<String>,
    /// The agreements that lose their work or get another place.
    agreements: Vec<PlaceChangeView>,
    /// How many more there are.
    unlisted: usize,
    penalties: Vec<MoneyView>,
    /// Held offers that cannot be kept.
    withdrawn: usize,
    /// The version of the agreement for which all this holds, of an order about one.
    version: Option<i64>,
}

impl OrderVerb {
    fn of_word(word: &str) -> Option<Self> {
        let named = NAMED_VERBS.iter().map(Self::Named);
        named.chain(OTHER_VERBS).find(|verb| verb.words().0 == word)
    }

    /// The word of its forms, the question, the button that answers it, and the page to go to when it is done.
    fn words(self) -> (&'static str, Cow<'static, str>, &'static str, &'static str) {
        let (word, question, button, page) = match self {
            Self::Named(named) => {
                let question = format!("{} the resource?", named.label);
                return (named.word, question.into(), named.label, RESOURCES);
            }
            Self::SetNodes => ("set-nodes", "Change the nodes?", "Change the nodes", RESOURCES),
            Self::AddMaintenance => (
                "add-maintenance",
                "Plan this maintenance?",
                "Plan it",
                MAINTENANCE,
            ),
            Self::RemoveMaintenance => (
                "remove-maintenance",
                "Remove this maintenance?",
                "Remove it",
                MAINTENANCE,
            ),
            Self::Move => ("move", "Move the reservation?", "Move it", ""),
            Self::Evict => ("evict", "Evict the reservation?", "Evict it", ""),
            Self::RevokeKey => ("revoke-key", "Revoke the key?", "Revoke it", KEYS),
            Self::ExpireKey => ("expire-key", "Change when the key expires?", "Change it", KEYS),
        };
        (word, question.into(), button, page)
    }
}

/// GET /portal/operator/agreements/{id}: the forms to move or evict it.
pub(super) async fn show_agreement_orders_page(
    State(api): State<Api>,
    headers: HeaderMap,
    PagePath(id): PagePath<Uuid>,
) -> Answer {
    let visitor = super::signed_in_operator(&api, &headers).await?;
    let agreement = service::show_agreement(&api.service, Scope::All, id).await?.view;
    let name = text::name(&agreement);
    let resources = service::list_offered_resources(&api.service).resources;
    let shown = AgreementOrders {
        frame: visitor.frame(format!("Move or evict {name}")),
        name,
        agreement,
        resources: resources.into_iter().map(|resource| resource.name).collect(),
        currency: api.service.currency().map(|currency| currency.to_string()),
    };
    render_page(StatusCode::OK, &shown)
}

/// POST /portal/operator/orders: shows the consequences, or carries the order out where these were confirmed.
pub(super) async fn carry_out_order(State(api): State<Api>, request: Request) -> Answer {
    let (visitor, values) = session::read_session_form(&api, request).await?;
    api::require_operator(&visitor.caller)?;
    let verb = OrderVerb::of_word(values.get("verb")).ok_or(Failure::NotFound)?;
    let mut is_dry = values.get(CONFIRMED) != "yes";
    let mut ordered = order(&api, &visitor, verb, &values, is_dry).await;
    let has_changed = matches!(
        &ordered,
        Err(Failure::Request(api::Error::Service(service::Error::Changed)))
    );
    if has_changed {
        // The present effects are asked for again.
        is_dry = true;
        ordered = order(&api, &visitor, verb, &values, is_dry).await;
    }
    let effects = match ordered {
        Err(Failure::NotFound) => {
            let what = "there is no such node, resource, maintenance, reservation or key any more".to_owned();
            return Err(service::Error::Conflict(what).into());
        }
        effects => effects?,
    };
    let concerned = AffectedReservations::of(&effects.agreements, effects.unlisted);
    let (word, question, ..) = verb.words();
    let back = match verb.words().3 {
        "" => format!("/portal/agreements/{}", values.get("id")),
        page => page.to_owned(),
    };
    if !is_dry {
        tracing::info!(
            verb = word,
            party = visitor.caller.party,
            "an operator has ordered this in the portal"
        );
        // The page of one reservation shows its new state.
        let back = match verb.words().3 {
            "" => back,
            page => concerned.address(page),
        };
        return Ok(Redirect::to(&back).into_response());
    }
    let own = [field_names::CSRF, field_names::ONCE, CONFIRMED, VERSION];
    let fields = values.iter().filter(|(name, _)| !own.contains(name));
    let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let version = effects
        .version
        .map(|version| (VERSION.to_owned(), version.to_string()));
    let shown = Confirm {
        frame: visitor.frame(question),
        verb,
        fields: fields.chain(version).collect(),
        effects,
        concerned,
        once: Uuid::now_v7(),
        has_changed,
        back,
    };
    let status = if has_changed {
        StatusCode::CONFLICT
    } else {
        StatusCode::OK
    };
    render_page(status, &shown)
}

/// What follows from an order, or would follow.
async fn order(
    api: &Api,
    visitor: &Visitor,
    verb: OrderVerb,
    values: &Values,
    is_dry: bool,
) -> Result<OrderEffects, Failure> {
    let (service, party) = (&api.service, visitor.caller.party.as_str());
    let resource = values.trimmed("resource");
    match verb {
        OrderVerb::SetNodes => {
            let (nodes, body) = (
                values.trimmed("nodes"),
                order_body(values, &["state", "reason"], json!({})),
            );
            let repaired = service::override_nodes(service, party, resource, nodes, &body, is_dry);
            Ok(OrderEffects::of_repair(repaired.await?, values.trimmed("state")))
        }
        OrderVerb::Named(named) => {
            let changes = service::change_resource(service, party, resource, named.verb.clone(), is_dry);
            Ok(OrderEffects::of_changes(changes.await?))
        }
        OrderVerb::AddMaintenance => {
            let times = json!({ "start": order_time(values, field_names::START)?, "end": order_time(values, field_names::DEADLINE)?,
                "nodes": order_count(values, "nodes")? });
            let sentence = ordered_maintenance_in_words(resource, &times);
            let body = order_body(values, &["resource", "reason"], times);
            let changes = service::add_maintenance(service, party, &body, is_dry).await?;
            let is_new = changes
                .resources
                .iter()
                .any(|resource| !resource.change.is_empty());
            let mut effects = OrderEffects::of_changes(changes);
            if is_new {
                effects.sentences = vec![sentence];
            }
            Ok(effects)
        }
        OrderVerb::RemoveMaintenance => {
            let changes = service::remove_maintenance(service, party, order_id(values)?, is_dry).await?;
            Ok(OrderEffects::of_changes(changes))
        }
        OrderVerb::Move => order_move(api, visitor, values, is_dry).await,
        OrderVerb::Evict => order_eviction(api, visitor, values, is_dry).await,
        OrderVerb::RevokeKey | OrderVerb::ExpireKey => {
            carry_out_order_about_key(api, visitor, verb, values, is_dry).await
        }
    }
}

/// What a maintenance takes, and when.
fn ordered_maintenance_in_words(resource: &str, one_value: &Value) -> String {
    let at = |name: &str| Zone::present().tell(one_value[name].as_str().unwrap_or_default());
    let nodes = one_value["nodes"].as_u64().map_or_else(
        || "All nodes".to_owned(),
        |nodes| text::nodes(u32::try_from(nodes).unwrap_or(u32::MAX)),
    );
    format!(
        "{nodes} of {resource}: out of use from {} to {}.",
        at("start"),
        at("end")
    )
}

/// The use cases, or what they would answer.
fn use_cases_of_order(api: &Api, is_dry: bool) -> Arc<Service> {
    if is_dry {
        Arc::new(api.service.dry())
    } else {
        Arc::clone(&api.service)
    }
}

async fn order_move(
    api: &Api,
    visitor: &Visitor,
    values: &Values,
    is_dry: bool,
) -> Result<OrderEffects, Failure> {
    let id = order_id(values)?;
    let before = service::show_agreement(&api.service, Scope::All, id).await?.view;
    let body = order_body(
        values,
        &["resource", "reason"],
        json!({ "start": order_time(values, field_names::START)? }),
    );
    let order = MoveRequest {
        id,
        key: once_of_order(visitor, values, "a move of the portal", &body).filter(|_| !is_dry),
        body,
        versions: version_seen_by_order(values, is_dry),
        by: visitor.caller.party.clone(),
    };
    let after = service::move_agreement(&use_cases_of_order(api, is_dry), order).await?;
    Ok(OrderEffects {
        agreements: vec![PlaceChangeView::between(&before, Some(&after))],
        version: Some(before.version),
        ..OrderEffects::default()
    })
}

async fn order_eviction(
    api: &Api,
    visitor: &Visitor,
    values: &Values,
    is_dry: bool,
) -> Result<OrderEffects, Failure> {
    api::require_evictor(&visitor.caller)?;
    let id = order_id(values)?;
    let before = service::show_agreement(&api.service, Scope::All, id).await?.view;
    let (amount, currency) = (values.trimmed("compensation"), api.service.currency());
    let compensation = currency
        .filter(|_| !amount.is_empty())
        .map(|currency| json!({ "amount": amount, "currency": currency.to_string() }));
    let body = order_body(values, &["reason"], json!({ "compensation": compensation }));
    let order = EvictRequest {
        id,
        key: once_of_order(visitor, values, "an eviction of the portal", &body).filter(|_| !is_dry),
        body,
        versions: version_seen_by_order(values, is_dry),
        by: visitor.caller.party.clone(),
    };
    let evicted = service::evict_agreement(&use_cases_of_order(api, is_dry), order).await?;
    let mut change = PlaceChangeView::between(&before, None);
    change.penalties.clone_from(&evicted.penalties);
    let compensation = evicted
        .compensation
        .map(|compensation| format!("{compensation} are paid as compensation."));
    Ok(OrderEffects {
        sentences: std::iter::once("It ends at once, and its party is told the reason.".to_owned())
            .chain(compensation)
            .collect(),
        agreements: vec![change],
        penalties: evicted.penalties,
        version: Some(before.version),
        ..OrderEffects::default()
    })
}

/// Revokes a key, or changes when it expires.
async fn carry_out_order_about_key(
    api: &Api,
    visitor: &Visitor,
    verb: OrderVerb,
    values: &Values,
    is_dry: bool,
) -> Result<OrderEffects, Failure> {
    let (id, by) = (order_id(values)?, Some(visitor.caller.key));
    let key = api.access.key(id).await.map_err(service::Error::from)?;
    let key = key.ok_or(Failure::NotFound)?;
    let label = key.label.map(|label| format!(" ({label})")).unwrap_or_default();
    let which = format!("The key of {}{label}, a {}'s,", key.party, key.role.word());
    let (sentence, is_there) = if verb == OrderVerb::RevokeKey {
        api::require_key_keeper(&visitor.caller)?;
        let own = if id == visitor.caller.key {
            " It is the key that you have signed in with: you are signed out."
        } else {
            ""
        };
        let sentence =
            format!("{which} is worth nothing any more, and its sessions end. This cannot be undone.{own}");
        (sentence, is_dry || api.access.revoke(id, by).await?)
    } else {
        api::require_key_maker(&visitor.caller)?;
        let at = order_time(values, field_names::DEADLINE)?;
        let expires = read_key_expiry(json!({ "expires": at }).to_string().as_bytes())?;
        let when = at.map_or_else(|| "never".to_owned(), |at| text::moment(&at));
        let sentence = format!("{which} expires: {when}.");
        (sentence, is_dry || api.access.set_expiry(id, expires, by).await?)
    };
    if !is_there {
        return Err(Failure::NotFound);
    }
    Ok(OrderEffects {
        sentences: vec![sentence],
        ..OrderEffects::default()
    })
}

impl OrderEffects {
    fn of_changes(changes: ResourceChangesView) -> Self {
        let said = changes
            .resources
            .iter()
            .filter(|resource| !resource.change.is_empty());
        let mut sentences: Vec<_> = said
            .map(|said| format!("{}: {}.", said.name, said.change))
            .collect();
        if sentences.is_empty() {
            sentences.push("It is so already.".to_owned());
        }
        Self {
            sentences,
            agreements: changes.broken.into_iter().chain(changes.moved).collect(),
            unlisted: changes.unlisted,
            penalties: changes.penalties,
            withdrawn: changes.withdrawn,
            version: None,
        }
    }

    /// What follows from an operator's word that nodes are in a state.
    fn of_repair(repaired: RepairedView, state: &str) -> Self {
        let which = format!(
            "{} of {}: {state}.",
            ordered_nodes_in_words(&repaired.nodes),
            repaired.resource
        );
        let sentence = format!(
            "Of the reservations on {}, {} lose their work, {} get another place, and for {} there is none.",
            repaired.resource, repaired.lost, repaired.moved, repaired.broken
        );
        Self {
            sentences: vec![which, sentence],
            agreements: repaired.agreements,
            unlisted: repaired.unlisted,
            penalties: repaired.penalties,
            withdrawn: repaired.withdrawn,
            version: None,
        }
    }
}

/// Nodes by their names; the number of them, too, where only the first ones are named.
fn ordered_nodes_in_words(nodes: &[NodeView]) -> String {
    let names: Vec<&str> = nodes
        .iter()
        .take(NODES_NAMED_MAX)
        .map(|node| node.name.as_str())
        .collect();
    let names = names.join(", ");
    match nodes.len() {
        1 => format!("Node {names}"),
        many if many > NODES_NAMED_MAX => format!("{many} nodes ({names} and others)"),
        _ => format!("Nodes {names}"),
    }
}

/// The versions for which an order about an agreement holds: any while it is only asked about, else the one that was shown.
fn version_seen_by_order(values: &Values, is_dry: bool) -> Option<Vec<i64>> {
    let seen: Option<i64> = values.get(VERSION).parse().ok();
    (!is_dry).then(|| seen.into_iter().collect())
}

/// The body of a request to the API: these fields of the form that are not empty, and what else there is.
fn order_body(values: &Values, fields: &[&str], mut more: Value) -> Vec<u8> {
    let filled = fields.iter().filter(|name| !values.trimmed(name).is_empty());
    let filled = filled.map(|name| ((*name).to_owned(), json!(values.trimmed(name))));
    if let Value::Object(more) = &mut more {
        let given = std::mem::take(more)
            .into_iter()
            .filter(|(_, value)| !value.is_null());
        *more = given.chain(filled).collect::<Map<_, _>>();
    }
    more.to_string().into_bytes()
}

/// The id that a form names.
fn order_id(values: &Values) -> Result<Uuid, Failure> {
    values.get("id").parse().map_err(|_| Failure::NotFound)
}

/// The instant in a date and a time field, as a dateTime; none where they are empty.
fn order_time(values: &Values, fields: (&str, &str)) -> Result<Option<String>, Failure> {
    let read = form_reader::read_form_time(values, fields).map_err(service::Error::invalid)?;
    Ok(read.map(text::date_time))
}

/// The whole number in a field; none where it is empty.
fn order_count(values: &Values, field: &str) -> Result<Option<u32>, Failure> {
    let text = values.trimmed(field);
    if text.is_empty() {
        return Ok(None);
    }
    let count = text.parse().map(Some);
    count.map_err(|_| service::Error::invalid(format!("{field}: a whole number is expected")).into())
}

/// What makes a form that is sent twice count once.
fn once_of_order(visitor: &Visitor, values: &Values, what: &str, body: &[u8]) -> Option<RequestKey> {
    let once: Uuid = values.get(field_names::ONCE).parse().ok()?;
    let key = once.to_string();
    let target = format!("{what} {}", values.get("id"));
    Some(RequestKey::new(&visitor.caller.party, &key, &target, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_is_known_by_its_word() {
        for verb in NAMED_VERBS.iter().map(OrderVerb::Named).chain(OTHER_VERBS) {
            assert_eq!(OrderVerb::of_word(verb.words().0), Some(verb));
        }
    }
}
