//! I10: the chain of the audit trail holds from its first line to the last one that is known.

use super::{Finding, Invariant, PAGE};
use crate::store::engine::Dialect;
use crate::store::rows::Columns;
use crate::store::trail::{Line, Trail};
use crate::store::{Error, read_on, statements};

/// A stored line, with what it says of its place in the chain.
struct Stored {
    number: i64,
    hash: Option<String>,
    agreement: uuid::Uuid,
    at: i64,
    kind: String,
    detail: String,
    version: i64,
    state: String,
    service: String,
}

/// Follows the chain; the first place where it breaks is found, for what comes after it cannot be told.
pub(super) async fn check<D: Dialect>(connection: &mut D::Connection) -> Result<Option<Finding>, Error> {
    let ends = read_on::<D, _>(connection, statements::TRAIL, &[], Trail::of).await?;
    let end = ends.into_iter().next().unwrap_or_else(Trail::empty);
    let outside = read_on::<D, _>(connection, statements::OUTSIDE_TRAIL, &[], |row| {
        row.id("agreement")
    })
    .await?;
    if let Some(agreement) = outside.first() {
        return Ok(Some(finding(format!(
            "a line of agreement {agreement} is not in it"
        ))));
    }
    let mut trail = Trail::empty();
    loop {
        let values = [trail.number.into(), PAGE.into()];
        let page = read_on::<D, _>(connection, statements::TRAIL_LINES, &values, stored).await?;
        if page.is_empty() {
            break;
        }
        for line in page {
            trail.append(&Line {
                agreement: line.agreement,
                at: line.at,
                kind: &line.kind,
                detail: &line.detail,
                version: line.version,
                state: &line.state,
                service: &line.service,
            });
            let place = format!(
                "line {} ({} of agreement {})",
                trail.number, line.kind, line.agreement
            );
            if line.number != trail.number {
                return Ok(Some(finding(format!("line {} is missing", trail.number))));
            }
            if line.hash.as_deref() != Some(trail.hash.as_str()) {
                return Ok(Some(finding(format!("{place} is not what was written"))));
            }
        }
    }
    Ok((trail != end).then(|| {
        let known = end.number;
        finding(format!(
            "it ends with line {}, and line {known} was the last",
            trail.number
        ))
    }))
}

fn finding(what: String) -> Finding {
    Finding {
        invariant: Invariant::I10,
        subject: "audit trail".to_owned(),
        what,
    }
}

fn stored<D: Dialect>(row: &Columns<'_, D>) -> Result<Stored, Error> {
    Ok(Stored {
        number: row.integer("number")?,
        hash: row.maybe_text("hash")?,
        agreement: row.id("agreement")?,
        at: row.integer("at_us")?,
        kind: row.text("kind")?,
        detail: row.text("detail")?,
        version: row.integer("version")?,
        state: row.text("state")?,
        service: row.text("service")?,
    })
}
