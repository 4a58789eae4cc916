//! The nodes of resources, as operators see them and say how they stand.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use domain::resources::NodeState;
use execution::slurm::expand_nodes;
use planner::{ListNodes, NodeStatus, OverrideNodes};
use scheduler::counted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use crate::codec::json::Json;
use crate::codec::json_check::{JsonCheck, LocatedValue};
use crate::views::money_and_time::{MoneyView, instant_as_date_time};
use crate::views::place_changes::PlaceChangeView;
use crate::views::schemas;
use crate::{Error, Result, Service};

/// The most nodes of one resource in a list; for a larger resource, only the nodes that are not up are listed.
const NODES_SHOWN_MAX: usize = 10_000;
/// Characters of an operator's reason.
pub(super) const REASON_MAX: usize = 500;
/// Bytes of a text that names nodes beyond which they are counted rather than named in the audit trail.
const WORDS_MAX: usize = 500;

/// How nodes of a resource stand.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "NodeList")]
pub struct NodesView {
    /// The name of the resource.
    #[schemars(example = &"local")]
    pub resource: String,
    /// How many nodes it has.
    #[schemars(example = 4)]
    pub capacity: u32,
    /// The nodes: all, or only those that are not up where there are more than a list may have.
    pub nodes: Vec<NodeView>,
}

/// How a node stands.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct NodeView {
    /// The number in the resource, from 0.
    #[schemars(example = 0)]
    pub number: u32,
    /// The name.
    #[schemars(example = &"n1")]
    pub name: String,
    /// The worst state of its reports.
    #[schemars(with = "schemas::NodeState")]
    pub state: String,
    /// The reports that it is not up.
    pub said: Vec<SaidView>,
}

/// A report on a node that is not up.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "NodeReport")]
pub struct SaidView {
    /// `executor` (the cluster itself) or `operator`.
    #[schemars(example = &"operator")]
    pub by: String,
    /// The state.
    #[schemars(with = "schemas::NodeState")]
    pub state: String,
    /// Since when.
    #[schemars(with = "schemas::Instant")]
    pub since: String,
    /// Why, where that is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"a disk is replaced")]
    pub reason: Option<String>,
}

/// The effects of a change of nodes.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct RepairedView {
    /// The name of the resource.
    #[schemars(example = &"local")]
    pub resource: String,
    /// The nodes, as they stand now.
    pub nodes: Vec<NodeView>,
    /// Agreements that lost their work with its nodes.
    #[schemars(example = 0)]
    pub lost: usize,
    /// How many agreements got another place.
    #[schemars(example = 0)]
    pub moved: usize,
    /// How many agreements there are for which there is no place any more.
    #[schemars(example = 0)]
    pub broken: usize,
    /// Offers that were held and cannot be kept.
    #[schemars(example = 0)]
    pub withdrawn: usize,
    /// These agreements: first those that are lost or without a place, with the penalties that are paid.
    pub agreements: Vec<PlaceChangeView>,
    /// Agreements that are not listed because the list is full.
    #[schemars(example = 0)]
    pub unlisted: usize,
    /// What the provider pays for that because guarantees are violated, a sum for each currency.
    #[schemars(example = json!([]))]
    pub penalties: Vec<MoneyView>,
}

/// How the nodes of a resource stand. For operators.
///
/// # Errors
/// [`Error::NotFound`], [`Error::Unavailable`].
pub async fn list_nodes(service: &Service, resource: &str) -> Result<NodesView> {
    let standings = service
        .ask(ListNodes {
            resource: resource.to_owned(),
        })
        .await?;
    let capacity = u32::try_from(standings.len()).unwrap_or(u32::MAX);
    let all = standings.len() <= NODES_SHOWN_MAX;
    let shown = standings
        .iter()
        .filter(|standing| all || !standing.said.is_empty())
        .take(NODES_SHOWN_MAX);
    Ok(NodesView {
        resource: resource.to_owned(),
        capacity,
        nodes: shown.map(NodeView::of).collect(),
    })
}

/// Sets the state of nodes of a resource from now on, with a reason: `nodes` names them, as in `n[1-3],n7` or `0-2,5`; the
/// body is an object with `state` and `reason`. Agreements on them get another place, and the audit trail names the party
/// that said so. `is_dry` only asks what would follow. For operators.
///
/// # Errors
/// [`Error::NotFound`] also for a node that does not exist, the errors of the body, [`Error::Unavailable`].
pub async fn override_nodes(
    service: &Service,
    party: &str,
    resource: &str,
    nodes: &str,
    body: &[u8],
    is_dry: bool,
) -> Result<RepairedView> {
    let (state, reason) = read_node_state(body)?;
    let words = nodes;
    let nodes = node_numbers(service, resource, nodes).ok_or(Error::NotFound)?;
    let saying = OverrideNodes {
        id: Uuid::now_v7(),
        party: party.to_owned(),
        words: if words.len() > WORDS_MAX {
            counted(nodes.len(), "node")
        } else {
            words.to_owned()
        },
        resource: resource.to_owned(),
        nodes,
        state,
        reason,
    };
    let (repaired, said) = service.send_or_try(saying, is_dry).await?;
    let (mut agreements, mut moved, unlisted) = PlaceChangeView::lists(&repaired);
    agreements.append(&mut moved);
    Ok(RepairedView {
        agreements,
        unlisted,
        penalties: MoneyView::all(&repaired.penalties),
        resource: resource.to_owned(),
        nodes: said.iter().take(NODES_SHOWN_MAX).map(NodeView::of).collect(),
        lost: repaired.lost,
        moved: repaired.moved,
        broken: repaired.broken,
        withdrawn: repaired.withdrawn,
    })
}

