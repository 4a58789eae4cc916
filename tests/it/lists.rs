//! Lists: filtered, a page at a time by Link headers, with bounds that are told.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::offers::{date_time, hours_ahead, now};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;

on_both_engines!(
    agreements_are_filtered_and_tell_what_they_replace,
    negotiations_are_filtered_by_how_they_stand;
    a_release_on_postgres:
    pages_are_linked_with_their_filters,
);

const HOUR: i64 = 3_600;

/// Makes an agreement for an hour from an instant on; its id.
async fn reserve(client: &Client, name: &str, start: i64) -> String {
    let request = json!({"name": name, "nodes": 1, "durationSeconds": HOUR,
        "window": {"start": date_time(start), "end": date_time(start + HOUR)}});
    let made = client.post_json("/agreements", &request).await;
    assert_eq!(made.status, StatusCode::CREATED, "{made:?}");
    made.json()["id"].as_str().expect("an id").to_owned()
}

/// The ids in a list, in order.
async fn ids(client: &Client, path: &str) -> Vec<String> {
    let list = client.get_json(path).await;
    let name = path.trim_start_matches('/').split('?').next().unwrap_or_default();
    let ids = list[name].as_array().expect("a list").iter();
    ids.map(|id| id["id"].as_str().expect("an id").to_owned())
        .collect()
}

