//! Forms that are read, and their mistakes.

use domain::catalogue::{ArgumentKind, ArgumentSpec};

use super::*;

fn catalogue() -> Catalogue {
    let application = |version: Option<&str>| Application {
        name: "fit".to_owned(),
        version: version.map(str::to_owned),
        description: String::new(),
        program: "/usr/bin/fit".into(),
        arguments: ["rounds", "method"]
            .map(|name| ArgumentSpec {
                name: name.to_owned(),
                kind: ArgumentKind::File,
            })
            .to_vec(),
        limits: domain::catalogue::JobLimits::default(),
        checkpoint: None,
        isolation: None,
    };
    Catalogue::new(vec![application(Some("1.0")), application(None)]).unwrap()
}

fn values_of(pairs: &[(&str, &str)]) -> Values {
    pairs.iter().fold(Values::default(), |values, (name, value)| {
        values.with(name, *value)
    })
}

fn problems(pairs: &[(&str, &str)]) -> Vec<FormPart> {
    let found = read_form(
        &values_of(pairs).with(field_names::APPLICATION, ""),
        &catalogue(),
        None,
    );
    found.problems.into_iter().map(|problem| problem.place).collect()
}

#[test]
fn a_form_left_empty_asks_for_what_the_template_has() {
    assert_eq!(
        read_form(&values_of(&[(field_names::APPLICATION, "")]), &catalogue(), None),
        ReadForm {
            wish: Request::default(),
            choices: 6,
            problems: Vec::new(),
        }
    );
}

#[test]
fn a_filled_form_is_read_whole() {
    let values = values_of(&[
        ("name", "my fit"),
        ("application", "fit\t1.0"),
        ("argument\t0\tfit\t1.0", "12"),
        ("argument\t1\tfit\t1.0", " spaces stay "),
        ("argument\t1\tfit\t", "of the other version"),
        ("nodes", " 3 "),
        ("nodes-max", "5"),
        ("flexibility", "0.5"),
        ("fix", "0"),
        ("resource", "large"),
        ("memory-gb", " 0.5 "),
        ("architecture", "arm"),
        ("pieces", "4"),
        ("choices", "2"),
        ("start-date", "2026-11-21"),
        ("start-time", "16:30"),
        ("deadline-date", "2026-11-22"),
        ("deadline-time", "00:00:05"),
        ("hours", "1"),
        ("seconds", "5"),
        ("budget", "12.50"),
    ]);
    let run = RequestedJob {
        name: "fit".to_owned(),
        version: Some("1.0".to_owned()),
        arguments: vec!["12".to_owned(), " spaces stay ".to_owned()],
    };
    let budget = Budget {
        amount_micros: 12_500_000,
        currency: "EUR".to_owned(),
    };
    let wish = Request {
        // Files that are moved are named in documents and requests in JSON.
        staging: None,
        name: Some("my fit".to_owned()),
        run: Some(run),
        nodes: Some((3, 5)),
        attributes: BTreeMap::from([
            ("memory_bytes".to_owned(), Attribute::Number(500_000_000)),
            ("cpu_architecture".to_owned(), Attribute::Word("arm".to_owned())),
        ]),
        start: Some(DateTime::from_seconds(1_795_278_600)),
        end: Some(DateTime::from_seconds(1_795_305_605)),
        duration: Some(3_605),
        scheduling: Scheduling {
            budget: Some(budget),
            preemption: Some(Preemption {
                pieces: 4,
                interval: 0.1,
                independent: false,
            }),
            max_deviation: Some(0.5),
            fix_at: Some(0.0),
            resource: Some("large".to_owned()),
            ..Scheduling::default()
        },
    };
    let read = read_form(&values, &catalogue(), Some("EUR"));
    assert_eq!((read.wish, read.choices), (wish, 2));
    assert_eq!(read.problems, []);
    let predicted = read_form(&values.with("predict", "1"), &catalogue(), Some("EUR"));
    assert_eq!((predicted.wish.duration, predicted.problems.len()), (None, 0));
}

/// The earliest start, the deadline and the problems of a form.
fn times(pairs: &[(&str, &str)]) -> (Option<i64>, Option<i64>, Vec<Problem>) {
    let read = read_form(
        &values_of(pairs).with(field_names::APPLICATION, ""),
        &catalogue(),
        None,
    );
    let seconds = |at: Option<DateTime>| at.map(DateTime::floor);
    (seconds(read.wish.start), seconds(read.wish.end), read.problems)
}

