//! The views of templates and agreements: flat values that JSON, the pages and the command line share. The XML
//! documents are written from them.

pub(super) mod accounts;
pub(super) mod availability;
pub(super) mod documents;
pub(super) mod nodes;
pub(super) mod offer;
pub(super) mod rejection;
pub(super) mod reliability;
pub(super) mod scheduling;
pub(super) mod terms;
pub(super) mod trail;

use scheduler::refusal::Relaxation;
use scheduler::{Interval, Reason, Time};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::ProposalView;
use crate::agreement::{Agreement, Compensation, Guarantee, Money, Slot};
use crate::clock::{MICROS_PER_SECOND, Micros};
use crate::planner::{Accepted, AlternativeSlot, CompositorChoice, Refusal};
use crate::store::{Succession, TrailLine};

/// A template, as far as one needs to know it to choose.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TemplateView {
    /// Its id, to be named in an offer's context.
    pub id: String,
    /// Its name, to be named in an offer's context.
    pub name: String,
}

/// An agreement.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgreementView {
    /// Its id.
    pub id: Uuid,
    /// The name that the offer gave.
    pub name: Option<String>,
    /// Its party.
    pub party: String,
    /// The template that it was made from.
    pub template: String,
    /// State of the agreement.
    pub state: String,
    /// State of its service terms.
    pub service_state: String,
    /// The resource that it is placed on.
    pub resource: String,
    /// Nodes granted.
    pub nodes: u32,
    /// Contract duration in seconds.
    pub duration_seconds: i64,
    /// Earliest start.
    pub ready: String,
    /// Latest completion.
    pub deadline: String,
    /// Planned start.
    pub planned_start: String,
    /// Planned end.
    pub planned_end: String,
    /// The pieces in which its work is done, in order of time; none where it is done in one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pieces: Vec<PieceView>,
    /// Its price, where it is priced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<MoneyView>,
    /// The reservation in the cluster that its party's jobs can name; of an agreement that runs nothing, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<String>,
    /// The probability that its job ends by itself before its slot does, 0 to 1, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// Real start, once there is one.
    pub started: Option<String>,
    /// Real end, once there is one.
    pub ended: Option<String>,
    /// Application of the catalogue; none where nodes are reserved and nothing runs.
    pub application: Option<String>,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// How the work ended: completed, failed, killed, terminated or lost.
    pub outcome: Option<String>,
    /// The exit status, where a process ended by itself.
    pub exit_status: Option<i32>,
    /// The guarantees and their states.
    pub guarantees: Vec<GuaranteeView>,
    /// The agreement that it has taken the place of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<Uuid>,
    /// The agreement that has taken its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<Uuid>,
    /// The provider's own proposals about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proposals: Vec<ProposalView>,
    /// When the offer was accepted.
    pub created: String,
    /// Counts changes; the entity tag.
    pub version: i64,
}

/// A piece of an agreement's work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PieceView {
    /// Planned start.
    pub planned_start: String,
    /// Planned end.
    pub planned_end: String,
    /// How many nodes it has.
    pub nodes: u32,
    /// Real start, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// Real end, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}

/// An offer that was accepted.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AcceptedView {
    /// The agreement that it became.
    #[serde(flatten)]
    pub agreement: AgreementView,
    /// The same party's other agreements that moved inside their windows to make room for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<MovedView>,
    /// The choice, where the offer left one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<ChoiceView>,
}

/// The choice from a compositor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChoiceView {
    /// Path of the compositor in the offer.
    pub path: String,
    /// Which of its members hold, counted from 1.
    pub members: Vec<u32>,
}

/// An agreement that moved inside its window.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MovedView {
    /// Which.
    pub id: Uuid,
    /// Its planned start from now on.
    #[serde(serialize_with = "as_date_time", deserialize_with = "from_date_time")]
    pub planned_start: Time,
    /// Its planned end from now on.
    #[serde(serialize_with = "as_date_time", deserialize_with = "from_date_time")]
    pub planned_end: Time,
}

/// A sum of money. The amount is a text, because a number of JSON may lose its last digits on the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MoneyView {
    /// A decimal of at most six places.
    pub amount: String,
    /// Three capital letters.
    pub currency: String,
}

/// A guarantee term and its state.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GuaranteeView {
    /// Name of the term.
    pub name: String,
    /// NotDetermined, Fulfilled or Violated.
    pub state: String,
    /// The objective.
    pub objective: String,
    /// The data that decided the state.
    pub evidence: Option<String>,
    /// Its values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<ValueView>,
}

/// A penalty or reward of a guarantee.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ValueView {
    /// `penalty` where the guarantee is violated, `reward` where it is fulfilled.
    pub kind: String,
    /// The amount each time, for the price of this agreement.
    pub amount: MoneyView,
    /// Paid again after this number of seconds; none for once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every_seconds: Option<i64>,
    /// How often it has been paid.
    pub paid: i64,
}

