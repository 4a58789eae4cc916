//! Agreements, their documents and their timelines.

use uuid::Uuid;

use super::engine::{Dialect, Value};
use super::rows::{Columns, to_json};
use super::trail::{Line, Trail};
use super::{Error, Store, on, statements};
use crate::agreement::{
    Agreement, AgreementState, Event, EventKind, RunOutcome, ServiceState, Slots, Wording,
};
use crate::clock::Micros;

impl Store {
    /// Every agreement that is not final, ordered by id. A plan is rebuilt from these.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn live_agreements(&self) -> Result<Vec<Agreement>, Error> {
        on!(self, database => database.read(statements::LIVE_AGREEMENTS, &[], read).await)
    }

    /// At most `limit` agreements with work that was lost after an instant, the latest first.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn lost_agreements(&self, after: Micros, limit: u32) -> Result<Vec<Agreement>, Error> {
        let values = [after.into(), limit.into()];
        on!(self, database => database.read(statements::LOST_AGREEMENTS, &values, read).await)
    }

    /// At most `limit` agreements that were lost after an instant and for which the provider has proposed nothing, oldest first.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn lost_and_unanswered(&self, after: Micros, limit: u32) -> Result<Vec<Agreement>, Error> {
        let values = [after.into(), limit.into()];
        on!(self, database => database.read(statements::LOST_AND_UNANSWERED, &values, read).await)
    }

    /// The agreement with an id.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn agreement(&self, id: Uuid) -> Result<Option<Agreement>, Error> {
        on!(self, database => Ok(database.read(statements::AGREEMENT, &[id.into()], read).await?.pop()))
    }

    /// The offer that an agreement was made from, as it came.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn agreement_document(&self, id: Uuid) -> Result<Option<Wording>, Error> {
        on!(self, database => {
            Ok(database.read(statements::DOCUMENT, &[id.into()], read_wording).await?.pop())
        })
    }

    /// Keeps versions of templates, each with its id, so that an offer can be kept as the values that it fills in. The same
    /// version again changes nothing.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn keep_templates(&self, versions: &[(Uuid, &str)]) -> Result<(), Error> {
        on!(self, database => {
            for (id, document) in versions {
                database.write(statements::KEEP_TEMPLATE, &[(*id).into(), (*document).into()]).await?;
            }
            Ok(())
        })
    }

    /// The document of a version of a template.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn template_version(&self, id: Uuid) -> Result<Option<String>, Error> {
        on!(self, database => {
            let values = [id.into()];
            Ok(database.read(statements::TEMPLATE_VERSION, &values, |row| row.text("document")).await?.pop())
        })
    }

    /// At most `limit` agreements, newest first, older than `after`; of one party, or for an operator of all.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn agreements_page(
        &self,
        party: Option<&str>,
        after: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<Agreement>, Error> {
        let before = after.unwrap_or(Uuid::max());
        on!(self, database => {
            match party {
                Some(party) => {
                    let values = [before.into(), limit.into(), party.into()];
                    database.read(statements::AGREEMENTS_NEWEST_OF, &values, read).await
                }
                None => database.read(statements::AGREEMENTS_NEWEST, &[before.into(), limit.into()], read).await,
            }
        })
    }

    /// At most `limit` agreements of every party and state, oldest first, newer than `after`.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn all_agreements(&self, after: Option<Uuid>, limit: u32) -> Result<Vec<Agreement>, Error> {
        let values = [after.unwrap_or(Uuid::nil()).into(), limit.into()];
        on!(self, database => database.read(statements::AGREEMENTS_OLDEST, &values, read).await)
    }

    /// The agreements of a party with a job that has yet to start, ordered by id, also the ones that are still to be decided. An
    /// agreement that was just given its slot has not started yet: its job's folder may still be made.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn agreements_to_start(&self, party: &str) -> Result<Vec<Agreement>, Error> {
        on!(self, database => database.read(statements::AGREEMENTS_TO_START, &[party.into()], read).await)
    }

    /// Whether the work that began under an agreement is over for good: its own agreement is final, and no other goes on with it.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn is_over(&self, work: Uuid) -> Result<bool, Error> {
        let own = self.agreement(work).await?;
        Ok(own.is_some_and(|of| of.state.is_final()) && !self.goes_on(work).await?)
    }

    /// Whether an agreement that is not final goes on with the work that began under another.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    async fn goes_on(&self, work: Uuid) -> Result<bool, Error> {
        on!(self, database => {
            let found = database.read(statements::GOES_ON, &[work.into()], |row| row.id("id")).await?;
            Ok(!found.is_empty())
        })
    }

    /// The timeline of an agreement, oldest first.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn events(&self, agreement: Uuid) -> Result<Vec<Event>, Error> {
        on!(self, database => database.read(statements::EVENTS, &[agreement.into()], read_event).await)
    }
}

fn read_event<D: Dialect>(row: &Columns<'_, D>) -> Result<Event, Error> {
    Ok(Event {
        at: row.integer("at_us")?,
        kind: row.word("kind", EventKind::from_word)?,
        detail: row.text("detail")?,
    })
}

/// Reads a row of [`statements::AGREEMENT`] and its like.
pub(super) fn read<D: Dialect>(row: &Columns<'_, D>) -> Result<Agreement, Error> {
    let id = row.id("id")?;
    read_of(id, row).map_err(|error| match error {
        Error::Corrupt(what) => Error::Corrupt(format!("agreement {id}: {what}")),
        other => other,
    })
}

