//! Agreements that have lost their place here are offered to peers before they are broken.

use std::time::Duration;

use domain::agreement::{Agreement, AgreementState, AtPeer, OfferKind, OfferTerms, Shape};
use domain::request::Request;
use planner::{Candidate, EndWithoutPeer, HolderWord, ListPlanned, MoveToPeer, PutAtPeer};
use scheduler::{Interval, Time};
use store::at_peer;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use wsag::time::DateTime;

use crate::codec::kept_offer::kept_offer_of_agreement;
use crate::negotiations::peer_offers::{
    AskedOfPeer, PassedOn, candidate_of_peer_offer, pass_offer_on_to_peer,
};
use crate::peer_credit::take_peer_credit;
use crate::{Error, Result, Service};
use federation::{Federation, PeerQuestion, make_at_peer};

/// How often it is looked whether there are some.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Agreements that peers are asked for at a time.
const ASKED_AT_ONCE: usize = 16;
/// Peers that may say yes and then no before an agreement is broken.
const REFUSED_MAX: usize = 3;

/// Asks peers for agreements that have lost their place, until it is told to stop.
pub async fn seek_places_at_peers(service: Service, stop: CancellationToken) {
    let Some(federation) = service.federation.clone() else {
        return;
    };
    loop {
        match seek_all_places_at_peers(&service, &federation).await {
            Ok(()) => task::note_success(),
            Err(why) => tracing::debug!(error = %why, "agreements wait for a place at peers"),
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK_AGAIN) => {}
        }
    }
}

async fn seek_all_places_at_peers(service: &Service, federation: &Federation) -> Result<()> {
    let resources = service.planner.resources();
    let mut asked = JoinSet::new();
    for peer in resources.iter().filter(|resource| resource.is_peer()) {
        let planned = service
            .send(ListPlanned {
                resource: peer.name.clone(),
            })
            .await?;
        for (agreement, _) in planned.agreements {
            let is_its = agreement.resource == peer.name && agreement.state == AgreementState::Observed;
            if !is_its || federation.followed().has(&peer.name, agreement.id) {
                continue;
            }
            if asked.len() >= ASKED_AT_ONCE {
                asked.join_next().await;
            }
            let (service, federation) = (service.clone(), federation.clone());
            asked.spawn(async move {
                if let Err(why) = seek_place_at_peer(&service, &federation, &agreement).await {
                    tracing::debug!(agreement = %agreement.id, error = %why, "it waits for the word of a peer");
                }
            });
        }
    }
    while asked.join_next().await.is_some() {}
    Ok(())
}

/// Asks peers for one agreement, and places or ends it by their word.
async fn seek_place_at_peer(service: &Service, federation: &Federation, agreement: &Agreement) -> Result<()> {
    let rows = at_peer::at_peers_of_agreement(&service.store, agreement.id).await?;
    let refused = rows
        .iter()
        .filter(|at_peer| at_peer.settled.is_some() && at_peer.address.is_none());
    let is_hopeless = refused.count() >= REFUSED_MAX;
    let mut open = rows
        .into_iter()
        .filter(|at_peer| at_peer.settled.is_none() && !at_peer.lost);
    let open = open.next();
    if open.as_ref().is_none_or(|open| open.intent.is_some()) && !agreement.is_waiting() {
        // Its time has come. The follower ends what the peer may have made.
        return Ok(service.send(EndWithoutPeer(agreement.id)).await?);
    }
    if let Some(row) = open {
        return place_by_word_of_peer(service, federation, agreement, row).await;
    }
    if is_hopeless {
        return Ok(service.send(EndWithoutPeer(agreement.id)).await?);
    }
    match find_place_at_peers(service, federation, agreement).await? {
        Some(terms) => intend_to_place_at_peer(service, federation, agreement, &terms).await,
        None => Ok(service.send(EndWithoutPeer(agreement.id)).await?),
    }
}

