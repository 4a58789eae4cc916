//! I4 and I5 of offers: each was accepted once at most, in time and by its own party; and its held nodes count until it is
//! accepted, given back or lapses.

use std::collections::BTreeMap;

use domain::agreement::{NegotiationOffer, OfferState, Slots, Stretch, held_stretches};
use domain::clock::{MICROS_PER_SECOND, Micros};
use scheduler::{Interval, Time};
use uuid::Uuid;

use super::findings::Finding;
use super::findings::Invariant::{self, I4, I5};
use super::{PAGE, Verification};
use crate::engine::{Columns, Connection, Error, Record, Result, read_json_column};
use crate::records::recorded_moves::LatestMoves;

/// An offer that has been held or accepted, and the agreement that it would replace.
struct OfferRow {
    offer: NegotiationOffer,
    party: String,
    ended: Option<Micros>,
    /// Of the agreement that was made from it.
    accepted: Option<(String, Micros)>,
    /// The agreement of which it is a change.
    changed: Option<Uuid>,
    /// Of the agreement that it would replace, while that waits: its version, its resource and its nodes there.
    replaced: Option<(i64, String, Vec<Stretch>)>,
}

/// The offers of one answer, or all for a change of one agreement, that are held on one resource, and the nodes that their party has
/// there anyway.
#[derive(Default)]
struct OfferChoice {
    held: Vec<Stretch>,
    base: Vec<Stretch>,
}

/// Checks the offers of a statement that have been held or accepted, and adds the held nodes to the loads of its resource.
pub(super) async fn check_offers(
    connection: &mut Connection,
    check: &mut Verification,
    which: &'static str,
) -> Result<()> {
    let mut choices: BTreeMap<(Uuid, String), OfferChoice> = BTreeMap::new();
    let mut after = Uuid::nil();
    loop {
        let values = [after.into(), PAGE.into()];
        let rows = connection.read(which, &values, |row| Ok((row.id("id")?, read_offer_row(row))));
        let rows = rows.await?;
        let Some(&(last, _)) = rows.last() else { break };
        after = last;
        for (id, row) in rows {
            match row {
                Ok(row) => {
                    check_offer(&row, &mut check.findings);
                    collect_offer_choice(row, &check.moved, &mut choices);
                }
                Err(Error::Corrupt(what)) => {
                    check
                        .findings
                        .push(finding_about_offer(id, Invariant::Readable, what));
                }
                Err(error) => return Err(error),
            }
        }
    }
    for ((_, resource), choice) in choices {
        let loads = check.loads.entry(resource).or_default();
        loads.extend(held_stretches(&choice.held, &choice.base));
    }
    Ok(())
}

fn collect_offer_choice(
    row: OfferRow,
    moved: &LatestMoves,
    choices: &mut BTreeMap<(Uuid, String), OfferChoice>,
) {
    if !row.offer.is_held() {
        return;
    }
    let (Some(parent), Some(terms)) = (row.offer.parent, row.offer.terms) else {
        return;
    };
    let choice = row.changed.unwrap_or(parent);
    let choice = choices.entry((choice, terms.resource.clone())).or_default();
    choice.held.extend(terms.kept());
    choice.base = row
        .replaced
        .filter(|(_, resource, _)| *resource == terms.resource)
        .map_or_else(Vec::new, |(version, _, mut slots)| {
            if let Some(one_move) = row.changed.and_then(|changed| moved.after(changed, version)) {
                for (slot, _) in &mut slots {
                    *slot = Interval::of(one_move.start, slot.duration());
                }
            }
            slots
        });
}

fn check_offer(row: &OfferRow, findings: &mut Vec<Finding>) {
    let offer = &row.offer;
    let lapses = offer.expires.map(|at| at.seconds() * MICROS_PER_SECOND);
    let (held, accepted) = (offer.is_held(), row.accepted.as_ref());
    let known = offer.terms.is_some() && offer.parent.is_some() && offer.expires.is_some();
    let acceptable = offer.state == OfferState::Acceptable;
    let too_long = (offer.released.zip(lapses)).is_some_and(|(released, lapses)| released > lapses);
    let too_late = (accepted.zip(lapses)).is_some_and(|((_, at), lapses)| *at >= lapses);
    let foreign = accepted.is_some_and(|(party, _)| *party != row.party);
    let faults = [
        (
            held && !known,
            I5,
            "it is held and says not what, or for how long",
        ),
        (held && !acceptable, I5, "it is held and not Acceptable"),
        (
            held && row.ended.is_some(),
            I5,
            "it is held in a negotiation that has ended",
        ),
        (
            held && offer.agreement.is_some(),
            I5,
            "it is held beside the agreement that was made from it",
        ),
        (too_long, I5, "it was held for longer than it stood"),
        (foreign, I4, "it was accepted by another party than its own"),
        (too_late, I4, "it was accepted after it had expired"),
        (
            accepted.is_some() && !acceptable,
            I4,
            "it was accepted and is not Acceptable",
        ),
    ];
    let found = faults.into_iter().filter(|(is_fault, ..)| *is_fault);
    findings
        .extend(found.map(|(_, invariant, what)| finding_about_offer(offer.id, invariant, what.to_owned())));
}

fn finding_about_offer(offer: Uuid, invariant: Invariant, what: String) -> Finding {
    Finding::new(invariant, format!("offer {offer}"), what)
}

fn read_offer_row(row: &Columns<'_>) -> Result<OfferRow> {
    let accepted = row.maybe_text("accepting_party")?;
    let replaced = row.maybe_text("replaced_resource")?;
    Ok(OfferRow {
        offer: NegotiationOffer::of(row)?,
        party: row.text("party")?,
        ended: row.maybe_integer("ended_us")?,
        changed: row.maybe_id("changed")?,
        accepted: match accepted {
            Some(party) => Some((party, row.integer("accepted_us")?)),
            None => None,
        },
        replaced: match replaced {
            Some(resource) => {
                let start = Time(row.integer("replaced_start_s")?);
                let whole = Interval::new(start, Time(row.integer("replaced_end_s")?));
                let slots = Slots::of(read_json_column(row, "replaced_pieces")?);
                let one = Slots::one((whole, row.count("replaced_nodes")?));
                let version = row.integer("replaced_version")?;
                Some((version, resource, slots.unwrap_or(one).stretches()))
            }
            None => None,
        },
    })
}
