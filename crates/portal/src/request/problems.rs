//! The problems of the offer that a form makes, in the form's terms.

use domain::catalogue::{Application, Catalogue};
use domain::resources::NUMBERS;
use wsag::{Violation, Violations};

use crate::request::attributes::ARCHITECTURE;
use crate::request::field_names;
use crate::request::form_reader::{FormPart, Problem};
use crate::text::capitalised;

/// The problems of an offer, at the fields of the form, beside those that were found as the form was read.
pub(crate) fn problems_of_offer(violations: &Violations, read: Vec<Problem>) -> Vec<Problem> {
    let mut problems = read;
    // A field that cannot be read is left out of the offer: what the offer lacks then is not said again.
    let unread: Vec<FormPart> = problems.iter().map(|problem| problem.place).collect();
    for violation in &violations.0 {
        let place = place_of_problem_in_form(violation);
        let problem = Problem {
            place,
            message: problem_as_sentence(&problem_beside_its_field(place, &violation.message)),
        };
        if !unread.contains(&place) && !problems.contains(&problem) {
            problems.push(problem);
        }
    }
    // A demand of the template on the whole follows from a field that is wrong. If it does not, the next check finds it again.
    if problems.iter().any(|problem| problem.place != FormPart::Whole) {
        problems.retain(|problem| problem.place != FormPart::Whole);
    }
    problems
}

/// The place of the form that a member of the request was made from.
fn place_of_problem_in_form(violation: &Violation) -> FormPart {
    let mut steps = violation.path.split('/').skip(1);
    match steps.next().unwrap_or_default() {
        "name" => FormPart::Name,
        "application" | "version" => FormPart::Application,
        "arguments" => match steps.next().and_then(|index| index.parse().ok()) {
            Some(index) => FormPart::Argument(index),
            None => FormPart::Application,
        },
        "nodes" => FormPart::Nodes,
        "durationSeconds" => FormPart::Duration,
        "window" => match steps.next() {
            Some("start") => FormPart::Start,
            // One that is missing is reported where it should stand.
            None if violation.message.contains("window/start")
                && !violation.message.contains("window/end") =>
            {
                FormPart::Start
            }
            _ => FormPart::Deadline,
        },
        "budget" => FormPart::Budget,
        "maxDeviation" => FormPart::Flexibility,
        "fixAt" => FormPart::Fix,
        "resource" => FormPart::Resource,
        "attributes" => match steps.next() {
            Some(ARCHITECTURE) => FormPart::Architecture,
            name => name.map_or(FormPart::Whole, FormPart::of_number),
        },
        "preemption" => FormPart::Pieces,
        _ => FormPart::Whole,
    }
}

/// Members of a request, and the names of their fields in the form, where these are others.
const FIELDS: [(&str, &str); 11] = [
    ("window/start", "the earliest start"),
    ("window/end", "the deadline"),
    ("durationSeconds", "the duration"),
    ("maxDeviation", "the distance of offers"),
    ("fixAt", "how long it may move"),
    ("preemption/pieces", "the number of slots"),
    ("preemption", "the number of slots"),
    ("attributes/cpu_architecture", "the architecture"),
    ("attributes/", ""),
    ("budget/amount", "the budget"),
    ("budget/currency", "the currency of the budget"),
];

/// A message in the words of the form, without the argument or the item of the template that its field names already.
fn problem_beside_its_field(place: FormPart, message: &str) -> String {
    if let (FormPart::Argument(_), Some((_, expected))) = (place, message.split_once(": expected ")) {
        // The argument's name stands first.
        let kind = expected.split_once(", ").map_or(expected, |(_, kind)| kind);
        return format!("enter {kind}");
    }
    let message = match message.split_once(" of the template: ") {
        Some((item, message)) if item.starts_with("item ") => message,
        _ => message
            .split_once(" (item ")
            .map_or(message, |(message, _)| message),
    };
    let named = NUMBERS.iter().fold(message.to_owned(), |message, number| {
        message.replace(&format!("attributes/{}", number.name), number.label)
    });
    FIELDS
        .iter()
        .fold(named, |message, (member, words)| message.replace(member, words))
}

