//! The flat request of a client that speaks JSON: read strictly and made into the same offer as a document. Faults of
//! that offer are reported at their places in the request.

pub(super) mod cluster_policy;
pub(super) mod filters;
pub(super) mod flat_request;
pub(super) mod granted_duration;
pub(super) mod guarantee_values;
pub(super) mod guarantees;
pub(super) mod json;
pub(super) mod offer;
pub(super) mod sizes;
mod staging;
pub(super) mod wording;

use std::collections::BTreeMap;
use std::sync::Arc;

use address::is_no_place;
use domain::change::AcceptanceEndpoint;
use domain::resources::ARCHITECTURE;
use scheduler::domain::Attribute;
use serde_json::{Value, json};
use wsag::job::ARCHITECTURES;
use wsag::scheduling::{Budget, Moldability, Preemption, Preference, Scheduling};
use wsag::{Document, Message, ValuePlaces};

use super::idempotency::text_to_keep;
use super::resources::read_node_attributes;
use super::templates::OfferedTemplate;
use super::{Error, Input, Result, Service};
use crate::negotiation::codec::members::places_of_request;
use crate::negotiation::request::flat_request::{CatalogueJob, FlatRequest};
use crate::negotiation::request::json::{Json, JsonCheck, LocatedValue, Members, Object, whole_number};
use crate::negotiation::views::resources::view_attributes;
use crate::negotiation::views::scheduling;
use crate::negotiation::views::staging::view_staged_files;

/// The members of a request.
const MEMBERS: [&str; 19] = [
    "template",
    "name",
    "application",
    "version",
    "arguments",
    "staging",
    "nodes",
    "attributes",
    "durationSeconds",
    "window",
    "moldability",
    "preemption",
    "budget",
    "maxDeviation",
    "fixAt",
    "weights",
    "resource",
    "pending",
    "callback",
];

/// How an offer asks to be decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::negotiation) enum DecisionTime {
    /// Before it is answered.
    Now,
    /// Afterwards; told to this endpoint, if there is one.
    Later(Option<AcceptanceEndpoint>),
}

/// A flat request, read into a wish.
pub(super) struct ReadRequest {
    pub(super) wish: FlatRequest,
    /// Where each part of the wish stands in the request.
    pub(super) places: ValuePlaces,
    /// The id of the template that it names.
    pub(super) named: Option<String>,
    /// The template that it is to become an offer of: the first one where it names none.
    pub(super) offered: Arc<OfferedTemplate>,
    /// When it is to be decided.
    pub(super) decision: DecisionTime,
}

