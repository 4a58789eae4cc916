//! Resources, as operators see and change them.

use std::collections::BTreeMap;

use scheduler::domain::Attribute;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::values::{instant, second};
use crate::catalogue::{JobLimits, LimitKeys};
use crate::negotiation::error::wrong;
use crate::negotiation::request::json::{At, Check, Json};
use crate::negotiation::{Error, Negotiation, Templates};
use crate::planner::{
    self, ARCHITECTURE, ARCHITECTURE_LENGTH_MAX, CAPACITY_MAX, NUMBERS, NodeCounts, PlaceChange,
    PlannedPlace, RATES, Resource, ResourceChanges, ResourceOrder, ResourceVerb, ResourceWish, is_name,
};

/// Agreements in each list of an answer; the others are counted.
const LISTED_MAX: usize = 1_000;

/// The resources of the domain.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ResourcesView {
    /// In the order in which ties are broken; the retired ones on which nothing is planned come last.
    pub resources: Vec<ResourceView>,
}

/// How a resource stands.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceView {
    /// Its name.
    pub name: String,
    /// Its executor.
    pub kind: String,
    /// `in-service`, `retiring` (nothing new is placed on it, and work goes on) or `retired`.
    pub state: String,
    /// Since when it is retired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retired_since: Option<String>,
    /// How many nodes it has.
    pub nodes: u32,
    /// How many of them are up.
    pub up: u32,
    /// How many are drained.
    pub drained: u32,
    /// How many are down.
    pub down: u32,
    /// How fast its nodes work, as a multiple of the reference.
    pub rate: f64,
    /// The attributes of its nodes that requests may ask for.
    pub attributes: BTreeMap<String, Value>,
    /// The limits of its jobs, where it has some of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Value>,
    /// Its present faults.
    pub troubles: Vec<TroubleView>,
}

/// Something that a resource fails in.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TroubleView {
    /// The action that fails.
    pub doing: String,
    /// Its last message.
    pub message: String,
    /// Since when.
    pub since: String,
}

/// What became of resources and of agreements, or would become where it is only asked.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceChangesView {
    /// Whether nothing was done.
    pub dry_run: bool,
    /// The resources that are others than before.
    pub resources: Vec<ResourceChangeView>,
    /// Agreements that got another place, by their ids.
    pub moved: Vec<PlaceChangeView>,
    /// Agreements for which there is no place any more.
    pub broken: Vec<PlaceChangeView>,
    /// Agreements that are in neither list because these are full.
    pub unlisted: usize,
    /// Offers that were held and cannot be kept.
    pub withdrawn: usize,
}

/// A resource that is another than before.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ResourceChangeView {
    /// Its name.
    pub name: String,
    /// The difference in words; empty where it was so before.
    pub change: String,
    /// How many nodes it has.
    pub nodes: u32,
    /// Whether nothing new is placed on it.
    pub retired: bool,
}

/// Another place of an agreement, or the loss of its place.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlaceChangeView {
    /// Its id.
    pub agreement: Uuid,
    /// Its party.
    pub party: String,
    /// The name in its offer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where it was.
    pub from: PlannedPlaceView,
    /// Where it is; none where there is no place for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<PlannedPlaceView>,
}

/// Where an agreement lies in the plan.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlannedPlaceView {
    /// Name of the resource.
    pub resource: String,
    /// From when.
    pub start: String,
    /// Until when.
    pub end: String,
    /// On how many nodes.
    pub nodes: u32,
}

/// What was taken over of a configuration.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReloadedView {
    /// What became of resources, and of agreements for that.
    #[serde(flatten)]
    pub changes: ResourceChangesView,
    /// The parts of the configuration that differ from those at the start, and are taken over by a restart only.
    pub needs_restart: Vec<String>,
}

/// An order to read the configuration again.
pub struct ReloadOrder {
    /// Who gives it.
    pub party: String,
    /// Whether it is only asked what would follow.
    pub is_dry: bool,
    /// Where the answer goes.
    pub reply: oneshot::Sender<Result<ReloadedView, Error>>,
}

