//! The command line as people use it: options before and after the verb, times of the day, names, lists, dry runs and manuals.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::commands::{example, fails, succeeds};
use crate::support::offers::now;
use crate::support::server::Server;
use crate::support::{eventually, run};

/// The JSON that a command prints.
fn json(server: &Server, arguments: &[&str]) -> Value {
    serde_json::from_str(&succeeds(&server.run(arguments))).expect("it is JSON")
}

/// A command of the executable alone.
fn alone(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bespeak"));
    command.env_clear().args(arguments);
    command
}

#[test]
fn options_of_every_command_stand_before_it_or_after_it() {
    run(async {
        let server = Server::local();
        for arguments in [
            &["--json", "agreements"][..],
            &["agreements", "--json"],
            &["--key", server.key(), "agreements", "--json"],
            &["resources", "--json", "list"],
            &["--json", "resources", "list"],
            &["--json", "key", "list"],
            &["key", "--json", "list"],
            &["--json", "verify"],
        ] {
            json(&server, arguments);
        }
        let (code, errors) = fails(&server.run(&["--key", "wrong", "agreements"]));
        assert_eq!(code, 4, "{errors}");
        let (code, errors) = fails(&server.run(&["--server", "http://127.0.0.1:1", "key", "list"]));
        assert_eq!(code, 2, "{errors}");
        assert!(errors.contains("`bespeak key list` asks no service"), "{errors}");
        // A command below one that asks a service has the name of one that asks none.
        let (code, errors) =
            fails(&server.run(&["--server", "http://127.0.0.1:1", "resources", "restore", "old"]));
        assert_eq!(code, 3, "{errors}");
        let (code, errors) = fails(&server.run(&["--server", "http://127.0.0.1:1", "restore", "DIR"]));
        assert_eq!(code, 2, "{errors}");
        assert!(errors.contains("`bespeak restore` asks no service"), "{errors}");
    });
}

#[test]
fn times_are_those_of_the_clock_of_the_user() {
    run(async {
        let server = Server::local();
        let asked = |zone: &str, before: &str| {
            let address = format!("http://{}", server.address());
            let arguments = [
                "negotiate",
                "--nodes",
                "1",
                "--for",
                "1h",
                "--no-hold",
                "--json",
                "--before",
            ];
            alone(&arguments)
                .arg(before)
                .env("TZ", zone)
                .env("BESPEAK_SERVER", address)
                .env("BESPEAK_KEY", server.key())
                .output()
                .expect("it runs")
        };
        let deadline = |zone: &str, before: &str| -> i64 {
            let answer: Value = serde_json::from_str(&succeeds(&asked(zone, before))).expect("it is JSON");
            let deadline = answer["offers"][0]["deadline"].as_str().expect("a time");
            let deadline: jiff::Timestamp = deadline.parse().expect("a time");
            deadline.as_second()
        };
        // Noon of a day in fourteen months there, where it is 5:45 hours later.
        let day = jiff::Timestamp::from_second(now() + 10 * 86_400)
            .expect("a time")
            .to_string();
        let day = &day[..10];
        let here: jiff::Timestamp = format!("{day}T12:00:00+05:45").parse().expect("a time");
        assert_eq!(deadline("NPT-5:45", &format!("{day}T12:00")), here.as_second());
        let before = now();
        let soon = deadline("UTC", "now+2h");
        assert!((before + 7_200..=now() + 7_200).contains(&soon), "{soon}");
        assert_eq!(
            deadline("NPT-5:45", "tomorrow 23:59").rem_euclid(86_400),
            18 * 3_600 + 14 * 60
        );
        // The night in which the clocks of such a zone go forward, and the one in which they go back.
        let year = &day[..4].parse::<i32>().expect("a year") + 1;
        for (before, why) in [
            (format!("{year}-03-15T02:30"), "there is no"),
            (format!("{year}-11-15T01:30"), "is there twice"),
            ("16 o'clock".to_owned(), "is no time"),
        ] {
            let output = asked("XST5XDT,M3.3.0,M11.3.0", &sunday(&before));
            assert_eq!(output.status.code(), Some(2), "{output:?}");
            let told: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
            assert!(told["detail"].to_string().contains(why), "{before}: {told}");
        }
    });
}