impl Service {
    /// Reads a flat request, which may also have these members, and the values that `read` makes of them.
    pub(super) fn read_request<T>(
        &self,
        request: &LocatedValue<'_>,
        also: &[&str],
        read: impl FnOnce(&mut JsonCheck, &Object<'_>) -> T,
    ) -> Result<(ReadRequest, T)> {
        let known: Vec<&str> = MEMBERS.iter().chain(also).copied().collect();
        let mut check = JsonCheck::default();
        let read = check.object(request, &known).and_then(|object| {
            let others = read(&mut check, &object);
            Some((self.read_members(&mut check, &object)?, others))
        });
        check.finish(read)
    }

    fn read_members(&self, check: &mut JsonCheck, object: &Object<'_>) -> Option<ReadRequest> {
        let decision = self.read_decision(check, object);
        let (wish, places) = read_flat_request(check, object);
        let named = object.read(check, "template", JsonCheck::text);
        let offered = match &named {
            None => self.templates.first(),
            Some(id) => {
                let found = self.templates.get(id);
                if found.is_none() {
                    let known: Vec<_> = self.templates().into_iter().map(|template| template.id).collect();
                    let message = format!("there is no template {id:?}; offered are {}", known.join(", "));
                    check.add(&format!("{}/template", object.pointer()), message);
                }
                found
            }
        };
        Some(ReadRequest {
            wish,
            places,
            offered: offered?,
            named,
            decision,
        })
    }

    pub(super) fn read_decision(&self, check: &mut JsonCheck, object: &Object<'_>) -> DecisionTime {
        let pending = object.read(check, "pending", JsonCheck::boolean);
        let Some(at) = object.get("callback") else {
            return match pending {
                Some(true) => DecisionTime::Later(None),
                _ => DecisionTime::Now,
            };
        };
        if pending != Some(true) {
            check.add(&at.pointer, "it is called for a pending agreement only");
        }
        // Its party polls where it names no place.
        let address = check.text(&at).filter(|address| !is_no_place(address));
        if let Some(Err(why)) = address.as_deref().map(|address| self.may_call.check(address)) {
            check.add(&at.pointer, why);
        }
        DecisionTime::Later(address.map(|address| AcceptanceEndpoint {
            address,
            parameters: None,
        }))
    }
}

/// The wish and its places.
fn read_flat_request(check: &mut JsonCheck, object: &Object<'_>) -> (FlatRequest, ValuePlaces) {
    let mut wish = FlatRequest {
        name: object.read(check, "name", JsonCheck::text),
        run: read_run(check, object),
        staging: object.read(check, "staging", |check, at| {
            Some(staging::read_staged_files(check, at))
        }),
        nodes: object.read(check, "nodes", read_nodes),
        attributes: object
            .read(check, "attributes", read_attributes)
            .unwrap_or_default(),
        duration: object.read(check, "durationSeconds", |check, at| check.count(at, i32::MAX)),
        scheduling: read_scheduling(check, object),
        ..FlatRequest::default()
    };
    let window = object.read(check, "window", |check, at| check.object(at, &["start", "end"]));
    if let Some(window) = window {
        wish.start = window.read(check, "start", JsonCheck::date_time);
        wish.end = window.read(check, "end", JsonCheck::date_time);
    }
    (wish, places_of_request(object))
}

/// Reads a request to end something: a document of the right kind, which is expected, or an object with a reason, which need not
/// be given. An empty body asks for it too.
pub(super) fn read_request_to_end(
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

impl FlatRequest {
    /// As a flat request that reads as the same wish: its members as they are kept.
    pub(super) fn to_json(&self) -> String {
        text_to_keep(&Json::from(self.members()))
    }

    /// The members of [`FlatRequest::to_json`].
    pub(super) fn members(&self) -> Members {
        let run = self.run.as_ref();
        let window = Members::default()
            .with_any("start", self.start.map(|at| at.to_string()))
            .with_any("end", self.end.map(|at| at.to_string()));
        let is_bounded = self.start.or(self.end).is_some();
        let is_demanding = !self.attributes.is_empty();
        Members::default()
            .with_any("name", self.name.as_deref())
            .with_any("application", run.map(|run| run.name.as_str()))
            .with_any("version", run.and_then(|run| run.version.as_deref()))
            .with_texts("arguments", run.map_or(&[], |run| &run.arguments))
            .holding_any("staging", self.staging.as_deref().map(view_staged_files))
            .with_any("nodes", self.nodes.map(nodes_as_value))
            .holding_any(
                "attributes",
                is_demanding.then(|| json!(view_attributes(&self.attributes))),
            )
            .with_any("durationSeconds", self.duration)
            .holding_any("window", is_bounded.then_some(window))
            .and(scheduling::view_scheduling(&self.scheduling))
    }

    /// The text of [`FlatRequest::to_json`], and its places.
    ///
    /// # Errors
    /// [`Error::MalformedJson`] and [`Error::Invalid`] for anything else.
    pub(super) fn from_json(text: &str) -> Result<(Self, ValuePlaces)> {
        let mut check = JsonCheck::default();
        let request = Json::parse(text.as_bytes())?;
        let object = check.object(&LocatedValue::root(&request), &MEMBERS);
        let wish = object.map(|object| read_flat_request(&mut check, &object));
        check.finish(wish)
    }
}

fn read_run(check: &mut JsonCheck, object: &Object<'_>) -> Option<CatalogueJob> {
    let arguments = object.get("arguments").map(|at| {
        let values = check.list(&at);
        values
            .iter()
            .filter_map(|at| match at.value {
                // Most arguments are numbers, and 2.0 is 2.
                Json::Number(number) => {
                    let whole = whole_number(number).map(|whole| whole.to_string());
                    Some(whole.unwrap_or_else(|| number.to_string()))
                }
                // An argument may be empty.
                _ => check.any_text(at),
            })
            .collect()
    });
    let version = object.read(check, "version", JsonCheck::text);
    let Some(at) = object.get("application") else {
        for name in ["arguments", "version"] {
            if let Some(at) = object.get(name) {
                check.add(&at.pointer, "it is of an application, and none is named");
            }
        }
        return None;
    };
    Some(CatalogueJob {
        name: check.text(&at)?,
        version,
        arguments: arguments.unwrap_or_default(),
    })
}

/// A number of nodes, or the least and the greatest, as [`read_nodes`] reads them.
fn nodes_as_value((min, max): (u32, u32)) -> Value {
    if min == max {
        json!(min)
    } else {
        json!({ "min": min, "max": max })
    }
}

/// A number, or the least and the greatest.
fn read_nodes(check: &mut JsonCheck, at: &LocatedValue<'_>) -> Option<(u32, u32)> {
    match at.value {
        Json::Number(_) => return check.count(at, u32::MAX).map(|nodes| (nodes, nodes)),
        Json::Object(_) => {}
        _ => return check.expected(at, "a number, or an object with min and max,"),
    }
    let object = check.object(at, &["min", "max"])?;
    let min = object.read_required(check, "min", read_whole_number);
    let max = object.read_required(check, "max", read_whole_number);
    let (min, max) = min.zip(max)?;
    if min > max {
        check.add(
            &at.pointer,
            format!("the least, {min}, is more than the greatest, {max}"),
        );
    }
    Some((min, max))
}

/// What each node must have: attributes of the names that resources have for them, and an architecture that documents know.
fn read_attributes(check: &mut JsonCheck, at: &LocatedValue<'_>) -> Option<BTreeMap<String, Attribute>> {
    let attributes = read_node_attributes(check, at)?;
    match attributes.get(ARCHITECTURE) {
        Some(Attribute::Word(word)) if !ARCHITECTURES.contains(&word.as_str()) => {
            let message = format!("one of {} is expected", ARCHITECTURES.join(", "));
            check.add(&format!("{}/{ARCHITECTURE}", at.pointer), message);
        }
        _ => {}
    }
    Some(attributes)
}

fn read_scheduling(check: &mut JsonCheck, object: &Object<'_>) -> Scheduling {
    Scheduling {
        moldability: object.read(check, "moldability", read_moldability),
        preemption: object.read(check, "preemption", read_preemption),
        budget: object.read(check, "budget", read_budget),
        max_deviation: object.read(check, "maxDeviation", read_not_negative),
        fix_at: object.read(check, "fixAt", read_share),
        preference: object.read(check, "weights", read_weights),
        resource: object.read(check, "resource", JsonCheck::text),
    }
}

fn read_moldability(check: &mut JsonCheck, at: &LocatedValue<'_>) -> Option<Moldability> {
    let object = check.object(at, &["linear", "table", "constantWork"])?;
    match ["linear", "table", "constantWork"].map(|name| object.get(name)) {
        [Some(at), None, None] => {
            let object = check.object(&at, &["intercept", "slope"])?;
            let intercept = object.read_required(check, "intercept", read_positive);
            let slope = object.read_required(check, "slope", read_not_negative);
            Some(Moldability::Linear {
                intercept: intercept?,
                slope: slope?,
            })
        }
        [None, Some(at), None] => {
            let mut entries = Vec::new();
            for at in check.list(&at) {
                let entry = check.object(&at, &["nodes", "durationSeconds"])?;
                let nodes = entry.read_required(check, "nodes", read_whole_number);
                let duration = entry.read_required(check, "durationSeconds", read_whole_number);
                entries.extend(nodes.zip(duration));
            }
            if entries.is_empty() {
                check.add(&at.pointer, "at least one line is expected");
            }
            Some(Moldability::Table(entries))
        }
        [None, None, Some(at)] => read_positive(check, &at).map(Moldability::ConstantWork),
        _ => check.wrong(at, "one of linear, table and constantWork is expected"),
    }
}

fn read_preemption(check: &mut JsonCheck, at: &LocatedValue<'_>) -> Option<Preemption> {
    let object = check.object(at, &["pieces", "interval", "independent"])?;
    let pieces = object.read_required(check, "pieces", read_whole_number);
    let interval = object.read_required(check, "interval", |check, at| {
        let expected = "a number above 0 and at most 1";
        check.number(at, expected, |value| value > 0.0 && value <= 1.0)
    });
    let independent = object.read_required(check, "independent", JsonCheck::boolean);
    Some(Preemption {
        pieces: pieces?,
        interval: interval?,
        independent: independent?,
    })
}

/// A sum of money, its amount as a text or as a number that stands there without an exponent.
pub(in crate::negotiation) fn read_budget(check: &mut JsonCheck, at: &LocatedValue<'_>) -> Option<Budget> {
    let object = check.object(at, &["amount", "currency"])?;
    let amount = object.read_required(check, "amount", |check, at| {
        let text = match at.value {
            Json::Number(number) => number.to_string(),
            _ => check.text(at)?,
        };
        match wsag::scheduling::parse_amount(&text) {
            Ok(micros) if micros < 0 => check.wrong(at, "an amount from 0 on is expected"),
            amount => amount.map_or_else(|why| check.wrong(at, why), Some),
        }
    });
    let currency = object.read_required(check, "currency", |check, at| {
        let text = check.text(at)?;
        wsag::scheduling::parse_currency(&text).map_or_else(|why| check.wrong(at, why), Some)
    });
    Some(Budget {
        amount_micros: amount?,
        currency: currency?,
    })
}

fn read_weights(check: &mut JsonCheck, at: &LocatedValue<'_>) -> Option<Preference> {
    let object = check.object(at, &["start", "size", "duration", "price"])?;
    let mut weight = |name| object.read(check, name, read_not_negative);
    Some(Preference {
        start: weight("start"),
        size: weight("size"),
        duration: weight("duration"),
        price: weight("price"),
    })
}

fn read_whole_number(check: &mut JsonCheck, at: &LocatedValue<'_>) -> Option<u32> {
    check.count(at, u32::MAX)
}

fn read_not_negative(check: &mut JsonCheck, at: &LocatedValue<'_>) -> Option<f64> {
    check.number(at, "a number from 0 on", |value| value >= 0.0)
}

fn read_positive(check: &mut JsonCheck, at: &LocatedValue<'_>) -> Option<f64> {
    check.number(at, "a number above 0", |value| value > 0.0)
}

fn read_share(check: &mut JsonCheck, at: &LocatedValue<'_>) -> Option<f64> {
    check.number(at, "a number from 0 to 1", |value| (0.0..=1.0).contains(&value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wsag::job::{CreationFlag, DataStaging};

    use super::*;

    /// Micro-units of a budget that a request may not have: an amount has twelve digits at most.
    const AMOUNT_MAX: i64 = 1_000_000_000_000_000_000;

    /// Numbers that a request may have, the awkward ones among them.
    fn number() -> impl Strategy<Value = f64> {
        let some = [0.1 + 0.2, 1.0 / 3.0, f64::MIN_POSITIVE, f64::MAX, 5e-324, 1.0];
        prop_oneof![prop::sample::select(some.to_vec()), 1.0e-9..1.0e18_f64]
    }

    fn moldability() -> impl Strategy<Value = Moldability> {
        prop_oneof![
            (number(), number()).prop_map(|(intercept, slope)| Moldability::Linear { intercept, slope }),
            prop::collection::vec((1..u32::MAX, 1..u32::MAX), 1..5).prop_map(Moldability::Table),
            number().prop_map(Moldability::ConstantWork),
        ]
    }

    fn file(texts: &[String], named: bool) -> DataStaging {
        DataStaging {
            file_name: texts[0].clone(),
            creation_flag: if named {
                CreationFlag::Append
            } else {
                CreationFlag::Overwrite
            },
            delete_on_termination: Some(named),
            source: named.then(|| "a.dat".to_owned()),
            target: (!named).then(|| "http://a/".to_owned()),
            bytes: named.then_some(u64::MAX),
        }
    }

    proptest! {
        #[test]
        fn a_kept_wish_is_read_as_it_was(
            texts in prop::collection::vec("[^\u{0}-\u{1f}\u{7f}-\u{9f}\u{fffe}\u{ffff}]{1,9}", 4),
            runs: bool, empty: bool, named: bool,
            nodes in prop::option::of((1..9_u32, 0..3_u32)),
            cpus in prop::option::of(1..i64::MAX),
            duration in prop::option::of(1..i32::MAX),
            (start, end) in (prop::option::of(-9_999_999_999..9_999_999_999_i64), prop::option::of(0..999_999_999_u32)),
            moldability in prop::option::of(moldability()),
            (fix_at, max_deviation) in (prop::option::of(0.0..1.0_f64), prop::option::of(number())),
            price in prop::option::of(number()),
            amount in prop::option::of(0..AMOUNT_MAX),
        ) {
            let run = CatalogueJob {
                name: texts[0].clone(),
                version: named.then(|| texts[1].clone()),
                arguments: if empty { Vec::new() } else { vec![texts[2].clone(), String::new()] },
            };
            let wish = FlatRequest {
                name: named.then(|| texts[3].clone()),
                run: runs.then_some(run),
                staging: runs.then(|| vec![file(&texts, named); usize::from(empty)]),
                nodes: nodes.map(|(least, more)| (least, least + more)),
                attributes: cpus
                    .into_iter()
                    .map(|cpus| ("cpus".to_owned(), Attribute::Number(cpus)))
                    .chain(named.then(|| (ARCHITECTURE.to_owned(), Attribute::Word("x86_64".to_owned()))))
                    .collect(),
                start: start.map(wsag::time::DateTime::from_seconds),
                end: end.map(|nanos| format!("2027-01-01T00:00:00.{nanos:09}Z").parse().unwrap()),
                duration,
                scheduling: Scheduling {
                    moldability,
                    preemption: Some(Preemption { pieces: 3, interval: 0.1, independent: empty }),
                    budget: amount.map(|amount_micros| Budget { amount_micros, currency: "EUR".into() }),
                    max_deviation,
                    fix_at,
                    preference: price.map(|price| Preference { price: Some(price), ..Preference::default() }),
                    resource: named.then(|| texts[0].clone()),
                },
            };
            prop_assert_eq!(FlatRequest::from_json(&wish.to_json()).unwrap().0, wish);
        }
    }
}
