//! Agreements, their documents and their timelines.

use domain::agreement::{Agreement, AgreementState, Event, Wording};
use domain::clock::Micros;
use scheduler::Time;
use uuid::Uuid;

use super::moves::{read_later_moves, read_moved_agreements};
use super::recorded_moves::LatestMoves;
use crate::engine::{Columns, Error, Record, Result, StoredValue, Value, record, statements};
use crate::store::Store;

/// The table of agreements, in the digests of its rows.
pub(crate) const TABLE: &str = "agreements";

/// Which agreements of a list are wanted: those that match all that is given.
#[derive(Debug, Clone, Default)]
pub struct AgreementFilter {
    /// Of this party.
    pub party: Option<String>,
    /// In this state.
    pub state: Option<AgreementState>,
    /// With this name.
    pub name: Option<String>,
    /// With this id from their initiator: one, and what has taken its place under the same id.
    pub initiator_id: Option<String>,
    /// With a place that ends after this instant.
    pub start: Option<Time>,
    /// With a place that begins before this instant.
    pub end: Option<Time>,
}

/// Some of the agreements of a list in their order, and the place after which it goes on; none at its end.
pub type ListPage<P> = (Vec<(Agreement, Succession)>, Option<P>);

/// Agreements that one query looks at where no index has what a filter leaves out: some milliseconds.
pub(super) const LOOKED_AT: u32 = 1_000;

impl AgreementFilter {
    fn state_word(&self) -> Option<String> {
        self.state.map(|state| state.word().to_owned())
    }

    /// Whether it leaves some out of those that an index has together.
    fn leaves_out(&self) -> bool {
        let kinds = [
            self.initiator_id.is_some(),
            self.name.is_some(),
            self.state.is_some(),
        ];
        let has_period = self.start.is_some() || self.end.is_some();
        has_period || kinds.into_iter().filter(|is_named| *is_named).count() > 1
    }
}

/// The agreements before and after an agreement, and its place in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Succession {
    /// The one that it has taken the place of.
    pub supersedes: Option<Uuid>,
    /// The one that has taken its place.
    pub superseded_by: Option<Uuid>,
    /// In a list, the start by which it stands there: that of its row, where a move is not settled.
    pub listed_start: Option<Time>,
}

/// Every agreement that is not final, ordered by id.
///
/// # Errors
/// [`Error::Unavailable`], [`Error::Corrupt`].
pub async fn live_agreements(store: &Store) -> Result<Vec<Agreement>> {
    read_moved(store, &[], statements::LIVE_AGREEMENTS).await
}

/// The agreements with a job that runs, in no order.
///
/// # Errors
/// [`Error::Unavailable`], [`Error::Corrupt`].
pub async fn processing_agreements(store: &Store) -> Result<Vec<Agreement>> {
    store
        .read(statements::PROCESSING_AGREEMENTS, &[], read_agreement_row)
        .await
}

/// At most `limit` agreements with work that was lost after an instant, the latest first.
///
/// # Errors
/// [`Error::Unavailable`], [`Error::Corrupt`].
pub async fn lost_agreements(store: &Store, after: Micros, limit: u32) -> Result<Vec<Agreement>> {
    let values = [after.into(), limit.into()];
    store
        .read(statements::LOST_AGREEMENTS, &values, read_agreement_row)
        .await
}

/// At most `limit` agreements that were lost after an instant and for which the provider has proposed nothing, oldest first.
///
/// # Errors
/// [`Error::Unavailable`], [`Error::Corrupt`].
pub async fn unanswered_lost_agreements(store: &Store, after: Micros, limit: u32) -> Result<Vec<Agreement>> {
    let values = [after.into(), limit.into()];
    store
        .read(statements::LOST_AND_UNANSWERED, &values, read_agreement_row)
        .await
}

/// The agreement with an id.
///
/// # Errors
/// [`Error::Unavailable`], [`Error::Corrupt`].
pub async fn agreement(store: &Store, id: Uuid) -> Result<Option<Agreement>> {
    Ok(read_moved(store, &[id.into()], statements::AGREEMENT)
        .await?
        .pop())
}

/// The offer that an agreement was made from, as it is kept.
///
/// # Errors
/// [`Error::Unavailable`].
pub async fn agreement_document(store: &Store, id: Uuid) -> Result<Option<Wording>> {
    let wording = |row: &Columns<'_>| Wording::read(row, &["document", "template"]);
    store.read_one(statements::DOCUMENT, &[id.into()], wording).await
}

