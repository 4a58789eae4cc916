//! Many clients want the same thing at the same time: one gets it, and each of the others gets the reason.

use reqwest::StatusCode;
use tokio::task::JoinSet;

use crate::support::offers::{Offer, hours_ahead};
use crate::support::server::Server;
use crate::support::size;
use crate::support::stores::on_both_engines;

/// Clients that want the last slot; `BESPEAK_TEST_RACERS` asks for more.
const CLIENTS: usize = 500;

/// Four nodes, as many connections for one address as there are, and time for all of them.
const RACECOURSE: &str = "[limits]\nconnections_per_address = 4096\nheader_seconds = 600\nbody_seconds = 600\n\
    [[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n";

on_both_engines!(the_last_slot_goes_to_one_of_five_hundred);

async fn the_last_slot_goes_to_one_of_five_hundred(url: String) {
    // All of them come from one address.
    let server = Server::configured(Some(&url), RACECOURSE);
    let clients = size("BESPEAK_TEST_RACERS", CLIENTS);
    let start = hours_ahead(1);
    let offer = Offer::reserve(3, 600).within(start, start + 600).xml();
    let client = server.client();
    let racers: JoinSet<_> = (0..clients)
        .map(|_| {
            let (client, offer) = (client.clone(), offer.clone());
            async move {
                let request = client.request(reqwest::Method::POST, "/agreements");
                let request = request.header("content-type", "application/xml").body(offer);
                client.try_send(request).await.expect("every racer is answered")
            }
        })
        .collect();
    let answers = racers.join_all().await;
    let (winners, others): (Vec<_>, Vec<_>) = answers
        .iter()
        .partition(|answer| answer.status == StatusCode::CREATED);
    assert_eq!(winners.len(), 1, "winners of a slot for one");
    for answer in others {
        // A request that comes when too much is at work already gets the answer to try again, and has not been considered.
        match answer.status {
            StatusCode::CONFLICT => {
                assert_eq!(answer.text("ErrorCode"), "NO_CAPACITY_IN_WINDOW", "{answer:?}");
            }
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                assert!(answer.headers.contains_key("retry-after"), "{answer:?}");
            }
            _ => panic!("neither won nor refused: {answer:?}"),
        }
    }
    server.assert_verified();
}
