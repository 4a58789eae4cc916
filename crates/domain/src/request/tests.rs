use proptest::prelude::*;
use wsag::budget::Budget;
use wsag::job_definition::CreationFlag;
use wsag::scheduling::{Moldability, Preemption, Preference, ShapeChanges};
use wsag::templates::ADVANCE_RESERVATION;
use wsag::{Document, Message};

use super::*;
use crate::resources::ARCHITECTURE;

fn built_in() -> Template {
    let document = Document::parse(ADVANCE_RESERVATION.as_bytes()).expect("a document");
    match wsag::read(&document).expect("it is read") {
        Message::Template(template) => *template,
        other => panic!("{other:?}"),
    }
}

fn at(seconds: i64) -> DateTime {
    DateTime::from_seconds(seconds)
}

fn tree(name: &str, content: ServiceDescription) -> TermTree {
    TermTree::Term(Box::new(Term::ServiceDescription(ServiceDescriptionTerm {
        name: name.to_owned(),
        service_name: "S".to_owned(),
        content,
        is_wsag4j: false,
    })))
}

fn window(name: &str, start: i64) -> TermTree {
    let window = AllocationTimeConstraint {
        start: Some(at(start)),
        end: Some(at(start + 100)),
        duration: Some(60),
    };
    tree(name, ServiceDescription::AllocationTime(window))
}

fn job(name: &str, application: &str) -> TermTree {
    let definition = JobDefinition {
        application: Some(Application {
            name: application.to_owned(),
            ..Application::default()
        }),
        ..JobDefinition::default()
    };
    tree(name, ServiceDescription::JobDefinition(Box::new(definition)))
}

fn offer(members: Vec<TermTree>) -> AgreementOffer {
    AgreementOffer {
        name: None,
        agreement_id: None,
        context: Context::for_template("t", "T"),
        terms: Terms { all: Some(members) },
    }
}

fn deviation() -> Request {
    Request {
        scheduling: Scheduling {
            max_deviation: Some(0.2),
            ..Scheduling::default()
        },
        ..Request::default()
    }
}

/// What each way to read an offer says for a kind of term.
fn said<T>(offer: &AgreementOffer, function: impl Fn(&ServiceDescription) -> Option<T>) -> Vec<Vec<T>> {
    let ways = offer.terms.alternatives().expect("few ways");
    let said = ways.iter().map(|way| {
        let descriptions = way.terms.iter().filter_map(|term| match term {
            Term::ServiceDescription(description) => function(&description.content),
            _ => None,
        });
        descriptions.collect()
    });
    said.collect()
}

#[test]
fn alternatives_keep_what_a_change_does_not_say() {
    let early_or_late = TermTree::ExactlyOne(vec![
        TermTree::All(vec![job("JOB", "sleep"), window("TIME", 1_000)]),
        TermTree::All(vec![job("JOB", "crunch"), window("TIME", 2_000)]),
    ]);
    let wish = Request {
        nodes: Some((4, 4)),
        end: Some(at(9_000)),
        ..Request::default()
    };
    let changed = wish.change(&offer(vec![early_or_late]), None);
    let windows = said(&changed, |content| match content {
        ServiceDescription::AllocationTime(window) => Some((window.start, window.end)),
        _ => None,
    });
    assert_eq!(
        windows,
        [
            vec![(Some(at(1_000)), Some(at(9_000)))],
            vec![(Some(at(2_000)), Some(at(9_000)))]
        ]
    );
    let jobs = said(&changed, |content| match content {
        ServiceDescription::JobDefinition(job) => {
            let name = job
                .application
                .as_ref()
                .map(|application| application.name.clone());
            Some((name.unwrap_or_default(), job.resources.nodes.clone()))
        }
        _ => None,
    });
    let four = Some(RangeValue::exactly(4.0));
    assert_eq!(
        jobs,
        [
            vec![("sleep".to_owned(), four.clone())],
            vec![("crunch".to_owned(), four)]
        ]
    );
}

