//! The offer form: its fields, and the values entered. Only a value that cannot be written into a document, such as a number that
//! is none, is refused here. The check of every offer does the rest.

use std::collections::BTreeMap;

use jiff::civil::{Date, Time};
use wsag::scheduling::{Budget, Preemption, Scheduling};
use wsag::time::DateTime;

use crate::catalogue::{Application, Catalogue};
use crate::negotiation::{Attribute, FlatRequest, Run};
use crate::portal::request::attributes::{self, NODE_NUMBERS, is_architecture};
use crate::portal::request::field;
use crate::portal::values::Values;
use crate::portal::zone::Zone;

/// A problem of a form, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::portal) struct Problem {
    pub(in crate::portal) place: Place,
    pub(in crate::portal) message: String,
}

/// A part of the form that something can be wrong with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::portal) enum Place {
    Name,
    Application,
    /// An argument of the chosen application, from 0.
    Argument(usize),
    Nodes,
    Duration,
    Budget,
    Start,
    Deadline,
    Resource,
    /// A number that each node must have, as [`NODE_NUMBERS`] has them.
    NodeNumber(usize),
    Architecture,
    Flexibility,
    Fix,
    Pieces,
    Choices,
    /// The form as a whole.
    Whole,
}

/// The value of an application in the form; an empty value stands for none. Neither name nor version has a tab in it.
pub(in crate::portal) fn application_value(application: &Application) -> String {
    format!(
        "{}\t{}",
        application.name,
        application.version.as_deref().unwrap_or_default()
    )
}

/// The name of the field of an application's argument, from 0.
pub(in crate::portal) fn argument_field(application: &Application, index: usize) -> String {
    format!("argument\t{index}\t{}", application_value(application))
}

/// The application that was chosen, if there is one of that name.
pub(in crate::portal) fn chosen_application<'a>(
    values: &Values,
    catalogue: &'a Catalogue,
) -> Option<&'a Application> {
    let value = values.get(field::APPLICATION);
    catalogue
        .applications()
        .iter()
        .find(|application| application_value(application) == value)
}

/// The most pieces and the fewest that work can be cut into, at tenths of the work.
const PIECES_BOUNDS: std::ops::RangeInclusive<u32> = 2..=10;
/// Where work may be cut.
const CUT_AT: f64 = 0.1;
/// The most offers of one answer.
pub(in crate::portal) const CHOICES_MAX: u32 = 6;

/// A form that was read.
#[derive(Debug, PartialEq)]
pub(in crate::portal) struct ReadForm {
    /// Its request, without the values that cannot be written into an offer.
    pub(in crate::portal) wish: FlatRequest,
    /// The most offers that its sender wants to see.
    pub(in crate::portal) choices: usize,
    /// All that cannot be written into an offer.
    pub(in crate::portal) problems: Vec<Problem>,
}

/// Reads the request of a form; a budget is in the provider's currency, where there is one.
pub(in crate::portal) fn read_form(
    values: &Values,
    catalogue: &Catalogue,
    currency: Option<&str>,
) -> ReadForm {
    let mut form = Reading {
        values,
        problems: Vec::new(),
    };
    let wish = FlatRequest {
        // Files that are moved are named in documents and requests in JSON.
        staging: None,
        name: form
            .text(field::NAME, Place::Name)
            .filter(|name| !name.trim().is_empty()),
        run: form.run(catalogue),
        nodes: form.nodes(),
        attributes: form.attributes(),
        start: form
            .second(field::START, Place::Start)
            .map(DateTime::from_seconds),
        end: form
            .second(field::DEADLINE, Place::Deadline)
            .map(DateTime::from_seconds),
        duration: form.duration(),
        scheduling: Scheduling {
            budget: form.budget(currency),
            preemption: form.preemption(),
            resource: form.text(field::RESOURCE, Place::Resource),
            max_deviation: form.decimal(field::FLEXIBILITY, Place::Flexibility, f64::MAX),
            fix_at: form.decimal(field::FIX, Place::Fix, 1.0),
            ..Scheduling::default()
        },
    };
    let choices = form.number_within(field::CHOICES, Place::Choices, 1..=CHOICES_MAX);
    ReadForm {
        wish,
        choices: choices.unwrap_or(CHOICES_MAX) as usize,
        problems: form.problems,
    }
}

