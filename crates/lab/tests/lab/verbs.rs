//! `bespeak-lab simulate`, `advise`, `calibrate` and `bench` as a user runs them, on few windows.

use std::fs;

use serde_json::Value;

use crate::support::{lab, succeed, text, write};

#[test]
#[ignore = "the laboratory alone: a release runs it"]
fn without_a_trace_there_is_a_full_report_too() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let all = "simulate all --windows 1 --filter f60 --jobs 1000 --runs 1 --out report";
    succeed(folder.path(), all);
    let folder = folder.path().join("report");
    let report = fs::read_to_string(folder.join("report.md")).expect("there is a report");
    assert!(
        report.contains("Lublin–Feitelson") && report.contains("Filter f60"),
        "{report}"
    );
    let names = lab::experiment::experiment_names();
    assert!(names.len() > 20);
    for name in names {
        assert!(
            report.contains(&format!("\n## {name}: ")),
            "{name} is not in the report"
        );
        assert!(folder.join(format!("{name}.csv")).is_file(), "{name}.csv");
    }
    let figures: Vec<&str> = report
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|each| each.0)
        .collect();
    assert!(figures.len() > 20);
    for figure in figures {
        let svg = fs::read_to_string(folder.join(figure)).expect("the report's figures are written");
        assert!(
            svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"),
            "{figure}"
        );
    }
}

#[test]
fn advice_without_a_configuration_is_by_published_prices_and_names_no_settings_of_yours() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let advise = "advise --windows 2 --profile 10:500 --out policies.csv";
    let told = succeed(folder.path(), advise);
    for part in [
        "54 policies on the same requests",
        "prices: 1 units a node and hour",
        "10 % of the requests pay 500 % of it",
        "The settings to earn most:\n\n[scheduling]\norder = \"",
    ] {
        assert!(told.contains(part), "{part} is missing in\n{told}");
    }
    assert!(!told.to_lowercase().contains("your settings"), "{told}");
    let table = fs::read_to_string(folder.path().join("policies.csv")).expect("the policies are written");
    assert_eq!(table.lines().count(), 1 + 54);
    let json: Value =
        serde_json::from_str(&succeed(folder.path(), &format!("{advise} --json"))).expect("JSON");
    assert_eq!(json["present"], Value::Null);
}

#[test]
#[ignore = "the laboratory alone: a release runs it"]
fn what_is_stated_of_a_log_is_held_against_its_runs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // Two users, with jobs that take ten and twenty minutes.
    let jobs: Vec<String> = (0..1_200)
        .map(|job| {
            let (submit, user) = (2_000 * job, job % 2);
            let run = 600 * (1 + user) + job % 7;
            format!(
                "{} {submit} 0 {run} 1 -1 -1 1 3600 -1 1 {user} 1 1 1 1 -1 -1\n",
                job + 1
            )
        })
        .collect();
    write(
        folder.path(),
        "log.swf",
        &format!("; MaxNodes: 8\n{}", jobs.concat()),
    );
    let told = succeed(folder.path(), "calibrate --trace log.swf");
    assert!(
        told.contains("(2) held (%)") && told.contains("90 % interval"),
        "{told}"
    );
    let csv = succeed(folder.path(), "calibrate --trace log.swf --csv");
    assert!(csv.starts_with("statement,\"held (%), "), "{csv}");
    let json: Value =
        serde_json::from_str(&succeed(folder.path(), "calibrate --trace log.swf --json")).expect("JSON");
    let rows = json.as_array().expect("rows");
    assert_eq!(rows.len() + 1, csv.lines().count());
    assert!(
        rows.iter().any(|row| row["statement"] == "90 % interval"),
        "{json}"
    );
}

#[test]
fn the_planner_is_measured_on_files_and_says_where_each_request_was_placed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let rows = |columns: &str, count: usize, victim: &str| {
        (0..count).fold(format!("{columns}\n"), |text, id| {
            text + &format!("{id},{},1,10{victim}\n", id * 100_000)
        })
    };
    write(
        folder.path(),
        "requests.csv",
        &rows("id,ready_u32,units,duration_s", 40, ""),
    );
    let columns = "id,ready_u32,units,duration_s,victim_u32";
    write(folder.path(), "queries.csv", &rows(columns, 40, ",7"));
    let told = succeed(
        folder.path(),
        "bench planner --requests requests.csv --queries queries.csv --capacity 2 --horizon 100000 --ready-window 1000 \
         --starts starts.csv",
    );
    let told: Value = serde_json::from_str(&told).expect("a line of JSON");
    assert_eq!(
        (&told["capacity"], &told["requests"]),
        (&Value::from(2), &Value::from(40))
    );
    let starts = fs::read_to_string(folder.path().join("starts.csv")).expect("the starts are written");
    assert_eq!(starts.lines().count(), 41);
    assert!(starts.starts_with("id,start\n0,0\n"), "{starts}");
}

#[test]
fn what_is_left_out_of_a_trace_is_counted_and_told() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let job = |number: i64, submit: i64, run: i64, nodes: i64| {
        format!("{number} {submit} 5 {run} {nodes} -1 -1 {nodes} 9000 -1 1 2 3 4 1 -1 -1 -1\n")
    };
    let later = 15 * 86_400;
    let lines = [
        "; MaxNodes: 8 (all alike)\n".to_owned(),
        job(1, 0, 3_600, 8),
        job(2, 9, 59, 1),
        job(3, 10, -1, 1),
        job(4, 11, 3_600, 9),
        job(5, later + 1, 3_600, 2),
        "6 12 no job\n".to_owned(),
    ];
    write(folder.path(), "log.swf", &lines.concat());
    let left_out =
        "bespeak: log.swf: left out: 1 line (no job), 1 job (without a run), 1 job (larger than 8 nodes)";
    for (arguments, said) in [
        ("calibrate --trace log.swf", None),
        (
            "advise --trace log.swf --windows 1",
            Some("log.swf: not replayed: 1 job that the filter f1h leaves out, 1 job behind the last window"),
        ),
    ] {
        let output = lab(folder.path(), arguments);
        let errors = text(&output.stderr);
        assert!(output.status.success(), "{errors}");
        assert!(errors.contains(left_out), "{arguments}: {errors}");
        assert!(
            said.is_none_or(|said| errors.contains(said)),
            "{arguments}: {errors}"
        );
    }
}

#[test]
fn wrong_usage_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write(folder.path(), "empty.swf", "; MaxNodes: 8\n");
    write(folder.path(), "rows.csv", "1,2,3\n");
    for (arguments, said) in [
        ("simulate 005", "there are all, 000-fifo"),
        ("simulate all --trace missing.swf", "missing.swf"),
        ("advise --trace empty.swf", "no line of it is a job"),
        ("advise --profile 20", "expected SHARE:PRICE"),
        ("calibrate", "--trace"),
        ("calibrate --trace missing.swf", "missing.swf"),
        (
            "bench planner --requests rows.csv --queries rows.csv --capacity 1 --horizon 9 --ready-window 9",
            "rows.csv:1: another number of columns",
        ),
    ] {
        let output = lab(folder.path(), arguments);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {error}");
        assert!(error.contains(said), "{arguments}: {error}");
    }
}