/// A message with a capital at its beginning and a full stop at its end.
fn problem_as_sentence(message: &str) -> String {
    let is_ended = message.ends_with(['.', '!', '?']);
    format!("{}{}", capitalised(message), if is_ended { "" } else { "." })
}

/// A line of the summary of problems.
pub(crate) struct ProblemLine {
    /// The id of the field; none where it is the form as a whole.
    pub(crate) field: Option<String>,
    pub(crate) message: String,
}

/// Digits and letters of an id for the field of an argument: `argument-0-1`.
pub(super) fn argument_field_id(application: usize, argument: usize) -> String {
    format!("argument-{application}-{argument}")
}

/// Every problem with the field that it is about, in the order of the form.
pub(super) fn summary_of_problems(
    problems: &[Problem],
    chosen: Option<&Application>,
    catalogue: &Catalogue,
) -> Vec<ProblemLine> {
    let chosen = chosen.and_then(|chosen| {
        catalogue
            .applications()
            .iter()
            .position(|application| std::ptr::eq(application, chosen))
    });
    let first = if catalogue.applications().is_empty() {
        "application-none"
    } else {
        "application-0"
    };
    let mut lines: Vec<_> = problems
        .iter()
        .map(|problem| {
            let ranked = |rank, field: &str, label: &str| (rank, Some(field.to_owned()), label.to_owned());
            let (rank, field, label) = match problem.place {
                FormPart::Whole => (0, None, String::new()),
                FormPart::Application => ranked(1, first, ""),
                FormPart::Argument(at) => {
                    let spec = chosen.and_then(|chosen| catalogue.applications()[chosen].arguments.get(at));
                    let label =
                        spec.map_or_else(String::new, |spec| format!("{}: ", capitalised(&spec.name)));
                    (2 + at, chosen.map(|chosen| argument_field_id(chosen, at)), label)
                }
                FormPart::Nodes => ranked(1_000, field_names::NODES, "Nodes: "),
                FormPart::Duration => ranked(1_001, field_names::HOURS, "Duration: "),
                FormPart::Budget => ranked(1_002, field_names::BUDGET, "Budget: "),
                FormPart::Start => ranked(1_003, field_names::START.0, "Earliest start: "),
                FormPart::Deadline => ranked(1_004, field_names::DEADLINE.0, "Deadline: "),
                FormPart::Name => ranked(1_005, field_names::NAME, "Name: "),
                FormPart::Resource => ranked(1_006, field_names::RESOURCE, "Resource: "),
                FormPart::NodeNumber(index) => {
                    let number = &NUMBERS[index];
                    ranked(1_005, number.field, &format!("{}: ", number.label))
                }
                FormPart::Architecture => ranked(1_005, field_names::ARCHITECTURE, "Architecture: "),
                FormPart::Fix => ranked(1_006, field_names::FIX, "Moving: "),
                FormPart::Flexibility => ranked(1_007, field_names::FLEXIBILITY, "How far: "),
                FormPart::Pieces => ranked(1_008, field_names::PIECES, "Slots: "),
                FormPart::Choices => ranked(1_009, field_names::CHOICES, "Offers: "),
            };
            (
                rank,
                ProblemLine {
                    field,
                    message: format!("{label}{}", problem.message),
                },
            )
        })
        .collect();
    lines.sort_by_key(|(rank, _)| *rank);
    lines.into_iter().map(|(_, line)| line).collect()
}

