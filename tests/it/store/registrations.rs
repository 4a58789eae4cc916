//! Where the events of parties are told: whose turn it is, and what is noted of it.

use store::Store;
use store::keys::{self, KeyChange, KeyRow};
use store::registrations::{self, Registration};
use uuid::Uuid;

use super::{open, tamper};
use crate::support::stores::on_both_engines;

on_both_engines!(
    the_longest_due_is_told_first_and_a_party_has_a_bounded_number_of_places,
    an_event_is_failing_since_its_first_failure,
    what_was_removed_or_replaced_is_told_nothing_more,
    a_party_is_told_nothing_while_no_key_of_it_works,
);

const ADDRESS: &str = "https://example.org/";
/// The number of the newest event.
pub(crate) const NEWEST: i64 = 102;

fn registration(party: &str, name: &str, due: i64) -> Registration {
    Registration {
        id: Uuid::now_v7(),
        party: party.into(),
        name: name.into(),
        address: None,
        secret: "whsec_".into(),
        created: due,
        told: 0,
        attempts: 0,
        failing: None,
        due,
    }
}

/// Gives a party a key.
pub(crate) async fn add_key(store: &Store, party: &str, expires: Option<i64>) -> Uuid {
    let id = Uuid::now_v7();
    let key = KeyRow {
        id,
        digest: id.to_string(),
        party: party.into(),
        role: domain::access::Role::Consumer,
        label: None,
        created: 1,
        expires,
        revoked: None,
        read_only: false,
        spending_cap: None,
    };
    keys::add_key(store, &key, None).await.expect("it is stored");
    id
}

/// A store with two events of each of two parties, and registrations of an address that are due one after the other.
pub(crate) async fn registered(url: &str, all: &[(&str, &str)], address: &str) -> (Store, Vec<Registration>) {
    let store = open(url).await;
    for (number, party) in [
        (99, "biology"),
        (100, "physics"),
        (101, "biology"),
        (NEWEST, "physics"),
    ] {
        let event = format!(
            "INSERT INTO party_events (party, number, id, at_us, kind, detail) \
             VALUES ('{party}', {number}, 'evt_{number}', 5, 'started', 'as planned')"
        );
        tamper(url, &event).await;
    }
    add_key(&store, "physics", None).await;
    add_key(&store, "biology", None).await;
    let mut registrations = Vec::new();
    for (due, (party, name)) in (1..).zip(all) {
        let one = Registration {
            address: Some(address.into()),
            ..registration(party, name, due)
        };
        assert!(
            registrations::put_registration(&store, one.clone(), 8)
                .await
                .expect("it is stored")
        );
        registrations.push(one);
    }
    (store, registrations)
}

async fn due(store: &Store, now: i64, of_each: u32) -> Vec<String> {
    let due = registrations::registrations_due(store, now, 100, of_each).await;
    let due = due.expect("they can be read");
    due.into_iter().map(|due| due.name).collect()
}

async fn the_longest_due_is_told_first_and_a_party_has_a_bounded_number_of_places(url: String) {
    let all = [
        ("physics", "a"),
        ("physics", "b"),
        ("physics", "c"),
        ("biology", "d"),
        ("chemistry", "without an event"),
    ];
    let (store, receivers) = registered(&url, &all, ADDRESS).await;
    add_key(&store, "chemistry", None).await;
    assert_eq!(due(&store, 10, 100).await, ["a", "b", "c", "d"]);
    assert_eq!(due(&store, 10, 2).await, ["a", "b", "d"]);
    assert_eq!(due(&store, 2, 2).await, ["a", "b"], "the others are due later");
    // One that was told something has its next turn after the others, also where it is behind.
    registrations::note_registration_told(&store, receivers[0].id, 100, 9)
        .await
        .expect("it is noted");
    assert_eq!(due(&store, 10, 2).await, ["b", "c", "d"]);
    assert_eq!(due(&store, 10, 3).await, ["b", "c", "d", "a"]);
    // One that was told all has none.
    registrations::note_registration_told(&store, receivers[1].id, NEWEST, 9)
        .await
        .expect("it is noted");
    assert_eq!(due(&store, 10, 3).await, ["c", "d", "a"]);
}

async fn an_event_is_failing_since_its_first_failure(url: String) {
    let (store, receivers) = registered(&url, &[("physics", "a")], ADDRESS).await;
    let id = receivers[0].id;
    let stands = async || {
        let all = registrations::registrations_of_party(&store, "physics")
            .await
            .expect("it can be read");
        (all[0].attempts, all[0].failing, all[0].due)
    };
    assert_eq!(stands().await, (0, None, 1));
    for (attempts, now) in [(1, 10), (2, 20)] {
        registrations::postpone_registration(&store, id, now + 5, now)
            .await
            .expect("it is noted");
        assert_eq!(stands().await, (attempts, Some(10), now + 5));
    }
    registrations::note_registration_told(&store, id, 100, 30)
        .await
        .expect("it is noted");
    assert_eq!(stands().await, (0, None, 30));
    registrations::postpone_registration(&store, id, 45, 40)
        .await
        .expect("it is noted");
    assert_eq!(stands().await, (1, Some(40), 45), "the next one");
}

async fn what_was_removed_or_replaced_is_told_nothing_more(url: String) {
    let (store, receivers) = registered(&url, &[("physics", "a"), ("physics", "b")], ADDRESS).await;
    let other = registration("physics", "a", 1);
    assert!(
        registrations::put_registration(&store, other.clone(), 8)
            .await
            .expect("it is stored")
    );
    assert!(
        registrations::remove_registration_named(&store, "physics", "b")
            .await
            .expect("it is removed")
    );
    for gone in receivers {
        assert!(
            !registrations::is_registration_to_be_told(&store, gone.id, 9)
                .await
                .expect("an answer")
        );
        registrations::note_registration_told(&store, gone.id, NEWEST, 9)
            .await
            .expect("an answer");
    }
    let left = registrations::registrations_of_party(&store, "physics")
        .await
        .expect("they can be read");
    let told = left[0].told;
    assert!(told < 100, "it was told nothing");
    assert_eq!(left, [Registration { told, ..other }]);
}

async fn a_party_is_told_nothing_while_no_key_of_it_works(url: String) {
    let (store, receivers) = registered(&url, &[("physics", "a"), ("biology", "b")], ADDRESS).await;
    let is_told = async |now| {
        registrations::is_registration_to_be_told(&store, receivers[0].id, now)
            .await
            .expect("an answer")
    };
    assert!(is_told(4).await);
    let keys = keys::all_keys(&store).await.expect("they can be read");
    let of_physics = keys
        .iter()
        .find(|key| key.party == "physics")
        .expect("it has one");
    assert!(
        keys::revoke_key(&store, of_physics.id, KeyChange { by: None, at: 5 })
            .await
            .expect("it is revoked")
    );
    assert_eq!(due(&store, 10, 9).await, ["b"]);
    assert!(!is_told(10).await);
    add_key(&store, "physics", Some(10)).await;
    assert_eq!(due(&store, 9, 9).await, ["a", "b"]);
    assert!(is_told(9).await);
    assert_eq!(due(&store, 10, 9).await, ["b"], "it has expired");
    assert!(!is_told(10).await);
}