impl Negotiation {
    /// The resources and how they stand. For operators.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn resources(&self) -> Result<ResourcesView, Error> {
        let counts = self.planner.node_counts().await?;
        let mut resources = Vec::new();
        for (resource, counts) in counts {
            let planned = if resource.is_retired() && counts.is_some() {
                let there = self.planner.planned_on(resource.name.clone()).await?;
                !there.agreements.is_empty()
            } else {
                counts.is_some()
            };
            resources.push(self.resource_view(&resource, counts.unwrap_or_default(), planned));
        }
        Ok(ResourcesView { resources })
    }

    fn resource_view(&self, of: &Resource, counts: NodeCounts, has_work: bool) -> ResourceView {
        let faults = self.faults.of(&of.name).into_iter();
        let value = |attribute: &Attribute| match attribute {
            Attribute::Word(word) => json!(word),
            Attribute::Number(number) => json!(number),
        };
        let attributes = of.attributes.iter();
        let state = match of.retired {
            None => "in-service",
            Some(_) if has_work => "retiring",
            Some(_) => "retired",
        };
        ResourceView {
            name: of.name.clone(),
            kind: of.kind.clone(),
            state: state.to_owned(),
            retired_since: of.retired.map(instant),
            nodes: of.capacity,
            up: counts.up,
            drained: counts.drained,
            down: counts.down,
            rate: f64::from(of.rate.millionths()) / 1e6,
            attributes: attributes.map(|(name, of)| (name.clone(), value(of))).collect(),
            limits: of.executor.get("limits").cloned(),
            troubles: faults
                .map(|of| TroubleView {
                    doing: of.doing.words().to_owned(),
                    message: of.message,
                    since: instant(of.since),
                })
                .collect(),
        }
    }

    /// Adds a resource of this machine, or changes a resource; with `is_dry` it is only answered what would follow. The body is an
    /// object with `nodes`, `rate`, `attributes` and `limits`; what is left out stays as it is. For operators.
    ///
    /// # Errors
    /// The errors of the body, [`Error::Conflict`] where the resource cannot be so, [`Error::Unavailable`].
    pub async fn put_resource(
        &self,
        party: &str,
        name: &str,
        body: &[u8],
        is_dry: bool,
    ) -> Result<ResourceChangesView, Error> {
        if !is_name(name) {
            let message =
                format!("letters, digits, '-', '_' or '.' are expected in a resource's name, not {name:?}");
            return Err(wrong("", message).into());
        }
        let verb = ResourceVerb::Put(read_wish(body)?);
        self.order(party, name, verb, is_dry).await
    }

    /// Has nothing new be placed on a resource, and what waits there go elsewhere; with `is_dry` it is only answered what would
    /// follow. For operators.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Unavailable`].
    pub async fn retire_resource(
        &self,
        party: &str,
        name: &str,
        is_dry: bool,
    ) -> Result<ResourceChangesView, Error> {
        self.order(party, name, ResourceVerb::Retire, is_dry).await
    }

    /// Takes a resource into service again that was retired. For operators.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Unavailable`].
    pub async fn restore_resource(
        &self,
        party: &str,
        name: &str,
        is_dry: bool,
    ) -> Result<ResourceChangesView, Error> {
        self.order(party, name, ResourceVerb::Restore, is_dry).await
    }

    async fn order(
        &self,
        party: &str,
        name: &str,
        verb: ResourceVerb,
        is_dry: bool,
    ) -> Result<ResourceChangesView, Error> {
        let order = ResourceOrder {
            id: Uuid::now_v7(),
            party: party.to_owned(),
            name: name.to_owned(),
            verb,
            is_dry,
        };
        let changes = self.planner.change_resource(order).await?;
        if !is_dry {
            self.fit_templates().await?;
        }
        Ok(ResourceChangesView::of(&changes, is_dry))
    }

    /// Has the configuration be read again; with `is_dry` it is only answered what would follow. For operators.
    ///
    /// # Errors
    /// [`Error::Conflict`] where it has a fault, which changes nothing; [`Error::Unavailable`].
    pub async fn reload(&self, party: &str, is_dry: bool) -> Result<ReloadedView, Error> {
        let reloading = self.reloading.as_ref().ok_or(Error::Unavailable)?;
        let (reply, told) = oneshot::channel();
        let order = ReloadOrder {
            party: party.to_owned(),
            is_dry,
            reply,
        };
        reloading.send(order).await.map_err(|_| Error::Unavailable)?;
        told.await.unwrap_or(Err(Error::Unavailable))
    }

    /// Offers other templates from now on, as the resources allow.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where they could not be stored.
    pub async fn offer_templates(&self, templates: Templates) -> Result<(), Error> {
        let fitted = templates.fitted_to(&self.planner.resources());
        let fitted = fitted.map_err(Error::Internal)?;
        self.store.keep_templates(&fitted.versions()).await?;
        self.templates.replace(fitted);
        Ok(())
    }

    /// Offers the templates as the resources allow now.
    ///
    /// # Errors
    /// As [`Negotiation::offer_templates`].
    pub async fn fit_templates(&self) -> Result<(), Error> {
        let now = self.templates.now();
        let resources = self.planner.resources();
        if now.fit(&resources) {
            return Ok(());
        }
        let fitted = now.fitted_to(&resources).map_err(Error::Internal)?;
        self.store.keep_templates(&fitted.versions()).await?;
        self.templates.replace(fitted);
        Ok(())
    }
}

