//! Golden traces: the decisions of whole domains, as digests. A change that is meant to change no decision
//! leaves them as they are; one that changes some says which, and why that is better. The laboratory has those of replayed lists.
//!
//! `BESPEAK_TEST_TRACES=FOLDER` keeps the traces themselves, so that those of two versions can be compared line by line.
//! `BESPEAK_TEST_TRACES=FOLDER BESPEAK_TEST_SET_TRACES=1` writes the digests again.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use bespeak::store::Store;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// Asserts that a trace is the golden one of that name.
pub(crate) fn assert_golden(name: &str, trace: &str) {
    static SETTING: Mutex<()> = Mutex::new(());
    if let Some(folder) = std::env::var_os("BESPEAK_TEST_TRACES").map(PathBuf::from) {
        fs::create_dir_all(&folder).expect("a folder can be made");
        fs::write(folder.join(name), trace).expect("a trace can be kept");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden.txt");
    let digest = Sha256::digest(trace)
        .iter()
        .fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
    let found = format!("{} lines {digest}", trace.lines().count());
    let _turn = SETTING.lock().unwrap_or_else(PoisonError::into_inner);
    let text = fs::read_to_string(&path).unwrap_or_default();
    let mut golden: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once(": ")).collect();
    if std::env::var_os("BESPEAK_TEST_SET_TRACES").is_some() {
        golden.insert(name, &found);
        let lines = golden.iter().fold(String::new(), |mut text, (name, digest)| {
            let _ = writeln!(text, "{name}: {digest}");
            text
        });
        fs::write(path, lines).expect("the digests can be written");
        return;
    }
    assert_eq!(
        golden.get(name),
        Some(&found.as_str()),
        "other decisions than before in {name}: compare the traces (BESPEAK_TEST_TRACES) with those of the version before"
    );
}

/// The audit trail of a domain, with a number for each id, in the order in which they are named.
pub(crate) async fn trail_of(store: &Store) -> String {
    let mut numbers: BTreeMap<Uuid, usize> = BTreeMap::new();
    let mut trace = String::new();
    let mut after = 0;
    loop {
        let lines = store.trail(after, 1_000).await.expect("it can be read");
        let Some(last) = lines.last() else { return trace };
        after = last.number;
        // That the configuration brings resources is no decision.
        for line in lines.into_iter().filter(|of| of.kind != "resource-changed") {
            let subject = numbered(&line.subject.to_string(), &mut numbers);
            let detail = numbered(&line.detail, &mut numbers);
            let party = line.party.unwrap_or_default();
            let _ = writeln!(trace, "{} {subject} {} {party} {detail}", line.at, line.kind);
        }
    }
}

/// A text with numbers for the ids in it.
fn numbered(text: &str, numbers: &mut BTreeMap<Uuid, usize>) -> String {
    let mut rest = text;
    let mut out = String::new();
    while let Some(first) = rest.chars().next() {
        if let Some(id) = rest.get(..36).and_then(|id| id.parse::<Uuid>().ok()) {
            let next = numbers.len() + 1;
            let _ = write!(out, "#{}", numbers.entry(id).or_insert(next));
            rest = &rest[36..];
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}
