//! Templates and agreements as flat values.

use domain::agreement::{
    Agreement, AtPeer, Compensation, CompositorChoice, Guarantee, Money, Obligated, OfferTerms, Slot, Source,
    StagedFile,
};
use execution::job::staging::{Direction, StagingRecord};
use planner::AcceptedOffer;
use scheduler::Time;
use serde::{Deserialize, Serialize};
use store::TrailLine;
use uuid::Uuid;

use super::conditions::{AttributesView, ConditionView, view_filters};
use super::values::{MoneyView, instant_as_date_time, read_date_time, second_as_date_time, write_date_time};

/// A template, as far as one needs to know it to choose.
#[derive(Debug, Clone, Serialize, Deserialize)]
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
    /// The AgreementId that its initiator gave it, where the offer had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement_id: Option<String>,
    /// The name that the offer gave.
    pub name: Option<String>,
    /// Its party.
    pub party: String,
    /// The template that it was made from.
    pub template: String,
    /// State of the agreement.
    pub state: String,
    /// Why it was rejected, where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejection: Option<String>,
    /// State of its service terms.
    pub service_state: String,
    /// The resource that it is placed on; none where it has no place, as long as it is pending or because it was rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Nodes granted.
    pub nodes: u32,
    /// What each of them must have.
    #[serde(default, skip_serializing_if = "AttributesView::is_empty")]
    pub attributes: AttributesView,
    /// The other conditions on them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ConditionView>,
    /// Contract duration in seconds.
    pub duration_seconds: i64,
    /// Earliest start.
    pub ready: String,
    /// Latest completion.
    pub deadline: String,
    /// Planned start, where it has a place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_start: Option<String>,
    /// Planned end, where it has a place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_end: Option<String>,
    /// The pieces in which its work is done, in order of time; none where it is done in one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pieces: Vec<PieceView>,
    /// Its price, where it is priced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<MoneyView>,
    /// The reservation in the cluster that its party's jobs can name; of an agreement that runs nothing, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<String>,
    /// From when on the cluster knows it, as far as is foreseen; none where it does by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation_from: Option<String>,
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
    /// The files that are moved for it, and how far they have come, where that is looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub staging: Vec<StagedView>,
    /// How the work ended: completed, failed, killed, terminated, failed-staging or lost.
    pub outcome: Option<String>,
    /// The exit status, where a process ended by itself.
    pub exit_status: Option<i32>,
    /// The guarantees and their states.
    pub guarantees: Vec<GuaranteeView>,
    /// The agreements of other domains that have carried it out, the first made first. Told of a single agreement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_peers: Vec<AtPeerView>,
    /// The choice, where the offer left one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
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
    pub created: String,
    /// Counts changes; the entity tag.
    pub version: i64,
}

impl AgreementView {
    /// Whether it tells what may change without its version: the bytes of files that are moved, other domains, proposals.
    pub fn has_unversioned(&self) -> bool {
        !(self.staging.is_empty() && self.at_peers.is_empty() && self.proposals.is_empty())
    }
}

/// A file that is moved for the job of an agreement, and how far it has come.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StagedView {
    /// Its name in the job's folder.
    pub file: String,
    /// Where it comes from: an address, or the name of an uploaded file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The address to which it is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Bytes that it has by the word of its party.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Whether it is removed when the work is over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delete_on_termination: bool,
    /// Bytes of it that have been brought from its address so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_in: Option<u64>,
    /// Bytes of it that have been sent to its address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_out: Option<u64>,
}

impl StagedView {
    /// The files of a job, with what is known of how far they have come.
    pub(in crate::negotiation) fn of(files: &[StagedFile], record: Option<&StagingRecord>) -> Vec<Self> {
        let moved = |way: fn(&StagingRecord) -> &Direction, name: &str| {
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
pub struct AcceptedView {
    /// The agreement that it became.
    #[serde(flatten)]
    pub agreement: AgreementView,
    /// The same party's other agreements that moved inside their windows to make room for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<MovedView>,
}

/// An agreement that moved inside its window.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MovedView {
    /// Which.
    pub id: Uuid,
    /// Its planned start from now on.
    #[serde(serialize_with = "write_date_time", deserialize_with = "read_date_time")]
    pub planned_start: Time,
    /// Its planned end from now on.
    #[serde(serialize_with = "write_date_time", deserialize_with = "read_date_time")]
    pub planned_end: Time,
}

/// A guarantee term and its state.
#[derive(Debug, Clone, Serialize, Deserialize)]
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
    /// Whether its party owes it, and not the provider. For pages alone.
    #[serde(skip)]
    pub is_partys: bool,
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

/// Another domain's agreement behind one of ours, as it was last seen there.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AtPeerView {
    /// The name of the domain.
    pub peer: String,
    /// Its state.
    pub state: String,
    /// The peer's charge for it so far, where it has a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charged: Option<MoneyView>,
    /// The peer's payments for it so far, mostly for broken guarantees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paid: Option<MoneyView>,
    /// Its guarantees.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guarantees: Vec<GuaranteeAtPeerView>,
}

/// A guarantee of another domain's agreement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuaranteeAtPeerView {
    /// The name of its term there.
    pub name: String,
    /// NotDetermined, Fulfilled or Violated.
    pub state: String,
}

