//! Golden traces: what whole domains decide and answer, as digests. A change that is meant to change no decision and no answer leaves
//! them as they are; one that changes some says which, and why that is better.
//!
//! | digests | traces |
//! |---|---|
//! | `tests/golden.txt`, `campaign N` | the audit trails of the first seeds of the campaign, on a real store ([`crate::campaign`]) |
//! | `tests/golden.txt`, `planner N` | the changes and answers of fifty stories, without a store (`crates/planner/src/tests/stories.rs`) |
//! | `tests/golden-answers.txt` | the answers of the service to every message and example ([`crate::answers`]) |
//! | `crates/lab/tests/golden.txt` | the decisions of the laboratory about replayed lists |
//!
//! `BESPEAK_TEST_TRACES=FOLDER` keeps the traces themselves, so that those of two versions can be compared line by line.
//! With `BESPEAK_TEST_SET_TRACES=1` the digests are written again instead of being compared, those of all but the laboratory by
//!
//! ```text
//! BESPEAK_TEST_SET_TRACES=1 cargo test --workspace --lib --test it -- golden_ random_verbs_break_no_invariant_on_sqlite
//! ```

mod digests;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use store::{Store, trail_lines};
use uuid::Uuid;

pub(crate) use digests::{assert_golden, numbered};

/// The file with digests that has this name.
pub(crate) fn digests_in(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(file)
}

/// The audit trail of a domain, with a number for each id, in the order in which they are named.
pub(crate) async fn trail_of(store: &Store) -> String {
    let mut numbers: BTreeMap<Uuid, usize> = BTreeMap::new();
    let mut trace = String::new();
    let mut after = 0;
    loop {
        let lines = trail_lines::trail_lines_after(store, after, 1_000)
            .await
            .expect("it can be read");
        let Some(last) = lines.last() else { return trace };
        after = last.number;
        // That the configuration brings resources is no decision.
        for line in lines.into_iter().filter(|line| line.kind != "resource-changed") {
            let subject = numbered(&line.subject.to_string(), &mut numbers);
            let detail = numbered(&line.detail, &mut numbers);
            let party = line.party.unwrap_or_default();
            let _ = writeln!(trace, "{} {subject} {} {party} {detail}", line.at, line.kind);
        }
    }
}
