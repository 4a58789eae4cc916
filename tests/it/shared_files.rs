//! The files that parties have uploaded are the same in every folder that is kept in one database, and outlast each of the folders.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use execution::files::inputs::{InputFiles, MirrorError, UploadError};
use reqwest::{Method, StatusCode};
use sha2::{Digest, Sha256};
use store::party_files::{self, FILE_PART_BYTES, PartyFile};
use store::{Error, Store, hex};
use tempfile::TempDir;
use uuid::Uuid;

use crate::store::tamper;
use crate::support::random::Random;
use crate::support::server::Server;
use crate::support::stores::TestDatabase;
use crate::support::{poll_until, run};

/// Bytes that a party may have in these tests.
const QUOTA: u64 = 8 << 20;
const PARTIES: [&str; 2] = ["physics", "biology"];
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// A data folder of a process, with its files.
struct Replica {
    folder: TempDir,
    files: InputFiles,
}

impl Replica {
    fn new(store: &Store) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let files = files_in(folder.path(), store);
        Self { folder, files }
    }

    /// The same folder in another process.
    fn restart(&mut self, store: &Store) {
        self.files = files_in(self.folder.path(), store);
    }

    async fn caught_up(&self) -> Content {
        self.files.catch_up().await.expect("the database answers");
        self.content()
    }

    /// Everything that is in the folder.
    fn content(&self) -> Content {
        let mut content = Content::new();
        for party in PARTIES {
            for file in self.files.own(party).expect("a folder can be read") {
                let path = self.files.find_own(party, &file.name).expect("it is listed");
                let bytes = fs::read(path).expect("a file can be read");
                content.insert((party.to_owned(), file.name), (bytes, file.modified));
            }
        }
        content
    }

    async fn put(&self, party: &str, name: &str, bytes: &[u8]) -> bool {
        put(&self.files, party, name, bytes).await.expect("there is room")
    }

    /// Soon nothing is beside the files that are listed: an upload that was cut off may end a moment later.
    fn assert_tidy(&self) {
        let is_tidy = || {
            PARTIES.iter().all(|party| {
                let folder = self.folder.path().join("party-files").join(owner_of(party));
                let entries = fs::read_dir(folder).map_or(0, Iterator::count);
                entries == self.files.own(party).expect("it can be read").len()
            })
        };
        assert!(
            poll_until(Duration::from_mins(1), is_tidy),
            "something is left behind"
        );
    }
}

/// The content of files with the time when they were written, by party and name.
type Content = BTreeMap<(String, String), (Vec<u8>, i64)>;

fn files_in(folder: &Path, store: &Store) -> InputFiles {
    let files = InputFiles::new(folder, QUOTA).expect("there is a current folder");
    files.kept_in(store)
}

async fn put(files: &InputFiles, party: &str, name: &str, bytes: &[u8]) -> Result<bool, UploadError> {
    let mut upload = files.upload(party, name)?;
    upload.write(bytes)?;
    Ok(upload.finish().await.expect("the database answers"))
}

fn owner_of(party: &str) -> String {
    hex(&Sha256::digest(party.as_bytes()))
}

/// Stores a file in the database only, as a process does that is killed then.
async fn store_only(store: &Store, party: &str, name: &str, bytes: &[u8]) {
    let mut incoming = party_files::begin_party_file(store, Uuid::now_v7())
        .await
        .expect("it answers");
    for part in bytes.chunks(FILE_PART_BYTES) {
        incoming.add(part).await.expect("it answers");
    }
    let file = PartyFile {
        number: 0,
        owner: owner_of(party),
        name: name.to_owned(),
        content: None,
        bytes: i64::try_from(bytes.len()).expect("it is short"),
        sha256: hex(&Sha256::digest(bytes)),
        written: 1_700_000_000_000_000,
    };
    incoming.finish(file).await.expect("it answers");
}

/// Runs a test on a database that several processes can serve on.
fn on_postgres<F: Future<Output = ()>>(test: impl FnOnce(Store, String) -> F) {
    let database = TestDatabase::postgres();
    let url = database.url().to_owned();
    run(async {
        let store = Store::open(&url).await.expect("it can be opened");
        test(store.clone(), url).await;
        store.close().await;
    });
}

fn is_there(content: &Content, party: &str, name: &str) -> Option<Vec<u8>> {
    let key = (party.to_owned(), name.to_owned());
    content.get(&key).map(|(bytes, _)| bytes.clone())
}

#[test]
fn uploads_replacements_and_removals_are_the_same_in_every_folder_in_any_order() {
    on_postgres(|store, url| async move {
        for seed in 0..4 {
            tamper(&url, "DELETE FROM party_files; DELETE FROM party_file_parts").await;
            check_random_order(&store, seed).await;
        }
    });
}

