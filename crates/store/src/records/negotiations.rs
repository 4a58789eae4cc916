//! Negotiations and their trees of offers.

use std::collections::BTreeMap;

use domain::agreement::{
    NegotiationInstance, NegotiationOffer, NegotiationState, OfferTerms, ProposalReason,
};
use domain::clock::Micros;
use scheduler::Time;
use uuid::Uuid;

use crate::engine::{Columns, Connection, Record, Result, read_json_column, record, statements};
use crate::store::Store;

/// Which negotiations of a list are wanted: those that match all that is given.
#[derive(Debug, Clone, Default)]
pub struct NegotiationFilter {
    /// Of this party.
    pub party: Option<String>,
    /// In this state.
    pub state: Option<NegotiationState>,
    /// Opened at this instant or later.
    pub start: Option<Micros>,
    /// Opened before this instant.
    pub end: Option<Micros>,
}

/// The negotiations that go on at `now`, and the negotiations that are over while something is still held in them. Each comes
/// with its offers, ordered by id. A plan is rebuilt from these.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub(crate) async fn open_negotiations(
    connection: &mut Connection,
    now: Time,
) -> Result<Vec<(NegotiationInstance, Vec<NegotiationOffer>)>> {
    let now = [now.into()];
    let negotiations = connection.read(statements::OPEN_NEGOTIATIONS, &now, NegotiationInstance::of);
    let mut negotiations = negotiations.await?;
    negotiations.sort_unstable_by_key(|negotiation| negotiation.id);
    let mut offers: BTreeMap<Uuid, Vec<NegotiationOffer>> = BTreeMap::new();
    let all = connection.read(statements::OFFERS_OF_OPEN, &now, NegotiationOffer::of);
    for offer in all.await? {
        offers.entry(offer.negotiation).or_default().push(offer);
    }
    let with_offers = |negotiation: NegotiationInstance| {
        let one_offer = offers.remove(&negotiation.id).unwrap_or_default();
        (negotiation, one_offer)
    };
    Ok(negotiations.into_iter().map(with_offers).collect())
}

/// At most `limit` negotiations that go on at `now`, newest first; of one party, or for an operator of all.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn negotiations_going(
    store: &Store,
    party: Option<&str>,
    now: Time,
    limit: u32,
) -> Result<Vec<NegotiationInstance>> {
    let page = [now.into(), limit.into()];
    let going = [statements::NEGOTIATIONS_GOING, statements::NEGOTIATIONS_GOING_OF];
    store
        .read_all_or_named(party, &page, going, NegotiationInstance::of)
        .await
}

/// The negotiation with an id.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn negotiation(store: &Store, id: Uuid) -> Result<Option<NegotiationInstance>> {
    store
        .read_one(statements::NEGOTIATION, &[id.into()], NegotiationInstance::of)
        .await
}

/// What asked for a negotiation, as it is kept.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn negotiation_document(store: &Store, id: Uuid) -> Result<Option<String>> {
    let values = [id.into()];
    store
        .read_one(statements::NEGOTIATION_DOCUMENT, &values, |row| {
            row.text("document")
        })
        .await
}

/// An offer and its words.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn negotiation_offer(store: &Store, id: Uuid) -> Result<Option<(NegotiationOffer, String)>> {
    store
        .read_one(statements::OFFER, &[id.into()], read_offer_with_document)
        .await
}

/// The offer with a name in a negotiation, and its words.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn negotiation_offer_named(
    store: &Store,
    negotiation: Uuid,
    name: &str,
) -> Result<Option<(NegotiationOffer, String)>> {
    let values = [negotiation.into(), name.into()];
    store
        .read_one(statements::OFFER_NAMED, &values, read_offer_with_document)
        .await
}

/// Every offer of a negotiation and its words, oldest first.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn offers_of_negotiation(
    store: &Store,
    negotiation: Uuid,
) -> Result<Vec<(NegotiationOffer, String)>> {
    store
        .read(
            statements::OFFERS_OF,
            &[negotiation.into()],
            read_offer_with_document,
        )
        .await
}

/// At most `limit` of the negotiations that match a filter at `now`, newest first, older than `after`.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn negotiations_page(
    store: &Store,
    filter: &NegotiationFilter,
    now: Time,
    after: Option<Uuid>,
    limit: u32,
) -> Result<Vec<NegotiationInstance>> {
    let page = [
        after.unwrap_or(Uuid::max()).into(),
        limit.into(),
        filter.state.map(|state| state.word().to_owned()).into(),
        now.into(),
        filter.start.into(),
        filter.end.into(),
    ];
    let newest = [
        statements::NEGOTIATIONS_NEWEST,
        statements::NEGOTIATIONS_NEWEST_OF,
    ];
    let party = filter.party.as_deref();
    store
        .read_all_or_named(party, &page, newest, NegotiationInstance::of)
        .await
}

/// The offers of a negotiation that are held, oldest first, and their words.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn held_offers_of_negotiation(
    store: &Store,
    negotiation: Uuid,
) -> Result<Vec<(NegotiationOffer, String)>> {
    store
        .read(
            statements::OFFERS_HELD,
            &[negotiation.into()],
            read_offer_with_document,
        )
        .await
}

/// Whether an agreement was made from an offer of the provider's own to move another.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn was_proposed_in_negotiation(store: &Store, agreement: Uuid) -> Result<bool> {
    let values = [agreement.into(), ProposalReason::BetterFit.word().into()];
    let found = store.read_one(statements::WAS_PROPOSED, &values, |row| row.id("id"));
    Ok(found.await?.is_some())
}

/// The agreements of a party about which the provider has opened a negotiation in which something is held at `now`.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn agreements_with_proposed_negotiations(
    store: &Store,
    party: &str,
    now: Time,
) -> Result<Vec<Uuid>> {
    let values = [party.into(), now.into()];
    store
        .read(statements::AGREEMENTS_WITH_PROPOSALS, &values, |row| {
            row.id("agreement")
        })
        .await
}

/// The negotiations that the provider has opened about an agreement and that go on at `now`.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn negotiations_proposed_about(
    store: &Store,
    agreement: Uuid,
    now: Time,
) -> Result<Vec<NegotiationInstance>> {
    let values = [agreement.into(), now.into()];
    store
        .read(statements::PROPOSALS_ABOUT, &values, NegotiationInstance::of)
        .await
}

/// The offers that are being accepted, with their terms: some of them wait for the word of a peer.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn negotiation_offers_being_accepted(store: &Store) -> Result<Vec<(Uuid, OfferTerms)>> {
    store
        .read(statements::OFFERS_BEING_ACCEPTED, &[], |row| {
            Ok((row.id("id")?, read_json_column(row, "terms")?))
        })
        .await
}

record! {
    NegotiationInstance: id, party, agreement, created "created_us", expires "expires_s", ended "ended_us", proposed
}
record! {
    NegotiationOffer: id, negotiation, name, parent, creator, state, created "created_us", expires "expires_s", terms,
    refusal, held "held_us", released "released_us", agreement
}

fn read_offer_with_document(row: &Columns<'_>) -> Result<(NegotiationOffer, String)> {
    Ok((NegotiationOffer::of(row)?, row.text("document")?))
}