#[test]
fn a_date_alone_begins_as_a_start_and_ends_as_a_deadline() {
    let day = [("start-date", "2026-11-21"), ("deadline-date", "2026-11-21")];
    let begin = 1_795_219_200;
    assert_eq!(times(&day), (Some(begin), Some(begin + 86_400), Vec::new()));
    let berlin = [day[0], day[1], ("zone", "Europe/Berlin")];
    assert_eq!(times(&berlin).0, Some(begin - 3_600));
}

#[test]
fn exact_times_have_their_deadline_at_the_end_of_the_duration() {
    let exact = [
        ("start-date", "2026-11-21"),
        ("start-time", "10:00"),
        ("minutes", "90"),
        ("exact", "1"),
        ("deadline-date", "not read"),
    ];
    let start = 1_795_255_200;
    assert_eq!(times(&exact), (Some(start), Some(start + 5_400), Vec::new()));
}

#[test]
fn a_deadline_that_is_too_near_is_said_with_one_that_would_do() {
    let near = [
        ("start-date", "2026-11-21"),
        ("start-time", "13:00"),
        ("minutes", "90"),
        ("deadline-date", "2026-11-21"),
        ("deadline-time", "14:00"),
    ];
    let (_, _, problems) = times(&near);
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].place, FormPart::Deadline);
    let message = &problems[0].message;
    assert!(
        message.contains("set it to Sat 21 Nov 2026, 14:30 UTC or later"),
        "{message}"
    );
}

#[test]
fn what_no_offer_can_say_is_named_by_its_place() {
    for (pairs, places) in [
        (&[("nodes", "two")][..], &[FormPart::Nodes][..]),
        (&[("nodes", "-1")], &[FormPart::Nodes]),
        (&[("budget", "-1")], &[FormPart::Budget]),
        (&[("budget", "much")], &[FormPart::Budget]),
        (&[("nodes", "4294967296")], &[FormPart::Nodes]),
        (&[("nodes", "3"), ("nodes-max", "2")], &[FormPart::Nodes]),
        (&[("nodes-max", "2")], &[FormPart::Nodes]),
        (&[("predict", "1")], &[FormPart::Duration]),
        (&[("flexibility", "-1")], &[FormPart::Flexibility]),
        (&[("fix", "2")], &[FormPart::Fix]),
        (&[("fix", "NaN")], &[FormPart::Fix]),
        (&[("pieces", "1")], &[FormPart::Pieces]),
        (
            &[("cpus", "1.5"), ("disk-gb", "0"), ("architecture", "vax")],
            &[
                FormPart::of_number("cpus"),
                FormPart::of_number("disk_bytes"),
                FormPart::Architecture,
            ],
        ),
        (
            &[("choices", "7"), ("pieces", "many")],
            &[FormPart::Pieces, FormPart::Choices],
        ),
        (
            &[("hours", "x"), ("seconds", "y")],
            &[FormPart::Duration, FormPart::Duration],
        ),
        (&[("hours", "1000000")], &[FormPart::Duration]),
        (&[("start-time", "10:00")], &[FormPart::Start]),
        (
            &[("start-date", "21.11.2026"), ("start-time", "10")],
            &[FormPart::Start, FormPart::Start],
        ),
        (
            &[("deadline-date", "2026-02-30"), ("deadline-time", "10:00")],
            &[FormPart::Deadline],
        ),
        (
            &[("deadline-date", "2026-02-20"), ("deadline-time", "24:00")],
            &[FormPart::Deadline],
        ),
        (&[("name", "a\0b")], &[FormPart::Name]),
        (&[("exact", "1"), ("hours", "1")], &[FormPart::Deadline]),
        (&[("exact", "1"), ("start-time", "10:00")], &[FormPart::Start]),
    ] {
        assert_eq!(problems(pairs), places, "{pairs:?}");
    }
    let gone = read_form(&values_of(&[("application", "gone\t")]), &catalogue(), None).problems;
    assert_eq!(gone[0].place, FormPart::Application);
    let nothing = read_form(&Values::default(), &catalogue(), None).problems;
    assert_eq!(nothing[0].place, FormPart::Application);
}
