//! The verbs of operators about resources.

use std::collections::BTreeMap;

use domain::catalogue::{JobLimits, LimitKeys};
use domain::resources::{
    ARCHITECTURE, ARCHITECTURE_LENGTH_MAX, CAPACITY_MAX, NUMBERS, RATES, Resource, is_resource_name,
};
use planner::{ChangeResource, CountNodes, ListPlanned, ResourceVerb, ResourceWish, ShowStandings};
use scheduler::domain::Attribute;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::codec::json::Json;
use crate::codec::json_check::{JsonCheck, LocatedValue};
use crate::configuration::fit_templates_to_resources;
use crate::error::violation_at_path;
use crate::nodes::NodeView;
use crate::views::resource_changes::ResourceChangesView;
use crate::views::resources::{OfferedResourceView, OfferedResourcesView, ResourceView, ResourcesView};
use crate::{Error, Service};

/// The resources and how they stand. For operators.
///
/// # Errors
/// [`Error::Unavailable`].
pub async fn list_resources(service: &Service) -> Result<ResourcesView, Error> {
    let counts = service.ask(CountNodes).await?;
    let mut resources = Vec::new();
    for (resource, counts) in counts {
        let planned = if resource.is_retired() && counts.is_some() {
            let there = service
                .ask(ListPlanned {
                    resource: resource.name.clone(),
                })
                .await?;
            !there.agreements.is_empty()
        } else {
            counts.is_some()
        };
        let faults = service.faults.of(&resource.name);
        resources.push(ResourceView::of(
            &resource,
            counts.unwrap_or_default(),
            planned,
            faults,
        ));
    }
    Ok(ResourcesView { resources })
}

/// The resources and how they stand, each with its nodes: where they are many, only those that are not up. For operators.
///
/// # Errors
/// [`Error::Unavailable`].
pub async fn list_resources_with_nodes(
    service: &Service,
) -> Result<Vec<(ResourceView, Vec<NodeView>)>, Error> {
    let standings = service.ask(ShowStandings).await?;
    let view = |resource: &Resource| {
        let mut all = standings.iter();
        let standing = all.find(|standing| standing.name == resource.name);
        let has_work = standing.is_some_and(|standing| !resource.is_retired() || standing.has_work);
        let counts = standing.map(|standing| standing.counts).unwrap_or_default();
        let nodes = standing.map_or(&[][..], |standing| &standing.nodes[..]).iter();
        let view = ResourceView::of(resource, counts, has_work, service.faults.of(&resource.name));
        (view, nodes.map(NodeView::of).collect())
    };
    Ok(service.planner.resources().iter().map(view).collect())
}

/// Adds a resource of this machine, or changes a resource; with `is_dry` it is only answered what would follow. The body is an
/// object with `nodes`, `rate`, `attributes` and `limits`; what is left out stays as it is. For operators.
///
/// # Errors
/// The errors of the body, [`Error::Conflict`] where the resource cannot be so, [`Error::Unavailable`].
pub async fn put_resource(
    service: &Service,
    party: &str,
    name: &str,
    body: &[u8],
    is_dry: bool,
) -> Result<ResourceChangesView, Error> {
    if !is_resource_name(name) {
        let message =
            format!("letters, digits, '-', '_' or '.' are expected in a resource's name, not {name:?}");
        return Err(violation_at_path("", message).into());
    }
    let verb = ResourceVerb::Put(read_resource_wish(body)?);
    change_resource(service, party, name, verb, is_dry).await
}

/// Does something with a resource. With `is_dry` it is only answered what would follow. For operators.
///
/// # Errors
/// [`Error::NotFound`], [`Error::Conflict`] where the resource cannot be so, [`Error::Unavailable`].
pub async fn change_resource(
    service: &Service,
    party: &str,
    name: &str,
    verb: ResourceVerb,
    is_dry: bool,
) -> Result<ResourceChangesView, Error> {
    let order = ChangeResource {
        id: Uuid::now_v7(),
        party: party.to_owned(),
        name: name.to_owned(),
        verb,
    };
    let changes = service.send_or_try(order, is_dry).await?;
    if !is_dry {
        fit_templates_to_resources(service).await?;
    }
    Ok(ResourceChangesView::of(&changes, is_dry))
}

/// The resource that a body asks for.
fn read_resource_wish(body: &[u8]) -> Result<ResourceWish, Error> {
    let value = Json::parse(body)?;
    let mut check = JsonCheck::default();
    let known = ["kind", "nodes", "rate", "attributes", "limits"];
    let read = check.object(&LocatedValue::root(&value), &known).map(|object| {
        let expected = format!("a number from {} to {}", RATES.start(), RATES.end());
        ResourceWish {
            kind: object.read(&mut check, "kind", JsonCheck::text),
            capacity: object.read(&mut check, "nodes", |check, at| check.count(at, CAPACITY_MAX)),
            rate: object.read(&mut check, "rate", |check, at| {
                let rate = check.number(at, &expected, |rate| RATES.contains(&rate));
                rate.and_then(domain::resources::resource_rate_of_multiple)
            }),
            attributes: object.read(&mut check, "attributes", read_resource_attributes),
            executor: object.read(&mut check, "limits", read_resource_job_limits),
        }
    });
    check.finish(read)
}

/// A verb of operators that needs no more than the name of a resource: its route, its command and its button.
#[derive(Debug, PartialEq, Eq)]
pub struct NamedVerb {
    /// The word of the command, and the last part of the route.
    pub word: &'static str,
    /// What is done.
    pub verb: ResourceVerb,
    /// The path of the route.
    pub path: &'static str,
    /// The name of the route for programs.
    pub operation: &'static str,
    /// What its route does, in a sentence without its full stop.
    pub about: &'static str,
    /// What its command does, in an order without its full stop.
    pub help: &'static str,
    /// The words on its button.
    pub label: &'static str,
    /// The states of the resources that have the button.
    pub states: &'static [&'static str],
    /// Whether what waits on the resource loses its place.
    pub is_grave: bool,
}

