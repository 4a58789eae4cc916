//! Keys and sessions: which credentials identify which party, and for how long, on both engines.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use access::{
    Access, Caller, Error, KeyLimits, KeyWish, NAME_LENGTH_MAX, OPERATOR_KEY_FILE, Role, SESSION_IDLES,
    SESSION_LASTS, Secret, ensure_operator_key,
};
use domain::clock::Clock;
use reqwest::StatusCode;
use store::{Store, keys, portal_sessions};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::store::tamper;
use crate::support::server::Server;
use crate::support::stores::on_both_engines;
use crate::support::{eventually, run};

/// Where all sign in from.
const ADDRESS: &str = "127.0.0.1";

on_both_engines!(
    a_key_stands_for_its_party_and_role,
    a_key_ends_when_it_expires_or_is_revoked,
    a_session_ends_with_its_time_its_key_or_by_signing_out,
    a_session_ends_when_it_is_not_used_and_at_the_latest_after_its_time,
    a_key_has_a_bounded_number_of_sessions,
    no_secret_is_stored,
    the_operator_key_is_made_once_and_kept_private,
    a_start_that_was_cut_short_leaves_a_usable_operator_key,
    an_operator_key_that_was_revoked_is_replaced_not_revived,
    a_key_that_another_process_revokes_is_worth_nothing_at_once,
    a_key_that_the_command_line_revokes_opens_nothing_at_once;
    a_release_on_postgres:
    names_that_are_none_are_refused,
);

const NOW: i64 = 1_000_000;

/// What a key is to be.
pub(crate) fn wish(party: &str, role: Role, label: Option<&str>, expires: Option<i64>) -> KeyWish {
    KeyWish {
        party: party.to_owned(),
        role,
        label: label.map(str::to_owned),
        expires,
        limits: KeyLimits::default(),
    }
}

async fn access(url: &str) -> (Access, Clock) {
    let clock = Clock::standing_at(NOW);
    let store = Store::open(url).await.expect("an empty database can be opened");
    (Access::new(store, clock.clone()), clock)
}

async fn a_key_stands_for_its_party_and_role(url: String) {
    let (access, _) = access(&url).await;
    let consumer = access
        .add_key(wish("Ünïcorp 'AG'", Role::Consumer, Some("laptop"), None), None)
        .await
        .expect("a key");
    let operator = access
        .add_key(wish("ops", Role::Operator, None, Some(NOW + 5)), None)
        .await
        .expect("a key");
    for (key, party, role, expires) in [
        (&consumer, "Ünïcorp 'AG'", Role::Consumer, None),
        (&operator, "ops", Role::Operator, Some(NOW + 5)),
    ] {
        let caller = Caller {
            party: party.into(),
            role,
            key: key.info.id,
            limits: KeyLimits::default(),
            expires,
        };
        assert_eq!(
            access.authenticate(key.secret.expose()).await.expect("an answer"),
            Some(caller)
        );
    }
    let mut near = consumer.secret.expose().to_owned();
    let last = if near.ends_with('0') { '1' } else { '0' };
    near.pop();
    near.push(last);
    for other in [near.as_str(), "", "bsp_", &"f".repeat(100_000), "' OR 1=1 --"] {
        assert_eq!(access.authenticate(other).await.expect("an answer"), None);
    }
    let known = access.keys().await.expect("they are there");
    assert_eq!(known.len(), 2);
    assert_eq!(
        (known[0].id, known[0].label.as_deref(), known[0].expires),
        (consumer.info.id, Some("laptop"), None)
    );
    assert_eq!(
        (known[1].role, known[1].expires, known[1].created),
        (Role::Operator, Some(NOW + 5), NOW)
    );
}