struct Reading<'a> {
    values: &'a Values,
    problems: Vec<Problem>,
}

impl Reading<'_> {
    fn problem(&mut self, place: Place, message: impl Into<String>) {
        self.problems.push(Problem {
            place,
            message: message.into(),
        });
    }

    /// A text that a document can hold; None where it was left empty.
    fn text(&mut self, field: &str, place: Place) -> Option<String> {
        let text = self.values.get(field);
        if text
            .chars()
            .any(|one| one.is_control() || matches!(one, '\u{fffe}' | '\u{ffff}'))
        {
            self.problem(
                place,
                "It has a character that cannot be shown. Type it again by hand.",
            );
        }
        Some(text.to_owned()).filter(|text| !text.is_empty())
    }

    fn run(&mut self, catalogue: &Catalogue) -> Option<Run> {
        if !self.values.has(field::APPLICATION) {
            self.problem(
                Place::Application,
                "Choose an application, or choose to reserve nodes only.",
            );
            return None;
        }
        if self.values.get(field::APPLICATION).is_empty() {
            return None;
        }
        let Some(application) = chosen_application(self.values, catalogue) else {
            self.problem(
                Place::Application,
                "There is no such application any more. Choose another one.",
            );
            return None;
        };
        let arguments = (0..application.arguments.len())
            .map(|index| {
                self.text(&argument_field(application, index), Place::Argument(index))
                    .unwrap_or_default()
            })
            .collect();
        Some(Run {
            name: application.name.clone(),
            version: application.version.clone(),
            arguments,
        })
    }

    /// A whole number; None where it was left empty or is none.
    fn number(&mut self, field: &str, place: Place, expected: &str) -> Option<u32> {
        let text = self.values.trimmed(field);
        if text.is_empty() {
            return None;
        }
        let number = text.parse().ok();
        if number.is_none() {
            self.problem(place, format!("Enter {expected}."));
        }
        number
    }

    /// A whole number between two; None where it was left empty.
    fn number_within(
        &mut self,
        field: &str,
        place: Place,
        bounds: std::ops::RangeInclusive<u32>,
    ) -> Option<u32> {
        let expected = format!(
            "a whole number from {} to {}, or leave it empty",
            bounds.start(),
            bounds.end()
        );
        let number = self.number(field, place, &expected)?;
        if !bounds.contains(&number) {
            self.problem(place, format!("Enter {expected}."));
        }
        Some(number)
    }

    /// A number from 0 on; None where it was left empty or is none.
    fn decimal(&mut self, field: &str, place: Place, most: f64) -> Option<f64> {
        let text = self.values.trimmed(field);
        if text.is_empty() {
            return None;
        }
        let number = text.parse().ok().filter(|number| (0.0..=most).contains(number));
        if number.is_none() {
            self.problem(place, "Choose one of the values of the list.");
        }
        number
    }

    /// The least and the greatest number of nodes; the greatest may be left empty.
    fn nodes(&mut self) -> Option<(u32, u32)> {
        let expected = "a whole number of nodes, such as 1";
        let least = self.number(field::NODES, Place::Nodes, expected);
        let most = self.number(field::NODES_MAX, Place::Nodes, expected);
        match (least, most) {
            (Some(least), Some(most)) if most < least => {
                self.problem(
                    Place::Nodes,
                    "The least number of nodes is more than the greatest.",
                );
                None
            }
            (Some(least), most) => Some((least, most.unwrap_or(least))),
            (None, Some(_)) if self.values.trimmed(field::NODES).is_empty() => {
                self.problem(Place::Nodes, "Enter the least number of nodes, too.");
                None
            }
            (None, _) => None,
        }
    }

    /// What each node must have.
    fn attributes(&mut self) -> BTreeMap<String, Attribute> {
        let mut attributes = BTreeMap::new();
        for (index, of) in NODE_NUMBERS.iter().enumerate() {
            let text = self.values.trimmed(of.field);
            match of.read(text) {
                Some(least) => {
                    attributes.insert(of.attribute.to_owned(), Attribute::Number(least));
                }
                None if text.is_empty() => {}
                None => {
                    let message = "Enter a number above 0, such as 8, or leave it empty.";
                    self.problem(Place::NodeNumber(index), message);
                }
            }
        }
        let architecture = self.text(field::ARCHITECTURE, Place::Architecture);
        match architecture {
            Some(name) if is_architecture(&name) => {
                attributes.insert(attributes::ARCHITECTURE.to_owned(), Attribute::Word(name));
            }
            Some(_) => self.problem(Place::Architecture, "Choose one of the values of the list."),
            None => {}
        }
        attributes
    }

    /// How the work may be cut.
    fn preemption(&mut self) -> Option<Preemption> {
        let pieces = self.number_within(field::PIECES, Place::Pieces, PIECES_BOUNDS)?;
        Some(Preemption {
            pieces,
            interval: CUT_AT,
            independent: false,
        })
    }

    /// Hours, minutes and seconds together; each may be left empty.
    fn duration(&mut self) -> Option<i32> {
        if self.values.has(field::PREDICT) {
            if self.values.get(field::APPLICATION).is_empty() {
                self.problem(
                    Place::Duration,
                    "Only the duration of an application is predicted. Choose one, or enter a duration.",
                );
            }
            return None;
        }
        let mut total = None;
        for (field, unit, seconds) in [
            (field::HOURS, "hours", 3_600),
            (field::MINUTES, "minutes", 60),
            (field::SECONDS, "seconds", 1),
        ] {
            let expected = format!("the {unit} as a whole number, such as 1, or leave them empty");
            if let Some(amount) = self.number(field, Place::Duration, &expected) {
                total = Some(total.unwrap_or(0) + i64::from(amount) * seconds);
            }
        }
        let duration = total.map(i32::try_from)?;
        if duration.is_err() {
            self.problem(Place::Duration, "Enter a shorter duration.");
        }
        duration.ok()
    }

    /// An amount of money, of the provider's currency.
    fn budget(&mut self, currency: Option<&str>) -> Option<Budget> {
        let text = self.values.trimmed(field::BUDGET);
        if text.is_empty() {
            return None;
        }
        let amount = wsag::scheduling::parse_amount(text)
            .ok()
            .filter(|amount| *amount >= 0);
        if amount.is_none() {
            self.problem(
                Place::Budget,
                "Enter an amount of money, such as 12.50, or leave it empty.",
            );
        }
        Some(Budget {
            amount_micros: amount?,
            currency: currency?.to_owned(),
        })
    }

    /// The second of a date and a time in the form's zone, both or neither.
    fn second(&mut self, (date_field, time_field): (&str, &str), place: Place) -> Option<i64> {
        let (date, time) = (self.values.trimmed(date_field), self.values.trimmed(time_field));
        match (date.is_empty(), time.is_empty()) {
            (true, true) => return None,
            (false, true) => self.problem(place, "Enter the time too, or leave both empty."),
            (true, false) => self.problem(place, "Enter the date too, or leave both empty."),
            (false, false) => {
                let day = Date::strptime("%Y-%m-%d", date).ok();
                if day.is_none() {
                    self.problem(place, "Enter the date as year-month-day, such as 2026-11-21.");
                }
                let clock = Time::strptime("%H:%M:%S", time)
                    .or_else(|_| Time::strptime("%H:%M", time))
                    .ok();
                if clock.is_none() {
                    self.problem(place, "Enter the time as hours:minutes, such as 16:30.");
                }
                return zone_of_form(self.values).second_of(day?.to_datetime(clock?));
            }
        }
        None
    }
}

