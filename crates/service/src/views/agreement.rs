//! Agreements as flat values.

use domain::agreement::{Agreement, AtPeer, CompositorChoice, Money, OfferTerms, Slot, Source, StagedFile};
use execution::job::staging_record::{DirectionRecord, StagingRecord};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use crate::views::conditions::{AttributesView, ConditionView, view_filters};
use crate::views::guarantees::{GuaranteeView, view_guarantees};
use crate::views::money_and_time::{MoneyView, instant_as_date_time, second_as_date_time};
use crate::views::schemas;
use crate::views::shape_changes::ShapeChangesView;

/// An agreement.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgreementView {
    /// The id.
    pub id: Uuid,
    /// The AgreementId that its initiator gave it, where the offer had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"nightly-2026-11-21")]
    pub agreement_id: Option<String>,
    /// The name that the offer gave.
    #[schemars(example = &"nightly")]
    pub name: Option<String>,
    /// The party.
    #[schemars(example = &"physics")]
    pub party: String,
    /// The template that it was made from.
    #[schemars(example = &"advance-reservation")]
    pub template: String,
    /// The state.
    #[schemars(with = "schemas::AgreementState")]
    pub state: String,
    /// Why it was rejected, where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"NO_CAPACITY_IN_WINDOW: no node is free")]
    pub rejection: Option<String>,
    /// State of its service terms.
    #[schemars(with = "schemas::ServiceState")]
    pub service_state: String,
    /// The resource that it is placed on; none where it has no place, as long as it is pending or because it was rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"local")]
    pub resource: Option<String>,
    /// How many nodes.
    #[schemars(range(min = 1), example = 2)]
    pub nodes: u32,
    /// What each node must have: at least so much of a number, and the architecture as it is.
    #[serde(default, skip_serializing_if = "AttributesView::is_empty")]
    #[schemars(with = "schemas::ResourceAttributesSchema")]
    pub attributes: AttributesView,
    /// The conditions on its nodes that are more than a least number or a word.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ConditionView>,
    /// The duration, in seconds.
    #[schemars(range(min = 1), example = 3_600)]
    pub duration_seconds: i64,
    /// Earliest start.
    #[schemars(with = "schemas::Instant")]
    pub ready: String,
    /// Latest completion.
    #[schemars(with = "schemas::Instant")]
    pub deadline: String,
    /// Planned start, where it has a place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schemas::Instant>")]
    pub planned_start: Option<String>,
    /// Planned end, where it has a place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schemas::Instant>")]
    pub planned_end: Option<String>,
    /// The pieces in which its work is done, in order of time; none where it is done in one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pieces: Vec<PieceView>,
    /// The changes of its shape that are agreed for the time until it begins or is fixed; none where it has one shape only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may_change: Option<ShapeChangesView>,
    /// The whole price, where there are prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<MoneyView>,
    /// The reservation in the cluster that its party's jobs can name; of an agreement that runs nothing, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"bespeak-17")]
    pub reservation: Option<String>,
    /// From when on the cluster knows it, as far as is foreseen; none where it does by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schemas::Instant>")]
    pub reservation_from: Option<String>,
    /// The probability that its job ends by itself before its slot does, 0 to 1, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1), example = 0.95)]
    pub confidence: Option<f64>,
    /// Real start, once there is one.
    #[schemars(with = "Option<schemas::Instant>")]
    pub started: Option<String>,
    /// Real end, once there is one.
    #[schemars(with = "Option<schemas::Instant>")]
    pub ended: Option<String>,
    /// Application of the catalogue; none where nodes are reserved and nothing runs.
    #[schemars(example = &"sleep")]
    pub application: Option<String>,
    /// The values of the application's arguments, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(example = ["30"])]
    pub arguments: Vec<String>,
    /// The files that are moved for the job, and how far they have come.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub staging: Vec<AgreementStagingView>,
    /// How the work ended: completed, failed, killed, terminated, failed-staging or lost.
    #[schemars(example = &"completed")]
    pub outcome: Option<String>,
    /// The exit status, where a process ended by itself.
    #[schemars(example = 0)]
    pub exit_status: Option<i32>,
    /// The guarantees and their states.
    pub guarantees: Vec<GuaranteeView>,
    /// The agreements of other domains that have carried it out, the first made first. Told of a single agreement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_peers: Vec<AtPeerView>,
    /// The choice, where the offer left one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schemas::Choice>")]
    pub choices: Vec<CompositorChoice>,
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
    #[schemars(with = "schemas::Instant")]
    pub created: String,
    /// Counts changes; the entity tag.
    #[schemars(range(min = 1), example = 1)]
    pub version: i64,
}