/// Writes the table of verbs, with what follows from the word of each.
macro_rules! named_verbs {
    ($($word:literal $verb:ident, $label:literal, $states:expr, $is_grave:literal, $does:literal / $order:literal, $what:literal;)*) => {
        /// The verbs of operators that need no more than the name of a resource.
        pub static NAMED_VERBS: &[NamedVerb] = &[$(NamedVerb {
            word: $word,
            verb: ResourceVerb::$verb,
            path: concat!("/resources/{name}/", $word),
            operation: concat!($word, "Resource"),
            about: concat!($does, " ", $what),
            help: concat!($order, " ", $what),
            label: $label,
            states: &$states,
            is_grave: $is_grave,
        }),*];
    };
}

named_verbs! {
    "freeze" Freeze, "Freeze", ["in-service"], false,
        "Places" / "Place", "nothing new on a resource; what is agreed stays there, runs, and may move on it";
    "thaw" Thaw, "Thaw", ["frozen"], false,
        "Has" / "Have", "a frozen resource take new work again";
    "retire" Retire, "Retire", ["in-service", "frozen"], true,
        "Places" / "Place", "nothing new on a resource; what waits there goes elsewhere, what runs goes on until it ends";
    "restore" Restore, "Restore", ["retiring", "retired"], false,
        "Takes" / "Take", "a retired resource into service again";
}

/// Attributes of nodes, by the names that the configuration has for them.
pub(super) fn read_resource_attributes(
    check: &mut JsonCheck,
    at: &LocatedValue<'_>,
) -> Option<BTreeMap<String, Attribute>> {
    let numbers = || NUMBERS.iter().map(|number| number.name);
    let known: Vec<&str> = numbers().chain([ARCHITECTURE]).collect();
    let object = check.object(at, &known)?;
    let mut attributes = BTreeMap::new();
    for name in numbers() {
        let number = object.read(check, name, |check, at| check.count(at, i64::MAX.unsigned_abs()));
        let number = number.and_then(|number| i64::try_from(number).ok());
        attributes.extend(number.map(|number| (name.to_owned(), Attribute::Number(number))));
    }
    let word = object.read(check, ARCHITECTURE, |check, at| {
        let word = check.token(at)?;
        if word.chars().count() > ARCHITECTURE_LENGTH_MAX {
            let message = format!("a text of at most {ARCHITECTURE_LENGTH_MAX} characters is expected");
            return check.wrong(at, message);
        }
        Some(word)
    });
    attributes.extend(word.map(|word| (ARCHITECTURE.to_owned(), Attribute::Word(word))));
    Some(attributes)
}

/// The limits of jobs, with the keys of the configuration, as the executor has them.
fn read_resource_job_limits(check: &mut JsonCheck, at: &LocatedValue<'_>) -> Option<Value> {
    if at.members().is_none() {
        // The keys would be read from a list, too, by their order.
        return check.wrong(at, "an object is expected");
    }
    let limits = serde_json::to_value(at.value).ok()?;
    let keys: Result<LimitKeys, _> = serde_json::from_value(limits);
    let keys = match keys {
        Ok(keys) => keys,
        Err(why) => return check.wrong(at, why.to_string()),
    };
    if let Err(why) = JobLimits::try_from(keys) {
        return check.wrong(at, why.to_string());
    }
    Some(json!({ "limits": keys }))
}

/// The resources on which something can be placed: what they have, and nothing of how they are used.
pub fn list_offered_resources(service: &Service) -> OfferedResourcesView {
    let resources = service.planner.resources();
    let in_service = resources.iter().filter(|resource| resource.takes_new());
    OfferedResourcesView {
        resources: in_service.map(OfferedResourceView::of).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_has_what_it_says_and_leaves_the_rest() {
        let read = |text: &str| read_resource_wish(text.as_bytes());
        assert_eq!(read("{}").unwrap(), ResourceWish::default());
        let wish = read(
            r#"{"nodes": 4, "rate": 1.5, "attributes": {"cpus": 8, "cpu_architecture": "arm"},
                "limits": {"memory_mib": 64}}"#,
        );
        let wish = wish.unwrap();
        assert_eq!(
            (wish.capacity, wish.rate),
            (Some(4), domain::resources::resource_rate_of_multiple(1.5))
        );
        assert_eq!(wish.attributes.unwrap().len(), 2);
        assert_eq!(wish.executor, Some(json!({"limits": {"memory_mib": 64}})));
        for (wrong, path) in [
            (r#"{"nodes": 0}"#, "/nodes"),
            (r#"{"nodes": 100001}"#, "/nodes"),
            (r#"{"rate": 0.001}"#, "/rate"),
            (r#"{"limits": [null, 64]}"#, "/limits"),
            (r#"{"attributes": {"colours": 1}}"#, "/attributes/colours"),
            (r#"{"attributes": {"cpus": 0}}"#, "/attributes/cpus"),
            (r#"{"limits": {"processes": 0}}"#, "/limits"),
            (r#"{"limits": {"colour": 1}}"#, "/limits"),
            (r#"{"capacity": 1}"#, "/capacity"),
        ] {
            match read(wrong) {
                Err(Error::Invalid(violations)) => assert_eq!(violations.0[0].path, path, "{wrong}"),
                other => panic!("{wrong}: {other:?}"),
            }
        }
        assert!(matches!(read("nodes"), Err(Error::MalformedJson(_))));
    }
}