/// The best of what peers hold for an agreement as it was agreed, for no more than its price.
async fn find_place_at_peers(
    service: &Service,
    federation: &Federation,
    agreement: &Agreement,
) -> Result<Option<OfferTerms>> {
    let offer = kept_offer_of_agreement(service, agreement.id).await?.offer;
    let start = agreement.ready.max(service.clock.now());
    let second = |at: Time| Some(DateTime::from_seconds(at.seconds()));
    let wish = Request {
        start: second(start),
        end: second(agreement.deadline),
        ..Request::default()
    };
    let offered = service.templates.get(&agreement.template);
    let asked = wish.change(&offer, offered.as_ref().map(|offered| &offered.template));
    let negotiation = Uuid::now_v7();
    let node_seconds = u64::try_from(agreement.node_seconds()).unwrap_or(u64::MAX);
    let template_and_job = (agreement.template.as_str(), agreement.job.as_ref());
    service.files.catch_up().await?;
    let Some(PassedOn { asked, files, only }) =
        pass_offer_on_to_peer(service, &asked, &agreement.party, template_and_job)
    else {
        return Ok(None);
    };
    let question = PeerQuestion {
        offer: &asked,
        travel: None,
        negotiation,
        offer_here: negotiation,
        party: &agreement.party,
        node_seconds,
        files,
        only,
        changes: None,
    };
    let found = federation.ask(question).await.into_iter();
    let shapes = [Shape {
        nodes: agreement.nodes(),
        duration: agreement.duration,
    }];
    let wanted = AskedOfPeer {
        window: Interval::new(start, agreement.deadline),
        shapes: &shapes,
        is_scaled: false,
        begun: None,
    };
    let candidates = found.filter_map(|found| candidate_of_peer_offer(service, found, &wanted));
    let fits = |candidate: &Candidate| {
        let terms = &candidate.terms;
        let price = |money: Option<domain::agreement::Money>| money.map_or(0, |money| money.micros);
        terms.kind == OfferKind::Exact && price(terms.price) <= price(agreement.price)
    };
    let best = candidates.filter(fits).min_by_key(|candidate| {
        (
            candidate.terms.price.map(|price| price.micros),
            candidate.terms.placement().end,
        )
    });
    let used = best.as_ref().and_then(|best| best.terms.peer.as_ref());
    let used: Vec<&str> = used.iter().map(|held| held.negotiation.as_str()).collect();
    federation.end_unused_at_asked_peers(negotiation, None, &used);
    Ok(best.map(|best| best.terms))
}

/// Stores that an agreement is to be made at a peer, and makes it.
async fn intend_to_place_at_peer(
    service: &Service,
    federation: &Federation,
    agreement: &Agreement,
    terms: &OfferTerms,
) -> Result<()> {
    let Some(held) = terms.peer.as_deref() else {
        return Err(Error::Internal("what a peer holds has no peer".to_owned()));
    };
    let (key, peer) = (Uuid::now_v7(), terms.resource.clone());
    let row = AtPeer::intended(key, agreement.id, peer, held.clone(), service.clock.micros());
    let lock = take_peer_credit(service, federation, (&row.peer, None), row.id, held.price).await?;
    service.send(PutAtPeer(row.clone())).await?;
    federation.followed().add(row.clone(), agreement.execution_id());
    drop(lock);
    place_by_word_of_peer(service, federation, agreement, row).await
}

/// Has the peer make its agreement under the key that is stored for it, and moves ours to its slot by its word.
async fn place_by_word_of_peer(
    service: &Service,
    federation: &Federation,
    agreement: &Agreement,
    row: AtPeer,
) -> Result<()> {
    let Some((start, end)) = row.intent.as_ref().map(|intent| intent.slot) else {
        // The follower is about to follow it.
        return Ok(());
    };
    let peer = federation.peer(&row.peer).ok_or(Error::Unavailable)?;
    let row = match make_at_peer(&peer, row, &service.clock).await {
        HolderWord::Held(row) => {
            let slot = (Interval::new(Time(start), Time(end)), agreement.nodes());
            let moved = MoveToPeer {
                row: row.clone(),
                slot,
            };
            service.send(moved).await?;
            row
        }
        HolderWord::Refused((row, why)) => {
            tracing::info!(agreement = %agreement.id, peer = row.peer, why, "the peer does not carry it out");
            service.send(PutAtPeer(row.clone())).await?;
            row
        }
        // The follower asks again where it is over here meanwhile.
        HolderWord::Silent => return Err(Error::Unavailable),
    };
    federation.followed().replace(row);
    Ok(())
}