impl AgreementView {
    /// Whether it tells what may change without its version: the bytes of files that are moved, other domains, proposals.
    pub fn has_unversioned(&self) -> bool {
        !(self.staging.is_empty() && self.at_peers.is_empty() && self.proposals.is_empty())
    }
}

/// A file that is moved for the job of an agreement, and how far it has come.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "MovedFile")]
pub struct AgreementStagingView {
    /// The name of the file in the job's folder.
    #[schemars(example = &"input.csv")]
    pub file: String,
    /// Where it comes from: an address, or the name of an uploaded file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"https://storage.example.org/input.csv")]
    pub source: Option<String>,
    /// The address to which it is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"https://storage.example.org/output.csv")]
    pub target: Option<String>,
    /// Bytes that it has by the word of its party.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = 4_096)]
    pub bytes: Option<u64>,
    /// Whether it is removed when the work is over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(example = true)]
    pub delete_on_termination: bool,
    /// Bytes of it that have been brought from its address so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = 4_096)]
    pub bytes_in: Option<u64>,
    /// Bytes of it that have been sent to its address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = 0)]
    pub bytes_out: Option<u64>,
}

impl AgreementStagingView {
    /// The files of a job, with what is known of how far they have come.
    pub(crate) fn of(files: &[StagedFile], record: Option<&StagingRecord>) -> Vec<Self> {
        let moved = |way: fn(&StagingRecord) -> &DirectionRecord, name: &str| {
            let mut files = record.map(way)?.files.iter();
            files.find(|file| file.name == name).map(|file| file.bytes)
        };
        let view = |file: &StagedFile| Self {
            file: file.name.clone(),
            source: file.source.as_ref().map(|source| match source {
                Source::Upload(name) | Source::Address(name) => name.clone(),
            }),
            target: file.target.clone(),
            bytes: file.bytes,
            delete_on_termination: file.removed,
            bytes_in: moved(|record| &record.brought, &file.name),
            bytes_out: moved(|record| &record.sent, &file.name),
        };
        files.iter().map(view).collect()
    }
}

/// A piece of an agreement's work.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PieceView {
    /// The planned start.
    #[schemars(with = "schemas::Instant")]
    pub planned_start: String,
    /// The planned end.
    #[schemars(with = "schemas::Instant")]
    pub planned_end: String,
    /// How many nodes it has.
    #[schemars(range(min = 1), example = 2)]
    pub nodes: u32,
    /// Real start, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schemas::Instant>")]
    pub started: Option<String>,
    /// Real end, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schemas::Instant>")]
    pub ended: Option<String>,
}

/// Another domain's agreement behind one of ours, as it was last seen there.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AtPeerView {
    /// The name of the domain.
    #[schemars(example = &"south")]
    pub peer: String,
    /// Its state there, as it was last seen.
    #[schemars(with = "schemas::AgreementState")]
    pub state: String,
    /// What the domain has charged for it so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = json!({"amount": "6", "currency": "EUR"}))]
    pub charged: Option<MoneyView>,
    /// What the domain has paid for it so far, mostly for broken guarantees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = json!({"amount": "1.5", "currency": "EUR"}))]
    pub paid: Option<MoneyView>,
    /// The guarantees and their states.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guarantees: Vec<GuaranteeAtPeerView>,
}

/// A guarantee of another domain's agreement.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct GuaranteeAtPeerView {
    /// The name of its term there.
    #[schemars(example = &"START")]
    pub name: String,
    /// The state.
    #[schemars(with = "schemas::GuaranteeState")]
    pub state: String,
}

impl AtPeerView {
    pub(crate) fn of(row: &AtPeer) -> Self {
        let sum = |micros: i64| Some(MoneyView::of(Money::new(micros, row.price?.currency)));
        let guarantees = row.guarantees.iter().map(|guarantee| GuaranteeAtPeerView {
            name: guarantee.name.clone(),
            state: guarantee.state.word().to_owned(),
        });
        Self {
            peer: row.peer.clone(),
            state: row.state.clone(),
            charged: sum(row.charged),
            paid: sum(row.paid_back),
            guarantees: guarantees.collect(),
        }
    }
}

