//! The other domains: made known to the service, and what they carry out followed.

use std::path::Path;

use domain::clock::Clock;
use store::{Store, at_peer};
use task::Keeper;
use uuid::Uuid;
use writer::Planner;

use super::{SELDOM, SOON};
use crate::cli::Failure;
use crate::cli::config::Config;
use federation::neighbours::Neighbours;
use federation::requester_secret::ensure_requester_secret;
use federation::settings::FederationSettings;
use federation::{Federation, FollowedAgreements, Follower};

/// Open agreements whose addresses are looked at.
const OPEN_LOOKED_AT: u32 = 10_000;
/// The file of the data folder with the secret behind the ids of requesters.
const SECRET: &str = "federation.secret";

/// This domain among others, with its peers, and what is known of the agreements there; none where the configuration gives it no name
/// among others.
///
/// # Errors
/// Where a peer cannot be spoken to or is missing that is needed, or the secret cannot be kept.
pub(super) async fn open_federation_of_peers(
    config: &Config,
    data_dir: &Path,
    store: &Store,
    clock: &Clock,
) -> Result<(Option<Federation>, FollowedAgreements), Failure> {
    let followed = FollowedAgreements::default();
    let federation = match config.domain.clone() {
        Some(settings) => Some(make_federation_of_peers(
            settings,
            followed.clone(),
            data_dir,
            clock,
        )?),
        None => None,
    };
    check_peers_needed(federation.as_ref(), store).await?;
    Ok((federation, followed))
}

fn make_federation_of_peers(
    settings: FederationSettings,
    followed: FollowedAgreements,
    data_dir: &Path,
    clock: &Clock,
) -> Result<Federation, Failure> {
    let file = data_dir.join(SECRET);
    let secret = ensure_requester_secret(&file)
        .map_err(|why| Failure::Unavailable(format!("the secret {}: {why}", file.display())))?;
    let made = Federation::new(settings, followed, &secret, clock);
    made.map_err(|why| Failure::Refused(format!("peers: {why}")))
}

/// Begins to follow what peers carry out, and to look at what other domains say of themselves.
pub(super) fn start_peers(
    federation: Option<&Federation>,
    config: &Config,
    (planner, store, clock): (&Planner, &Store, &Clock),
    keeper: &Keeper,
) -> Option<Neighbours> {
    let federation = federation?;
    let of_follower = (federation.clone(), planner.clone(), store.clone(), clock.clone());
    keeper.keep(("work-at-peers", SOON), move |stop| {
        let (federation, planner, store, clock) = of_follower.clone();
        Follower::new(federation, planner, store, clock).run(stop)
    });
    let neighbours = Neighbours::new(federation.clone(), config.call_backs(), clock.clone());
    let (_, seed) = Uuid::now_v7().as_u64_pair();
    let looks = neighbours.clone();
    keeper.keep(("peers", SELDOM), move |stop| {
        looks.clone().keep_looking(seed, stop)
    });
    Some(neighbours)
}

/// Makes sure that every peer is known still at which agreements are not over.
///
/// # Errors
/// Where one is not, or it is at another address: nobody could end or follow what it carries out.
async fn check_peers_needed(federation: Option<&Federation>, store: &Store) -> Result<(), Failure> {
    for name in at_peer::peers_needed(store).await? {
        let peer = federation.and_then(|federation| federation.peer(&name));
        let Some(peer) = peer else {
            return Err(Failure::Refused(format!(
                "the peer {name} carries out agreements that are not over: its [[peer]] has to stay until they are"
            )));
        };
        let base = format!("{}/", peer.settings().address);
        let rows = at_peer::open_at_peers(store, Uuid::nil(), OPEN_LOOKED_AT).await?;
        let mut addresses = rows
            .iter()
            .filter(|row| row.peer == name)
            .filter_map(|row| row.address.as_ref());
        if let Some(address) = addresses.find(|address| !address.starts_with(&base)) {
            return Err(Failure::Refused(format!(
                "the peer {name} carries out {address}: its [[peer]] has to keep the address until that is over"
            )));
        }
    }
    Ok(())
}