/// A problem of a form as a whole.
pub(crate) fn whole_form_problem(message: &str) -> Problem {
    Problem {
        place: FormPart::Whole,
        message: message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use domain::catalogue::{Application as Program, ArgumentKind, ArgumentSpec, Catalogue};

    use super::*;
    use crate::request::form_reader::{self};
    use crate::values::Values;
    use proptest::prelude::*;
    use service::{Request, RequestedJob};
    use wsag::budget::Budget;
    use wsag::job_definition::RangeValue;
    use wsag::scheduling::Scheduling;
    use wsag::templates::Template;
    use wsag::terms::{ServiceDescription, Terms};
    use wsag::time::DateTime;
    use wsag::{Document, Message, ViolationKind};

    fn application() -> Program {
        Program {
            name: "fit".to_owned(),
            version: None,
            description: String::new(),
            program: "/usr/bin/fit".into(),
            arguments: vec![ArgumentSpec {
                name: "method".to_owned(),
                kind: ArgumentKind::File,
            }],
            limits: domain::catalogue::JobLimits::default(),
            checkpoint: None,
            isolation: None,
        }
    }

    fn built_in() -> Template {
        let document = Document::parse(wsag::templates::ADVANCE_RESERVATION.as_bytes()).unwrap();
        match wsag::read(&document).unwrap() {
            Message::Template(template) => *template,
            other => panic!("{other:?}"),
        }
    }

    fn wish() -> Request {
        Request {
            name: Some("<first> & \"last\"".to_owned()),
            run: Some(RequestedJob {
                name: "sleep".to_owned(),
                version: None,
                arguments: vec!["2".to_owned(), "</wsag:Terms>".to_owned()],
            }),
            staging: None,
            nodes: Some((3, 3)),
            attributes: BTreeMap::new(),
            start: Some(DateTime::from_seconds(1_795_278_600)),
            end: Some(DateTime::from_seconds(1_795_305_600)),
            duration: Some(30),
            scheduling: Scheduling::default(),
        }
    }

    #[test]
    fn an_offer_has_the_terms_of_the_template_with_the_wish_in_them() {
        let (template, wish) = (built_in(), wish());
        let offer = wish.offer(&template);
        let names = |terms: &Terms| {
            terms
                .flatten()
                .iter()
                .map(|term| term.name().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&offer.terms), names(&template.terms));
        assert_eq!(
            offer.terms.guarantees().collect::<Vec<_>>(),
            template.terms.guarantees().collect::<Vec<_>>()
        );
        for term in offer.terms.descriptions() {
            match &term.content {
                ServiceDescription::JobDefinition(job) => {
                    let application = job.application.as_ref().unwrap();
                    assert_eq!(application.name, "sleep");
                    assert_eq!(
                        application.posix.as_ref().unwrap().arguments,
                        ["2", "</wsag:Terms>"]
                    );
                    assert_eq!(job.resources.nodes, Some(RangeValue::exactly(3.0)));
                }
                ServiceDescription::AllocationTime(window) => {
                    assert_eq!(window.start.unwrap().floor(), 1_795_278_600);
                    assert_eq!(window.end.unwrap().floor(), 1_795_305_600);
                    assert_eq!(window.duration, Some(30));
                }
                ServiceDescription::Scheduling(_) | ServiceDescription::Other(_) => {
                    panic!("the template has none")
                }
            }
        }
    }

    #[test]
    fn an_offer_is_read_back_from_its_document_as_it_was_made() {
        let budget = Some(Budget {
            amount_micros: 12_500_000,
            currency: "EUR".to_owned(),
        });
        let scheduling = Scheduling {
            budget,
            ..Scheduling::default()
        };
        let offer = Request { scheduling, ..wish() }.offer(&built_in());
        let text = offer.to_xml();
        let document = Document::parse(text.as_bytes()).unwrap();
        assert_eq!(
            wsag::read(&document).unwrap(),
            Message::AgreementOffer(Box::new(offer))
        );
    }

    #[test]
    fn what_a_form_leaves_empty_is_the_templates() {
        let template = built_in();
        assert_eq!(Request::default().offer(&template).terms, template.terms);
    }

    #[test]
    fn a_violation_stands_beside_the_field_that_it_belongs_to() {
        for (path, message, expected) in [
            ("/application", "", FormPart::Application),
            ("/arguments", "", FormPart::Application),
            ("/arguments/2", "", FormPart::Argument(2)),
            ("/nodes", "", FormPart::Nodes),
            ("/window/start", "", FormPart::Start),
            ("/window/end", "", FormPart::Deadline),
            ("/window", "window/end is expected", FormPart::Deadline),
            ("/window", "window/start is expected", FormPart::Start),
            ("/durationSeconds", "", FormPart::Duration),
            ("/preemption", "", FormPart::Pieces),
            (
                "/attributes/memory_bytes",
                "",
                FormPart::of_number("memory_bytes"),
            ),
            ("/attributes/cpu_architecture", "", FormPart::Architecture),
            ("/name", "", FormPart::Name),
            ("", "", FormPart::Whole),
        ] {
            let violation = violation(path, message);
            assert_eq!(place_of_problem_in_form(&violation), expected, "{path} {message}");
        }
    }

    fn violation(path: &str, message: &str) -> Violation {
        Violation {
            path: path.to_owned(),
            kind: ViolationKind::Value,
            message: message.to_owned(),
        }
    }

    #[test]
    fn what_a_field_that_cannot_be_read_leaves_out_is_not_said_to_be_missing() {
        let read = vec![Problem {
            place: FormPart::Nodes,
            message: "Enter a number.".to_owned(),
        }];
        let found = Violations(vec![
            violation("/nodes", "a number of nodes is expected"),
            violation("/budget", "EUR is expected"),
            violation("", "ready lt deadline"),
        ]);
        let places = problems_of_offer(&found, read)
            .into_iter()
            .map(|problem| problem.place);
        assert_eq!(places.collect::<Vec<_>>(), [FormPart::Nodes, FormPart::Budget]);
    }

    #[test]
    fn a_message_does_not_repeat_what_its_field_says() {
        for (place, message, shown) in [
            (
                FormPart::Argument(0),
                "argument 1 of sleep: expected seconds, a whole number",
                "enter a whole number",
            ),
            (
                FormPart::Nodes,
                "at most 4 is expected, not 9 (item \"nodes\" of the template)",
                "at most 4 is expected, not 9",
            ),
            (
                FormPart::Deadline,
                "item \"window\" of the template: window/end is expected",
                "the deadline is expected",
            ),
            (
                FormPart::Deadline,
                "window/end is before window/start",
                "the deadline is before the earliest start",
            ),
            (
                FormPart::of_number("virtual_memory_bytes"),
                "at least one attributes/virtual_memory_bytes is expected",
                "at least one Virtual memory (GB) is expected",
            ),
        ] {
            assert_eq!(problem_beside_its_field(place, message), shown);
        }
    }

    #[test]
    fn messages_are_sentences() {
        assert_eq!(
            problem_as_sentence("a number is expected"),
            "A number is expected."
        );
        assert_eq!(problem_as_sentence("Done."), "Done.");
        assert_eq!(problem_as_sentence(""), ".");
    }

    proptest! {
        /// Each form is either refused, or it makes a document that says the same.
        #[test]
        fn a_form_is_refused_or_becomes_a_document_that_says_the_same(
            name in ".{0,12}|<[a-z]*>|&#?[a-z0-9]*;",
            argument in ".{0,12}|\\PC{0,12}| {0,3}-[a-z]* {0,3}|]]>",
            nodes in "[0-9]{0,11}|.{0,3}",
            seconds in "[0-9]{0,11}",
            date in "[0-9]{4}-[01][0-9]-[0-3][0-9]|.{0,11}",
            time in "[0-2][0-9]:[0-5][0-9](:[0-6][0-9])?|.{0,9}",
        ) {
            let catalogue = Catalogue::new(vec![application()]).unwrap();
            let values = Values::default()
                .with(field_names::APPLICATION, form_reader::form_value_of_application(&application()))
                .with(&form_reader::argument_field(&application(), 0), argument.as_str())
                .with(field_names::NAME, name.as_str())
                .with(field_names::NODES, nodes)
                .with(field_names::SECONDS, seconds)
                .with(field_names::START.0, date.as_str())
                .with(field_names::START.1, time);
            let read = form_reader::read_form(&values, &catalogue, Some("EUR"));
            if read.problems.is_empty() {
                let offer = read.wish.offer(&built_in());
                let text = offer.to_xml();
                let document = Document::parse(text.as_bytes()).unwrap();
                prop_assert_eq!(wsag::read(&document).unwrap(), Message::AgreementOffer(Box::new(offer)));
            }
        }

        #[test]
        fn no_bytes_are_too_strange_for_a_form(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let catalogue = Catalogue::new(vec![application()]).unwrap();
            let mut sent = b"application=fit%09&argument%090%09fit%09=".to_vec();
            sent.extend(bytes);
            let read = form_reader::read_form(&Values::read(&sent), &catalogue, None);
            prop_assert!((1..=6).contains(&read.choices) || !read.problems.is_empty());
        }
    }
}