/// A page of a list.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "Agreements")]
pub struct AgreementPage {
    /// A page of agreements, newest first.
    pub agreements: Vec<AgreementView>,
    /// The value of `after` for the next page; none on the last.
    pub next: Option<Uuid>,
}

impl AgreementView {
    pub(crate) fn of(agreement: &Agreement) -> Self {
        let place = agreement.is_placed().then(|| agreement.placement());
        let (attributes, conditions) = view_filters(&agreement.constraints.filters);
        Self {
            id: agreement.id,
            agreement_id: agreement.initiator_id.clone(),
            name: agreement.name.clone(),
            party: agreement.party.clone(),
            template: agreement.template.clone(),
            state: agreement.state.word().to_owned(),
            rejection: None,
            service_state: agreement.service.word().to_owned(),
            resource: place.map(|_| agreement.resource.clone()),
            nodes: agreement.nodes(),
            attributes,
            conditions,
            duration_seconds: agreement.duration,
            ready: second_as_date_time(agreement.ready),
            deadline: second_as_date_time(agreement.deadline),
            planned_start: place.map(|slot| second_as_date_time(slot.start)),
            planned_end: place.map(|slot| second_as_date_time(slot.end)),
            pieces: agreement.slots.pieces().iter().map(PieceView::of).collect(),
            may_change: agreement
                .constraints
                .open_shape_changes()
                .map(ShapeChangesView::of),
            price: agreement.price.map(MoneyView::of),
            reservation: None,
            reservation_from: None,
            confidence: None,
            started: agreement.started.map(instant_as_date_time),
            ended: agreement.ended.map(instant_as_date_time),
            application: agreement.job.as_ref().map(|job| job.application.clone()),
            arguments: agreement
                .job
                .as_ref()
                .map_or_else(Vec::new, |job| job.arguments.clone()),
            staging: agreement
                .job
                .as_ref()
                .map_or_else(Vec::new, |job| AgreementStagingView::of(&job.staging, None)),
            outcome: agreement.outcome.map(|outcome| outcome.word().to_owned()),
            exit_status: agreement.outcome.and_then(domain::agreement::RunOutcome::exit),
            guarantees: view_guarantees(&agreement.guarantees, agreement.price),
            at_peers: Vec::new(),
            choices: agreement.choices.clone(),
            supersedes: None,
            superseded_by: None,
            proposals: Vec::new(),
            created: instant_as_date_time(agreement.created),
            version: agreement.version,
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
    pub(crate) fn of(piece: &Slot) -> Self {
        Self {
            planned_start: second_as_date_time(piece.placement.start),
            planned_end: second_as_date_time(piece.placement.end),
            nodes: piece.nodes,
            started: piece.started.map(instant_as_date_time),
            ended: piece.ended.map(instant_as_date_time),
        }
    }
}

/// A proposal of the provider about an agreement.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct ProposalView {
    /// The negotiation in which it is proposed.
    pub negotiation: Uuid,
    /// `better-fit` or `broken`.
    #[schemars(example = &"better-fit")]
    pub reason: String,
    /// Until when it can be accepted.
    #[schemars(with = "schemas::Instant")]
    pub expires: String,
    /// The payment to its party, by the agreement's terms, because it was not kept, whether or not this is accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub penalties: Vec<MoneyView>,
    /// The offers that can be accepted, the best first.
    pub offers: Vec<ProposedView>,
}

/// Something that can be accepted in place of an agreement.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct ProposedView {
    /// The offer's id, by which it is accepted.
    pub id: Uuid,
    /// The resource that it lies on.
    #[schemars(example = &"local")]
    pub resource: String,
    /// How many nodes.
    #[schemars(range(min = 1), example = 2)]
    pub nodes: u32,
    /// The start that it would have.
    #[schemars(with = "schemas::Instant")]
    pub start: String,
    /// The end that it would have.
    #[schemars(with = "schemas::Instant")]
    pub end: String,
    /// The whole price, where there are prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<MoneyView>,
}

impl ProposedView {
    pub(crate) fn of(id: Uuid, terms: &OfferTerms) -> Self {
        let slot = terms.placement();
        Self {
            id,
            resource: terms.resource.clone(),
            nodes: terms.nodes(),
            start: second_as_date_time(slot.start),
            end: second_as_date_time(slot.end),
            price: terms.price.map(MoneyView::of),
        }
    }
}