/// At most `limit` of the agreements that match a filter, newest first, older than `after`, each with what it has replaced and been
/// replaced by. Where no index has what the filter leaves out it looks at a thousand of them, so that a page may be short, or empty.
///
/// # Errors
/// [`Error::Unavailable`], [`Error::Corrupt`].
pub async fn agreements_page(
    store: &Store,
    filter: &AgreementFilter,
    after: Option<Uuid>,
    limit: u32,
) -> Result<ListPage<Uuid>> {
    let [start, end] = [filter.start, filter.end].map(|at| at.map(Time::seconds));
    let asked = limit.saturating_add(1);
    let first = after.unwrap_or(Uuid::max());
    let mut values: Vec<Value<'_>> = vec![
        first.into(),
        asked.into(),
        filter.state_word().into(),
        (&filter.name).into(),
        start.into(),
        end.into(),
        if filter.leaves_out() { LOOKED_AT } else { asked }.into(),
    ];
    let mut end_values: Vec<Value<'_>> = vec![first.into(), (LOOKED_AT - 1).into()];
    let (of, rows, ends): (Option<Value<'_>>, _, _) = if let Some(id) = &filter.initiator_id {
        (
            Some(id.into()),
            [statements::AGREEMENTS_WITH_ID, statements::AGREEMENTS_WITH_ID_OF],
            [statements::LAST_WITH_ID, statements::LAST_WITH_ID_OF],
        )
    } else if filter.name.is_some() {
        (
            Some((&filter.name).into()),
            [statements::AGREEMENTS_NAMED, statements::AGREEMENTS_NAMED_OF],
            [statements::LAST_NAMED, statements::LAST_NAMED_OF],
        )
    } else if filter.state.is_some() {
        (
            Some(filter.state_word().into()),
            [
                statements::AGREEMENTS_IN_STATE,
                statements::AGREEMENTS_IN_STATE_OF,
            ],
            [statements::LAST_IN_STATE, statements::LAST_IN_STATE_OF],
        )
    } else {
        (
            None,
            [statements::AGREEMENTS_NEWEST, statements::AGREEMENTS_NEWEST_OF],
            [statements::LAST_NEWEST, statements::LAST_NEWEST_OF],
        )
    };
    values.extend(of.clone());
    end_values.extend(of);
    let query = PageQuery {
        party: filter.party.as_deref(),
        rows,
        values,
        ends: filter.leaves_out().then_some((ends, end_values)),
        period: (filter.start, filter.end),
        after: first,
        limit,
    };
    let id = |row: &Columns<'_>| row.id("id");
    read_list_page(store, &query, id, |(agreement, _)| agreement.id).await
}