/// The second of the plan in a date and a time field of any form; none where both are empty.
///
/// # Errors
/// Their mistakes.
pub(in crate::portal) fn read_time(values: &Values, fields: (&str, &str)) -> Result<Option<i64>, String> {
    let mut form = Reading {
        values,
        problems: Vec::new(),
    };
    let at = form.second(fields, Place::Whole);
    match form.problems.pop() {
        Some(problem) => Err(problem.message),
        None => Ok(at),
    }
}

/// The time zone that the times of a form are in.
pub(in crate::portal) fn zone_of_form(values: &Values) -> Zone {
    Zone::named(values.get(field::ZONE)).unwrap_or(Zone::UTC)
}

/// The same form with its times in another zone. Texts that are no time stay as they are.
pub(in crate::portal) fn form_in_zone(mut values: Values, zone: &Zone) -> Values {
    if zone_of_form(&values) != *zone {
        for (date_field, time_field) in [field::START, field::DEADLINE] {
            if let Ok(Some(at)) = read_time(&values, (date_field, time_field)) {
                let (date, time) = date_and_time(at, zone);
                values = values.with(date_field, date).with(time_field, time);
            }
        }
    }
    values.with(field::ZONE, zone.name())
}

/// The values of a date and a time field in a zone for a second of the plan.
pub(in crate::portal) fn date_and_time(at: i64, zone: &Zone) -> (String, String) {
    let Some(at) = zone.at(at) else {
        return Default::default();
    };
    (at.date().to_string(), at.time().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{ArgumentKind, ArgumentSpec};

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
            limits: crate::catalogue::JobLimits::default(),
            checkpoint: None,
            isolation: None,
        };
        Catalogue::new(vec![application(Some("1.0")), application(None)]).unwrap()
    }

    fn of(pairs: &[(&str, &str)]) -> Values {
        pairs.iter().fold(Values::default(), |values, (name, value)| {
            values.with(name, *value)
        })
    }

    fn problems(pairs: &[(&str, &str)]) -> Vec<Place> {
        let found = read_form(&of(pairs).with(field::APPLICATION, ""), &catalogue(), None);
        found.problems.into_iter().map(|problem| problem.place).collect()
    }

    #[test]
    fn a_form_left_empty_asks_for_what_the_template_has() {
        assert_eq!(
            read_form(&of(&[(field::APPLICATION, "")]), &catalogue(), None),
            ReadForm {
                wish: FlatRequest::default(),
                choices: 6,
                problems: Vec::new(),
            }
        );
    }

    #[test]
    fn a_filled_form_is_read_whole() {
        let values = of(&[
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
        let run = Run {
            name: "fit".to_owned(),
            version: Some("1.0".to_owned()),
            arguments: vec!["12".to_owned(), " spaces stay ".to_owned()],
        };
        let budget = Budget {
            amount_micros: 12_500_000,
            currency: "EUR".to_owned(),
        };
        let wish = FlatRequest {
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

    #[test]
    fn what_no_offer_can_say_is_named_by_its_place() {
        for (pairs, places) in [
            (&[("nodes", "two")][..], &[Place::Nodes][..]),
            (&[("nodes", "-1")], &[Place::Nodes]),
            (&[("budget", "-1")], &[Place::Budget]),
            (&[("budget", "much")], &[Place::Budget]),
            (&[("nodes", "4294967296")], &[Place::Nodes]),
            (&[("nodes", "3"), ("nodes-max", "2")], &[Place::Nodes]),
            (&[("nodes-max", "2")], &[Place::Nodes]),
            (&[("predict", "1")], &[Place::Duration]),
            (&[("flexibility", "-1")], &[Place::Flexibility]),
            (&[("fix", "2")], &[Place::Fix]),
            (&[("fix", "NaN")], &[Place::Fix]),
            (&[("pieces", "1")], &[Place::Pieces]),
            (
                &[("cpus", "1.5"), ("disk-gb", "0"), ("architecture", "vax")],
                &[Place::NodeNumber(0), Place::NodeNumber(2), Place::Architecture],
            ),
            (
                &[("choices", "7"), ("pieces", "many")],
                &[Place::Pieces, Place::Choices],
            ),
            (
                &[("hours", "x"), ("seconds", "y")],
                &[Place::Duration, Place::Duration],
            ),
            (&[("hours", "1000000")], &[Place::Duration]),
            (&[("start-date", "2026-11-21")], &[Place::Start]),
            (&[("start-time", "10:00")], &[Place::Start]),
            (
                &[("start-date", "21.11.2026"), ("start-time", "10")],
                &[Place::Start, Place::Start],
            ),
            (
                &[("deadline-date", "2026-02-30"), ("deadline-time", "10:00")],
                &[Place::Deadline],
            ),
            (
                &[("deadline-date", "2026-02-20"), ("deadline-time", "24:00")],
                &[Place::Deadline],
            ),
            (&[("name", "a\0b")], &[Place::Name]),
        ] {
            assert_eq!(problems(pairs), places, "{pairs:?}");
        }
        let gone = read_form(&of(&[("application", "gone\t")]), &catalogue(), None).problems;
        assert_eq!(gone[0].place, Place::Application);
        let nothing = read_form(&Values::default(), &catalogue(), None).problems;
        assert_eq!(nothing[0].place, Place::Application);
    }
}
