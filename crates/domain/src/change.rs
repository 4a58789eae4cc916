//! The changes that a batch of decisions is made of, and their parts.

use std::sync::Arc;

use scheduler::{Interval, Time};
use uuid::Uuid;

use crate::agreement::{
    Agreement, AtPeer, Event, Execution, MoveRecord, NegotiationInstance, NegotiationOffer, Note, Posting,
    Wording,
};
use crate::clock::{MICROS_PER_SECOND, Micros};
use crate::resources::{NodeRow, ResourceRow};

/// How long a key is kept, in microseconds: a day, the longest that a client may go on repeating a request.
pub const IDEMPOTENCY_KEPT: Micros = 24 * 60 * 60 * MICROS_PER_SECOND;

/// One change of a batch.
#[derive(Debug, Clone)]
pub enum Change {
    /// Stores a resource as it is from now on.
    PutResource(ResourceRow),
    /// Stores what a resource has from an instant on: its nodes, and those that leave it only when their work ends.
    SetCapacity {
        /// Name of the resource.
        resource: String,
        /// The nodes from when on, in order of time; at least one.
        steps: Vec<(Micros, u32)>,
    },
    /// Stores a new agreement, with everything that is stored once.
    CreateAgreement {
        /// The agreement, with version 1.
        agreement: Box<Agreement>,
        /// The accepted offer, as it came.
        document: Wording,
        /// The beginning of its timeline.
        events: Vec<Event>,
    },
    /// Stores the changes of an agreement; its decision has settled price and constraints. A conflict unless the stored version is the one before.
    UpdateAgreement {
        /// The agreement after the change, its version one higher.
        agreement: Box<Agreement>,
        /// The events to append to its timeline.
        events: Vec<Event>,
    },
    /// Stores many moves as one record: their agreements are where it says from now on.
    RecordMoves(Arc<MoveRecord>),
    /// Stores where an agreement is by the records; a conflict unless it has the version `before`.
    SettleMoves {
        /// The agreement, with the version of the last of its moves.
        agreement: Box<Agreement>,
        /// The line of its timeline: all of them as one.
        event: Event,
        /// The version that is stored.
        before: i64,
        /// Whether its party is told: it lies elsewhere than is stored.
        is_told: bool,
    },
    /// Forgets a record: all of its agreements are stored where they are, or a later record says where.
    ForgetMoves(Arc<MoveRecord>),
    /// Gives nodes to an agreement; a conflict where one of them has another owner in the interval.
    BindNodes {
        /// The new owner.
        agreement: Uuid,
        /// Name of the resource.
        resource: String,
        /// Numbers of the nodes.
        nodes: Vec<u32>,
        /// From when until when.
        interval: Interval,
    },
    /// Gives the nodes that an agreement has to another, or to itself, until another instant.
    HandOverNodes {
        /// The owner.
        from: Uuid,
        /// The owner from now on, and as if it had always been.
        to: Uuid,
        /// The present.
        now: Time,
        /// Until when.
        end: Time,
    },
    /// Shortens the bindings of an agreement to end at `end`; a binding that would be empty goes.
    ReleaseNodes {
        /// The owner.
        agreement: Uuid,
        /// The first second in which it does not have them.
        end: Time,
    },
    /// Stores a posting of the ledger, both its sides.
    Post(Box<Posting>),
    /// Stores that an agreement waits for its decision, and the endpoint for that.
    AwaitDecision {
        /// Which agreement.
        agreement: Uuid,
        /// The endpoint.
        acceptance: Option<AcceptanceEndpoint>,
        /// The counter offer that it accepts.
        offer: Option<Uuid>,
        /// The key that asked for it, where it has a cap.
        spender: Option<Uuid>,
    },
    /// Stores what an agreement costs that is made with a key that has a cap.
    Spend {
        /// The agreement.
        agreement: Uuid,
        /// The key.
        key: Uuid,
        /// Its price, in millionths of the cap's currency.
        micros: i64,
    },
    /// Stores how an agreement stands at the peer that carries it out, in place of what is stored of it.
    PutAtPeer(AtPeer),
    /// Stores that an agreement does not wait for its decision any more.
    DecideAgreement(Uuid),
    /// Stores a call that is to be made.
    QueueCallBack(CallBack),
    /// Stores a finished piece of work, and with it the rates of its transfers as a sample of its resource.
    RecordExecution(Box<Execution>),
    /// Stores the answer to a request with a key; a conflict where the key is taken.
    RememberRequest(Idempotent),
    /// Stores the state of a node that is not up, in place of the one that its reporter has set before.
    SetNode(NodeRow),
    /// Forgets the state that a reporter has set for a node: it is up.
    ForgetNode {
        /// Name of the resource.
        resource: String,
        /// Number of the node.
        node: u32,
        /// The reporter of that state, in a word.
        reporter: &'static str,
    },
    /// Stores a new negotiation with its document.
    CreateNegotiation {
        /// The negotiation.
        negotiation: NegotiationInstance,
        /// The document that asked for it, as it came.
        document: String,
    },
    /// Ends a negotiation before its time; a conflict where it has ended.
    EndNegotiation {
        /// Which.
        negotiation: Uuid,
        /// When.
        at: Micros,
    },
    /// Stores a new offer with its document.
    CreateOffer {
        /// The offer.
        offer: Box<NegotiationOffer>,
        /// Its words.
        document: String,
    },
    /// Stores the new state of an offer, the nodes held for it, and the agreement made from it; a conflict where one has been
    /// made from it before.
    UpdateOffer(Box<NegotiationOffer>),
    /// Notes that the next slot of an agreement begins in a while, and tells its party.
    AnnounceStart {
        /// The agreement.
        agreement: Box<Agreement>,
        /// When that was noted.
        at: Micros,
    },
    /// Appends a note to the audit trail that changes nothing else.
    Note(Note),
    /// Notes that an agreement has taken the place of another; a conflict where one has before.
    Supersede {
        /// Which is over.
        old: Uuid,
        /// Which is in its place.
        new: Uuid,
    },
}

/// Where a decision is to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptanceEndpoint {
    /// The address.
    pub address: String,
    /// `wsa:ReferenceParameters` as the requester has written them.
    pub parameters: Option<String>,
}

/// A call that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallBack {
    /// Its id.
    pub id: Uuid,
    /// The agreement that it is about.
    pub agreement: Uuid,
    /// Where to.
    pub address: String,
    /// Its body: a document.
    pub body: String,
    /// How often it was tried.
    pub attempts: u32,
    /// When it is to be tried next.
    pub due: Micros,
    /// Since when it is to be made; after the first attempt, when that failed.
    pub since: Micros,
}

/// A request with a key, and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotent {
    /// The party that sent it; keys of different parties have nothing to do with each other.
    pub party: String,
    /// The key.
    pub key: String,
    /// A digest of the request: another request under the same key is the client's mistake.
    pub request_hash: String,
    /// The answer, in the words of its author: the same request again gets the same answer.
    pub answer: String,
    /// When.
    pub created: Micros,
}