async fn check_random_order(store: &Store, seed: u64) {
    let mut random = Random::new(seed);
    let mut replicas = [Replica::new(store), Replica::new(store)];
    let mut model: BTreeMap<(String, String), Vec<u8>> = BTreeMap::new();
    for step in 0..60 {
        let replica = &mut replicas[random.below(2)];
        let (party, name) = (PARTIES[random.below(2)], NAMES[random.below(4)]);
        let key = (party.to_owned(), name.to_owned());
        match random.below(10) {
            0..=4 => {
                let length = [0, 1, FILE_PART_BYTES, FILE_PART_BYTES + 1, 700_000][random.below(5)];
                let bytes = vec![u8::try_from(step).expect("few steps"); length];
                let replaced = replica.put(party, name, &bytes).await;
                assert_eq!(
                    replaced,
                    model.insert(key, bytes).is_some(),
                    "seed {seed}, step {step}"
                );
            }
            5..=7 => {
                let removed = replica.files.remove(party, name).await.expect("it answers");
                assert_eq!(removed, model.remove(&key).is_some(), "seed {seed}, step {step}");
            }
            8 => replica.restart(store),
            _ => {}
        }
        let found = replica.caught_up().await;
        let found: BTreeMap<_, _> = found.into_iter().map(|(key, (bytes, _))| (key, bytes)).collect();
        assert!(found == model, "seed {seed}, step {step}");
    }
    let fresh = Replica::new(store);
    let all = fresh.caught_up().await;
    for replica in &replicas {
        assert!(
            replica.caught_up().await == all,
            "seed {seed}: also when each was written"
        );
        replica.assert_tidy();
        // The quota has counted each file once.
        let used: usize = all
            .iter()
            .filter(|each| each.0.0 == "physics")
            .map(|each| each.1.0.len())
            .sum();
        let used = used as u64;
        let mut upload = replica.files.upload("physics", "rest").expect("there is room");
        let rest = usize::try_from(QUOTA - used).expect("it is small");
        upload.write(&vec![0; rest]).expect("there is room for it all");
        let over = upload.write(&[0]).expect_err("there is room for no more");
        assert!(matches!(over, UploadError::QuotaExceeded { .. }), "{over}");
    }
}

