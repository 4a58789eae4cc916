//! The page on conformance tells the truth: every rule names where it is kept and a test, and both are there.

use std::path::Path;

use crate::support::offers::file;

const PAGE: &str = "docs/reference/conformance.md";

/// The files of the repository in which a test of this name may stand: `module::test` is of `tests/it/`, one with a crate
/// before it of that crate, one with `src/` beside the code.
fn files_of(module: &str) -> Vec<String> {
    let is_crate = |name: &str| Path::new("crates").join(name).is_dir();
    let of_crate = module.split_once('/').filter(|(name, _)| is_crate(name));
    let of_crate = of_crate.map(|(name, rest)| match rest.strip_prefix("src/") {
        Some(rest) => format!("crates/{name}/src/{rest}.rs"),
        None => format!("crates/{name}/tests/{name}/{rest}.rs"),
    });
    let folder = if module.starts_with("src/") {
        ""
    } else {
        "tests/it/"
    };
    // A crate may be called as a folder of `tests/it/` is.
    let of_service = [format!("{folder}{module}.rs"), format!("{folder}{module}/mod.rs")];
    of_crate.into_iter().chain(of_service).collect()
}

/// Whether a file holds a test of this name that is run: a function that is marked as one, or that a macro makes two of.
fn holds_test(text: &str, name: &str) -> bool {
    let Some(at) = text.find(&format!("fn {name}(")) else {
        return false;
    };
    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let attributes: Vec<&str> = text[..line]
        .lines()
        .rev()
        .map(str::trim)
        .take_while(|line| line.starts_with("#[") || line.starts_with("///"))
        .collect();
    let has = |mark: &str| attributes.iter().any(|line| line.starts_with(mark));
    let marked = (has("#[test]") || has("#[tokio::test")) && !has("#[ignore");
    let doubled = text
        .split("on_both_engines!(")
        .skip(1)
        .any(|list| list.split(')').next().is_some_and(|names| is_among(name, names)));
    marked || doubled
}

fn is_among(name: &str, list: &str) -> bool {
    list.split([',', ';', ':']).any(|one| one.trim() == name)
}

/// The faults of a row of the page.
fn faults(row: &str, number: usize) -> Vec<String> {
    let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
    let [rule_number, _, kept, tests] = cells.as_slice() else {
        return vec![format!("row {number} has {} cells: {row}", cells.len())];
    };
    let mut found = Vec::new();
    if *rule_number != number.to_string() {
        found.push(format!("row {number} is numbered {rule_number}"));
    }
    let named =
        |cell: &str| -> Vec<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let places = named(kept);
    if places.is_empty() {
        found.push(format!("row {number} does not say where it is kept"));
    }
    for place in places {
        if !repository.join(&place).is_file() {
            found.push(format!("row {number}: there is no {place}"));
        }
    }
    let tests = named(tests);
    if tests.is_empty() {
        found.push(format!("row {number} names no test"));
    }
    for test in tests {
        let there = test.rsplit_once("::").is_some_and(|(module, name)| {
            let files = files_of(module).into_iter().map(|path| repository.join(path));
            files
                .filter(|path| path.is_file())
                .any(|path| std::fs::read_to_string(path).is_ok_and(|text| holds_test(&text, name)))
        });
        if !there {
            found.push(format!("row {number}: there is no test {test}"));
        }
    }
    found
}

#[test]
fn every_rule_names_where_it_is_kept_and_a_test_that_is_there() {
    let page = file(PAGE);
    let rows: Vec<&str> = page
        .lines()
        .filter(|line| {
            line.strip_prefix("| ")
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        })
        .collect();
    assert!(rows.len() >= 90, "{PAGE} has {} rules", rows.len());
    let found: Vec<String> = rows
        .iter()
        .zip(1..)
        .flat_map(|(row, number)| faults(row, number))
        .collect();
    assert!(found.is_empty(), "{PAGE}:\n{}", found.join("\n"));
}

#[test]
fn a_test_that_is_not_run_is_none() {
    for (text, is_run) in [
        ("#[test]\nfn a() {", true),
        ("/// It.\n    #[tokio::test]\n    async fn a() {", true),
        ("on_both_engines!(a, b);\nasync fn a(url: String) {", true),
        ("fn a() {", false),
        ("#[test]\n\nfn b() {}\n\nfn a() {", false),
        ("#[test]\n#[ignore = \"slow\"]\nfn a() {", false),
        ("#[ignore]\n#[test]\nfn a() {", false),
        ("on_both_engines!(b);\nasync fn a(url: String) {", false),
    ] {
        assert_eq!(holds_test(text, "a"), is_run, "{text}");
    }
}

#[test]
fn a_row_that_tells_something_else_is_found() {
    let right = "| 1 | a rule | `src/lib.rs` | `conformance::a_row_that_tells_something_else_is_found` |";
    assert_eq!(faults(right, 1), Vec::<String>::new());
    let doubled = "| 1 | a rule | `src/lib.rs` | `negotiations::a_negotiation_survives_a_crash` |";
    assert_eq!(faults(doubled, 1), Vec::<String>::new());
    for wrong in [
        "| 2 | a rule | `src/lib.rs` | `conformance::a_row_that_tells_something_else_is_found` |",
        "| 1 | a rule | `src/nowhere.rs` | `conformance::a_row_that_tells_something_else_is_found` |",
        "| 1 | a rule | | `conformance::a_row_that_tells_something_else_is_found` |",
        "| 1 | a rule | `src/lib.rs` | |",
        "| 1 | a rule | `src/lib.rs` | `conformance::no_such_test` |",
        "| 1 | a rule | `src/lib.rs` | `nowhere::a_row_that_tells_something_else_is_found` |",
        "| 1 | a rule | `src/lib.rs` | `conformance::holds_test` |",
        "| 1 | a rule | `src/lib.rs` |",
    ] {
        assert_eq!(faults(wrong, 1).len(), 1, "{wrong}");
    }
}
