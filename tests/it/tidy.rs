//! Reads the sources and holds them to the house rules that no compiler knows.
//!
//! The rules are the tables below; `ARCHITECTURE.md` and `CONTRIBUTING.md` explain them. Each rule has a test that shows it fail.

mod circles;
mod documents;
mod source;

use std::fs;
use std::path::Path;

use source::Source;

/// Files, the network, other processes, threads and the time.
const OUTSIDE: &[&str] = &[
    "domain::clock::Clock",
    "jiff::Timestamp::now",
    "jiff::Zoned::now",
    "std::env",
    "std::fs",
    "std::net",
    "std::process",
    "std::thread",
];

/// The time of the system, which the clock of the domain alone reads.
const TIME: &[&str] = &["std::time::Instant", "std::time::SystemTime"];

/// The names that the pure crates may not use, in unit tests neither (benchmarks and integration tests may): the same inputs give
/// the same answer on every machine.
const NOT_IN: &[(&str, &[&[&str]])] = &[
    ("crates/domain", &[OUTSIDE]),
    ("crates/domain/src/agreement", &[TIME]),
    ("crates/planner/src", &[OUTSIDE, TIME]),
    ("crates/prediction/src", &[OUTSIDE, TIME]),
    (
        "crates/scheduler",
        &[
            OUTSIDE,
            TIME,
            &[
                "std::io",
                "std::collections::HashMap",
                "std::collections::HashSet",
            ],
        ],
    ),
    ("crates/wsag", &[OUTSIDE, TIME]),
];

/// The longest file, in lines.
const LINES_MAX: usize = 600;

/// Where sources are.
const FOLDERS: &[&str] = &["src", "crates", "tests", "benches", "fuzz"];

type Rule = fn(&Source) -> Vec<String>;

/// Every rule that looks at one file.
const RULES: &[Rule] = &[purity, unproven, length];

#[test]
fn the_sources_keep_the_house_rules() {
    let sources = sources();
    assert!(
        sources.iter().any(|source| source.path == "src/lib.rs"),
        "the sources were not found"
    );
    let findings: Vec<String> = sources
        .iter()
        .flat_map(|source| RULES.iter().flat_map(|rule| rule(source)))
        .chain(circles::circles(&sources))
        .collect();
    assert!(
        findings.is_empty(),
        "{} findings:\n{}",
        findings.len(),
        findings.join("\n")
    );
}

#[test]
fn every_package_takes_the_lints_of_the_workspace() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifest = fs::read_to_string(root.join("Cargo.toml")).expect("Cargo.toml");
    for lint in [
        "unsafe_code = \"forbid\"",
        "missing_docs = \"warn\"",
        "unwrap_used = \"warn\"",
        "allow_attributes = \"warn\"",
        "todo = \"warn\"",
        "pedantic = ",
    ] {
        assert!(
            manifest.contains(lint),
            "Cargo.toml: the workspace's lints lack `{lint}`"
        );
    }
    let members = fs::read_dir(root.join("crates")).expect("crates/").flatten();
    for folder in members.map(|member| member.path()).chain([root.to_path_buf()]) {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("each package has a manifest");
        assert!(
            manifest.contains("[lints]\nworkspace = true"),
            "{}: the package does not take the workspace's lints",
            folder.display()
        );
    }
    let checks = fs::read_to_string(root.join(".ci/run")).expect(".ci/run");
    assert!(
        checks.contains("CLIPPY_ARGS=-Dwarnings"),
        ".ci/run: warnings do not fail the check"
    );
}

/// All sources of the repository.
fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders: Vec<_> = FOLDERS.iter().map(|folder| root.join(folder)).collect();
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
        {
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            if path.is_dir() && name != "target" {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a source can be read");
                let relative = path.strip_prefix(root).expect("it lies below the root");
                found.push(Source::new(&relative.to_string_lossy(), &text));
            }
        }
    }
    found
}