/// The third Sunday of the month of a date, with its time; a text that is no date as it is.
fn sunday(text: &str) -> String {
    let Ok(at) = text.parse::<jiff::civil::DateTime>() else {
        return text.to_owned();
    };
    let third = at
        .date()
        .nth_weekday_of_month(3, jiff::civil::Weekday::Sunday)
        .expect("a date");
    third.to_datetime(at.time()).to_string()
}

#[test]
fn agreements_are_listed_by_filters_and_named_by_their_names() {
    run(async {
        let server = Server::local();
        let made = json(&server, &["offer", &example("reserve-nodes.xml"), "--json"]);
        let (id, name) = (
            made["id"].as_str().expect("an id"),
            made["name"].as_str().expect("a name"),
        );
        let count = |arguments: &[&str]| {
            let all = [&["agreements", "--json"], arguments].concat();
            json(&server, &all).as_array().expect("a list").len()
        };
        assert_eq!(
            count(&["--state", "observed", "--party", "operator", "--name", name]),
            1
        );
        assert_eq!(count(&["--state", "Terminated"]), 0);
        assert_eq!(count(&["--party", "physics"]), 0);
        assert_eq!(count(&["--after", "now+9000d"]), 0);
        let shown = succeeds(&server.run(&["show", name]));
        assert!(shown.contains(id), "{shown}");
        let asked = succeeds(&server.run(&["terminate", name, "--dry-run"]));
        assert!(asked.contains("Terminated"), "{asked}");
        assert_eq!(count(&["--state", "Observed"]), 1, "nothing was done");
        // Of two with the same name the one that is not over is meant.
        succeeds(&server.run(&["terminate", name]));
        let second = json(&server, &["offer", &example("reserve-nodes.xml"), "--json"]);
        let second = second["id"].as_str().expect("an id");
        assert!(succeeds(&server.run(&["show", name])).contains(second));
        succeeds(&server.run(&["offer", &example("reserve-nodes.xml")]));
        let (code, errors) = fails(&server.run(&["show", name]));
        assert_eq!(code, 1, "{errors}");
        assert!(
            errors.contains(second) && errors.contains("several agreements"),
            "{errors}"
        );
    });
}

#[test]
fn what_is_held_is_listed_and_released_and_accepted_by_the_beginning_of_its_id() {
    run(async {
        let server = Server::local();
        let ask = ["negotiate", "--nodes", "1", "--for", "1h", "--json"];
        let dry = json(&server, &[&ask[..], &["--dry-run"]].concat());
        assert_eq!(dry["offers"][0]["state"], "Acceptable", "{dry}");
        assert!(succeeds(&server.run(&["negotiations"])).contains("there is no such negotiation"));
        let asked: Vec<Value> = (0..3).map(|_| json(&server, &ask)).collect();
        let [of_first, of_second] =
            [0, 1].map(|at: usize| asked[at]["offers"][0]["id"].as_str().expect("an id"));
        let last = asked[2]["id"].as_str().expect("an id");
        let listed = succeeds(&server.run(&["negotiations"]));
        for part in [of_first, of_second, last, "held until"] {
            assert!(listed.contains(part), "{part}: {listed}");
        }
        succeeds(&server.run(&["release", &of_first[..35]]));
        succeeds(&server.run(&["release", last]));
        let listed = succeeds(&server.run(&["negotiations"]));
        assert!(!listed.contains(of_first) && !listed.contains(last), "{listed}");
        assert_eq!(
            json(&server, &["negotiations", "--state", "terminated", "--json"])[0]["id"],
            last
        );
        let explained = succeeds(&server.run(&["explain", &of_second[..35]]));
        assert!(explained.contains(of_second), "{explained}");
        let accepted = succeeds(&server.run(&["accept", &of_second[..35]]));
        let (code, errors) = fails(&server.run(&["accept", &of_first[..35]]));
        assert_eq!(code, 1, "{errors}");
        assert!(errors.contains("bespeak negotiations"), "{errors}");
        let id = accepted.split_whitespace().nth(1).expect("an id");
        let explained = succeeds(&server.run(&["explain", &id[..35]]));
        assert!(explained.contains("lies "), "{explained}");
    });
}

