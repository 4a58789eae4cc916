//! The prices of energy over time: read from a file or an address at start and again and again, and kept where that fails.

use std::fs;
use std::net::TcpListener;
use std::time::Duration;

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::data_server::{Behaviour, DataServer};
use crate::support::server::Server;
use crate::support::{eventually, run};

/// How long what should come within seconds may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// Four nodes of 500 W, and more keys of the prices of energy, which are read each second.
fn configured(energy: &str) -> String {
    format!(
        "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n\
         [pricing]\ncurrency = \"EUR\"\nnode_hour = \"1\"\n[pricing.energy]\nseries_seconds = 1\n{energy}\n\
         [[pricing.energy.resource]]\nname = \"local\"\nbusy_watts = 500\nidle_watts = 100\n"
    )
}

/// The energy of an offer of two nodes for an hour, which is a kilowatt-hour.
async fn offered(client: &Client) -> Value {
    let asked = json!({"nodes": 2, "durationSeconds": 3_600, "hold": false});
    let answer = client.post_json("/negotiations", &asked).await.json();
    assert_ne!(answer["offers"], json!([]), "{answer}");
    answer["offers"][0]["energy"].clone()
}

/// Waits until a kilowatt-hour costs this.
async fn costs(client: &Client, amount: &str) {
    eventually(&format!("a price of {amount}"), PATIENCE, async || {
        let energy = offered(client).await;
        (energy["cost"]["amount"] == amount).then_some(())
    })
    .await;
}

/// How often a series could not be read.
async fn unread(client: &Client) -> u64 {
    let metrics = client.get("/metrics").await.body;
    let counted = metrics
        .lines()
        .find_map(|line| line.strip_prefix("bespeak_energy_tariffs_unread_total "));
    counted
        .and_then(|count| count.parse().ok())
        .expect("it is counted")
}

/// Waits until it was not read once more than now, and then again: the read that went on meanwhile is over.
async fn fails_again(client: &Client) {
    let before = unread(client).await;
    eventually("a read that fails", PATIENCE, async || {
        (unread(client).await > before + 1).then_some(())
    })
    .await;
}

#[test]
fn prices_come_from_an_address_and_stay_where_it_gives_none() {
    run(async {
        let data = DataServer::start().await;
        data.put("/prices", "# hours\n2020-01-01T00:00:00Z,0.30,350\n");
        let series = format!("series = \"{}?token=secret\"", data.url("/prices"));
        let server = Server::configured(None, &configured(&series));
        let client = server.client();
        let expected =
            json!({"wattHours": 1_000, "cost": {"amount": "0.3", "currency": "EUR"}, "carbonGrams": 350});
        // A start waits for them, but not for long.
        eventually("the first prices", PATIENCE, async || {
            (offered(&client).await == expected).then_some(())
        })
        .await;
        // Below zero the provider is paid.
        data.put("/prices", "2020-01-01T00:00:00Z,-0.05,20\n");
        costs(&client, "-0.05").await;
        data.put("/other", "2020-01-01T00:00:00Z,0.01\n");
        let moved = |path: &str| Behaviour::LeadsOn(302, data.url(path));
        for behaviour in [Behaviour::Status(503), moved("/other"), Behaviour::CutAfter(9)] {
            data.behave("/prices", behaviour.clone());
            fails_again(&client).await;
            assert_eq!(offered(&client).await["cost"]["amount"], "-0.05", "{behaviour:?}");
        }
        data.behave("/prices", None);
        for wrong in [
            "2020-01-01T00:00:00Z,dear\n",
            "",
            &"2020-01-01T00:00:00Z,0.02\n".repeat(400_000),
        ] {
            data.put("/prices", wrong);
            fails_again(&client).await;
            assert_eq!(
                offered(&client).await["cost"]["amount"],
                "-0.05",
                "{} bytes",
                wrong.len()
            );
        }
        assert!(
            server.log().contains("the prices of energy were not read"),
            "{}",
            server.log()
        );
        assert!(!server.log().contains("secret"), "{}", server.log());
        // The file is read again, and the address does not answer: the last prices hold.
        let reloaded = client.post_json("/configuration/reload", &json!({})).await;
        assert_eq!(reloaded.status, StatusCode::OK, "{reloaded:?}");
        assert_eq!(offered(&client).await["cost"]["amount"], "-0.05");
        data.put("/prices", "2020-01-01T00:00:00Z,0.07\n");
        costs(&client, "0.07").await;
    });
}

#[test]
fn a_service_starts_without_the_prices_and_takes_them_when_they_come() {
    run(async {
        let data = DataServer::start().await;
        data.behave("/prices", Behaviour::Status(500));
        let series = format!("series = \"{}\"", data.url("/prices"));
        let without = Server::configured(None, &configured(&series));
        assert_eq!(offered(&without.client()).await, Value::Null, "no price is known");
        let constant = Server::configured(None, &configured(&format!("{series}\nkwh = \"0.20\"")));
        assert_eq!(offered(&constant.client()).await["cost"]["amount"], "0.2");
        for server in [&without, &constant] {
            assert!(unread(&server.client()).await > 0);
            assert!(
                server.log().contains("the prices of energy were not read"),
                "{}",
                server.log()
            );
        }
        data.put("/prices", "2020-01-01T00:00:00Z,0.30\n");
        data.behave("/prices", None);
        for server in [&without, &constant] {
            costs(&server.client(), "0.3").await;
        }
    });
}

/// The system takes connections to a listener that nobody asks for them. A read of ten seconds is counted when it fails.
#[test]
fn neither_a_start_nor_a_reload_waits_for_prices_from_a_silent_address() {
    run(async {
        let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = silent.local_addr().expect("it is bound");
        let server = Server::configured(
            None,
            &configured(&format!("series = \"http://{address}/prices\"")),
        );
        let client = server.client();
        assert_eq!(unread(&client).await, 0, "the first read goes on");
        assert_eq!(offered(&client).await, Value::Null, "no price is known");
        fails_again(&client).await;
        assert!(
            server.log().contains("it takes longer than 10 seconds"),
            "{}",
            server.log()
        );
        let before = unread(&client).await;
        let reloaded = client.post_json("/configuration/reload", &json!({})).await;
        assert_eq!(reloaded.status, StatusCode::OK, "{reloaded:?}");
        assert_eq!(unread(&client).await, before, "the next read goes on");
        drop(silent);
    });
}

#[test]
fn a_file_of_prices_is_read_again_and_a_fault_in_it_changes_nothing() {
    run(async {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("energy.csv");
        fs::write(&file, "2020-01-01T00:00:00Z,0.30\n").expect("a file can be written");
        let series = format!("series = {:?}", file.display().to_string());
        let server = Server::configured(None, &configured(&series));
        let client = server.client();
        assert_eq!(offered(&client).await["cost"]["amount"], "0.3");
        fs::write(&file, "2020-01-01T00:00:00Z,0.40\n").expect("a file can be written");
        costs(&client, "0.4").await;
        fs::write(&file, "2020-01-01T00:00:00Z\n").expect("a file can be written");
        fails_again(&client).await;
        assert_eq!(offered(&client).await["cost"]["amount"], "0.4");
        let refused = client.post_json("/configuration/reload", &json!({})).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{refused:?}");
        assert!(refused.body.contains("line 1"), "{refused:?}");
    });
}
