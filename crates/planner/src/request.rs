//! What the planner is asked for: an offer that is to be placed, its acceptance, and the end of an agreement.

use std::collections::BTreeMap;

use domain::agreement::{
    Agreement, BarredResource, CompositorChoice, Cuts, Filter, Guarantee, Job, Money, PlacementConstraints,
    Shape, ShapeChanges, Spender, Wording,
};
use domain::change::Idempotent;
use domain::resources::Scaling;
use scheduler::preemptive::Preemption;
use scheduler::{Fraction, Interval, Time};
use uuid::Uuid;

/// An offer as the planner sees it: already checked against its template.
#[derive(Debug, Clone)]
pub struct Request {
    /// The id that the agreement will have.
    pub id: Uuid,
    /// The party that makes the offer.
    pub party: String,
    /// The name in the offer.
    pub name: Option<String>,
    /// The id that its initiator gives the agreement, where it does.
    pub initiator_id: Option<String>,
    /// The template it was made from.
    pub template: String,
    /// The sizes that it may have with their durations, from most nodes to fewest; at least one.
    pub shapes: Vec<Shape>,
    /// The meaning of these durations.
    pub scaling: Scaling,
    /// How its work may be cut, where it may.
    pub preemption: Option<Preemption>,
    /// What may still change of its shape after it is accepted, where it says that; none for all that it leaves open.
    pub shape_changes: Option<ShapeChanges>,
    /// The conditions on the nodes.
    pub filters: Vec<Filter>,
    /// The resources where the cluster would refuse its job.
    pub barred: Vec<BarredResource>,
    /// The millionths of its wait after which its slot is to move no more.
    pub fix_at_ppm: Option<u32>,
    /// How far outside its window alternatives may lie, as a fraction of the duration, where it says.
    pub deviation_max: Option<Fraction>,
    /// Earliest start; one before now is moved to now.
    pub ready: Option<Time>,
    /// Latest completion; the horizon where there is none.
    pub deadline: Option<Time>,
    /// When its agreement expires: no slot ends later, and no slot of a counter offer.
    pub expires: Option<Time>,
    /// The job to run.
    pub job: Option<Job>,
    /// Its guarantee terms.
    pub guarantees: Vec<Guarantee>,
    /// The most that it may cost, in the provider's currency; `None` for no limit.
    pub budget: Option<Money>,
    /// The key that asks for it, where that may spend only so much.
    pub spender: Option<Spender>,
    /// Its choice, where the offer leaves one.
    pub choices: Vec<CompositorChoice>,
    /// The offer as it came, to be shown again.
    pub document: Wording,
    /// The key that the request came with.
    pub idempotency: Option<Idempotency<AcceptedOffer>>,
}

impl Request {
    /// An offer of a party with these sizes, as long as it states and anywhere within the horizon, and with nothing else.
    pub fn new(id: Uuid, party: &str, shapes: Vec<Shape>) -> Self {
        Self {
            id,
            party: party.to_owned(),
            name: None,
            initiator_id: None,
            template: String::new(),
            shapes,
            scaling: Scaling::Contract,
            preemption: None,
            shape_changes: None,
            filters: Vec::new(),
            barred: Vec::new(),
            fix_at_ppm: None,
            deviation_max: None,
            ready: None,
            deadline: None,
            expires: None,
            job: None,
            guarantees: Vec::new(),
            budget: None,
            spender: None,
            choices: Vec::new(),
            document: Wording::from(""),
            idempotency: None,
        }
    }

    /// Its latest completion, where it says none that of its expiration within this horizon.
    pub(crate) fn deadline_within(&self, horizon: Time) -> Time {
        let latest = || self.expires.map_or(horizon, |at| at.min(horizon));
        self.deadline.unwrap_or_else(latest)
    }

    /// The window that it asks for, from `now` on. One with an open end ends with its agreement, at the `horizon` at the latest.
    pub fn window(&self, now: Time, horizon: Time) -> Interval {
        Interval::new(self.ready.unwrap_or(now).max(now), self.deadline_within(horizon))
    }

    /// The leeway of its agreement beside its placement; `in_pieces` where its work is cut.
    pub fn constraints(&self, in_pieces: bool) -> PlacementConstraints {
        PlacementConstraints {
            shapes: match self.scaling {
                Scaling::Contract => Vec::new(),
                Scaling::ReferenceRate | Scaling::Predicted(_) => self.shapes.clone(),
            },
            predicted_ppm: match self.scaling {
                Scaling::Predicted(ppm) => Some(ppm),
                Scaling::Contract | Scaling::ReferenceRate => None,
            },
            estimate: None,
            room: None,
            expires: self.expires.map(Time::seconds),
            pieces_differ: in_pieces && self.preemption.is_some_and(|cut| cut.independent()),
            cuts: self.preemption.as_ref().map(Cuts::from),
            shape_changes: self.shape_changes,
            filters: self.filters.clone(),
            barred: self.barred.clone(),
            fix_at_ppm: self.fix_at_ppm,
            promised: None,
            priced_node_seconds: None,
        }
    }
}

/// An offer that was accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct AcceptedOffer {
    /// The agreement that it became.
    pub agreement: Agreement,
    /// The first of the same party's other agreements that moved inside their windows to make room for it.
    pub moved: Vec<Agreement>,
    /// How many there are of these.
    pub moved_count: usize,
}

impl AcceptedOffer {
    /// The agreements that moved and are named, at most: a newcomer may move thousands.
    pub(crate) const MOVED_NAMED: usize = 10;

    /// An agreement for which others did nothing.
    pub(super) fn alone(agreement: Agreement) -> Self {
        Self {
            agreement,
            moved: Vec::new(),
            moved_count: 0,
        }
    }
}

/// The party and the idempotency key of a request.
pub type Scope = (String, String);

/// The answers to the requests with idempotency keys.
pub type RememberedAnswers = BTreeMap<Scope, Idempotent>;

/// The identity of a request, and the way to keep its answer.
#[derive(Debug, Clone)]
pub struct Idempotency<T> {
    /// The party that sent it; keys of different parties have nothing to do with each other.
    pub party: String,
    /// The key.
    pub key: String,
    /// A digest of the request: another request under the same key is the client's mistake.
    pub request_hash: String,
    /// Writes the answer as the text that is kept. It runs on the planner's task, so it only writes its arguments.
    pub answer: fn(&T) -> String,
}

impl<T> Idempotency<T> {
    /// The name under which it is remembered.
    pub(crate) fn scope(&self) -> Scope {
        (self.party.clone(), self.key.clone())
    }
}