async fn a_key_ends_when_it_expires_or_is_revoked(url: String) {
    let (access, clock) = access(&url).await;
    let key = access
        .add_key(wish("a", Role::Consumer, None, Some(NOW + 10)), None)
        .await
        .expect("a key");
    let works = |key: String| {
        let access = access.clone();
        async move { access.authenticate(&key).await.expect("an answer").is_some() }
    };
    let text = key.secret.expose().to_owned();
    clock.set(NOW + 9);
    assert!(works(text.clone()).await);
    clock.set(NOW + 10);
    assert!(!works(text).await);
    let key = access
        .add_key(wish("a", Role::Consumer, None, None), None)
        .await
        .expect("a key");
    assert!(works(key.secret.expose().to_owned()).await);
    assert!(access.revoke(key.info.id, None).await.expect("an answer"));
    assert!(!works(key.secret.expose().to_owned()).await);
    assert!(
        !access.revoke(key.info.id, None).await.expect("an answer"),
        "once is enough"
    );
    assert!(
        !access.revoke(Uuid::nil(), None).await.expect("an answer"),
        "there is no such key"
    );
    assert_eq!(
        access.keys().await.expect("they are there")[1].revoked,
        Some(NOW + 10)
    );
}

async fn names_that_are_none_are_refused(url: String) {
    let (access, _) = access(&url).await;
    let long = "x".repeat(NAME_LENGTH_MAX + 1);
    for name in [
        "",
        " ",
        " a",
        "a ",
        "a\nb",
        "\u{7f}",
        "a\u{200b}b",
        "a\u{202e}b",
        &long,
    ] {
        let party = access.add_key(wish(name, Role::Consumer, None, None), None).await;
        let label = access
            .add_key(wish("a", Role::Consumer, Some(name), None), None)
            .await;
        assert!(matches!(party, Err(Error::Invalid(_))), "{name:?}: {party:?}");
        assert!(matches!(label, Err(Error::Invalid(_))), "{name:?}: {label:?}");
    }
    let late = access
        .add_key(wish("a", Role::Consumer, None, Some(NOW)), None)
        .await;
    assert!(matches!(late, Err(Error::Invalid(_))), "{late:?}");
    assert!(access.keys().await.expect("an answer").is_empty());
}

async fn a_session_ends_with_its_time_its_key_or_by_signing_out(url: String) {
    let (access, clock) = access(&url).await;
    assert!(
        access
            .sign_in("bsp_nonsense", ADDRESS)
            .await
            .expect("an answer")
            .is_none()
    );
    let key = access
        .add_key(wish("a", Role::Consumer, None, None), None)
        .await
        .expect("a key");
    let one = access
        .sign_in(key.secret.expose(), ADDRESS)
        .await
        .expect("an answer")
        .expect("the key is good");
    let two = access
        .sign_in(key.secret.expose(), ADDRESS)
        .await
        .expect("an answer")
        .expect("the key is good");
    assert_ne!(one.cookie.expose(), two.cookie.expose());
    assert_eq!(one.expires, NOW + SESSION_IDLES);
    let (caller, csrf) = access
        .session(one.cookie.expose())
        .await
        .expect("an answer")
        .expect("it is open");
    assert_eq!((caller.party.as_str(), caller.key), ("a", key.info.id));
    assert!(csrf.matches(one.csrf.expose()), "the token is the same each time");
    assert!(
        !csrf.matches(two.csrf.expose()) && !csrf.matches(""),
        "and of this session alone"
    );
    assert!(
        access
            .session(one.csrf.expose())
            .await
            .expect("an answer")
            .is_none(),
        "it opens nothing"
    );
    assert!(
        access
            .session(key.secret.expose())
            .await
            .expect("an answer")
            .is_none(),
        "a key is no session"
    );

    access
        .sign_out(one.cookie.expose())
        .await
        .expect("it can be ended");
    access.sign_out("nonsense").await.expect("nothing happens");
    assert!(
        access
            .session(one.cookie.expose())
            .await
            .expect("an answer")
            .is_none()
    );
    assert!(
        access
            .session(two.cookie.expose())
            .await
            .expect("an answer")
            .is_some(),
        "the other goes on"
    );
    clock.set(two.expires);
    assert!(
        access
            .session(two.cookie.expose())
            .await
            .expect("an answer")
            .is_none()
    );
    let three = access
        .sign_in(key.secret.expose(), ADDRESS)
        .await
        .expect("an answer")
        .expect("the key is good");
    access.revoke(key.info.id, None).await.expect("it can be revoked");
    assert!(
        access
            .session(three.cookie.expose())
            .await
            .expect("an answer")
            .is_none()
    );
}

