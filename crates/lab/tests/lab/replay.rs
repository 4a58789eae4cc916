//! `bespeak-lab replay` as an operator runs it, on lists small enough to follow by hand, and on those of the reference schedules.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{lab, reference_windows, root, text, write};

const HEADING: &str = "id,submit,duration,nodes,ready,deadline\n";

/// The rows of `examples/replay/three-flexible-one-rigid.csv`.
const EXAMPLE: &str = "\
1,0,100,3,100,1000
2,0,100,3,100,1000
3,0,100,3,100,1000
4,10,100,4,150,250
";

/// Runs the real executable in a folder with `list.csv`.
fn replay(list: &str, arguments: &str) -> (TempDir, Output) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write(folder.path(), "list.csv", list);
    let output = lab(folder.path(), &format!("replay --requests list.csv {arguments}"));
    (folder, output)
}

/// The rows of the decisions on 4 nodes, without their heading.
fn decisions(list: &str, arguments: &str) -> Vec<String> {
    decisions_of(list, 4, arguments)
}

/// The rows of the decisions on a number of nodes, without their heading.
pub(crate) fn decisions_of(list: &str, capacity: usize, arguments: &str) -> Vec<String> {
    let (folder, output) = replay(
        &format!("{HEADING}{list}"),
        &format!("--capacity {capacity} --out decisions.csv {arguments}"),
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    let written = fs::read_to_string(folder.path().join("decisions.csv")).expect("decisions are written");
    let mut rows = written.lines().map(str::to_owned);
    assert_eq!(rows.next().as_deref(), Some("id,decision,start,end,phi,reason"));
    rows.collect()
}

#[test]
fn flexible_requests_move_for_a_rigid_one_and_the_last_start_is_told() {
    assert_eq!(
        decisions(EXAMPLE, ""),
        [
            "1,accepted,250,350,,",
            "2,accepted,350,450,,",
            "3,accepted,450,550,,",
            "4,accepted,150,250,,"
        ]
    );
}

#[test]
fn fixed_at_acceptance_earliest_deadline_first_gives_the_plan_of_first_come_first_served() {
    let fifo = decisions(EXAMPLE, "--order fifo");
    assert_eq!(fifo, decisions(EXAMPLE, "--order edf --fix 0"));
    assert_eq!(fifo[3], "4,refused,,,,NO_CAPACITY_IN_WINDOW");
    assert_eq!(fifo[0], "1,accepted,100,200,,");
}

#[test]
fn the_nearest_alternative_within_the_limit_is_taken() {
    // All nodes are taken until 100; the second could start then, 50 s after its window: half its duration.
    let list = "1,0,100,4,0,100\n2,0,100,2,50,150\n";
    assert_eq!(
        decisions(list, "--alternatives 0.5")[1],
        "2,alternative,100,200,0.5,"
    );
    assert_eq!(
        decisions(list, "--alternatives 0.499999")[1],
        "2,refused,,,,NO_CAPACITY_IN_WINDOW"
    );
}

#[test]
fn each_impossible_request_is_refused_for_its_own_reason() {
    let list = "1,0,100,5,0,100\n2,0,100,1,0,99\n3,50,100,1,0,100\n";
    assert_eq!(
        decisions(list, "--alternatives 9"),
        [
            "1,refused,,,,SIZE_EXCEEDS_CAPACITY",
            "2,refused,,,,WINDOW_CONTRADICTORY",
            "3,refused,,,,WINDOW_IN_THE_PAST"
        ]
    );
}

#[test]
fn requests_are_decided_in_order_of_submission_and_then_of_the_file_whatever_their_ids() {
    let list = "1,9,100,4,10,110\n8,5,100,4,10,110\n7,5,100,4,10,110\n";
    for order in ["fifo", "edf", "brf"] {
        assert_eq!(
            decisions(list, &format!("--order {order}")),
            [
                "8,accepted,10,110,,",
                "7,refused,,,,NO_CAPACITY_IN_WINDOW",
                "1,refused,,,,NO_CAPACITY_IN_WINDOW"
            ]
        );
    }
}

#[test]
fn each_order_places_by_its_own_rule() {
    // Both wait from 10 on and only one can have the nodes first. The second is smaller, has the earlier deadline, the later
    // latest start, more slack, and earns more a node-second.
    let rows = "1,0,100,4,10,310,100\n2,0,20,4,10,300,900\n";
    let list = format!("{},revenue\n{rows}", HEADING.trim());
    for (order, second) in [
        ("fifo", 110),
        ("bjf", 110),
        ("lff", 110),
        ("mdf", 110),
        ("edf", 10),
        ("brf", 10),
    ] {
        let (_folder, output) = replay(&list, &format!("--capacity 4 --order {order} --out -"));
        let printed = text(&output.stdout);
        let row = format!("2,accepted,{second},{},,", second + 20);
        assert!(printed.lines().any(|line| line == row), "{order}: {printed}");
    }
}

#[test]
fn a_request_that_fits_moves_others_only_by_the_published_rule_which_is_the_default() {
    // The second has the earlier deadline, and fits behind the first.
    let list = "1,0,100,4,100,1000\n2,10,100,4,100,500\n";
    let published = ["1,accepted,200,300,,", "2,accepted,100,200,,"];
    assert_eq!(decisions(list, ""), published);
    assert_eq!(decisions(list, "--decision published"), published);
    let standing = decisions(list, "--decision standing");
    assert_eq!(standing, ["1,accepted,100,200,,", "2,accepted,200,300,,"]);
    // For one that does not fit fewer others move.
    let moved = decisions(EXAMPLE, "--decision standing");
    let two_later = [
        "1,accepted,500,600,,",
        "2,accepted,400,500,,",
        "3,accepted,300,400,,",
        "4,accepted,150,250,,",
    ];
    assert_eq!(moved, two_later);
}

#[test]
fn a_shuffle_is_a_matter_of_its_seed() {
    let rows: Vec<String> = (0..6).map(|id| format!("{id},0,100,4,10,1010\n")).collect();
    let list = rows.concat();
    let plan = |seed| decisions(&list, &format!("--order shuffle --seed {seed}"));
    assert_eq!(plan(1), plan(1));
    assert!((2..20).any(|seed| plan(seed) != plan(1)));
}

#[test]
fn the_summary_counts_what_the_decisions_say() {
    let list = format!("{HEADING}1,0,100,4,0,100\n2,0,100,2,50,150\n3,0,100,5,0,200\n");
    let (_folder, output) = replay(&list, "--capacity 4 --alternatives 1 --json");
    let summary: Value = serde_json::from_slice(&output.stdout).expect("--json prints JSON");
    assert_eq!(
        summary,
        serde_json::json!({
            "requests": 3, "accepted": 1, "alternative": 1, "refused": {"SIZE_EXCEEDS_CAPACITY": 1}, "moves": 0,
            "capacity": 4, "from": 0, "to": 200, "utilisation_percent": 75.0,
        })
    );
}

#[test]
fn what_cannot_be_replayed_is_refused_before_anything_is_decided() {
    for (list, arguments, said) in [
        (
            "1,0,100,4,0\n",
            "--capacity 4",
            "list.csv:2: 5 columns, expected id,submit",
        ),
        (
            "1,0,ten,4,0,9\n",
            "--capacity 4",
            "list.csv:2: duration is \"ten\", expected a whole number",
        ),
        (
            "1,0,9,4,0,9\n1,0,9,4,0,9\n",
            "--capacity 4",
            "list.csv:3: the id 1 is there twice",
        ),
        ("", "--capacity 4", "list.csv: no request"),
        (EXAMPLE, "--capacity 0", "--capacity"),
        (EXAMPLE, "--capacity 4 --fix 1.5", "never or a number from 0 to 1"),
        (EXAMPLE, "--capacity 4 --alternatives -1", "-1"),
        (EXAMPLE, "--capacity 4 --alternatives 5000", "from 0 to 1000"),
        (EXAMPLE, "--capacity 4 --order sjf", "sjf"),
        (
            EXAMPLE,
            "--capacity 4 --out list.csv",
            "take the place of the requests",
        ),
        (EXAMPLE, "--capacity 4 --out no/decisions.csv", "no/decisions.csv"),
    ] {
        let list = format!("{HEADING}{list}");
        let (folder, output) = replay(&list, arguments);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {errors}");
        assert!(errors.contains(said), "{arguments}: {errors}");
        assert_eq!(text(&output.stdout), "", "{arguments}");
        let left = fs::read_to_string(folder.path().join("list.csv")).expect("the list is still there");
        assert_eq!(left, list, "{arguments}");
    }
}

/// Mode of the reference file, its requests, and the options of the command.
const MODES: &[(&str, &str, &str)] = &[
    ("rigid_fifo", "jobs_rigid", "--order fifo"),
    ("rigid_edf", "jobs_rigid", "--order edf"),
    ("flex_fifo", "jobs_flexible", "--order fifo"),
    ("flex_edf", "jobs_flexible", "--order edf --fix never"),
    ("flex_lff", "jobs_flexible", "--order lff"),
    ("flex_bjf", "jobs_flexible", "--order bjf"),
    ("flex_edf_fix0", "jobs_flexible", "--order edf --fix 0"),
    ("flex_edf_fix50", "jobs_flexible", "--order edf --fix 0.5"),
    (
        "rigid_edf_alt100_all",
        "jobs_rigid",
        "--order edf --alternatives 1",
    ),
];

#[test]
fn the_decisions_are_those_of_the_reference_schedules() {
    for window in reference_windows("p000") {
        assert_eq!(window["phi"], 100, "the modes say --alternatives 1");
        let expected = window["expected"].as_object().expect("results by mode");
        assert_eq!(expected.len(), MODES.len(), "a mode is not compared");
        for (mode, requests, arguments) in MODES {
            let rows: Vec<[i64; 6]> =
                serde_json::from_value(window[requests].clone()).expect("rows of six numbers");
            let mut list = HEADING.to_owned();
            for row in rows {
                let row = row.map(|number| number.to_string()).join(",");
                writeln!(list, "{row}").expect("a string can be written");
            }
            let (folder, output) = replay(&list, &format!("--capacity 128 --out decisions.csv {arguments}"));
            assert!(output.status.success(), "{mode}: {}", text(&output.stderr));
            let written = fs::read_to_string(folder.path().join("decisions.csv")).expect("decisions");
            let starts: BTreeMap<u64, i64> = written
                .lines()
                .skip(1)
                .map(|line| line.split(',').collect::<Vec<_>>())
                .filter(|columns| columns[1] != "refused")
                .map(|columns| {
                    (
                        columns[0].parse().expect("an id"),
                        columns[2].parse().expect("a start"),
                    )
                })
                .collect();
            let expected_starts: BTreeMap<u64, i64> =
                serde_json::from_value(expected[*mode]["starts"].clone()).expect("starts by id");
            assert_eq!(starts, expected_starts, "window {}, {mode}", window["window"]);
        }
    }
}

/// The commands of a page's sessions, a line each, and their output.
fn steps(page: &str) -> Vec<(String, String)> {
    let blocks = page.split("```console\n").skip(1);
    let sessions = blocks.filter_map(|block| block.split("```").next()?.strip_prefix("$ "));
    let steps = sessions.flat_map(|session| session.split("\n$ "));
    steps
        .map(|step| step.split_once('\n').unwrap_or((step, "")))
        .map(|(command, output)| (command.to_owned(), output.to_owned()))
        .collect()
}

#[test]
fn the_page_on_rescheduling_prints_what_the_command_does() {
    let page = fs::read_to_string(root().join("docs/concepts/rescheduling.md")).expect("the page");
    let executable = Path::new(env!("CARGO_BIN_EXE_bespeak-lab"));
    let folder = executable.parent().expect("an executable is in a folder");
    let steps = steps(&page);
    assert!(steps.len() >= 2, "the page shows a plan before and one after");
    for (command, output) in &steps {
        let script = format!("PATH={}:$PATH\nexec 2>&1\n{command}", folder.display());
        let run = Command::new("bash")
            .args(["-c", &script])
            .current_dir(root())
            .output()
            .expect("there is a shell");
        assert_eq!(text(&run.stdout).trim(), output.trim(), "$ {command}");
    }
    for (_, output) in &steps[..2] {
        let picture = picture(output);
        assert!(page.contains(&picture), "the page lacks the picture\n{picture}");
    }
}

/// The plan of a replay of the example: a column is 50 s, a letter a reservation on its nodes.
fn picture(decisions: &str) -> String {
    let accepted: Vec<(usize, usize)> = decisions
        .lines()
        .filter(|line| line.contains(",accepted,"))
        .map(|line| {
            line.split(',')
                .nth(2)
                .and_then(|start| start.parse().ok())
                .expect("a start")
        })
        .zip([3, 3, 3, 4])
        .collect();
    let mut text = String::new();
    for node in (1..=4).rev() {
        let cell = |column: usize| {
            let holds = |(start, nodes): &(usize, usize)| {
                (*start..start + 100).contains(&(column * 50)) && node <= *nodes
            };
            accepted
                .iter()
                .position(holds)
                .map_or(".", |reservation| ["A", "B", "C", "D"][reservation])
        };
        let halves: Vec<String> = (0..6)
            .map(|hundred| format!("{} {}", cell(2 * hundred), cell(2 * hundred + 1)))
            .collect();
        writeln!(text, "node {node}   {}", halves.join("   ")).expect("a string can be written");
    }
    text
}