fn read_of<D: Dialect>(id: Uuid, row: &Columns<'_, D>) -> Result<Agreement, Error> {
    let window = row.interval("ready_s", "deadline_s")?;
    Ok(Agreement {
        id,
        party: row.text("party")?,
        name: row.maybe_text("name")?,
        template: row.text("template")?,
        resource: row.text("resource")?,
        duration: row.integer("duration_s")?,
        ready: window.start,
        deadline: window.end,
        slots: read_slots(row)?,
        fixed: row.integer("fixed")? != 0,
        price: row.maybe_money("price_micros", "price_currency")?,
        leeway: row.json("leeway")?,
        job: row.maybe_json("job")?,
        guarantees: row.json("guarantees")?,
        state: row.word("state", AgreementState::from_word)?,
        service: row.word("service", ServiceState::from_word)?,
        started: row.maybe_integer("started_us")?,
        ended: row.maybe_integer("ended_us")?,
        outcome: row.maybe_outcome()?,
        created: row.integer("created_us")?,
        version: row.integer("version")?,
        origin: row.maybe_id("origin")?,
    })
}

/// The slots of a row. Where there is only one, the columns of the row describe it.
fn read_slots<D: Dialect>(row: &Columns<'_, D>) -> Result<Slots, Error> {
    let (placement, nodes) = (
        row.interval("planned_start_s", "planned_end_s")?,
        row.count("nodes")?,
    );
    if let Some(slots) = Slots::of(row.json("pieces")?) {
        if (slots.placement(), slots.nodes()) != (placement, nodes) {
            let what = format!("its pieces are not those of {nodes} nodes from end to end of {placement}");
            return Err(Error::Corrupt(what));
        }
        return Ok(slots);
    }
    let mut slots = Slots::one((placement, nodes));
    slots[0].started = row.maybe_integer("started_us")?;
    // An agreement that is over without an outcome never had its slot.
    slots[0].ended = row.maybe_outcome()?.and(row.maybe_integer("ended_us")?);
    Ok(slots)
}

/// Reads the columns `document` and `template`: the second is null where the first is a document.
pub(super) fn read_wording<D: Dialect>(row: &Columns<'_, D>) -> Result<Wording, Error> {
    let text = row.text("document")?;
    Ok(match row.maybe_id("template")? {
        None => Wording::Document(text),
        Some(template) => Wording::Request {
            template,
            request: text,
        },
    })
}

/// The columns of [`super::bulk::INSERT_DOCUMENTS`].
pub(super) fn document_row(agreement: Uuid, wording: &Wording) -> [Value<'_>; 3] {
    let (text, template) = match wording {
        Wording::Document(text) => (text, None),
        Wording::Request { template, request } => (request, Some(*template)),
    };
    [agreement.into(), text.into(), template.into()]
}

/// The columns of [`super::bulk::INSERT_AGREEMENTS`].
pub(super) fn row(agreement: &Agreement) -> [Value<'_>; 27] {
    [
        agreement.id.into(),
        (&agreement.party).into(),
        (&agreement.name).into(),
        (&agreement.template).into(),
        (&agreement.resource).into(),
        agreement.nodes().into(),
        agreement.duration.into(),
        agreement.ready.into(),
        agreement.deadline.into(),
        agreement.placement().start.into(),
        agreement.placement().end.into(),
        agreement.job.as_ref().map(to_json).into(),
        to_json(&agreement.guarantees).into(),
        agreement.state.word().into(),
        agreement.service.word().into(),
        agreement.started.into(),
        agreement.ended.into(),
        agreement.outcome.map(RunOutcome::word).into(),
        exit_status(agreement),
        agreement.created.into(),
        agreement.version.into(),
        i64::from(agreement.fixed).into(),
        agreement.price.map(|price| price.micros).into(),
        agreement.price.as_ref().map(|price| price.currency.code()).into(),
        to_json(&agreement.leeway).into(),
        agreement.origin.into(),
        to_json(&agreement.slots.pieces()).into(),
    ]
}

/// The columns of [`super::bulk::UPDATE_AGREEMENTS`], for a row that is stored with the version `before`.
pub(super) fn changed_row(agreement: &Agreement, before: i64) -> [Value<'_>; 20] {
    [
        agreement.id.into(),
        before.into(),
        (&agreement.resource).into(),
        agreement.nodes().into(),
        agreement.duration.into(),
        agreement.ready.into(),
        agreement.deadline.into(),
        agreement.placement().start.into(),
        agreement.placement().end.into(),
        agreement.job.as_ref().map(to_json).into(),
        to_json(&agreement.guarantees).into(),
        agreement.state.word().into(),
        agreement.service.word().into(),
        agreement.started.into(),
        agreement.ended.into(),
        agreement.outcome.map(RunOutcome::word).into(),
        exit_status(agreement),
        agreement.version.into(),
        i64::from(agreement.fixed).into(),
        to_json(&agreement.slots.pieces()).into(),
    ]
}

/// The columns of [`super::bulk::INSERT_EVENTS`]: a line of an agreement's timeline, with the states that it has after the change, which
/// the trail goes on by.
pub(super) fn event_row<'a>(trail: &mut Trail, agreement: &'a Agreement, event: &'a Event) -> [Value<'a>; 9] {
    trail.append(&Line {
        agreement: agreement.id,
        at: event.at,
        kind: event.kind.word(),
        detail: &event.detail,
        version: agreement.version,
        state: agreement.state.word(),
        service: agreement.service.word(),
    });
    [
        agreement.id.into(),
        event.at.into(),
        event.kind.word().into(),
        (&event.detail).into(),
        agreement.version.into(),
        agreement.state.word().into(),
        agreement.service.word().into(),
        trail.number.into(),
        trail.hash.clone().into(),
    ]
}

fn exit_status(agreement: &Agreement) -> Value<'static> {
    agreement.outcome.and_then(RunOutcome::exit).map(i64::from).into()
}