impl AtPeerView {
    pub(in crate::negotiation) fn of(row: &AtPeer) -> Self {
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
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AgreementPage {
    /// Newest first.
    pub agreements: Vec<AgreementView>,
    /// The value of `after` for the next page; none on the last.
    pub next: Option<Uuid>,
}

/// One line of a timeline.
#[derive(Debug, Clone, Serialize, Deserialize)]
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
pub struct TimelineView {
    /// The agreement.
    pub agreement: Uuid,
    /// In order.
    pub events: Vec<EventView>,
}

impl AgreementView {
    pub(in crate::negotiation) fn of(agreement: &Agreement) -> Self {
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
                .map_or_else(Vec::new, |job| StagedView::of(&job.staging, None)),
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
    pub(in crate::negotiation) fn of(piece: &Slot) -> Self {
        Self {
            planned_start: second_as_date_time(piece.placement.start),
            planned_end: second_as_date_time(piece.placement.end),
            nodes: piece.nodes,
            started: piece.started.map(instant_as_date_time),
            ended: piece.ended.map(instant_as_date_time),
        }
    }
}

/// The guarantees of an agreement with this price.
pub(in crate::negotiation) fn view_guarantees(
    guarantees: &[Guarantee],
    price: Option<Money>,
) -> Vec<GuaranteeView> {
    let view = |guarantee: &Guarantee| GuaranteeView {
        name: guarantee.name.clone(),
        state: guarantee.state.word().to_owned(),
        objective: guarantee.objective.clone(),
        evidence: guarantee.evidence.clone(),
        values: view_guarantee_values(guarantee, price),
        is_partys: guarantee.values.obligated == Obligated::Consumer,
    };
    guarantees.iter().map(view).collect()
}

/// The values of a guarantee of an agreement with this price.
fn view_guarantee_values(guarantee: &Guarantee, price: Option<Money>) -> Vec<ValueView> {
    let value = |kind: &str, compensation: &Compensation| {
        Some(ValueView {
            kind: kind.to_owned(),
            amount: MoneyView::of(compensation.worth.of(price)?),
            every_seconds: compensation.every,
            paid: compensation.paid,
        })
    };
    let penalties = guarantee.values.penalties.iter();
    let rewards = guarantee.values.rewards.iter();
    let penalties = penalties.filter_map(|penalty| value("penalty", penalty));
    penalties
        .chain(rewards.filter_map(|reward| value("reward", reward)))
        .collect()
}

impl AcceptedView {
    pub(in crate::negotiation) fn of(accepted: &AcceptedOffer) -> Self {
        let moved = accepted.moved.iter().map(|other| MovedView {
            id: other.id,
            planned_start: other.placement().start,
            planned_end: other.placement().end,
        });
        Self {
            agreement: AgreementView::of(&accepted.agreement),
            moved: moved.collect(),
        }
    }
}

impl EventView {
    pub(in crate::negotiation) fn of(event: &TrailLine) -> Self {
        Self {
            at: instant_as_date_time(event.at),
            kind: event.kind.clone(),
            detail: event.detail.clone(),
        }
    }
}

/// A proposal of the provider about an agreement.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProposalView {
    /// The negotiation in which it is proposed.
    pub negotiation: Uuid,
    /// `better-fit` or `broken`.
    pub reason: String,
    /// Until when it can be accepted.
    pub expires: String,
    /// The payment to its party, by the agreement's terms, because it was not kept, whether or not this is accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub penalties: Vec<MoneyView>,
    /// The offers that can be accepted, the best first.
    pub offers: Vec<ProposedView>,
}

/// Something that can be accepted in place of an agreement.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProposedView {
    /// The offer's id, by which it is accepted.
    pub id: Uuid,
    /// The resource that it lies on.
    pub resource: String,
    /// Nodes.
    pub nodes: u32,
    /// Where it would start.
    pub start: String,
    /// Where it would end.
    pub end: String,
    /// Its price, where something is charged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<MoneyView>,
}

impl ProposedView {
    pub(in crate::negotiation) fn of(id: Uuid, terms: &OfferTerms) -> Self {
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
