use wsag::scheduling::Moldability;
use wsag::templates::ADVANCE_RESERVATION;

use super::*;
use crate::negotiation::templates;

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

fn deviation() -> FlatRequest {
    FlatRequest {
        scheduling: Scheduling {
            max_deviation: Some(0.2),
            ..Scheduling::default()
        },
        ..FlatRequest::default()
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
    let wish = FlatRequest {
        nodes: Some((4, 4)),
        end: Some(at(9_000)),
        ..FlatRequest::default()
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
    let built_in = templates::read_template(ADVANCE_RESERVATION.as_bytes()).expect("a template");
    let template = Template {
        terms: offer(vec![job("WHAT", "sleep"), window("WHEN", 1)]).terms,
        ..built_in
    };
    let wish = FlatRequest {
        start: Some(at(5)),
        ..FlatRequest::default()
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
    let template = templates::read_template(ADVANCE_RESERVATION.as_bytes());
    let template = template.expect("a template");
    let nodes = FlatRequest {
        start: Some(at(5_000)),
        end: Some(at(14_000)),
        ..FlatRequest::default()
    };
    let meant = |wish: &FlatRequest, now| wish.saying_duration(&template, Time(now)).duration;
    assert_eq!(meant(&nodes, 1_000), Some(9_000));
    // What is left of a time that has begun.
    assert_eq!(meant(&nodes, 5_000), Some(8_990));
    assert_eq!(meant(&nodes, 13_995), None);
    let with = |change: &dyn Fn(&mut FlatRequest)| {
        let mut wish = nodes.clone();
        change(&mut wish);
        meant(&wish, 1_000)
    };
    assert_eq!(with(&|each| each.duration = Some(60)), Some(60), "it is said");
    assert_eq!(with(&|each| each.start = None), None);
    assert_eq!(with(&|each| each.end = None), None);
    assert_eq!(with(&|each| each.end = Some(at(4_000))), None);
    let run = CatalogueJob {
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
    let template = templates::read_template(ADVANCE_RESERVATION.as_bytes());
    let template = template.expect("a template");
    let later = FlatRequest {
        end: Some(at(9_000)),
        ..FlatRequest::default()
    };
    let durations = |wish: &FlatRequest, offer: &AgreementOffer| {
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
    let wish = FlatRequest {
        nodes: Some((2, 2)),
        ..FlatRequest::default()
    };
    assert_eq!(durations(&wish, &both), [[(Some(at(3_000)), None)]]);
    let longer = FlatRequest {
        duration: Some(60),
        ..later
    };
    assert_eq!(durations(&longer, &both), [[(Some(at(9_000)), Some(60))]]);
}

#[test]
fn a_law_of_scaling_takes_the_place_of_a_duration() {
    let wish = FlatRequest {
        scheduling: Scheduling {
            moldability: Some(Moldability::ConstantWork(120.0)),
            ..Scheduling::default()
        },
        ..FlatRequest::default()
    };
    let changed = wish.change(&offer(vec![window("TIME", 1_000)]), None);
    let durations = said(&changed, |content| match content {
        ServiceDescription::AllocationTime(window) => Some(window.duration),
        _ => None,
    });
    assert_eq!(durations, [[None]]);
}