/// Clocks, I/O and hash order in the pure crates.
fn purity(source: &Source) -> Vec<String> {
    let mut findings = Vec::new();
    let outside = |place: &str| {
        ["benches", "tests"]
            .iter()
            .any(|folder| source.lies_in(&format!("{place}/{folder}")))
    };
    let pure = |place: &str| source.lies_in(place) && !outside(place);
    for (place, names) in NOT_IN.iter().filter(|(place, _)| pure(place)) {
        for path in source.paths() {
            let joined = path.segments.join("::");
            let named = names.iter().copied().flatten().find(|name| {
                joined
                    .strip_prefix(**name)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
            });
            if let Some(name) = named {
                findings.push(format!(
                    "{}:{}: {place} is pure and may not name {name}",
                    source.path, path.line
                ));
            }
        }
    }
    findings
}

/// `unwrap` and `expect` outside tests without a comment that proves them: on the line, or above the statement's lines.
fn unproven(source: &Source) -> Vec<String> {
    let lines: Vec<&str> = source.text.lines().collect();
    let commented = |at: usize| lines.get(at).is_some_and(|line| line.contains("//"));
    let calls = [&[".", "unwrap", "("][..], &[".", "expect", "("][..]];
    calls
        .iter()
        .flat_map(|call| source.lines_with(call).into_iter().map(|line| (call[1], line)))
        .filter(|(_, line)| !source.is_test(*line))
        .filter(|(_, line)| {
            let mut at = line - 1;
            // Up a chain of calls, a line each, to the line that it starts on.
            while !commented(at) && at > 0 && lines[at].trim_start().starts_with('.') {
                at -= 1;
            }
            !(commented(at) || at > 0 && commented(at - 1))
        })
        .map(|(call, line)| format!("{}:{line}: {call} without a comment that proves it", source.path))
        .collect()
}

/// Files that are too long to read.
fn length(source: &Source) -> Vec<String> {
    let lines = source.text.lines().count();
    if lines <= LINES_MAX {
        return Vec::new();
    }
    vec![format!("{}: {lines} lines, more than {LINES_MAX}", source.path)]
}

/// Asserts that a rule finds fault with a text at `bad` and none with one at `good`.
#[cfg(test)]
fn check(rule: Rule, bad: (&str, &str), good: (&str, &str)) {
    let found = |(path, text)| rule(&Source::new(path, text));
    assert_ne!(found(bad), Vec::<String>::new(), "no fault found with {bad:?}");
    assert_eq!(found(good), Vec::<String>::new(), "with {good:?}");
}

#[test]
fn an_impure_name_is_found() {
    check(
        purity,
        (
            "crates/scheduler/src/a.rs",
            "use std::{collections::HashMap, fmt};",
        ),
        (
            "crates/scheduler/src/a.rs",
            "use std::{collections::BTreeMap, fmt};",
        ),
    );
    check(
        purity,
        (
            "crates/scheduler/src/a.rs",
            "let now = std::time::Instant::now();",
        ),
        (
            "crates/scheduler/benches/a.rs",
            "let now = std::time::Instant::now();",
        ),
    );
}

#[test]
fn an_unproven_unwrap_is_found() {
    check(
        unproven,
        ("src/a.rs", "let x = y.unwrap();"),
        ("src/a.rs", "// y was made above.\nlet x = y.unwrap();"),
    );
    check(
        unproven,
        ("src/a.rs", "let x = y\n    .expect(\"z\");"),
        ("src/a.rs", "let x = y.expect(\"z\"); // made above"),
    );
    check(
        unproven,
        (
            "src/a.rs",
            "// about a\nlet a = b();\nlet x = y\n    .map(f)\n    .unwrap();",
        ),
        ("src/a.rs", "// about x\nlet x = y\n    .map(f)\n    .unwrap();"),
    );
    check(
        unproven,
        ("src/a.rs", "fn f() { y.unwrap() }"),
        (
            "src/a.rs",
            "#[cfg(test)]\nmod tests {\n    fn f() { y.unwrap() }\n}",
        ),
    );
}

#[test]
fn a_file_that_is_too_long_is_found() {
    let (long, short) = ("\n".repeat(LINES_MAX + 1), "\n".repeat(LINES_MAX));
    check(length, ("src/a.rs", &long), ("src/a.rs", &short));
}
