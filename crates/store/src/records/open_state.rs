//! What a plan is rebuilt from.

use domain::agreement::{Agreement, MoveRecord, NegotiationInstance, NegotiationOffer};
use domain::resources::{Binding, ResourceRow};
use scheduler::Time;

use super::agreements::read_agreement_row;
use super::bindings::sort_stored_bindings;
use super::negotiations::open_negotiations;
use crate::engine::{Connection, Record, Result, statements};
use crate::store::Store;

/// What a plan is rebuilt from, as of one instant.
#[derive(Debug)]
pub struct OpenState {
    /// The instant.
    pub now: Time,
    /// The resources, in the order in which ties are broken.
    pub resources: Vec<ResourceRow>,
    /// Every agreement that is not final, by id, as its row has it: without the moves that are recorded and not settled.
    pub agreements: Vec<Agreement>,
    /// These moves, oldest first.
    pub moves: Vec<MoveRecord>,
    /// The number of the trail's last line.
    pub trail_number: i64,
    /// The bindings of these agreements, and the bindings that last beyond that instant, by resource, node and start.
    pub bindings: Vec<Binding>,
    /// The negotiations that go on, and the negotiations that are over while something is still held in them, with their offers.
    pub negotiations: Vec<(NegotiationInstance, Vec<NegotiationOffer>)>,
}

/// Reads what a plan is rebuilt from.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn open_state(store: &Store, now: Time) -> Result<OpenState> {
    let read = async {
        let mut snapshot = store.snapshot().await?;
        let connection: &mut Connection = &mut snapshot;
        let moves = connection.read(statements::ALL_MOVES, &[], MoveRecord::of);
        let moves = moves.await?;
        let open = [now.into()];
        let bindings = connection.read(statements::LIVE_BINDINGS, &open, Binding::of);
        let bindings = sort_stored_bindings(bindings.await?);
        let count = count_open_agreements(connection).await?;
        let agreements = read_open_agreements(connection, count).await?;
        let state = OpenState::around(connection, now, (agreements, moves, bindings)).await?;
        snapshot.rollback().await?;
        Ok(state)
    };
    store.database.readers.answer(None, read).await?
}

impl OpenState {
    /// The open state with these agreements, moves and bindings.
    pub(crate) async fn around(
        connection: &mut Connection,
        now: Time,
        (agreements, moves, bindings): (Vec<Agreement>, Vec<MoveRecord>, Vec<Binding>),
    ) -> Result<Self> {
        let trail = connection.read(statements::TRAIL, &[], |row| row.integer("trail_number"));
        Ok(Self {
            now,
            trail_number: trail.await?.pop().unwrap_or(0),
            resources: connection
                .read(statements::RESOURCES, &[], ResourceRow::of)
                .await?,
            negotiations: open_negotiations(connection, now).await?,
            agreements,
            moves,
            bindings,
        })
    }
}

/// How many agreements are not final.
pub(crate) async fn count_open_agreements(connection: &mut Connection) -> Result<u32> {
    let count = connection.read(statements::LIVE_COUNT, &[], |row| row.count("live"));
    Ok(count.await?.pop().unwrap_or(0))
}

/// Reads them into memory that is there before: each takes a kilobyte, and to make room for ever more of them would move all.
async fn read_open_agreements(connection: &mut Connection, count: u32) -> Result<Vec<Agreement>> {
    let mut agreements = Vec::with_capacity(count as usize);
    let all = &mut agreements;
    let read = connection.each_row(statements::LIVE_AGREEMENTS, &[], move |row| {
        all.push(read_agreement_row(row)?);
        Ok(())
    });
    read.await?;
    Ok(agreements)
}