async fn agreements_are_filtered_and_tell_what_they_replace(url: String) {
    let server = Server::start(&url);
    let [physics, chemistry] =
        ["physics", "chemistry"].map(|party| server.client_with(&server.key_for(party, "consumer")));
    let operator = server.client();
    let base = hours_ahead(0);
    let [two, three, eight] = [2, 3, 8].map(|hours| base + hours * HOUR);
    let early = reserve(&physics, "nightly", two).await;
    let late = reserve(&physics, "a & b", eight).await;
    let other = reserve(&chemistry, "nightly", two).await;
    physics.post(&format!("/agreements/{late}/terminate"), "").await;
    let all = vec![other.clone(), late.clone(), early.clone()];
    assert_eq!(ids(&operator, "/agreements").await, all);
    for (query, expected) in [
        ("party=physics", vec![&late, &early]),
        ("state=Observed", vec![&other, &early]),
        ("state=Terminated&party=chemistry", vec![]),
        ("name=nightly&party=physics", vec![&early]),
        ("name=a%20%26%20b", vec![&late]),
        ("name=NIGHTLY", vec![]),
    ] {
        let found = ids(&operator, &format!("/agreements?{query}")).await;
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{query}");
    }
    // Slots from hour 2 to 3 and from hour 8 to 9: the ends do not touch.
    let [two, three, eight] = [two, three, eight].map(date_time);
    for (query, expected) in [
        (format!("end={two}"), vec![]),
        (format!("start={two}&end={three}"), vec![&other, &early]),
        (format!("start={three}"), vec![&late]),
        (format!("start={three}&end={eight}"), vec![]),
    ] {
        let found = ids(&operator, &format!("/agreements?{query}")).await;
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{query}");
    }
    // A change leaves the old one and the new one, each of which names the other.
    let change = json!({"agreement": early, "name": "nightly", "durationSeconds": HOUR / 2});
    let quoted = physics.post_json("/negotiations", &change).await.json();
    let offer = json!({"offer": quoted["offers"][0]["id"]});
    let new = physics.post_json("/agreements", &offer).await.json()["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let list = physics.get_json("/agreements").await;
    let listed_agreement = |id: &str| -> Value {
        let mut listed = list["agreements"].as_array().expect("a list").iter();
        listed
            .find(|listed| listed["id"] == id)
            .cloned()
            .expect("it is listed")
    };
    assert_eq!(listed_agreement(&new)["supersedes"], early.as_str(), "{list}");
    assert_eq!(listed_agreement(&early)["supersededBy"], new.as_str(), "{list}");
    // A party sees its own alone, and what is wrong is named with what is right.
    for (query, status, told) in [
        ("party=chemistry", StatusCode::FORBIDDEN, "operators"),
        (
            "state=observed",
            StatusCode::BAD_REQUEST,
            "state: one of Pending, ",
        ),
        ("limit=0", StatusCode::UNPROCESSABLE_ENTITY, "from 1 to 200"),
        ("limit=201", StatusCode::UNPROCESSABLE_ENTITY, "from 1 to 200"),
        ("start=noon", StatusCode::BAD_REQUEST, "start: a dateTime"),
        // An offset that RFC 3339 allows, and one that nothing allows.
        ("start=2000-01-01T00:00:00%2B23:59", StatusCode::OK, "agreements"),
        (
            "start=2000-01-01T00:00:00%2B24:00",
            StatusCode::BAD_REQUEST,
            "the offset is out of range",
        ),
        ("after=x", StatusCode::BAD_REQUEST, "after"),
    ] {
        let request = physics.request(Method::GET, &format!("/agreements?{query}"));
        let answer = physics.send(request.header("accept", "application/json")).await;
        assert_eq!(answer.status, status, "{query}: {answer:?}");
        assert!(answer.body.contains(told), "{query}: {answer:?}");
    }
    server.assert_verified();
}

/// The address of the next page; none on the last.
fn next(headers: &reqwest::header::HeaderMap) -> Option<String> {
    let link = headers.get("link")?.to_str().expect("it is text");
    let address = link.strip_prefix('<')?.strip_suffix(">; rel=\"next\"");
    Some(address.unwrap_or_else(|| panic!("{link}")).to_owned())
}

async fn pages_are_linked_with_their_filters(url: String) {
    let server = Server::start(&url);
    let client = server.client();
    let mut made = Vec::new();
    let base = hours_ahead(2);
    for number in 0..5 {
        made.insert(0, reserve(&client, "a & b", base + number * HOUR).await);
        reserve(&client, "other", base + number * HOUR).await;
    }
    let base = format!("http://{}", server.address());
    let mut path = "/agreements?name=a%20%26%20b&limit=2".to_owned();
    let (mut seen, mut pages) = (Vec::new(), 0);
    loop {
        let request = client
            .request(Method::GET, &path)
            .header("accept", "application/json");
        let answer = client.send(request).await;
        let page = answer.json();
        for listed_agreement in page["agreements"].as_array().expect("a list") {
            seen.push(listed_agreement["id"].as_str().expect("an id").to_owned());
        }
        pages += 1;
        let Some(address) = next(&answer.headers) else {
            assert_eq!(page["next"], Value::Null);
            break;
        };
        let id = page["next"].as_str().expect("there is a next page");
        assert!(address.ends_with(&format!("&after={id}")), "{address}");
        path = address
            .strip_prefix(&base)
            .expect("it is the address of the service")
            .to_owned();
    }
    assert_eq!((seen, pages), (made, 3));
    for list in ["/negotiations", "/accounts", "/events"] {
        let answer = client.get(&format!("{list}?limit=1")).await;
        assert_eq!(
            next(&answer.headers).is_some(),
            list == "/events",
            "{list}: {answer:?}"
        );
        let none = client.get(&format!("{list}?limit=0")).await;
        assert_eq!(none.status, StatusCode::UNPROCESSABLE_ENTITY, "{list}: {none:?}");
        assert!(none.body.contains("limit: a whole number from 1 to "), "{none:?}");
    }
}

async fn negotiations_are_filtered_by_how_they_stand(url: String) {
    let server = Server::start(&url);
    let [physics, chemistry] =
        ["physics", "chemistry"].map(|party| server.client_with(&server.key_for(party, "consumer")));
    let ask = json!({"nodes": 1, "durationSeconds": HOUR});
    let mut opened = Vec::new();
    for client in [&physics, &physics, &chemistry] {
        let answer = client.post_json("/negotiations", &ask).await.json();
        opened.push(answer["id"].as_str().expect("an id").to_owned());
    }
    let [first, second, third] = [&opened[0], &opened[1], &opened[2]];
    physics
        .post(&format!("/negotiations/{first}/terminate"), "")
        .await;
    let operator = server.client();
    let (past, soon) = (date_time(now() - HOUR), date_time(now() + HOUR));
    for (query, expected) in [
        ("state=open".to_owned(), vec![third, second]),
        ("state=terminated".to_owned(), vec![first]),
        ("state=expired".to_owned(), vec![]),
        ("party=physics".to_owned(), vec![second, first]),
        (format!("start={past}&end={soon}&party=chemistry"), vec![third]),
        (format!("end={past}"), vec![]),
        (format!("start={soon}"), vec![]),
    ] {
        let found = ids(&operator, &format!("/negotiations?{query}")).await;
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{query}");
    }
    let refused = physics.get("/negotiations?party=chemistry").await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{refused:?}");
}