#[test]
fn every_way_to_read_a_changed_offer_says_what_the_change_says() {
    let plans = |content: &ServiceDescription| match content {
        ServiceDescription::Scheduling(scheduling) => Some(scheduling.max_deviation),
        _ => None,
    };
    let none = offer(vec![job("JOB", "sleep")]);
    assert_eq!(said(&deviation().change(&none, None), plans), [[Some(0.2)]]);
    // One way has the term already, one has it among others, and one has none.
    let has = || tree("HOW", ServiceDescription::Scheduling(Box::default()));
    let some = offer(vec![
        job("JOB", "sleep"),
        TermTree::ExactlyOne(vec![
            has(),
            TermTree::All(vec![has(), window("A", 1)]),
            window("B", 2),
            TermTree::ExactlyOne(vec![has(), window("C", 3)]),
        ]),
    ]);
    assert_eq!(said(&deviation().change(&some, None), plans), [[Some(0.2)]; 5]);
    // A window beside a job alone is named as the template does.
    let built_in = built_in();
    let template = Template {
        terms: offer(vec![job("WHAT", "sleep"), window("WHEN", 1)]).terms,
        ..built_in
    };
    let wish = Request {
        start: Some(at(5)),
        ..Request::default()
    };
    let changed = wish.change(&none, Some(&template));
    let names: Vec<_> = changed
        .terms
        .descriptions()
        .map(|description| description.name.as_str())
        .collect();
    assert_eq!(names, ["JOB", "WHEN"]);
    let windows = said(&changed, |content| match content {
        ServiceDescription::AllocationTime(window) => Some(*window),
        _ => None,
    });
    let only_the_start = AllocationTimeConstraint {
        start: Some(at(5)),
        ..AllocationTimeConstraint::default()
    };
    assert_eq!(windows, [[only_the_start]]);
}

#[test]
fn a_start_and_an_end_mean_all_the_time_between_them_for_nodes_alone() {
    let template = built_in();
    let nodes = Request {
        start: Some(at(5_000)),
        end: Some(at(14_000)),
        ..Request::default()
    };
    let meant = |wish: &Request, now| wish.saying_duration(&template, Time(now)).duration;
    assert_eq!(meant(&nodes, 1_000), Some(9_000));
    // What is left of a time that has begun.
    assert_eq!(meant(&nodes, 5_000), Some(8_990));
    assert_eq!(meant(&nodes, 13_995), None);
    let with = |change: &dyn Fn(&mut Request)| {
        let mut wish = nodes.clone();
        change(&mut wish);
        meant(&wish, 1_000)
    };
    assert_eq!(with(&|each| each.duration = Some(60)), Some(60), "it is said");
    assert_eq!(with(&|each| each.start = None), None);
    assert_eq!(with(&|each| each.end = None), None);
    assert_eq!(with(&|each| each.end = Some(at(4_000))), None);
    let run = RequestedJob {
        name: "sleep".to_owned(),
        version: None,
        arguments: Vec::new(),
    };
    assert_eq!(
        with(&|each| each.run = Some(run.clone())),
        None,
        "it is predicted"
    );
    let law = Some(Moldability::ConstantWork(120.0));
    assert_eq!(with(&|each| each.scheduling.moldability.clone_from(&law)), None);
}

#[test]
fn the_duration_that_an_offer_means_stays_where_its_window_changes() {
    let silent = |start, end| {
        let window = AllocationTimeConstraint {
            start,
            end,
            duration: None,
        };
        offer(vec![tree("TIME", ServiceDescription::AllocationTime(window))])
    };
    let template = built_in();
    let later = Request {
        end: Some(at(9_000)),
        ..Request::default()
    };
    let durations = |wish: &Request, offer: &AgreementOffer| {
        said(&wish.change(offer, Some(&template)), |content| match content {
            ServiceDescription::AllocationTime(window) => Some((window.end, window.duration)),
            _ => None,
        })
    };
    let both = silent(Some(at(1_000)), Some(at(3_000)));
    assert_eq!(durations(&later, &both), [[(Some(at(9_000)), Some(2_000))]]);
    let open = silent(Some(at(1_000)), None);
    assert_eq!(durations(&later, &open), [[(Some(at(9_000)), Some(3_600))]]);
    // Nothing is said of one where the window stays.
    let wish = Request {
        nodes: Some((2, 2)),
        ..Request::default()
    };
    assert_eq!(durations(&wish, &both), [[(Some(at(3_000)), None)]]);
    let longer = Request {
        duration: Some(60),
        ..later
    };
    assert_eq!(durations(&longer, &both), [[(Some(at(9_000)), Some(60))]]);
}

