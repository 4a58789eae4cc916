//! The documents name files that are there.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// What a path from the top of the repository begins with.
const FOLDERS: [&str; 5] = ["src/", "crates/", "docs/", "tests/", "scripts/"];
/// The documents beside those in `docs`.
const PAGES: [&str; 3] = ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"];
/// The ends of names that stand for any file.
const ANY_FILE: [&str; 2] = ["/module", "/module.rs"];

#[test]
fn the_documents_name_files_that_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut tree = BTreeSet::new();
    for folder in FOLDERS {
        add_paths(root, folder.trim_end_matches('/'), &mut tree);
    }
    let in_docs = tree.iter().map(String::as_str);
    let in_docs = in_docs.filter(|path| path.starts_with("docs/") && has_end(path, "md"));
    let mut findings = Vec::new();
    for page in in_docs.chain(PAGES) {
        let text = fs::read_to_string(root.join(page)).expect("a document can be read");
        let missing = missing_names(&text, &tree).into_iter();
        findings.extend(missing.map(|(line, name)| format!("{page}:{line}: there is no {name}")));
    }
    assert!(
        findings.is_empty(),
        "{} findings:\n{}",
        findings.len(),
        findings.join("\n")
    );
}

/// Adds the paths of a folder and of all below it.
fn add_paths(root: &Path, path: &str, tree: &mut BTreeSet<String>) {
    tree.insert(path.to_owned());
    for entry in fs::read_dir(root.join(path)).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name != "target" {
            add_paths(root, &format!("{path}/{}", name.to_string_lossy()), tree);
        }
    }
}

/// The names of files in a document that the tree does not have, with their lines. A path from the top may leave out `.rs`, and what
/// follows the number of a record; the name of a source may leave out folders before it, and `src`.
fn missing_names<'a>(text: &'a str, tree: &BTreeSet<String>) -> Vec<(usize, &'a str)> {
    let in_name = |sign: char| sign.is_ascii_alphanumeric() || "_./*{}-".contains(sign);
    let lines = (1..).zip(text.lines());
    let words =
        lines.flat_map(|(line, text)| text.split(|sign| !in_name(sign)).map(move |word| (line, word)));
    let names = words.map(|(line, word)| (line, word.trim_end_matches(['.', '/'])));
    let told = names.filter(|(_, name)| {
        !name.contains(['*', '{', '}']) && !ANY_FILE.iter().any(|end| name.ends_with(end))
    });
    told.filter(|(_, name)| {
        if FOLDERS.iter().any(|folder| name.starts_with(folder)) {
            let record = format!("{name}-");
            let mut records = tree.range(record.clone()..);
            let has_record = records.next().is_some_and(|path| path.starts_with(&record));
            return !tree.contains(*name) && !tree.contains(&format!("{name}.rs")) && !has_record;
        }
        let is_source = has_end(name, "rs") && !name.starts_with('/');
        let end = format!("/{}", without_src(name));
        is_source && !tree.iter().any(|path| without_src(path).ends_with(&end))
    })
    .collect()
}

fn has_end(path: &str, end: &str) -> bool {
    Path::new(path)
        .extension()
        .is_some_and(|extension| extension == end)
}

fn without_src(path: &str) -> String {
    path.replace("/src/", "/")
}

#[test]
fn a_name_that_is_not_in_the_tree_is_found() {
    let tree = [
        "crates/store/src/batch/leader.rs",
        "docs/decisions/0002-slots.md",
        "src",
        "src/main.rs",
    ];
    let tree = tree.map(str::to_owned).into();
    let good = "`src/`, main.rs, (store/batch/leader.rs), docs/decisions/0002; src/main::tests.\n`src/*/x.rs`, `src/room/module.rs`, \
                of https://example.org/x.rs";
    assert_eq!(missing_names(good, &tree), []);
    let bad = "`leader.rs` and\n`lead.rs`, ader.rs, src/mai/, docs/decisions/0003";
    let missing = [
        (2, "lead.rs"),
        (2, "ader.rs"),
        (2, "src/mai"),
        (2, "docs/decisions/0003"),
    ];
    assert_eq!(missing_names(bad, &tree), missing);
}