async fn a_session_ends_when_it_is_not_used_and_at_the_latest_after_its_time(url: String) {
    let (access, clock) = access(&url).await;
    let key = access.add_key(wish("a", Role::Consumer, None, None), None).await;
    let key = key.expect("a key");
    let begin = async || {
        let session = access
            .sign_in(key.secret.expose(), ADDRESS)
            .await
            .expect("an answer");
        session.expect("the key is good").cookie
    };
    let (used, unused) = (begin().await, begin().await);
    let is_open = async |at, cookie: &Secret| {
        clock.set(at);
        access
            .session(cookie.expose())
            .await
            .expect("an answer")
            .is_some()
    };
    let mut last = NOW;
    while last + SESSION_IDLES / 2 < NOW + SESSION_LASTS {
        last += SESSION_IDLES / 2;
        assert!(is_open(last, &used).await, "it is used at {last}");
    }
    assert!(!is_open(last, &unused).await);
    assert!(is_open(NOW + SESSION_LASTS - 1, &used).await);
    assert!(!is_open(NOW + SESSION_LASTS, &used).await);
}

async fn a_key_has_a_bounded_number_of_sessions(url: String) {
    let (access, clock) = access(&url).await;
    let key = access
        .add_key(wish("a", Role::Consumer, None, None), None)
        .await
        .expect("a key");
    let other = access
        .add_key(wish("b", Role::Consumer, None, None), None)
        .await
        .expect("a key");
    let theirs = access
        .sign_in(other.secret.expose(), ADDRESS)
        .await
        .expect("an answer")
        .expect("the key is good");
    let mut cookies = vec![];
    for at in 0..40 {
        clock.set(NOW + at);
        let session = access
            .sign_in(key.secret.expose(), ADDRESS)
            .await
            .expect("an answer")
            .expect("the key is good");
        cookies.push(session.cookie);
    }
    let mut open = vec![];
    for cookie in &cookies {
        open.push(
            access
                .session(cookie.expose())
                .await
                .expect("an answer")
                .is_some(),
        );
    }
    assert_eq!(open.iter().filter(|open| **open).count(), 32);
    assert!(open[8..].iter().all(|open| *open), "the newest are kept");
    assert!(
        access
            .session(theirs.cookie.expose())
            .await
            .expect("an answer")
            .is_some()
    );
}

