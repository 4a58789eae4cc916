//! `bespeak advise` as an operator runs it, on few windows.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;

use crate::support::output_of;

/// The most that a run of a few windows takes.
const DEADLINE: Duration = Duration::from_mins(10);

const CONFIGURATION: &str = "\
[scheduling]
order = \"fifo\"
decision = \"published\"
fix_after_percent = 0
alternatives_percent = 0

[pricing]
currency = \"CHF\"
node_hour = \"0.25\"
busy_percent = 50
late_percent = 20
flexible_percent = 30

[[resource]]
name = \"fast\"
kind = \"local\"
nodes = 64

[[resource]]
name = \"slow\"
kind = \"local\"
nodes = 64
rate = 0.25
";

/// Runs the real executable in a folder with `bespeak.toml`.
fn bespeak(folder: &Path, arguments: &str) -> Output {
    fs::write(folder.join("bespeak.toml"), CONFIGURATION).expect("a file can be written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_bespeak"));
    command
        .args(arguments.split_whitespace())
        .env_remove("BESPEAK_CONFIG")
        .current_dir(folder);
    output_of(&mut command, DEADLINE)
}

fn succeed(folder: &Path, arguments: &str) -> String {
    let output = bespeak(folder, arguments);
    assert!(
        output.status.success(),
        "{arguments}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn advice_is_by_the_price_list_and_against_the_settings_of_the_configuration() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let advise = "advise --config bespeak.toml --windows 12 --load 150 --out policies.csv";
    let text = succeed(folder.path(), advise);
    for part in [
        "12 windows of 15 days",
        "54 policies on the same requests, decided by the published rule",
        "0.25 CHF a node and hour, 20 % off at the deadline, 50 % on top where the window is full, 30 % off at most for slack",
        "To earn most: order ",
        "To use most: order ",
        "To serve most: order ",
        "CHF a window",
        "your settings ",
        "Your settings are order fifo, fixed at once, alternatives none. Those to earn most:\n\n[scheduling]\norder = \"",
        "alternatives_percent = 100\n",
        "not significant",
        "with a portfolio of orders ",
        "Sizes and cuts, where users allow them as in paper 002, placed anew by its rule, to earn most: ",
        "  cuts earn ",
        "preemptive_percent",
        "Resources of 2 rates, with nothing moved:",
        "  earliest-completion  ",
        "  least-work-lost  ",
    ] {
        assert!(format!("{text}\n").contains(part), "{part} is missing in\n{text}");
    }
    let table = fs::read_to_string(folder.path().join("policies.csv")).expect("the policies are written");
    assert_eq!(table.lines().count(), 1 + 54);

    let json = succeed(folder.path(), &format!("{advise} --json --goal serve"));
    let again = fs::read_to_string(folder.path().join("policies.csv")).expect("the policies are written");
    assert_eq!(again, table, "the same requests have the same results");
    let answer: Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(answer["present"]["order"], "fifo");
    assert_eq!(answer["decision"], "published", "that of the configuration");
    assert_eq!(answer["present"]["fix_after_percent"], 0);
    assert_eq!(answer["present"]["alternatives_percent"], Value::Null);
    let goals = answer["goals"].as_array().expect("the goals");
    let shapes = &answer["shapes"];
    let kinds = shapes["kinds"].as_array().expect("the kinds");
    assert_eq!(kinds.len(), 4, "{shapes}");
    for kind in kinds {
        let more: Vec<_> = kind["incentives"]
            .as_array()
            .expect("incentives")
            .iter()
            .map(|each| each["more"].as_f64())
            .collect();
        assert_eq!(more.len(), 9, "{kind}");
        assert!(
            more.is_sorted_by(|one, other| one >= other),
            "a higher incentive earns no more: {kind}"
        );
    }
    let refused = &answer["objectives"]["refused_percent"];
    let refused = ["earliest-completion", "least-work-lost"].map(|objective| refused[objective].as_f64());
    assert!(refused[1] < refused[0], "{answer}");
    let names: Vec<_> = goals
        .iter()
        .map(|goal| goal["goal"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(names, ["earn", "use", "serve"]);
    for goal in goals {
        let policies = goal["policies"].as_array().expect("the policies");
        let best = policies
            .iter()
            .find(|policy| policy["policy"] == goal["best"])
            .expect("the best is one of them");
        assert_eq!(
            (best["behind"].as_f64(), best["significant"].as_bool()),
            (Some(0.0), Some(false))
        );
        let as_good = policies
            .iter()
            .filter(|policy| policy["significant"] == false)
            .count()
            - 1;
        assert_eq!(goal["as_good"], as_good);
    }
}

#[test]
fn settings_that_are_the_best_or_as_good_are_left_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // One window is too few for a result.
    let text = succeed(folder.path(), "advise --windows 1 --profile 10:500");
    assert!(text.contains("10 % of the requests pay 500 % of it"), "{text}");
    assert!(text.contains("decided by the standing rule"), "{text}");
    assert!(
        text.contains("53 of the 53 others cannot be told from it"),
        "{text}"
    );
    assert!(
        text.contains("no need to change them") || text.contains("are the best"),
        "{text}"
    );
    assert!(!text.contains("[scheduling]"), "{text}");
}

#[test]
fn what_cannot_be_advised_on_is_refused_with_what_was_expected() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("empty.swf"), "; MaxNodes: 8\n").expect("a file can be written");
    for (arguments, said) in [
        (
            "--profile 60:100 --profile 50:80",
            "together at most 100 % of the requests, found 2 of 110 %",
        ),
        ("--profile 20", "expected SHARE:PRICE"),
        ("--trace missing.swf", "missing.swf"),
        ("--trace empty.swf", "no line of it is a job"),
        ("--config missing.toml", "configuration missing.toml"),
        ("--takers 101", "101"),
        ("--windows 1 --out missing/policies.csv", "missing/policies.csv"),
    ] {
        let output = bespeak(folder.path(), &format!("advise {arguments}"));
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {error}");
        assert!(error.contains(said), "{arguments}: {error}");
    }
}
