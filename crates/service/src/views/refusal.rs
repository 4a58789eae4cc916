//! Refusals as flat values and in documents: why an offer has no place, and the changes and the places that would do.

use std::borrow::Cow;

use domain::agreement::Money;
use planner::{AlternativeSlot, Refusal};
use scheduler::prediction::whole_as_real;
use scheduler::refusal::Relaxation;
use scheduler::{Interval, Reason, Time};
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use uuid::Uuid;
use wsag::NamedValue;
use wsag::refusals::{self, Direction};

use crate::views::agreement_document::{date_time_in_document, sum_in_document};
use crate::views::money_and_time::{MoneyView, read_date_time, second_as_date_time, write_date_time};
use crate::views::schemas;

/// Why an offer has no place, and the nearest places that there are.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusalView {
    /// By which it is found again: of an offer of an agreement, where the audit trail has noted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Uuid>,
    /// The reason, from the closed list.
    #[serde(serialize_with = "write_reason", deserialize_with = "read_reason")]
    #[schemars(with = "schemas::RefusalReason")]
    pub reason: Reason,
    /// The constraint that binds, in words.
    #[schemars(example = &"4 nodes are free for an hour in the window from 2026-11-22T08:00:00Z on")]
    pub binding_constraint: String,
    /// Whether the search for a place was cut short: a longer one might have found one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_short: bool,
    /// The nearest slots outside the window, the nearer first.
    pub alternatives: Vec<AlternativeView>,
    /// The smallest changes that would have been accepted, each by itself.
    pub relaxations: Vec<RelaxationView>,
}

/// A change with which a request would have been accepted: one value, or two where no single one is enough.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RelaxationView {
    /// The latest earlier start of the window.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "write_date_time_of_relaxation",
        deserialize_with = "read_some_date_time"
    )]
    #[schemars(with = "Option<schemas::Instant>")]
    pub ready: Option<Time>,
    /// The earliest later deadline.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "write_date_time_of_relaxation",
        deserialize_with = "read_some_date_time"
    )]
    #[schemars(with = "Option<schemas::Instant>")]
    pub deadline: Option<Time>,
    /// The largest smaller number of nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), example = 2)]
    pub nodes: Option<u32>,
    /// The longest shorter duration, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), example = 3_600)]
    pub duration_seconds: Option<i64>,
    /// The least budget that would be enough.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "write_maybe_money",
        deserialize_with = "read_money_of_refusal"
    )]
    #[schemars(with = "Option<MoneyView>")]
    pub budget: Option<Money>,
}

/// A slot outside the window that was asked for.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct AlternativeView {
    /// `earlier` or `later` than the window.
    #[schemars(example = &"later")]
    pub direction: Cow<'static, str>,
    /// The start.
    #[serde(serialize_with = "write_date_time", deserialize_with = "read_date_time")]
    #[schemars(with = "schemas::Instant")]
    pub start: Time,
    /// The end.
    #[serde(serialize_with = "write_date_time", deserialize_with = "read_date_time")]
    #[schemars(with = "schemas::Instant")]
    pub end: Time,
    /// On how many nodes, where the offer leaves the size open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), example = 2)]
    pub nodes: Option<u32>,
    /// φ: how far outside the window it lies, in durations of the request.
    #[schemars(range(min = 0), example = 0.5)]
    pub deviation: f64,
}

impl RefusalView {
    /// The view of a refusal of `window`, which tells how far the nearest slots lie outside it.
    pub(crate) fn of(refusal: &Refusal, window: Interval) -> Self {
        Self {
            id: None,
            reason: refusal.reason,
            binding_constraint: refusal.binding.clone(),
            cut_short: refusal.cut_short,
            alternatives: refusal
                .alternatives
                .iter()
                .map(|alternative| AlternativeView::of(*alternative, window))
                .collect(),
            relaxations: refusal
                .relaxations
                .iter()
                .map(|relaxation| RelaxationView::of(*relaxation))
                .chain(refusal.lowest_budget.map(|budget| RelaxationView {
                    budget: Some(budget),
                    ..RelaxationView::default()
                }))
                .collect(),
        }
    }
}