/// A page of a list.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgreementPage {
    /// Newest first.
    pub agreements: Vec<AgreementView>,
    /// The value of `after` for the next page; none on the last.
    pub next: Option<Uuid>,
}

/// One line of a timeline.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventView {
    /// When.
    pub at: String,
    /// The kind of the event, in a word.
    pub kind: String,
    /// The event, in words.
    pub detail: String,
}

/// The timeline of an agreement.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TimelineView {
    /// The agreement.
    pub agreement: Uuid,
    /// In order.
    pub events: Vec<EventView>,
}

/// Why an offer has no place, and the nearest places that there are.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusalView {
    /// By which it is found again: of an offer of an agreement, where the audit trail has noted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Uuid>,
    /// From the closed list of reasons.
    #[serde(serialize_with = "as_word")]
    pub reason: Reason,
    /// The constraint that binds, in words.
    pub binding_constraint: String,
    /// Whether the search for a place was cut short: a longer one might have found one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut_short: bool,
    /// The nearest slots outside the window, the nearer first.
    pub alternatives: Vec<AlternativeView>,
    /// The smallest changes that would have been accepted, each by itself.
    pub relaxations: Vec<RelaxationView>,
}

/// A change with which a request would have been accepted: one value, or two where no single one is enough.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RelaxationView {
    /// The latest earlier start of the window.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "as_maybe_date_time"
    )]
    pub ready: Option<Time>,
    /// The earliest later deadline.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "as_maybe_date_time"
    )]
    pub deadline: Option<Time>,
    /// The largest smaller number of nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// The longest shorter duration, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_seconds: Option<i64>,
    /// The lowest budget.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_maybe_money")]
    pub budget: Option<Money>,
}

/// A slot outside the window that was asked for.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AlternativeView {
    /// `earlier` or `later` than the window.
    pub direction: &'static str,
    /// Where it starts.
    #[serde(serialize_with = "as_date_time")]
    pub start: Time,
    /// Where it ends.
    #[serde(serialize_with = "as_date_time")]
    pub end: Time,
    /// On how many nodes, where the offer leaves the size open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// φ: how far outside the window it lies, in durations of the request.
    pub deviation: f64,
}

impl AgreementView {
    pub(super) fn of(agreement: &Agreement) -> Self {
        Self {
            id: agreement.id,
            name: agreement.name.clone(),
            party: agreement.party.clone(),
            template: agreement.template.clone(),
            state: agreement.state.word().to_owned(),
            service_state: agreement.service.word().to_owned(),
            resource: agreement.resource.clone(),
            nodes: agreement.nodes(),
            duration_seconds: agreement.duration,
            ready: second(agreement.ready),
            deadline: second(agreement.deadline),
            planned_start: second(agreement.placement().start),
            planned_end: second(agreement.placement().end),
            pieces: agreement.slots.pieces().iter().map(PieceView::of).collect(),
            price: agreement.price.map(MoneyView::of),
            reservation: None,
            confidence: None,
            started: agreement.started.map(instant),
            ended: agreement.ended.map(instant),
            application: agreement.job.as_ref().map(|job| job.application.clone()),
            arguments: agreement
                .job
                .as_ref()
                .map_or_else(Vec::new, |job| job.arguments.clone()),
            outcome: agreement.outcome.map(|outcome| outcome.word().to_owned()),
            exit_status: agreement.outcome.and_then(crate::agreement::RunOutcome::exit),
            guarantees: agreement
                .guarantees
                .iter()
                .map(|guarantee| GuaranteeView {
                    name: guarantee.name.clone(),
                    state: guarantee.state.word().to_owned(),
                    objective: guarantee.objective.clone(),
                    evidence: guarantee.evidence.clone(),
                    values: values_of(guarantee, agreement),
                })
                .collect(),
            supersedes: None,
            superseded_by: None,
            proposals: Vec::new(),
            created: instant(agreement.created),
            version: agreement.version,
        }
    }

    /// With the agreements that it stands between.
    pub(super) fn between(self, succession: Succession) -> Self {
        Self {
            supersedes: succession.supersedes,
            superseded_by: succession.superseded_by,
            ..self
        }
    }

    /// Its path under the service's address.
    pub fn path(&self) -> String {
        format!("/agreements/{}", self.id)
    }

    /// Its address, given the service's.
    pub fn address(&self, base: &str) -> String {
        format!("{base}{}", self.path())
    }
}

impl PieceView {
    pub(super) fn of(piece: &Slot) -> Self {
        Self {
            planned_start: second(piece.placement.start),
            planned_end: second(piece.placement.end),
            nodes: piece.nodes,
            started: piece.started.map(instant),
            ended: piece.ended.map(instant),
        }
    }
}

