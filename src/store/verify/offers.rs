//! I4 and I5 of offers: each was accepted once at most, in time and by its own party; and its held nodes count until it is
//! accepted, given back or lapses.

use std::collections::BTreeMap;

use scheduler::{Interval, Time};
use uuid::Uuid;

use super::{Check, Error, Finding, Invariant, Load, PAGE};
use crate::agreement::{NegotiationOffer, OfferState, Slots, Stretch, kept};
use crate::clock::{MICROS_PER_SECOND, Micros};
use crate::store::engine::Dialect;
use crate::store::rows::Columns;
use crate::store::{negotiations, read_on};

/// An offer that has been held or accepted, and the agreement that it would replace.
struct Row {
    offer: NegotiationOffer,
    party: String,
    ended: Option<Micros>,
    /// Of the agreement that was made from it.
    accepted: Option<(String, Micros)>,
    /// Of the agreement that it would replace, while that waits: its resource and its nodes there.
    replaced: Option<(String, Vec<Stretch>)>,
}

/// The offers of one answer that are held on one resource, and the nodes that their party has there anyway.
#[derive(Default)]
struct Answer {
    held: Vec<Stretch>,
    base: Vec<Stretch>,
}

/// Checks the offers of a statement that have been held or accepted, and adds the held nodes to the loads of its resource.
pub(super) async fn check<D: Dialect>(
    connection: &mut D::Connection,
    check: &mut Check,
    which: &'static str,
) -> Result<(), Error> {
    let mut answers: BTreeMap<(Uuid, String), Answer> = BTreeMap::new();
    let mut after = Uuid::nil();
    loop {
        let values = [after.into(), PAGE.into()];
        let rows = read_on::<D, _>(connection, which, &values, |row| Ok((row.id("id")?, read(row))));
        let rows = rows.await?;
        let Some(&(last, _)) = rows.last() else { break };
        after = last;
        for (id, row) in rows {
            match row {
                Ok(row) => {
                    check_offer(&row, &mut check.findings);
                    collect(row, &mut answers);
                }
                Err(Error::Corrupt(what)) => check.findings.push(finding(id, Invariant::Readable, what)),
                Err(error) => return Err(error),
            }
        }
    }
    for ((_, resource), answer) in answers {
        let loads = check.loads.entry(resource).or_default();
        let kept = kept(&answer.held, &answer.base).into_iter();
        loads.extend(kept.map(|(interval, nodes)| Load { interval, nodes }));
    }
    Ok(())
}

fn collect(row: Row, answers: &mut BTreeMap<(Uuid, String), Answer>) {
    if !row.offer.is_held() {
        return;
    }
    let (Some(parent), Some(terms)) = (row.offer.parent, row.offer.terms) else {
        return;
    };
    let answer = answers.entry((parent, terms.resource.clone())).or_default();
    answer.held.extend(terms.kept());
    answer.base = row
        .replaced
        .filter(|(resource, _)| *resource == terms.resource)
        .map_or_else(Vec::new, |(_, slots)| slots);
}

fn check_offer(row: &Row, findings: &mut Vec<Finding>) {
    let offer = &row.offer;
    let mut must = |holds: bool, invariant, what: &str| {
        if !holds {
            findings.push(finding(offer.id, invariant, what.to_owned()));
        }
    };
    let lapses = offer.expires.map(|at| at.seconds() * MICROS_PER_SECOND);
    if offer.is_held() {
        must(
            offer.terms.is_some() && offer.parent.is_some() && offer.expires.is_some(),
            Invariant::I5,
            "it is held and says not what, or for how long",
        );
        must(
            offer.state == OfferState::Acceptable,
            Invariant::I5,
            "it is held and not Acceptable",
        );
        must(
            row.ended.is_none(),
            Invariant::I5,
            "it is held in a negotiation that has ended",
        );
        must(
            offer.agreement.is_none(),
            Invariant::I5,
            "it is held beside the agreement that was made from it",
        );
    }
    if let (Some(released), Some(lapses)) = (offer.released, lapses) {
        must(
            released <= lapses,
            Invariant::I5,
            "it was held for longer than it stood",
        );
    }
    if let Some((party, at)) = &row.accepted {
        must(
            *party == row.party,
            Invariant::I4,
            "it was accepted by another party than its own",
        );
        must(
            lapses.is_none_or(|lapses| *at < lapses),
            Invariant::I4,
            "it was accepted after it had expired",
        );
        must(
            offer.state == OfferState::Acceptable,
            Invariant::I4,
            "it was accepted and is not Acceptable",
        );
    }
}

fn finding(offer: Uuid, invariant: Invariant, what: String) -> Finding {
    Finding {
        invariant,
        subject: format!("offer {offer}"),
        what,
    }
}

fn read<D: Dialect>(row: &Columns<'_, D>) -> Result<Row, Error> {
    let accepted = row.maybe_text("accepting_party")?;
    let replaced = row.maybe_text("replaced_resource")?;
    Ok(Row {
        offer: negotiations::read_offer(row)?,
        party: row.text("party")?,
        ended: row.maybe_integer("ended_us")?,
        accepted: match accepted {
            Some(party) => Some((party, row.integer("accepted_us")?)),
            None => None,
        },
        replaced: match replaced {
            Some(resource) => {
                let start = Time(row.integer("replaced_start_s")?);
                let whole = Interval::new(start, Time(row.integer("replaced_end_s")?));
                let slots = Slots::of(row.json("replaced_pieces")?);
                let one = Slots::one((whole, row.count("replaced_nodes")?));
                Some((resource, slots.unwrap_or(one).stretches()))
            }
            None => None,
        },
    })
}