impl RelaxationView {
    fn of(relaxation: Relaxation) -> Self {
        let mut view = Self::default();
        match relaxation {
            Relaxation::Deadline(deadline) => view.deadline = Some(deadline),
            Relaxation::Ready(ready) => view.ready = Some(ready),
            Relaxation::Nodes(nodes) => view.nodes = Some(nodes),
            Relaxation::Duration(seconds) => view.duration_seconds = Some(seconds),
            Relaxation::NodesAndDeadline(nodes, deadline) => {
                (view.nodes, view.deadline) = (Some(nodes), Some(deadline));
            }
            Relaxation::NodesAndReady(nodes, ready) => (view.nodes, view.ready) = (Some(nodes), Some(ready)),
        }
        view
    }
}

impl AlternativeView {
    /// The view of a slot outside a window, on the side that it reaches further beyond.
    fn of(alternative: AlternativeSlot, window: Interval) -> Self {
        let slot = alternative.slot;
        let (before, after) = (window.start - slot.start, slot.end - window.end);
        Self {
            direction: if before >= after { "earlier" } else { "later" }.into(),
            start: slot.start,
            end: slot.end,
            nodes: alternative.nodes,
            deviation: whole_as_real(before.max(after)) / whole_as_real(slot.duration()),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape that serde asks for")]
fn write_reason<S: serde::Serializer>(reason: &Reason, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(reason.word())
}

fn read_reason<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Reason, D::Error> {
    let word = String::deserialize(deserializer)?;
    Reason::from_word(&word).ok_or_else(|| D::Error::custom(format!("{word:?} is no reason")))
}

fn read_some_date_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Time>, D::Error> {
    read_date_time(deserializer).map(Some)
}

fn read_money_of_refusal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Money>, D::Error> {
    let view = MoneyView::deserialize(deserializer)?;
    view.money()
        .map(Some)
        .ok_or_else(|| D::Error::custom(format!("{view} is no sum of money")))
}

#[expect(clippy::ref_option, reason = "the shape that serde asks for")]
fn write_date_time_of_relaxation<S: serde::Serializer>(
    time: &Option<Time>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => serializer.serialize_str(&second_as_date_time(*time)),
        None => serializer.serialize_none(),
    }
}

#[expect(clippy::ref_option, reason = "the shape that serde asks for")]
fn write_maybe_money<S: serde::Serializer>(money: &Option<Money>, serializer: S) -> Result<S::Ok, S::Error> {
    money.map(MoneyView::of).serialize(serializer)
}

/// A refusal as it stands in documents.
pub(crate) fn refusal_document(refusal: &RefusalView) -> refusals::Refusal {
    refusals::Refusal {
        // A test compares the words.
        reason: refusals::Reason::parse(refusal.reason.word()).expect("a word of the closed list"),
        binding_constraint: Some(refusal.binding_constraint.clone()),
        cut_short: refusal.cut_short,
        alternatives: refusal
            .alternatives
            .iter()
            .map(|alternative| refusals::Alternative {
                start: date_time_in_document(alternative.start),
                end: date_time_in_document(alternative.end),
                nodes: alternative.nodes,
                deviation: alternative.deviation,
                direction: if alternative.direction == "earlier" {
                    Direction::Earlier
                } else {
                    Direction::Later
                },
            })
            .collect(),
        relaxations: refusal
            .relaxations
            .iter()
            .map(|relaxation| refusals::Relaxation {
                start: relaxation.ready.map(date_time_in_document),
                deadline: relaxation.deadline.map(date_time_in_document),
                nodes: relaxation.nodes,
                duration: relaxation
                    .duration_seconds
                    .and_then(|seconds| u32::try_from(seconds).ok()),
                budget: relaxation.budget.map(sum_in_document),
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_have_the_same_words_in_documents() {
        for reason in Reason::ALL {
            let written = refusals::Reason::parse(reason.word()).map(refusals::Reason::name);
            assert_eq!(written, Some(reason.word()));
        }
    }
}