async fn no_secret_is_stored(url: String) {
    let (access, _) = access(&url).await;
    let key = access
        .add_key(wish("a", Role::Consumer, None, None), None)
        .await
        .expect("a key");
    let session = access
        .sign_in(key.secret.expose(), ADDRESS)
        .await
        .expect("an answer")
        .expect("the key is good");
    for (what, secret) in [
        ("key", &key.secret),
        ("cookie", &session.cookie),
        ("token", &session.csrf),
    ] {
        let shown = format!("{access:?} {key:?} {session:?}");
        assert!(!shown.contains(secret.expose()), "the {what} is shown");
    }
    let store = Store::open(&url).await.expect("it can be opened");
    let row = &keys::all_keys(&store).await.expect("it is there")[0];
    assert_eq!(row.digest.len(), 64);
    assert!(!key.secret.expose().contains(&row.digest));
    assert!(
        portal_sessions::portal_session(&store, session.cookie.expose())
            .await
            .expect("an answer")
            .is_none()
    );
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

async fn is_operator(access: &Access, key: &str) -> bool {
    access
        .authenticate(key)
        .await
        .expect("an answer")
        .is_some_and(|caller| caller.role == Role::Operator)
}

async fn the_operator_key_is_made_once_and_kept_private(url: String) {
    let (access, _) = access(&url).await;
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let data = folder.path().join("data");
    let first = ensure_operator_key(&access, &data).await.expect("a key");
    assert!(first.is_new);
    assert_eq!(first.path, data.join(OPERATOR_KEY_FILE));
    assert_eq!(
        fs::read_to_string(&first.path).expect("it is there"),
        first.secret.expose()
    );
    assert_eq!((mode(&first.path), mode(&data)), (0o600, 0o700));
    assert_eq!(
        fs::read_dir(&data).expect("it is there").count(),
        1,
        "nothing else is left"
    );
    assert!(is_operator(&access, first.secret.expose()).await);
    fs::set_permissions(&first.path, fs::Permissions::from_mode(0o644))
        .expect("its permissions can be changed");
    let again = ensure_operator_key(&access, &data).await.expect("a key");
    assert!(!again.is_new);
    assert_eq!(again.secret.expose(), first.secret.expose());
    assert_eq!(mode(&first.path), 0o600);
    assert_eq!(access.keys().await.expect("they are there").len(), 1);
}

async fn a_start_that_was_cut_short_leaves_a_usable_operator_key(url: String) {
    let (access, _) = access(&url).await;
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let first = ensure_operator_key(&access, folder.path()).await.expect("a key");
    let unfinished = folder.path().join("operator.key.new");
    // Cut after the key was stored, before its file had its name.
    fs::rename(&first.path, &unfinished).expect("it can be moved");
    let second = ensure_operator_key(&access, folder.path()).await.expect("a key");
    assert_eq!(second.secret.expose(), first.secret.expose());
    assert!(second.is_new && is_operator(&access, second.secret.expose()).await);
    // Cut before the key was stored, as if somebody else had written that key there.
    fs::rename(&second.path, &unfinished).expect("it can be moved");
    tamper(&url, "DELETE FROM api_keys").await;
    let fresh = ensure_operator_key(&access, folder.path()).await.expect("a key");
    assert_ne!(fresh.secret.expose(), first.secret.expose());
    assert!(is_operator(&access, fresh.secret.expose()).await);
    // Cut while the file was being written.
    fs::rename(&fresh.path, &unfinished).expect("it can be moved");
    fs::write(&unfinished, "bsp_12").expect("it can be written");
    let third = ensure_operator_key(&access, folder.path()).await.expect("a key");
    assert!(third.is_new && is_operator(&access, third.secret.expose()).await);
    // And an empty one.
    fs::write(&third.path, "").expect("it can be written");
    let fourth = ensure_operator_key(&access, folder.path()).await.expect("a key");
    assert!(fourth.is_new && is_operator(&access, fourth.secret.expose()).await);
    assert_eq!((mode(&fourth.path), unfinished.exists()), (0o600, false));
}

async fn an_operator_key_that_was_revoked_is_replaced_not_revived(url: String) {
    let (access, _) = access(&url).await;
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let first = ensure_operator_key(&access, folder.path()).await.expect("a key");
    let id = access.keys().await.expect("they are there")[0].id;
    access.revoke(id, None).await.expect("it can be revoked");
    let second = ensure_operator_key(&access, folder.path()).await.expect("a key");
    assert!(second.is_new && is_operator(&access, second.secret.expose()).await);
    assert!(!is_operator(&access, first.secret.expose()).await);
    // A key that is not stored is not adopted.
    let unknown = format!("bsp_{}", "5".repeat(64));
    fs::write(&second.path, &unknown).expect("it can be written");
    let second = ensure_operator_key(&access, folder.path()).await.expect("a key");
    assert!(second.is_new && !is_operator(&access, &unknown).await);
    // A consumer's key in that file does not become an operator's.
    let consumer = access
        .add_key(wish("a", Role::Consumer, None, None), None)
        .await
        .expect("a key");
    fs::write(&second.path, consumer.secret.expose()).expect("it can be written");
    let third = ensure_operator_key(&access, folder.path()).await.expect("a key");
    assert!(third.is_new && !is_operator(&access, consumer.secret.expose()).await);
}

/// A key that was looked up is known for a while on an engine that notifies of changes. A change without a notification shows
/// this.
async fn a_key_that_another_process_revokes_is_worth_nothing_at_once(url: String) {
    let (access, _) = access(&url).await;
    let stop = CancellationToken::new();
    let hearing = tokio::spawn(access.clone().hear_of_key_changes(stop.clone()));
    let key = access
        .add_key(wish("a", Role::Consumer, None, None), None)
        .await
        .expect("a key");
    let works = async || {
        let caller = access.authenticate(key.secret.expose()).await;
        caller.expect("an answer").is_some()
    };
    if url.starts_with("postgres") {
        eventually("a key that is known", Duration::from_mins(1), async || {
            let known = works().await;
            tamper(&url, "ALTER TABLE api_keys RENAME TO hidden").await;
            let known = known && access.authenticate(key.secret.expose()).await.is_ok();
            tamper(&url, "ALTER TABLE hidden RENAME TO api_keys").await;
            known.then_some(())
        })
        .await;
    }
    assert!(works().await);
    let other = Access::new(
        Store::open(&url).await.expect("it is there"),
        Clock::standing_at(NOW),
    );
    assert!(other.revoke(key.info.id, None).await.expect("an answer"));
    assert!(!works().await);
    stop.cancel();
    hearing.await.expect("it does not panic");
}

async fn a_key_that_the_command_line_revokes_opens_nothing_at_once(url: String) {
    let server = Server::start(&url);
    let made = server.run(&["key", "add", "--party", "a", "--role", "consumer", "--json"]);
    let made: serde_json::Value = serde_json::from_slice(&made.stdout).expect("it is told");
    let [key, id] = ["key", "id"].map(|member| made[member].as_str().expect("it is told"));
    let client = server.client_with(key);
    // Looked up, and then known where it may be.
    for _ in 0..2 {
        assert_eq!(client.get("/agreements").await.status, StatusCode::OK);
    }
    let revoked = server.run(&["key", "revoke", id]);
    assert!(revoked.status.success(), "{revoked:?}");
    assert_eq!(client.get("/agreements").await.status, StatusCode::UNAUTHORIZED);
}

#[test]
fn a_key_in_a_path_is_neither_logged_nor_repeated() {
    run(async {
        let server = Server::local();
        let client = server.client();
        let key = server.key();
        for path in [
            format!("/agreements/{key}"),
            format!("/{key}/x"),
            format!("/files/{key}%0a"),
        ] {
            for kind in ["application/json", "application/xml"] {
                let request = client.request(reqwest::Method::GET, &path).header("accept", kind);
                let answer = client.send(request).await;
                assert!(answer.status.is_client_error(), "{answer:?}");
                assert!(!answer.body.contains(key), "{answer:?}");
            }
        }
        let log = server.log();
        assert!(log.contains("/agreements/bsp_…") && !log.contains(key), "{log}");
    });
}

#[tokio::test]
async fn a_key_of_operators_expires_by_default_where_that_is_configured() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let url = format!("sqlite:{}", folder.path().join("bespeak.db").display());
    let (access, _) = access(&url).await;
    let access = access.with_operators_for(Some(1_000));
    let made = async |role, expires| {
        let key = access.add_key(wish("physics", role, None, expires), None).await;
        key.expect("a key").info.expires
    };
    assert_eq!(made(Role::Operator, None).await, Some(NOW + 1_000));
    assert_eq!(made(Role::Operator, Some(NOW + 7)).await, Some(NOW + 7));
    assert_eq!(made(Role::Consumer, None).await, None);
}