/// A page that is asked for. Each of its statements is there twice: for all agreements, and for those of a party.
pub(crate) struct PageQuery<'a, P> {
    pub(crate) party: Option<&'a str>,
    /// The statement that finds one more than the page has, where there are so many.
    pub(crate) rows: [&'static str; 2],
    pub(crate) values: Vec<Value<'a>>,
    /// The statement that finds the last place that this one looks at, and one more, where there are so many; none where it looks at all.
    pub(crate) ends: Option<([&'static str; 2], Vec<Value<'a>>)>,
    /// The page has what ends after the first of these instants and begins before the other. The statement looks at that only where no
    /// moves are recorded.
    pub(crate) period: (Option<Time>, Option<Time>),
    /// The place after which it begins.
    pub(crate) after: P,
    pub(crate) limit: u32,
}

/// Reads a page. Its rows and the last place that was looked at are of one instant: what moves meanwhile would be passed over
/// otherwise.
pub(crate) async fn read_list_page<P: Copy + Send + Sync>(
    store: &Store,
    query: &PageQuery<'_, P>,
    end: impl Fn(&Columns<'_>) -> Result<P> + Send + Sync,
    place: impl Fn(&(Agreement, Succession)) -> P + Send,
) -> Result<ListPage<P>> {
    let (found, ends) = loop {
        // As `read_moved_agreements` does.
        let moved = store.moves.latest();
        // Without the box the futures of all callers would be as large.
        let (found, ends) = Box::pin(read_page_at_once(store, query, &moved, &end)).await?;
        match found.first() {
            Some((newest, _)) if *newest != moved.newest => read_later_moves(store, *newest).await?,
            _ => break (found, ends),
        }
    };
    let (start, until) = query.period;
    let mut page: Vec<_> = found.into_iter().map(|(_, read)| read).collect();
    page.retain(|(agreement, _)| {
        let place = agreement.placement();
        start.is_none_or(|start| place.end > start) && until.is_none_or(|until| place.start < until)
    });
    let room = usize::try_from(query.limit).unwrap_or(usize::MAX);
    let next = if page.len() > room {
        page.truncate(room);
        Some(page.last().map_or(query.after, place))
    } else if let [last, _] = ends[..] {
        Some(last)
    } else {
        None
    };
    Ok((page, next))
}

/// A row of a page with the number of the newest record of moves.
type NumberedRow = (Option<i64>, (Agreement, Succession));

/// Reads the rows of a page and the last place that was looked at, by one snapshot where there are two statements.
async fn read_page_at_once<P: Send + Sync>(
    store: &Store,
    query: &PageQuery<'_, P>,
    moved: &LatestMoves,
    end: impl Fn(&Columns<'_>) -> Result<P> + Send,
) -> Result<(Vec<NumberedRow>, Vec<P>)> {
    let one = |row: &Columns<'_>| {
        let newest = row.maybe_integer("newest_moves")?;
        Ok((newest, read_agreement_with_succession(row, moved)?))
    };
    let Some((ends, end_values)) = &query.ends else {
        let found = store.read_all_or_named(query.party, &query.values, query.rows, one);
        return Ok((found.await?, Vec::new()));
    };
    let read = async {
        let mut snapshot = store.snapshot().await?;
        let found = snapshot.read_of(query.party, &query.values, query.rows, one);
        let found = found.await?;
        let ends = snapshot.read_of(query.party, end_values, *ends, end).await?;
        snapshot.rollback().await?;
        Ok((found, ends))
    };
    store.database.readers.answer(None, read).await?
}

/// The first agreement of a party with an id from its initiator.
///
/// # Errors
/// [`Error::Unavailable`], [`Error::Corrupt`].
pub async fn first_agreement_with_id(
    store: &Store,
    party: &str,
    initiator_id: &str,
) -> Result<Option<Agreement>> {
    let values = [party.into(), initiator_id.into()];
    Ok(read_moved(store, &values, statements::FIRST_WITH_ID).await?.pop())
}

/// The agreements of a party with a job that has yet to start, ordered by id, also the ones that are still to be decided. An
/// agreement that was just given its slot has not started yet: its job's folder may still be made. Nor has one whose files are
/// being brought.
///
/// # Errors
/// [`Error::Unavailable`], [`Error::Corrupt`].
pub async fn agreements_to_start(store: &Store, party: &str) -> Result<Vec<Agreement>> {
    let mut found = read_moved(store, &[party.into()], statements::AGREEMENTS_TO_START).await?;
    found.retain(|agreement| agreement.started.is_none() || agreement.is_being_brought());
    Ok(found)
}

/// Whether the work that began under an agreement is over for good: its own agreement is final, and no other goes on with it.
///
/// # Errors
/// [`Error::Unavailable`], [`Error::Corrupt`].
pub async fn is_work_of_agreement_over(store: &Store, work: Uuid) -> Result<bool> {
    let own = agreement(store, work).await?;
    let values = [work.into()];
    let goes_on = store.read_one(statements::GOES_ON, &values, |row| row.id("id"));
    Ok(own.is_some_and(|agreement| agreement.state.is_final()) && goes_on.await?.is_none())
}

/// The timeline of an agreement, oldest first.
///
/// # Errors
/// [`Error::Unavailable`], [`Error::Corrupt`].
pub async fn events_of_agreement(store: &Store, agreement: Uuid) -> Result<Vec<Event>> {
    store
        .read(statements::EVENTS, &[agreement.into()], Event::of)
        .await
}

/// The agreements that an agreement has replaced and been replaced by.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn succession_of_agreement(store: &Store, agreement: Uuid) -> Result<Succession> {
    let arguments = [agreement.into()];
    let rows = store.read(statements::SUCCESSIONS, &arguments, |row| {
        Ok((row.id("old")?, row.id("new")?))
    });
    let mut found = Succession::default();
    for (old, new) in rows.await? {
        if old == agreement {
            found.superseded_by = Some(new);
        } else {
            found.supersedes = Some(old);
        }
    }
    Ok(found)
}

record! { Event: at "at_us", kind, detail }
record! {
    Agreement: id, party, name, template, resource, duration "duration_s", ready "ready_s", deadline "deadline_s",
    slots "nodes" "planned_start_s" "planned_end_s" "pieces", fixed, price "price_micros" "price_currency", constraints "leeway", job,
    guarantees, state, service, started "started_us", ended "ended_us", outcome, created "created_us", version, origin,
    initiator_id, choices
}

/// Reads agreements by a statement, each where it is.
async fn read_moved(store: &Store, values: &[Value<'_>], sql: &'static str) -> Result<Vec<Agreement>> {
    read_moved_agreements(store, None, values, [sql, sql], |row, moved| {
        let mut agreement = read_agreement_row(row)?;
        moved.apply(&mut agreement);
        Ok(agreement)
    })
    .await
}

/// Reads a row of [`statements::AGREEMENT`] and its like, as it is stored.
pub(crate) fn read_agreement_row(row: &Columns<'_>) -> Result<Agreement> {
    let id = row.id("id")?;
    Agreement::of(row).map_err(|error| match error {
        Error::Corrupt(what) => Error::Corrupt(format!("agreement {id}: {what}")),
        other => other,
    })
}

/// Reads the same row with what the agreement has replaced and been replaced by, and where it is by these moves.
fn read_agreement_with_succession(row: &Columns<'_>, moved: &LatestMoves) -> Result<(Agreement, Succession)> {
    let mut agreement = read_agreement_row(row)?;
    let succession = Succession {
        supersedes: row.maybe_id("supersedes")?,
        superseded_by: row.maybe_id("superseded_by")?,
        listed_start: Some(agreement.placement().start),
    };
    moved.apply(&mut agreement);
    Ok((agreement, succession))
}
