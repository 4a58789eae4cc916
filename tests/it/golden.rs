//! Golden traces: the decisions of whole domains and of replayed lists, as digests. A change that is meant to change no decision
//! leaves them as they are; one that changes some says which, and why that is better.
//!
//! `BESPEAK_TEST_TRACES=FOLDER` keeps the traces themselves, so that those of two versions can be compared line by line.
//! `BESPEAK_TEST_TRACES=FOLDER BESPEAK_TEST_SET_TRACES=1` writes the digests anew.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use bespeak::store::Store;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::replay::decisions_of;
use crate::support::random::Random;

/// Requests of a replayed list, and the nodes that they are for.
const REQUESTS: i64 = 400;
const CAPACITY: usize = 16;

/// The options of `replay` whose decisions are kept.
const OPTIONS: [&str; 7] = [
    "--order fifo",
    "--order edf --fix 0",
    "--order edf --alternatives 2",
    "--order mdf --fix 0.5",
    "--order bjf --alternatives 1 --portfolio",
    "--order lff",
    "--order shuffle --seed 7",
];

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
        for line in lines {
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

/// A list of requests that does not fit: rigid and flexible ones, wide and narrow, in bursts.
fn list(seed: u64) -> String {
    let mut random = Random::new(seed);
    let mut submit = 0;
    let mut rows = String::new();
    for id in 1..=REQUESTS {
        if random.below(4) > 0 {
            submit += random.seconds(60);
        }
        let longest = if random.below(8) == 0 { 2_000 } else { 200 };
        let duration = 10 + random.seconds(longest);
        let widest = if random.below(6) == 0 { CAPACITY } else { 5 };
        let nodes = 1 + random.below(widest);
        let ready = submit + random.seconds(400);
        let slack = if random.below(3) == 0 {
            0
        } else {
            random.seconds(900)
        };
        let deadline = ready + duration + slack;
        let _ = writeln!(rows, "{id},{submit},{duration},{nodes},{ready},{deadline}");
    }
    rows
}

#[test]
fn replayed_lists_are_decided_as_before() {
    for seed in 1..=2 {
        for options in OPTIONS {
            let name = format!("replay {seed} {options}");
            assert_golden(&name, &decisions_of(&list(seed), CAPACITY, options).join("\n"));
        }
    }
}