#[test]
fn uploads_at_once_leave_the_same_files_in_every_folder() {
    on_postgres(|store, _| async move {
        let replicas = [Replica::new(&store), Replica::new(&store)];
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..40_u8 {
            let files = replicas[usize::from(number % 2)].files.clone();
            tasks.spawn(async move {
                let bytes = vec![number; FILE_PART_BYTES + usize::from(number)];
                let name = NAMES[usize::from(number / 2 % 4)];
                if number % 5 == 4 {
                    files.remove("physics", name).await.expect("it answers");
                } else {
                    put(&files, "physics", name, &bytes).await.expect("there is room");
                }
                files.catch_up().await.expect("it answers");
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.expect("no task panics");
        }
        let all = replicas[0].caught_up().await;
        assert!(replicas[1].caught_up().await == all);
        for (key, (bytes, _)) in &all {
            assert!(
                bytes.iter().all(|byte| *byte == bytes[0]),
                "{key:?} is of one upload"
            );
        }
        let changes = party_files::party_file_changes(&store).await.expect("it answers");
        assert!(changes.last <= 40, "a change has one number: {changes:?}");
        replicas.iter().for_each(Replica::assert_tidy);
    });
}

#[test]
fn a_process_that_is_killed_between_the_database_and_its_folder_leaves_nothing_inconsistent() {
    on_postgres(|store, _| async move {
        let mut replica = Replica::new(&store);
        let large = vec![7; 3 * FILE_PART_BYTES + 1];
        replica.put("physics", "a", b"before").await;
        replica.put("physics", "b", b"removed").await;
        // An upload that has not ended, and its draft.
        let mut cut_off = replica.files.upload("physics", "c").expect("there is room");
        cut_off.write(b"never stored").expect("there is room");
        std::mem::forget(cut_off);
        store_only(&store, "physics", "a", &large).await;
        let removed = party_files::remove_party_file(&store, &owner_of("physics"), "b").await;
        assert!(removed.expect("it answers"));
        replica.restart(&store);
        let all = replica.caught_up().await;
        assert_eq!(all.len(), 1);
        assert_eq!(is_there(&all, "physics", "a"), Some(large));
        replica.assert_tidy();
        // Dropped while it is being stored.
        let mut dropped = replica.files.upload("physics", "d").expect("there is room");
        dropped.write(&vec![1; 1 << 20]).expect("there is room");
        let ended = tokio::time::timeout(Duration::ZERO, dropped.finish()).await;
        assert!(ended.is_err(), "it takes longer than no time");
        let all = replica.caught_up().await;
        assert!(Replica::new(&store).caught_up().await == all);
        replica.restart(&store);
        assert!(replica.caught_up().await == all);
        replica.assert_tidy();
    });
}

#[test]
fn files_of_the_version_before_or_of_another_database_are_taken_into_this_one() {
    on_postgres(|store, _| async move {
        let (mut old, other) = (Replica::new(&store), Replica::new(&store));
        other.put("physics", "b", b"of the database").await;
        old.files = InputFiles::new(old.folder.path(), QUOTA).expect("there is a current folder");
        for (name, bytes) in [("a", b"only here"), ("b", b"not there")] {
            put(&old.files, "physics", name, bytes)
                .await
                .expect("there is room");
        }
        old.restart(&store);
        let all = old.caught_up().await;
        assert_eq!(is_there(&all, "physics", "a").expect("it is kept"), b"only here");
        assert_eq!(
            is_there(&all, "physics", "b").expect("it is there"),
            b"of the database"
        );
        assert!(other.caught_up().await == all);

        // From here on the folder is a copy: what is not in the database goes.
        let stray = old
            .folder
            .path()
            .join("party-files")
            .join(owner_of("physics"))
            .join("stray");
        fs::write(&stray, "by hand").expect("it can be written");
        old.restart(&store);
        assert!(old.caught_up().await == all);
        assert!(!stray.exists());

        // A database that was restored has none of these tables' rows.
        let restored = TestDatabase::postgres();
        let new = Store::open(restored.url()).await.expect("it can be opened");
        old.restart(&new);
        assert!(old.caught_up().await == all);
        assert!(Replica::new(&new).caught_up().await == all);
        new.close().await;
        // One that cannot be asked is told as such.
        let closed = old.files.catch_up().await.expect_err("it is closed");
        let MirrorError::Store(why) = closed else {
            panic!("{closed}");
        };
        assert!(matches!(&*why, Error::Unavailable(_)), "{why}");
    });
}

#[test]
fn a_folder_that_has_not_looked_for_long_loses_what_was_removed_too() {
    on_postgres(|store, url| async move {
        let (here, late) = (Replica::new(&store), Replica::new(&store));
        here.put("physics", "a", b"grain").await;
        assert_eq!(late.caught_up().await.len(), 1);
        here.files.remove("physics", "a").await.expect("it answers");
        let owner = owner_of("physics");
        let many = format!(
            "INSERT INTO party_files (change_number, owner, name, bytes, sha256, written_us) \
             SELECT n, '{owner}', 'x' || n, 0, '', 0 FROM generate_series(3, 1002) AS n; \
             UPDATE party_file_changes SET last_number = 1002"
        );
        tamper(&url, &many).await;
        here.put("physics", "b", b"corn").await;
        here.files.remove("physics", "b").await.expect("it answers");
        let kept = party_files::party_files_of(&store, &owner)
            .await
            .expect("it answers");
        assert_eq!(kept.len(), 1_000, "removals are forgotten");
        assert!(late.caught_up().await.is_empty());
    });
}

#[test]
fn a_service_that_has_lost_its_folder_has_the_files_again() {
    let database = TestDatabase::postgres();
    run(async {
        let mut server = Server::start(database.url());
        let key = server.key_for("physics", "consumer");
        let client = server.client_with(&key);
        let large = vec![b'x'; 3 << 20];
        for (name, bytes) in [("grain.txt", b"grain".to_vec()), ("large", large.clone())] {
            let upload = client.request(Method::PUT, &format!("/files/{name}")).body(bytes);
            assert_eq!(client.send(upload).await.status, StatusCode::CREATED);
        }
        let listed = client.get_json("/files").await;
        server.kill9();
        fs::remove_dir_all(server.data_dir().join("party-files")).expect("it is there");
        server.restart();
        let client = server.client_with(&key);
        assert_eq!(client.get_json("/files").await, listed);
        assert_eq!(client.get("/files/grain.txt").await.body, "grain");
        assert_eq!(client.get("/files/large").await.body.as_bytes(), large);
        let removed = client.request(Method::DELETE, "/files/large");
        assert_eq!(client.send(removed).await.status, StatusCode::NO_CONTENT);
        server.kill9();
        server.restart();
        let client = server.client_with(&key);
        assert_eq!(client.get("/files/large").await.status, StatusCode::NOT_FOUND);
        server.assert_verified();
    });
}
