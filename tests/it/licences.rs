//! Every dependency comes from the public registry under a licence that this project can be given away with.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

/// Licences that ask for no more than to be named. Anything else needs a decision and a line here.
const ALLOWED: &[&str] = &[
    "Apache-2.0",
    "BSD-3-Clause",
    "BSL-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// The only place that dependencies may come from.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

#[test]
fn every_dependency_is_of_the_registry_and_under_an_allowed_licence() {
    let metadata = metadata();
    let used: BTreeSet<&str> = list(&metadata["resolve"]["nodes"])
        .filter_map(|node| node["id"].as_str())
        .collect();
    let mut dependencies = 0;
    for package in
        list(&metadata["packages"]).filter(|package| used.contains(package["id"].as_str().unwrap_or("")))
    {
        let Some(source) = package["source"].as_str() else {
            continue;
        };
        dependencies += 1;
        let (name, version) = (&package["name"], &package["version"]);
        assert_eq!(source, REGISTRY, "{name} {version}");
        let licence = package["license"].as_str().unwrap_or_default();
        assert!(is_allowed(licence), "{name} {version} is under {licence:?}");
    }
    assert!(dependencies > 0, "no dependencies were found");
}

#[test]
fn a_choice_needs_one_allowed_licence_and_a_sum_needs_all() {
    for allowed in [
        "MIT",
        "GPL-3.0 OR MIT",
        "(MIT OR Apache-2.0) AND Unicode-3.0",
        "MIT/Apache-2.0",
    ] {
        assert!(is_allowed(allowed), "{allowed}");
    }
    for refused in [
        "",
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "(GPL-3.0 OR AGPL-3.0) AND MIT",
        "MIT AND (ISC OR",
    ] {
        assert!(!is_allowed(refused), "{refused}");
    }
}

/// cargo's data about the packages for this machine; those of other systems need not have been fetched.
fn metadata() -> Value {
    let rustc = Command::new("rustc")
        .arg("-vV")
        .output()
        .expect("rustc can be run");
    let about = String::from_utf8_lossy(&rustc.stdout).into_owned();
    let host = about
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .expect("rustc names its host");
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--offline",
            "--filter-platform",
            host,
        ])
        .args([
            "--manifest-path",
            concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
        ])
        .output()
        .expect("cargo can be run");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("cargo writes JSON")
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Whether a licence expression (SPDX, or the older one with `/`) leaves a choice that is allowed.
fn is_allowed(expression: &str) -> bool {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any(&mut rest) == Some(true) && rest.is_empty()
}

fn any(words: &mut &[&str]) -> Option<bool> {
    let mut allowed = all(words)?;
    while let ["OR", rest @ ..] = *words {
        *words = rest;
        allowed |= all(words)?;
    }
    Some(allowed)
}

fn all(words: &mut &[&str]) -> Option<bool> {
    let mut allowed = one(words)?;
    while let ["AND", rest @ ..] = *words {
        *words = rest;
        allowed &= one(words)?;
    }
    Some(allowed)
}

/// A licence, or a bracket. An exception (`WITH`) only adds to the permissions of a licence.
fn one(words: &mut &[&str]) -> Option<bool> {
    let (first, rest) = words.split_first()?;
    *words = rest;
    let allowed = if *first == "(" {
        let inner = any(words)?;
        *words = words.strip_prefix(&[")"])?;
        inner
    } else {
        ALLOWED.contains(first)
    };
    if let ["WITH", _, rest @ ..] = *words {
        *words = rest;
    }
    Some(allowed)
}

#[test]
fn what_a_release_checks_allows_the_same_licences() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("deny.toml")).expect("deny.toml");
    let deny: toml::Table = text.parse().expect("it is TOML");
    let allowed = deny["licenses"]["allow"].as_array().expect("a list");
    let allowed: Vec<_> = allowed.iter().filter_map(toml::Value::as_str).collect();
    assert_eq!(allowed, ALLOWED);
}

#[test]
fn the_list_of_software_has_each_dependency_with_its_licence_and_its_checksum() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("list.json");
    let made = Command::new(root.join("scripts/software-list"))
        .arg(&file)
        .output();
    let made = made.expect("it runs");
    assert!(made.status.success(), "{made:?}");
    let text = std::fs::read_to_string(file).expect("it is written");
    let listed: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(
        (&listed["bomFormat"], &listed["specVersion"]),
        (&"CycloneDX".into(), &"1.6".into())
    );
    assert_eq!(listed["metadata"]["component"]["name"], "bespeak");
    let names: BTreeSet<&str> = list(&listed["components"])
        .filter_map(|each| each["name"].as_str())
        .collect();
    assert!(
        names.contains("tokio") && names.contains("scheduler"),
        "{names:?}"
    );
    assert!(!names.contains("proptest"), "it only tests: {names:?}");
    let folders = std::fs::read_dir(root.join("crates")).expect("crates/").flatten();
    let ours: BTreeSet<String> = folders
        .map(|folder| folder.file_name().to_string_lossy().into_owned())
        .collect();
    for component in list(&listed["components"]) {
        let licence = component["licenses"][0]["expression"]
            .as_str()
            .unwrap_or_default();
        assert!(is_allowed(licence), "{component}");
        let is_ours = component["name"].as_str().is_some_and(|name| ours.contains(name));
        assert!(
            is_ours || component["hashes"][0]["content"].is_string(),
            "{component}"
        );
    }
}