#[test]
fn a_law_of_scaling_takes_the_place_of_a_duration() {
    let wish = Request {
        scheduling: Scheduling {
            moldability: Some(Moldability::ConstantWork(120.0)),
            ..Scheduling::default()
        },
        ..Request::default()
    };
    let changed = wish.change(&offer(vec![window("TIME", 1_000)]), None);
    let durations = said(&changed, |content| match content {
        ServiceDescription::AllocationTime(window) => Some(window.duration),
        _ => None,
    });
    assert_eq!(durations, [[None]]);
}

/// Micro-units of a budget that a request may not have: an amount has twelve digits at most.
const AMOUNT_MAX: i64 = 1_000_000_000_000_000_000;

/// Numbers that a request may have, the awkward ones among them.
fn number() -> impl Strategy<Value = f64> {
    let some = [0.1 + 0.2, 1.0 / 3.0, f64::MIN_POSITIVE, f64::MAX, 5e-324, 1.0];
    prop_oneof![prop::sample::select(some.to_vec()), 1.0e-9..1.0e18_f64]
}

fn moldability() -> impl Strategy<Value = Moldability> {
    prop_oneof![
        (number(), number()).prop_map(|(intercept, slope)| Moldability::Linear { intercept, slope }),
        prop::collection::vec((1..u32::MAX, 1..u32::MAX), 1..5).prop_map(Moldability::Table),
        number().prop_map(Moldability::ConstantWork),
    ]
}

fn file(texts: &[String], named: bool) -> DataStaging {
    DataStaging {
        file_name: texts[0].clone(),
        creation_flag: if named {
            CreationFlag::Append
        } else {
            CreationFlag::Overwrite
        },
        delete_on_termination: Some(named),
        source: named.then(|| "a.dat".to_owned()),
        target: (!named).then(|| "http://a/".to_owned()),
        bytes: named.then_some(u64::MAX),
    }
}

proptest! {
    #[test]
    fn a_kept_request_is_read_as_it_was(
        texts in prop::collection::vec("[^\u{0}-\u{1f}\u{7f}-\u{9f}\u{fffe}\u{ffff}]{1,9}", 4),
        runs: bool, empty: bool, named: bool,
        nodes in prop::option::of((1..9_u32, 0..3_u32)),
        cpus in prop::option::of(1..i64::MAX),
        duration in prop::option::of(1..i32::MAX),
        (start, end) in (prop::option::of(-9_999_999_999..9_999_999_999_i64), prop::option::of(0..999_999_999_u32)),
        moldability in prop::option::of(moldability()),
        (fix_at, max_deviation) in (prop::option::of(0.0..1.0_f64), prop::option::of(number())),
        price in prop::option::of(number()),
        amount in prop::option::of(0..AMOUNT_MAX),
    ) {
        let run = RequestedJob {
            name: texts[0].clone(),
            version: named.then(|| texts[1].clone()),
            arguments: if empty { Vec::new() } else { vec![texts[2].clone(), String::new()] },
        };
        let wish = Request {
            name: named.then(|| texts[3].clone()),
            run: runs.then_some(run),
            staging: runs.then(|| vec![file(&texts, named); usize::from(empty)]),
            nodes: nodes.map(|(least, more)| (least, least + more)),
            attributes: cpus
                .into_iter()
                .map(|cpus| ("cpus".to_owned(), Attribute::Number(cpus)))
                .chain(named.then(|| (ARCHITECTURE.to_owned(), Attribute::Word("x86_64".to_owned()))))
                .collect(),
            start: start.map(wsag::time::DateTime::from_seconds),
            end: end.map(|nanos| format!("2027-01-01T00:00:00.{nanos:09}Z").parse().unwrap()),
            duration,
            scheduling: Scheduling {
                moldability,
                preemption: Some(Preemption { pieces: 3, interval: 0.1, independent: empty }),
                budget: amount.map(|amount_micros| Budget { amount_micros, currency: "EUR".into() }),
                max_deviation,
                fix_at,
                preference: price.map(|price| Preference { price: Some(price), ..Preference::default() }),
                resource: named.then(|| texts[0].clone()),
                may_change: named.then_some(ShapeChanges { sizes: empty, ..ShapeChanges::NONE }),
            },
        };
        let kept = serde_json::to_string(&wish).unwrap();
        prop_assert_eq!(serde_json::from_str::<Request>(&kept).unwrap(), wish);
    }
}
