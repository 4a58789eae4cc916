//! Agreements, their documents and their timelines.

use uuid::Uuid;

use crate::agreement::{
    Agreement, AgreementState, Event, EventKind, RunOutcome, ServiceState, Slots, Wording,
};
use crate::clock::Micros;
use crate::store::batch::trail::{Line, Trail};
use crate::store::database::Store;
use crate::store::engine::{Columns, Error, Value, statements, to_json};

impl Store {
    /// Every agreement that is not final, ordered by id. A plan is rebuilt from these.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn live_agreements(&self) -> Result<Vec<Agreement>, Error> {
        self.read(statements::LIVE_AGREEMENTS, &[], read).await
    }

    /// At most `limit` agreements with work that was lost after an instant, the latest first.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn lost_agreements(&self, after: Micros, limit: u32) -> Result<Vec<Agreement>, Error> {
        let values = [after.into(), limit.into()];
        self.read(statements::LOST_AGREEMENTS, &values, read).await
    }

    /// At most `limit` agreements that were lost after an instant and for which the provider has proposed nothing, oldest first.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn lost_and_unanswered(&self, after: Micros, limit: u32) -> Result<Vec<Agreement>, Error> {
        let values = [after.into(), limit.into()];
        self.read(statements::LOST_AND_UNANSWERED, &values, read).await
    }

    /// The agreement with an id.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn agreement(&self, id: Uuid) -> Result<Option<Agreement>, Error> {
        self.read_one(statements::AGREEMENT, &[id.into()], read).await
    }

    /// The offer that an agreement was made from, as it came.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn agreement_document(&self, id: Uuid) -> Result<Option<Wording>, Error> {
        self.read_one(statements::DOCUMENT, &[id.into()], read_wording)
            .await
    }

    /// Keeps versions of templates, each with its id, so that an offer can be kept as the values that it fills in. The same
    /// version again changes nothing.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn keep_templates(&self, versions: &[(Uuid, &str)]) -> Result<(), Error> {
        for (id, document) in versions {
            self.write(statements::KEEP_TEMPLATE, &[(*id).into(), (*document).into()])
                .await?;
        }
        Ok(())
    }

    /// The document of a version of a template.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn template_version(&self, id: Uuid) -> Result<Option<String>, Error> {
        let values = [id.into()];
        self.read_one(statements::TEMPLATE_VERSION, &values, |row| row.text("document"))
            .await
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
        let page = [after.unwrap_or(Uuid::max()).into(), limit.into()];
        self.read_of(
            party,
            &page,
            [statements::AGREEMENTS_NEWEST, statements::AGREEMENTS_NEWEST_OF],
            read,
        )
        .await
    }

    /// At most `limit` agreements of every party and state, oldest first, newer than `after`.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn all_agreements(&self, after: Option<Uuid>, limit: u32) -> Result<Vec<Agreement>, Error> {
        let values = [after.unwrap_or(Uuid::nil()).into(), limit.into()];
        self.read(statements::AGREEMENTS_OLDEST, &values, read).await
    }

    /// The agreements of a party with a job that has yet to start, ordered by id, also the ones that are still to be decided. An
    /// agreement that was just given its slot has not started yet: its job's folder may still be made.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn agreements_to_start(&self, party: &str) -> Result<Vec<Agreement>, Error> {
        self.read(statements::AGREEMENTS_TO_START, &[party.into()], read)
            .await
    }

    /// Whether the work that began under an agreement is over for good: its own agreement is final, and no other goes on with it.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn is_over(&self, work: Uuid) -> Result<bool, Error> {
        let own = self.agreement(work).await?;
        let values = [work.into()];
        let goes_on = self.read_one(statements::GOES_ON, &values, |row| row.id("id"));
        Ok(own.is_some_and(|of| of.state.is_final()) && goes_on.await?.is_none())
    }

    /// The timeline of an agreement, oldest first.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn events(&self, agreement: Uuid) -> Result<Vec<Event>, Error> {
        self.read(statements::EVENTS, &[agreement.into()], read_event)
            .await
    }
}

fn read_event(row: &Columns<'_>) -> Result<Event, Error> {
    Ok(Event {
        at: row.integer("at_us")?,
        kind: row.word("kind", EventKind::from_word)?,
        detail: row.text("detail")?,
    })
}

/// Reads a row of [`statements::AGREEMENT`] and its like.
pub(in crate::store) fn read(row: &Columns<'_>) -> Result<Agreement, Error> {
    let id = row.id("id")?;
    read_of(id, row).map_err(|error| match error {
        Error::Corrupt(what) => Error::Corrupt(format!("agreement {id}: {what}")),
        other => other,
    })
}

fn read_of(id: Uuid, row: &Columns<'_>) -> Result<Agreement, Error> {
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
fn read_slots(row: &Columns<'_>) -> Result<Slots, Error> {
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
pub(in crate::store) fn read_wording(row: &Columns<'_>) -> Result<Wording, Error> {
    let text = row.text("document")?;
    Ok(match row.maybe_id("template")? {
        None => Wording::Document(text),
        Some(template) => Wording::Request {
            template,
            request: text,
        },
    })
}

/// The columns of [`crate::store::engine::bulk::INSERT_DOCUMENTS`].
pub(in crate::store) fn document_row(agreement: Uuid, wording: &Wording) -> [Value<'_>; 3] {
    let (text, template) = match wording {
        Wording::Document(text) => (text, None),
        Wording::Request { template, request } => (request, Some(*template)),
    };
    [agreement.into(), text.into(), template.into()]
}

/// The columns of [`crate::store::engine::bulk::INSERT_AGREEMENTS`], and of [`crate::store::engine::bulk::UPDATE_AGREEMENTS`] after the first.
pub(in crate::store) fn row(agreement: &Agreement) -> [Value<'_>; 27] {
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
        agreement.outcome.and_then(RunOutcome::exit).map(i64::from).into(),
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

/// The columns of [`crate::store::engine::bulk::INSERT_EVENTS`]: a line of an agreement's timeline, with the states that it has after the change, which
/// the trail goes on by.
pub(in crate::store) fn event_row<'a>(
    trail: &mut Trail,
    agreement: &'a Agreement,
    event: &'a Event,
) -> [Value<'a>; 9] {
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
