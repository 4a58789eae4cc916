//! The flat request of a client that speaks JSON, read strictly: everything wrong is collected at its place.

use std::collections::BTreeMap;

use address::is_no_place;
use domain::change::AcceptanceEndpoint;
use domain::request::{Request, RequestedJob};
use domain::resources::ARCHITECTURE;
use scheduler::domain::Attribute;
use wsag::budget::Budget;
use wsag::job_definition::{ARCHITECTURES, CreationFlag, DataStaging};
use wsag::scheduling::{Moldability, Preemption, Preference, Scheduling, ShapeChanges};
use wsag::{NamedValue, ValuePlaces};

use crate::codec::json::{Json, is_json_as_written, whole_json_number};
use crate::codec::json_check::{CheckedObject, JsonCheck, LocatedValue};
use crate::codec::members::member_places_of_request;
use crate::codec::request::{DecisionTime, ReadRequest};
use crate::resources::read_resource_attributes;
use crate::show_templates::list_templates;
use crate::{Result, Service};

/// The members of a request.
const MEMBERS: [&str; 20] = [
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
    "mayChange",
    "pending",
    "callback",
];

/// Reads a flat request, which may also have these members, and the values that `read` makes of them.
pub(crate) fn read_json_request<T>(
    service: &Service,
    request: &LocatedValue<'_>,
    also: &[&str],
    read: impl FnOnce(&mut JsonCheck, &CheckedObject<'_>) -> T,
) -> Result<(ReadRequest, T)> {
    let known: Vec<&str> = MEMBERS.iter().chain(also).copied().collect();
    let mut check = JsonCheck::default();
    let read = check.object(request, &known).and_then(|object| {
        let others = read(&mut check, &object);
        Some((read_request_members(service, &mut check, &object)?, others))
    });
    check.finish(read)
}

fn read_request_members(
    service: &Service,
    check: &mut JsonCheck,
    object: &CheckedObject<'_>,
) -> Option<ReadRequest> {
    let decision = read_decision_of_request(service, check, object);
    let (wish, places) = read_flat_request(check, object);
    let named = object.read(check, "template", JsonCheck::text);
    let offered = match &named {
        None => service.templates.first(),
        Some(id) => {
            let found = service.templates.get(id);
            if found.is_none() {
                let known: Vec<_> = list_templates(service)
                    .into_iter()
                    .map(|template| template.id)
                    .collect();
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

pub(crate) fn read_decision_of_request(
    service: &Service,
    check: &mut JsonCheck,
    object: &CheckedObject<'_>,
) -> DecisionTime {
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
    if let Some(Err(why)) = address.as_deref().map(|address| service.may_call.check(address)) {
        check.add(&at.pointer, why);
    }
    DecisionTime::Later(address.map(|address| AcceptanceEndpoint {
        address,
        parameters: None,
    }))
}

/// The request and its places.
fn read_flat_request(check: &mut JsonCheck, object: &CheckedObject<'_>) -> (Request, ValuePlaces) {
    let mut wish = Request {
        name: object.read(check, "name", JsonCheck::text),
        run: read_requested_job(check, object),
        staging: object.read(check, "staging", |check, at| Some(read_staged_files(check, at))),
        nodes: object.read(check, "nodes", read_nodes),
        attributes: object
            .read(check, "attributes", read_attributes)
            .unwrap_or_default(),
        duration: object.read(check, "durationSeconds", |check, at| check.count(at, i32::MAX)),
        scheduling: read_scheduling(check, object),
        ..Request::default()
    };
    let window = object.read(check, "window", |check, at| check.object(at, &["start", "end"]));
    if let Some(window) = window {
        wish.start = window.read(check, "start", JsonCheck::date_time);
        wish.end = window.read(check, "end", JsonCheck::date_time);
    }
    (wish, member_places_of_request(object))
}

fn read_requested_job(check: &mut JsonCheck, object: &CheckedObject<'_>) -> Option<RequestedJob> {
    let arguments = object.get("arguments").map(|at| {
        let values = check.list(&at);
        values
            .iter()
            .filter_map(|at| match at.value {
                // Most arguments are numbers, and 2.0 is 2.
                Json::Number(number) if is_json_as_written(number) => {
                    let whole = whole_json_number(number).map(|whole| whole.to_string());
                    Some(whole.unwrap_or_else(|| number.to_string()))
                }
                Json::Number(_) => check.wrong(at, "a number of more than 53 bits is expected as a text"),
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
    Some(RequestedJob {
        name: check.text(&at)?,
        version,
        arguments: arguments.unwrap_or_default(),
    })
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
    let attributes = read_resource_attributes(check, at)?;
    match attributes.get(ARCHITECTURE) {
        Some(Attribute::Word(word)) if !ARCHITECTURES.contains(&word.as_str()) => {
            let message = format!("one of {} is expected", ARCHITECTURES.join(", "));
            check.add(&format!("{}/{ARCHITECTURE}", at.pointer), message);
        }
        _ => {}
    }
    Some(attributes)
}

fn read_scheduling(check: &mut JsonCheck, object: &CheckedObject<'_>) -> Scheduling {
    Scheduling {
        moldability: object.read(check, "moldability", read_moldability),
        preemption: object.read(check, "preemption", read_preemption),
        budget: object.read(check, "budget", read_budget),
        max_deviation: object.read(check, "maxDeviation", read_not_negative),
        fix_at: object.read(check, "fixAt", read_share),
        preference: object.read(check, "weights", read_weights),
        resource: object.read(check, "resource", JsonCheck::text),
        may_change: object.read(check, "mayChange", read_shape_changes),
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
pub(crate) fn read_budget(check: &mut JsonCheck, at: &LocatedValue<'_>) -> Option<Budget> {
    let object = check.object(at, &["amount", "currency"])?;
    let amount = object.read_required(check, "amount", |check, at| {
        let text = match at.value {
            Json::Number(number) => number.to_string(),
            _ => check.text(at)?,
        };
        match wsag::budget::parse_amount(&text) {
            Ok(micros) if micros < 0 => check.wrong(at, "an amount from 0 on is expected"),
            amount => amount.map_or_else(|why| check.wrong(at, why), Some),
        }
    });
    let currency = object.read_required(check, "currency", |check, at| {
        let text = check.text(at)?;
        wsag::budget::parse_currency_of_budget(&text).map_or_else(|why| check.wrong(at, why), Some)
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

fn read_shape_changes(check: &mut JsonCheck, at: &LocatedValue<'_>) -> Option<ShapeChanges> {
    let object = check.object(at, &["sizes", "cuts", "until"])?;
    let sizes = object.read_required(check, "sizes", JsonCheck::boolean);
    let cuts = object.read_required(check, "cuts", JsonCheck::boolean);
    let until = object.read(check, "until", JsonCheck::date_time);
    Some(ShapeChanges {
        sizes: sizes?,
        cuts: cuts?,
        until,
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

/// Reads the list of files.
fn read_staged_files(check: &mut JsonCheck, at: &LocatedValue<'_>) -> Vec<DataStaging> {
    let files = check.list(at);
    files
        .iter()
        .filter_map(|at| read_staged_file(check, at))
        .collect()
}

fn read_staged_file(check: &mut JsonCheck, at: &LocatedValue<'_>) -> Option<DataStaging> {
    let known = [
        "file",
        "source",
        "target",
        "bytes",
        "deleteOnTermination",
        "creationFlag",
    ];
    let object = check.object(at, &known)?;
    let file_name = object.read_required(check, "file", JsonCheck::text);
    let flag = object.read(check, "creationFlag", |check, at| {
        let word = check.text(at)?;
        let expected = || {
            let words: Vec<_> = CreationFlag::NAMES.iter().map(|(_, word)| *word).collect();
            format!("one of {} is expected", words.join(", "))
        };
        CreationFlag::parse(&word).or_else(|| check.wrong(at, expected()))
    });
    Some(DataStaging {
        source: object.read(check, "source", JsonCheck::token_of_any_length),
        target: object.read(check, "target", JsonCheck::token_of_any_length),
        bytes: object.read(check, "bytes", read_requested_byte_count),
        delete_on_termination: object.read(check, "deleteOnTermination", JsonCheck::boolean),
        creation_flag: flag.unwrap_or(CreationFlag::Overwrite),
        file_name: file_name?,
    })
}

fn read_requested_byte_count(check: &mut JsonCheck, at: &LocatedValue<'_>) -> Option<u64> {
    let expected = "a whole number from 0 on";
    let Json::Number(number) = at.value else {
        return check.expected(at, expected);
    };
    let message = || format!("{expected} is expected, not {number}");
    whole_json_number(number).or_else(|| check.wrong(at, message()))
}
