//! Writing a batch of decisions: one transaction, under an epoch, and with a definite outcome wherever there can be
//! one.
//!
//! The rows to write, with the hashes of the trail, are made before the transaction begins, from the end of the trail as the last
//! batch left it. Where another process has appended to it meanwhile, they are made again. Each table takes one way to the
//! database.
//!
//! Every batch writes its own id into the lease's row. That locks the row, so that a decider that took over waits for the batch
//! before it reads anything. When the connection breaks around COMMIT, the row is locked again: that waits until the server has
//! ended the broken transaction, and the id in the row says which end it had.

use std::time::Duration;

use scheduler::{Interval, Time};
use uuid::Uuid;

use super::batch::Tables;
use super::engine::{Dialect, execute, fetch, silence};
use super::error::{is_contention, is_undone};
use super::rows::Columns;
use super::trail::Trail;
use super::{CallBack, Database, Error, Idempotent, NodeRow, Store, on, statements};
use crate::agreement::{
    Agreement, Event, Execution, NegotiationInstance, NegotiationOffer, Note, Posting, Wording,
};
use crate::clock::Micros;

/// How often a batch is tried where it only stood in another transaction's way, or was found not to be stored.
const ATTEMPTS: u32 = 4;
/// How often the outcome of a COMMIT is asked for, and how long to wait before the second time; it doubles then. With the time of
/// the attempts themselves, this is about as long as a server's restart.
const INQUIRIES: u32 = 6;
const INQUIRY_WAIT: Duration = Duration::from_millis(100);
/// A server that takes longer than this for a batch, or for a COMMIT, counts as gone.
const ANSWER_WAIT: Duration = Duration::from_secs(30);