#[test]
fn a_longer_duration_widens_the_window_and_the_old_agreement_names_the_new_one() {
    run(async {
        let server = Server::local();
        let ask = ["negotiate", "--nodes", "1", "--for", "1h", "--json"];
        let window = ["--after", "now+2h", "--before", "now+3h"];
        let offered = json(&server, &[&ask[..], &window].concat());
        let offer = offered["offers"][0]["id"].as_str().expect("an id");
        let old = json(&server, &["accept", offer, "--json"]);
        let old_id = old["id"].as_str().expect("an id");
        let told = succeeds(&server.run(&["change", old_id, "--for", "3h", "--dry-run"]));
        assert!(told.contains("it is widened to"), "{told}");
        let new = json(&server, &["change", old_id, "--for", "3h", "--yes", "--json"]);
        assert_eq!(new["durationSeconds"], 3 * 3_600, "{new}");
        assert_eq!(new["plannedStart"], old["plannedStart"], "{new}");
        let new_id = new["id"].as_str().expect("an id");
        let shown = succeeds(&server.run(&["show", old_id]));
        assert!(shown.contains(&format!("replaced   by {new_id}")), "{shown}");
        let shown = succeeds(&server.run(&["show", new_id]));
        assert!(shown.contains(&format!("replaces   {old_id}")), "{shown}");
    });
}

#[test]
fn the_trail_is_followed() {
    run(async {
        let server = Server::local();
        let mut follows = alone(&["trail", "--follow"])
            .env("BESPEAK_SERVER", format!("http://{}", server.address()))
            .env("BESPEAK_KEY", server.key())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");
        let lines = BufReader::new(follows.stdout.take().expect("it is piped")).lines();
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let made = json(&server, &["offer", &example("reserve-nodes.xml"), "--json"]);
        let id = made["id"].as_str().expect("an id");
        eventually("the line of the agreement", Duration::from_mins(1), async || {
            receiver.try_iter().any(|line| line.contains(id)).then_some(())
        })
        .await;
        follows.kill().expect("it is still there");
        follows.wait().expect("it ends");
    });
}

#[test]
fn times_in_the_wrong_order_are_refused_in_the_words_of_the_command_line() {
    for (command, from, until) in [
        ("negotiate --nodes 1", "--after", "--before"),
        ("change 01a1fc5d835f", "--after", "--before"),
        ("maintenance add local", "--from", "--until"),
    ] {
        let mut words: Vec<&str> = command.split(' ').collect();
        words.extend([from, "tomorrow 15:00", until, "today 19:00"]);
        let (code, errors) = fails(&alone(&words).output().expect("it runs"));
        assert_eq!(code, 2, "{errors}");
        let said = format!("and {from} is ");
        assert!(
            errors.contains(&said) && errors.contains(&format!("{until} has to be later")),
            "{errors}"
        );
    }
}

#[test]
fn help_completions_and_manual_have_every_command() {
    let print = |arguments: &[&str]| succeeds(&alone(arguments).output().expect("it runs"));
    let help = print(&["--help"]);
    let at = |part: &str| {
        help.find(part)
            .unwrap_or_else(|| panic!("{part:?} is not in {help}"))
    };
    let parts = [
        "Clients:",
        "  release ",
        "Operators:",
        "  trail ",
        "Analysis:",
        "  predict ",
        "--server",
        "Examples:",
    ];
    assert!(parts.map(at).is_sorted(), "{help}");
    let folder = tempfile::tempdir().expect("a folder");
    print(&["man", folder.path().to_str().expect("a path is text")]);
    for name in ["negotiations", "release", "completions"] {
        assert!(print(&["completions", "bash"]).contains(name), "{name}");
        let page = std::fs::read_to_string(folder.path().join(format!("bespeak-{name}.1"))).expect("a page");
        assert!(page.contains("EXAMPLES") || page.contains("Examples:"), "{page}");
    }
    assert!(!folder.path().join("bespeak-supervise.1").exists());
    let made = folder.path().join("share/man/man1");
    print(&["man", made.to_str().expect("a path is text")]);
    assert!(made.join("bespeak.1").exists(), "the folder is made");
    assert!(print(&["man"]).starts_with(".ie"), "{}", print(&["man"]));
}
