//! The negotiation constraints of WS-Agreement Negotiation (GFD.193, section 5) on the numbers that a flat offer shows: the demands of
//! a flat request on its answers, and what the service still negotiates about a counter offer.

use domain::agreement::Agreement;
use domain::clock::time_in_words;
use scheduler::Time;
use wsag::negotiations::{NegotiationConstraints, NegotiationItem};

use crate::codec::json_check::{CheckedObject, JsonCheck, LocatedValue};

/// The member that holds them.
pub(crate) const MEMBER: &str = "constraints";
/// Constraints of one request.
const CONSTRAINTS_MAX: usize = 32;

/// The values that can be constrained, by their words in an offer, and their places in its document.
const PLACES: [(&str, &str); 4] = [
    ("nodes", "//jsdl:TotalResourceCount/jsdl:Exact"),
    ("start", "//arp:AllocationTimeConstraint/arp:StartTime"),
    ("end", "//arp:AllocationTimeConstraint/arp:EndTime"),
    ("durationSeconds", "//arp:AllocationTimeConstraint/arp:Duration"),
];

/// Reads a list of constraints.
fn read_demand_list(check: &mut JsonCheck, at: &LocatedValue<'_>) -> NegotiationConstraints {
    let all = check.list(at);
    if all.len() > CONSTRAINTS_MAX {
        check.add(
            &at.pointer,
            format!("at most {CONSTRAINTS_MAX} constraints are expected"),
        );
    }
    NegotiationConstraints {
        items: all.iter().filter_map(|at| read_demand(check, at)).collect(),
        constraints: Vec::new(),
    }
}

/// Reads `{"of": …, "min": …, "max": …, "importance": …}`: one that does not say how much it weighs has to be met.
fn read_demand(check: &mut JsonCheck, at: &LocatedValue<'_>) -> Option<NegotiationItem> {
    let object = check.object(at, &["of", "min", "max", "importance"])?;
    let one_object = object.required(check, "of")?;
    let word = check.text(&one_object)?;
    let Some((name, location)) = PLACES.iter().find(|(name, _)| *name == word) else {
        let known = PLACES.map(|(name, _)| name).join(", ");
        return check.wrong(&one_object, format!("one of {known} is expected"));
    };
    let mut bound = |member| {
        object.read(check, member, |check, at| match *name {
            "start" | "end" => check.date_time(at).map(|time| time.to_string()),
            _ => check.count(at, u32::MAX).map(|count| count.to_string()),
        })
    };
    let (min, max) = (bound("min"), bound("max"));
    if object.get("min").or(object.get("max")).is_none() {
        check.add(&at.pointer, "a member \"min\" or \"max\" is expected");
    }
    let importance = object.read(check, "importance", |check, at| check.count(at, u32::MAX));
    let bounds = (min.as_deref(), max.as_deref());
    let importance = importance.map(i64::from);
    Some(NegotiationItem::between(name, location, bounds, importance))
}

/// What another round may change, and to what: nothing else can be had. It is any size and any window that the provider plans for; of an
/// agreement that is being carried out only its end.
pub(crate) fn negotiable_demands(
    capacity: u32,
    (now, latest): (Time, Time),
    replaced: Option<&Agreement>,
) -> NegotiationConstraints {
    let begun = replaced.filter(|agreement| agreement.is_being_carried_out());
    let nodes = begun.map_or((1, capacity), |begun| (begun.nodes(), begun.nodes()));
    let start = begun.map(|begun| begun.placement().start);
    let longest = (latest - start.unwrap_or(now)).clamp(1, i64::from(i32::MAX));
    let bounds = [
        (Some(nodes.0.to_string()), nodes.1.to_string()),
        // The start of what has begun stays where it is.
        (
            start.is_none().then(|| time_in_words(now)),
            time_in_words(start.unwrap_or(latest)),
        ),
        (Some(time_in_words(now)), time_in_words(latest)),
        (Some("1".to_owned()), longest.to_string()),
    ];
    let items = PLACES.iter().zip(bounds).map(|((name, location), (min, max))| {
        NegotiationItem::between(name, location, (min.as_deref(), Some(&max)), None)
    });
    NegotiationConstraints {
        items: items.collect(),
        constraints: Vec::new(),
    }
}

pub(crate) fn read_demands(check: &mut JsonCheck, object: &CheckedObject<'_>) -> NegotiationConstraints {
    let demands = object.read(check, MEMBER, |check, at| Some(read_demand_list(check, at)));
    demands.unwrap_or_default()
}