/// One change of a batch.
#[derive(Debug, Clone)]
pub enum Change {
    /// Stores a new agreement, with everything that is stored once.
    CreateAgreement {
        /// The agreement, with version 1.
        agreement: Box<Agreement>,
        /// The accepted offer, as it came.
        document: Wording,
        /// The beginning of its timeline.
        events: Vec<Event>,
    },
    /// Stores the changes of an agreement; a conflict unless the stored version is the one before.
    UpdateAgreement {
        /// The agreement after the change, its version one higher.
        agreement: Box<Agreement>,
        /// The events to append to its timeline.
        events: Vec<Event>,
    },
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
    /// Stores that an agreement waits for its decision, and the address for that.
    AwaitDecision {
        /// Which agreement.
        agreement: Uuid,
        /// The address.
        acceptance: Option<String>,
        /// The counter offer that it accepts.
        offer: Option<Uuid>,
    },
    /// Stores the parts of a pending agreement that only its decision settles, and the parts that any change may settle.
    DecideAgreement(Box<Agreement>),
    /// Stores a call that is to be made.
    QueueCallBack(CallBack),
    /// Stores a finished piece of work.
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

/// Why an attempt failed.
pub(super) enum Failure {
    /// Nothing was written, and trying again may help.
    Contention(sqlx::Error),
    /// Nothing was written.
    Refused(Error),
    /// Whether COMMIT was carried out is not known.
    Unknown(sqlx::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        if is_contention(&error) {
            Self::Contention(error)
        } else {
            Self::Refused(error.into())
        }
    }
}

impl Store {
    /// Writes one batch in one transaction, for the holder of the lease with this epoch. Takes time in proportion to
    /// the batch.
    ///
    /// # Errors
    /// [`Error::LeaseLost`] where a later epoch exists, [`Error::Conflict`] where a change does not fit the store,
    /// [`Error::Unavailable`]; after these nothing was written. [`Error::Unknown`] where the connection broke around COMMIT and
    /// the database did not come back in time.
    pub async fn commit(&self, epoch: i64, batch: &[Change]) -> Result<(), Error> {
        on!(self, database => commit(database, epoch, batch).await)
    }
}

async fn commit<D: Dialect>(database: &Database<D>, epoch: i64, batch: &[Change]) -> Result<(), Error> {
    let id = Uuid::now_v7();
    let mut attempt = 1;
    loop {
        let again: Error = match write(database, epoch, id, batch).await {
            Ok(()) => return Ok(()),
            Err(Failure::Refused(error)) => return Err(error),
            Err(Failure::Contention(error)) => error.into(),
            Err(Failure::Unknown(error)) => match inquire(database, epoch, id).await {
                Some(true) => return Ok(()),
                Some(false) => error.into(),
                None => {
                    return Err(Error::Unknown {
                        batch: id,
                        why: Box::new(error),
                    });
                }
            },
        };
        if attempt == ATTEMPTS {
            return Err(again);
        }
        tracing::warn!(attempt, error = %again, "a batch is written again");
        attempt += 1;
    }
}

/// One attempt.
async fn write<D: Dialect>(
    database: &Database<D>,
    epoch: i64,
    id: Uuid,
    batch: &[Change],
) -> Result<(), Failure> {
    let known = database.trail();
    let tables = Tables::of(batch, &known)?;
    let writing = async {
        let mut transaction = database.begin().await?;
        if begin::<D>(&mut transaction, epoch, id, (&known, &tables.trail)).await? {
            tables.write::<D>(&mut transaction).await?;
            return Ok::<_, Failure>((transaction, tables.trail));
        }
        let rows = fetch::<D>(&mut transaction, statements::LOCK_TRAIL, &[]).await?;
        let row = rows.first().ok_or(Failure::Refused(Error::LeaseLost))?;
        let row = Columns::<D>::of(row);
        if row.integer("epoch")? != epoch {
            return Err(Error::LeaseLost.into());
        }
        // A key was made or revoked since, or this is the first batch of all.
        let known = Trail::of(&row)?;
        let tables = Tables::of(batch, &known)?;
        begin::<D>(&mut transaction, epoch, id, (&known, &tables.trail)).await?;
        tables.write::<D>(&mut transaction).await?;
        Ok((transaction, tables.trail))
    };
    let (transaction, trail) = tokio::time::timeout(ANSWER_WAIT, writing)
        .await
        .map_err(|_| silence())??;
    match tokio::time::timeout(ANSWER_WAIT, transaction.commit()).await {
        Ok(Ok(())) => {
            database.went_on(trail);
            Ok(())
        }
        Ok(Err(error)) if is_contention(&error) || is_undone(&error) => Err(error.into()),
        Ok(Err(error)) => Err(Failure::Unknown(error)),
        Err(_) => Err(Failure::Unknown(silence())),
    }
}

/// Locks the lease's row and has the trail go on; false where the epoch or the end of the trail is another than is known.
async fn begin<D: Dialect>(
    connection: &mut D::Connection,
    epoch: i64,
    id: Uuid,
    (known, after): (&Trail, &Trail),
) -> Result<bool, sqlx::Error> {
    let values = [
        epoch.into(),
        id.into(),
        known.number.into(),
        (&known.hash).into(),
        after.number.into(),
        (&after.hash).into(),
    ];
    Ok(execute::<D>(connection, statements::BEGIN_BATCH, &values).await? == 1)
}

/// Whether a batch was stored after all, where that can be found out: `None` where the database does not come back, or
/// another decider has written since.
async fn inquire<D: Dialect>(database: &Database<D>, epoch: i64, id: Uuid) -> Option<bool> {
    let mut wait = INQUIRY_WAIT;
    for inquiry in 1..=INQUIRIES {
        match tokio::time::timeout(ANSWER_WAIT, settled(database)).await {
            Ok(Ok((current, last))) => return (current == epoch).then_some(last == Some(id)),
            Ok(Err(error)) => tracing::warn!(inquiry, %error, "the outcome of a batch is not known yet"),
            Err(_) => tracing::warn!(inquiry, "the outcome of a batch is not known yet: no answer"),
        }
        if inquiry < INQUIRIES {
            tokio::time::sleep(wait).await;
            wait *= 2;
        }
    }
    None
}

/// The epoch and the last batch, once no transaction that writes is open any more.
pub(super) async fn settled<D: Dialect>(database: &Database<D>) -> Result<(i64, Option<Uuid>), Error> {
    let mut transaction = database.begin().await?;
    let rows = fetch::<D>(&mut transaction, statements::SETTLE, &[]).await?;
    let row = rows
        .first()
        .ok_or_else(|| Error::Corrupt("the lease has no row".into()))?;
    let row = Columns::<D>::of(row);
    let found = (row.integer("epoch")?, row.maybe_id("batch")?);
    transaction.commit().await?;
    Ok(found)
}