/// The values of a guarantee of an agreement.
fn values_of(guarantee: &Guarantee, agreement: &Agreement) -> Vec<ValueView> {
    let each = |kind: &'static str, all: &[Compensation]| {
        let worth = all.iter().filter_map(|of| {
            let amount = of.worth.of(agreement.price)?;
            Some(ValueView {
                kind: kind.to_owned(),
                amount: MoneyView::of(amount),
                every_seconds: of.every,
                paid: of.paid,
            })
        });
        worth.collect::<Vec<_>>()
    };
    let mut values = each("penalty", &guarantee.values.penalties);
    values.extend(each("reward", &guarantee.values.rewards));
    values
}

impl MoneyView {
    pub(super) fn of(money: Money) -> Self {
        Self {
            amount: money.amount(),
            currency: money.currency.to_string(),
        }
    }
}

impl std::fmt::Display for MoneyView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.amount, self.currency)
    }
}

impl AcceptedView {
    pub(super) fn of(accepted: &Accepted) -> Self {
        let moved = accepted.moved.iter().map(|other| MovedView {
            id: other.id,
            planned_start: other.placement().start,
            planned_end: other.placement().end,
        });
        Self {
            agreement: AgreementView::of(&accepted.agreement),
            moved: moved.collect(),
            choices: accepted.choices.iter().map(ChoiceView::of).collect(),
        }
    }
}

impl ChoiceView {
    fn of(choice: &CompositorChoice) -> Self {
        Self {
            path: choice.path.clone(),
            members: choice.members.clone(),
        }
    }
}

impl EventView {
    pub(super) fn of(event: &TrailLine) -> Self {
        Self {
            at: instant(event.at),
            kind: event.kind.clone(),
            detail: event.detail.clone(),
        }
    }
}

impl RefusalView {
    /// The view of a refusal of `window`, which tells how far the nearest slots lie outside it.
    pub(super) fn of(refusal: &Refusal, window: Interval) -> Self {
        Self {
            id: None,
            reason: refusal.reason,
            binding_constraint: refusal.binding.clone(),
            cut_short: refusal.cut_short,
            alternatives: refusal
                .alternatives
                .iter()
                .map(|of| AlternativeView::of(*of, window))
                .collect(),
            relaxations: refusal
                .relaxations
                .iter()
                .map(|of| RelaxationView::of(*of))
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
            direction: if before >= after { "earlier" } else { "later" },
            start: slot.start,
            end: slot.end,
            nodes: alternative.nodes,
            deviation: ratio(before.max(after), slot.duration()),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "seconds of a plan are far below 2^53")]
fn ratio(part: i64, whole: i64) -> f64 {
    part as f64 / whole as f64
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape that serde asks for")]
fn as_word<S: serde::Serializer>(reason: &Reason, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(reason.word())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape that serde asks for")]
fn as_date_time<S: serde::Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&second(*time))
}

#[expect(clippy::ref_option, reason = "the shape that serde asks for")]
fn as_maybe_date_time<S: serde::Serializer>(time: &Option<Time>, serializer: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => serializer.serialize_str(&second(*time)),
        None => serializer.serialize_none(),
    }
}

#[expect(clippy::ref_option, reason = "the shape that serde asks for")]
fn as_maybe_money<S: serde::Serializer>(money: &Option<Money>, serializer: S) -> Result<S::Ok, S::Error> {
    money.map(MoneyView::of).serialize(serializer)
}

fn from_date_time<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse::<jiff::Timestamp>()
        .map(|timestamp| Time(timestamp.as_second()))
        .map_err(serde::de::Error::custom)
}

/// A second as a dateTime in UTC.
pub(super) fn second(time: Time) -> String {
    let seconds = time.seconds().clamp(SECONDS_MIN, SECONDS_MAX);
    jiff::Timestamp::from_second(seconds).map_or_else(|_| String::new(), |timestamp| timestamp.to_string())
}

/// An instant as a dateTime in UTC, to the millisecond.
pub(super) fn instant(at: Micros) -> String {
    let seconds = at.div_euclid(MICROS_PER_SECOND).clamp(SECONDS_MIN, SECONDS_MAX);
    let millis = at.rem_euclid(MICROS_PER_SECOND) / 1_000;
    jiff::Timestamp::from_millisecond(seconds * 1_000 + millis)
        .map_or_else(|_| String::new(), |timestamp| format!("{timestamp:.3}"))
}

/// The years that a dateTime is written in: 0001 to 9999.
const SECONDS_MIN: i64 = -62_135_596_800;
const SECONDS_MAX: i64 = 253_402_207_200;