impl ResourceChangesView {
    fn of(changes: &ResourceChanges, is_dry: bool) -> Self {
        let mut view = Self {
            dry_run: is_dry,
            withdrawn: changes.effects.withdrawn,
            ..Self::default()
        };
        let resources = changes.resources.iter();
        view.resources = resources
            .map(|(of, words)| ResourceChangeView {
                name: of.name.clone(),
                change: words.clone(),
                nodes: of.capacity,
                retired: of.is_retired(),
            })
            .collect();
        for (id, change) in &changes.effects.changes {
            let list = match &change.to {
                Some(to) if *to == change.from => continue,
                Some(_) => &mut view.moved,
                None => &mut view.broken,
            };
            if list.len() < LISTED_MAX {
                list.push(PlaceChangeView::of(*id, change));
            } else {
                view.unlisted += 1;
            }
        }
        view
    }
}

impl ReloadedView {
    /// What became of resources, with the parts of the configuration that are left for a restart.
    pub fn of(changes: &ResourceChanges, needs_restart: Vec<String>, is_dry: bool) -> Self {
        Self {
            changes: ResourceChangesView::of(changes, is_dry),
            needs_restart,
        }
    }
}

impl PlaceChangeView {
    fn of(agreement: Uuid, of: &PlaceChange) -> Self {
        let place = |of: &PlannedPlace| PlannedPlaceView {
            resource: of.resource.clone(),
            start: second(of.slot.start),
            end: second(of.slot.end),
            nodes: of.nodes,
        };
        Self {
            agreement,
            party: of.party.clone(),
            name: of.name.clone(),
            from: place(&of.from),
            to: of.to.as_ref().map(place),
        }
    }
}

/// The resource that a body asks for.
fn read_wish(body: &[u8]) -> Result<ResourceWish, Error> {
    let value = Json::parse(body)?;
    let mut check = Check::default();
    let known = ["kind", "nodes", "rate", "attributes", "limits"];
    let read = check.object(&At::root(&value), &known).map(|object| {
        let expected = format!("a number from {} to {}", RATES.start(), RATES.end());
        ResourceWish {
            kind: object.read(&mut check, "kind", Check::text),
            capacity: object.read(&mut check, "nodes", |check, at| check.count(at, CAPACITY_MAX)),
            rate: object.read(&mut check, "rate", |check, at| {
                let rate = check.number(at, &expected, |rate| RATES.contains(&rate));
                rate.and_then(planner::rate)
            }),
            attributes: object.read(&mut check, "attributes", read_attributes),
            executor: object.read(&mut check, "limits", read_limits),
        }
    });
    check.finish(read)
}

/// Attributes of nodes, by the names that the configuration has for them.
fn read_attributes(check: &mut Check, at: &At<'_>) -> Option<BTreeMap<String, Attribute>> {
    let known: Vec<&str> = NUMBERS.into_iter().chain([ARCHITECTURE]).collect();
    let object = check.object(at, &known)?;
    let mut attributes = BTreeMap::new();
    for name in NUMBERS {
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
fn read_limits(check: &mut Check, at: &At<'_>) -> Option<Value> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_has_what_it_says_and_leaves_the_rest() {
        let read = |text: &str| read_wish(text.as_bytes());
        assert_eq!(read("{}").unwrap(), ResourceWish::default());
        let wish = read(
            r#"{"nodes": 4, "rate": 1.5, "attributes": {"cpus": 8, "cpu_architecture": "arm"},
                "limits": {"memory_mib": 64}}"#,
        );
        let wish = wish.unwrap();
        assert_eq!((wish.capacity, wish.rate), (Some(4), planner::rate(1.5)));
        assert_eq!(wish.attributes.unwrap().len(), 2);
        assert_eq!(wish.executor, Some(json!({"limits": {"memory_mib": 64}})));
        for (wrong, path) in [
            (r#"{"nodes": 0}"#, "/nodes"),
            (r#"{"nodes": 1000001}"#, "/nodes"),
            (r#"{"rate": 0.001}"#, "/rate"),
            (r#"{"attributes": {"gpus": 1}}"#, "/attributes/gpus"),
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