/// The numbers of the nodes that a text names; none where one of them is none of the resource.
fn node_numbers(service: &Service, resource: &str, nodes: &str) -> Option<BTreeSet<u32>> {
    let resources = service.planner.resources();
    let one_resource = resources
        .iter()
        .find(|one_resource| one_resource.name == resource)?;
    let mut numbers = BTreeSet::new();
    for name in expand_nodes(nodes)? {
        let named = one_resource.node_names.iter().position(|known| *known == name);
        let range = match named.map(u32::try_from) {
            Some(at) => at.ok().map(|at| at..=at)?,
            None => numbers_of_unnamed_nodes(&name, one_resource.node_names.len())?,
        };
        if range.is_empty() || *range.end() >= one_resource.capacity {
            return None;
        }
        numbers.extend(range);
    }
    (!numbers.is_empty()).then_some(numbers)
}

/// The numbers of nodes that are named by them: `3`, `0-3`, and where the first nodes have names, the others also as `n3`.
fn numbers_of_unnamed_nodes(text: &str, named: usize) -> Option<RangeInclusive<u32>> {
    let number = |text: &str| text.parse::<u32>().ok();
    if let Some((first, last)) = text.split_once('-') {
        return Some(number(first)?..=number(last)?);
    }
    let has_name = |number: u32| usize::try_from(number).is_ok_and(|try_from| try_from < named);
    let short = || {
        text.strip_prefix('n')
            .and_then(number)
            .filter(|each| !has_name(*each))
    };
    number(text).or_else(short).map(|number| number..=number)
}

impl NodeView {
    pub(super) fn of(standing: &NodeStatus) -> Self {
        let said = standing.said.iter().map(|(by, said)| SaidView {
            by: by.word().to_owned(),
            state: said.state.word().to_owned(),
            since: instant_as_date_time(said.since),
            reason: said.reason.clone(),
        });
        Self {
            number: standing.node,
            name: standing.name.clone(),
            state: standing.state.word().to_owned(),
            said: said.collect(),
        }
    }
}

/// The state and the reason that a body has.
fn read_node_state(body: &[u8]) -> Result<(NodeState, Option<String>)> {
    let value = Json::parse(body)?;
    let mut check = JsonCheck::default();
    let read = check
        .object(&LocatedValue::root(&value), &["state", "reason"])
        .and_then(|object| {
            let reason = object.read(&mut check, "reason", |check, at| check.line(at, REASON_MAX));
            let state = object.read_required(&mut check, "state", |check, at| {
                let state = NodeState::from_word(&check.text(at)?);
                state.or_else(|| {
                    let known = NodeState::ALL.map(|state| format!("{:?}", state.word()));
                    check.wrong(at, format!("one of {} is expected", known.join(", ")))
                })
            });
            Some((state?, reason))
        });
    check.finish(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_without_names_go_by_numbers_ranges_and_short_names() {
        for (text, named, expected) in [
            ("3", 0, Some(3..=3)),
            ("0-3", 0, Some(0..=3)),
            ("n3", 0, Some(3..=3)),
            ("n3", 4, None),
            ("n4", 4, Some(4..=4)),
            ("3", 4, Some(3..=3)),
            ("n0-n3", 0, None),
            ("m3", 0, None),
            ("-3", 0, None),
            ("3-", 0, None),
        ] {
            assert_eq!(numbers_of_unnamed_nodes(text, named), expected, "{text}");
        }
    }

    #[test]
    fn a_saying_is_a_state_and_perhaps_a_reason() {
        let read = |text: &str| read_node_state(text.as_bytes());
        assert_eq!(read(r#"{"state": "up"}"#).unwrap(), (NodeState::Up, None));
        assert_eq!(
            read(r#"{"state": "drained", "reason": "new disk"}"#).unwrap(),
            (NodeState::Drained, Some("new disk".to_owned()))
        );
        let long = format!(
            r#"{{"state": "down", "reason": "{}"}}"#,
            "x".repeat(REASON_MAX + 1)
        );
        for (wrong, path) in [
            (r"{}", ""),
            (r#"{"state": "asleep"}"#, "/state"),
            (r#"{"state": 1}"#, "/state"),
            (r#"{"state": "up", "node": 3}"#, "/node"),
            (r#"{"state": "down", "reason": "a\nb"}"#, "/reason"),
            (long.as_str(), "/reason"),
        ] {
            match read(wrong) {
                Err(Error::Invalid(violations)) => assert_eq!(violations.0[0].path, path, "{wrong}"),
                other => panic!("{wrong}: {other:?}"),
            }
        }
        assert!(matches!(read("state=up"), Err(Error::MalformedJson(_))));
    }
}
