//! The digests of golden traces. The unit tests of the planner have this file, too (`crates/planner/src/tests/stories.rs`).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// Asserts that traces are the golden ones of their names, of which the file at this path has the digests. Every trace that is not
/// is named.
pub(crate) fn assert_golden(path: &Path, traces: &BTreeMap<String, String>) {
    if let Some(folder) = std::env::var_os("BESPEAK_TEST_TRACES").map(PathBuf::from) {
        for (name, trace) in traces {
            let kept = folder.join(name);
            let parent = kept.parent().expect("it lies in the folder");
            fs::create_dir_all(parent).expect("a folder can be made");
            fs::write(kept, trace).expect("a trace can be kept");
        }
    }
    let digests = traces
        .iter()
        .map(|(name, trace)| (name.clone(), digest_of(trace)));
    if std::env::var_os("BESPEAK_TEST_SET_TRACES").is_some() {
        set(path, digests);
        return;
    }
    let golden = read(path);
    let others: Vec<String> = digests
        .filter(|(name, found)| golden.get(name) != Some(found))
        .map(|(name, _)| name)
        .collect();
    assert!(
        others.is_empty(),
        "other decisions or answers than before in {others:?}: compare the traces (BESPEAK_TEST_TRACES) with those of the version before"
    );
}

/// The number of lines of a trace, and its digest.
fn digest_of(trace: &str) -> String {
    let digest = Sha256::digest(trace)
        .iter()
        .fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
    format!("{} lines {digest}", trace.lines().count())
}

/// The digests in a file, by the names of their traces. A name may have a colon in it, a digest has none.
fn read(path: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.rsplit_once(": "));
    lines
        .map(|(name, digest)| (name.to_owned(), digest.to_owned()))
        .collect()
}

/// Writes digests into a file in place of those of the same names. Tests of other threads and processes wait meanwhile.
fn set(path: &Path, digests: impl Iterator<Item = (String, String)>) {
    let turn = File::options().append(true).create(true).open(path);
    let turn = turn.expect("the file can be opened");
    turn.lock().expect("the file can be locked");
    let mut golden = read(path);
    golden.extend(digests);
    let lines = golden.iter().fold(String::new(), |mut text, (name, digest)| {
        let _ = writeln!(text, "{name}: {digest}");
        text
    });
    fs::write(path, lines).expect("the digests can be written");
}

/// A text with numbers for the ids in it, in the order in which they are named.
pub(crate) fn numbered(text: &str, numbers: &mut BTreeMap<Uuid, usize>) -> String {
    let mut rest = text;
    let mut out = String::new();
    while let Some(first) = rest.chars().next() {
        // Most places are none of an id, which is seen at once.
        let may_be_id = rest.as_bytes().get(8) == Some(&b'-');
        let id = rest.get(..36).filter(|_| may_be_id);
        if let Some(id) = id.and_then(|id| id.parse::<Uuid>().ok()) {
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
