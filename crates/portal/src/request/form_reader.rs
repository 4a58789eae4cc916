//! From the values entered in the offer form to a request. Only a value that cannot be written into a document, such as a number
//! that is none, is refused here. The check of every offer does the rest.

use std::collections::BTreeMap;

use domain::catalogue::{Application, Catalogue};
use domain::resources::NUMBERS;
use jiff::civil::{Date, Time};
use wsag::budget::Budget;
use wsag::scheduling::{Preemption, Scheduling};
use wsag::time::DateTime;

use crate::request::attributes::{self, is_architecture, read_attribute_amount};
use crate::request::field_names;
use crate::text;
use crate::values::Values;
use crate::zone::{Zone, date_and_time_in_zone};
use service::{Attribute, Request, RequestedJob};

/// A problem of a form, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) place: FormPart,
    pub(crate) message: String,
}

/// A part of the form that something can be wrong with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FormPart {
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
    /// A number that each node must have, as [`NUMBERS`] has them.
    NodeNumber(usize),
    Architecture,
    Flexibility,
    Fix,
    Pieces,
    Choices,
    /// The form as a whole.
    Whole,
}

impl FormPart {
    /// The field of a number of nodes, by the name of the attribute; the whole form where it has no field for it.
    pub(crate) fn of_number(attribute: &str) -> Self {
        let mut names = NUMBERS.iter().map(|number| number.name);
        let index = names.position(|name| name == attribute);
        index.map_or(Self::Whole, Self::NodeNumber)
    }
}

/// The value of an application in the form; an empty value stands for none. Neither name nor version has a tab in it.
pub(crate) fn form_value_of_application(application: &Application) -> String {
    format!(
        "{}\t{}",
        application.name,
        application.version.as_deref().unwrap_or_default()
    )
}

/// The name of the field of an application's argument, from 0.
pub(crate) fn argument_field(application: &Application, index: usize) -> String {
    format!("argument\t{index}\t{}", form_value_of_application(application))
}

/// The application that was chosen, if there is one of that name.
pub(crate) fn read_form_application<'a>(
    values: &Values,
    catalogue: &'a Catalogue,
) -> Option<&'a Application> {
    let value = values.get(field_names::APPLICATION);
    catalogue
        .applications()
        .iter()
        .find(|application| form_value_of_application(application) == value)
}

/// The fewest pieces and the most that work can be cut into, at tenths of the work.
const PIECES_BOUNDS: std::ops::RangeInclusive<u32> = 2..=PIECES_MAX;
pub(crate) const PIECES_MAX: u32 = 10;
/// Where work may be cut.
const CUT_AT: f64 = 0.1;
/// The most offers of one answer.
pub(crate) const CHOICES_MAX: u32 = 6;

/// A form that was read.
#[derive(Debug, PartialEq)]
pub(crate) struct ReadForm {
    /// Its request, without the values that cannot be written into an offer.
    pub(crate) wish: Request,
    /// The most offers that its sender wants to see.
    pub(crate) choices: usize,
    /// All that cannot be written into an offer.
    pub(crate) problems: Vec<Problem>,
}

/// Reads the request of a form; a budget is in the provider's currency, where there is one.
pub(crate) fn read_form(values: &Values, catalogue: &Catalogue, currency: Option<&str>) -> ReadForm {
    let mut form = FormReader {
        values,
        problems: Vec::new(),
    };
    let start = form.second(field_names::START, FormPart::Start);
    let duration = form.duration();
    let end = form.deadline(start, duration);
    let wish = Request {
        // Files that are moved are named in documents and requests in JSON.
        staging: None,
        name: form
            .text(field_names::NAME, FormPart::Name)
            .filter(|name| !name.trim().is_empty()),
        run: form.run(catalogue),
        nodes: form.nodes(),
        attributes: form.attributes(),
        start: start.map(DateTime::from_seconds),
        end: end.map(DateTime::from_seconds),
        duration,
        scheduling: Scheduling {
            budget: form.budget(currency),
            preemption: form.preemption(),
            resource: form.text(field_names::RESOURCE, FormPart::Resource),
            max_deviation: form.decimal(field_names::FLEXIBILITY, FormPart::Flexibility, f64::MAX),
            fix_at: form.decimal(field_names::FIX, FormPart::Fix, 1.0),
            ..Scheduling::default()
        },
    };
    let choices = form.number_within(field_names::CHOICES, FormPart::Choices, 1..=CHOICES_MAX);
    ReadForm {
        wish,
        choices: choices.unwrap_or(CHOICES_MAX) as usize,
        problems: form.problems,
    }
}

struct FormReader<'a> {
    values: &'a Values,
    problems: Vec<Problem>,
}

impl FormReader<'_> {
    fn problem(&mut self, place: FormPart, message: impl Into<String>) {
        self.problems.push(Problem {
            place,
            message: message.into(),
        });
    }

    /// A text that a document can hold; None where it was left empty.
    fn text(&mut self, field: &str, place: FormPart) -> Option<String> {
        let text = self.values.get(field);
        if text
            .chars()
            .any(|character| character.is_control() || matches!(character, '\u{fffe}' | '\u{ffff}'))
        {
            self.problem(
                place,
                "It has a character that cannot be shown. Type it again by hand.",
            );
        }
        Some(text.to_owned()).filter(|text| !text.is_empty())
    }

    fn run(&mut self, catalogue: &Catalogue) -> Option<RequestedJob> {
        if !self.values.has(field_names::APPLICATION) {
            self.problem(
                FormPart::Application,
                "Choose an application, or choose to reserve nodes only.",
            );
            return None;
        }
        if self.values.get(field_names::APPLICATION).is_empty() {
            return None;
        }
        let Some(application) = read_form_application(self.values, catalogue) else {
            self.problem(
                FormPart::Application,
                "There is no such application any more. Choose another one.",
            );
            return None;
        };
        let arguments = (0..application.arguments.len())
            .map(|index| {
                self.text(&argument_field(application, index), FormPart::Argument(index))
                    .unwrap_or_default()
            })
            .collect();
        Some(RequestedJob {
            name: application.name.clone(),
            version: application.version.clone(),
            arguments,
        })
    }

    /// A whole number; None where it was left empty or is none.
    fn number(&mut self, field: &str, place: FormPart, expected: &str) -> Option<u32> {
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
        place: FormPart,
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
    fn decimal(&mut self, field: &str, place: FormPart, most: f64) -> Option<f64> {
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
        let least = self.number(field_names::NODES, FormPart::Nodes, expected);
        let most = self.number(field_names::NODES_MAX, FormPart::Nodes, expected);
        match (least, most) {
            (Some(least), Some(most)) if most < least => {
                self.problem(
                    FormPart::Nodes,
                    "The least number of nodes is more than the greatest.",
                );
                None
            }
            (Some(least), most) => Some((least, most.unwrap_or(least))),
            (None, Some(_)) if self.values.trimmed(field_names::NODES).is_empty() => {
                self.problem(FormPart::Nodes, "Enter the least number of nodes, too.");
                None
            }
            (None, _) => None,
        }
    }

    /// What each node must have.
    fn attributes(&mut self) -> BTreeMap<String, Attribute> {
        let mut attributes = BTreeMap::new();
        for (index, number) in NUMBERS.iter().enumerate() {
            let text = self.values.trimmed(number.field);
            match read_attribute_amount(number, text) {
                Some(least) => {
                    attributes.insert(number.name.to_owned(), Attribute::Number(least));
                }
                None if text.is_empty() => {}
                None => {
                    let message = "Enter a number above 0, such as 8, or leave it empty.";
                    self.problem(FormPart::NodeNumber(index), message);
                }
            }
        }
        let architecture = self.text(field_names::ARCHITECTURE, FormPart::Architecture);
        match architecture {
            Some(name) if is_architecture(&name) => {
                attributes.insert(attributes::ARCHITECTURE.to_owned(), Attribute::Word(name));
            }
            Some(_) => self.problem(FormPart::Architecture, "Choose one of the values of the list."),
            None => {}
        }
        attributes
    }

    /// How the work may be cut.
    fn preemption(&mut self) -> Option<Preemption> {
        let pieces = self.number_within(field_names::PIECES, FormPart::Pieces, PIECES_BOUNDS)?;
        Some(Preemption {
            pieces,
            interval: CUT_AT,
            independent: false,
        })
    }

    /// Hours, minutes and seconds together; each may be left empty.
    fn duration(&mut self) -> Option<i32> {
        if self.values.has(field_names::PREDICT) {
            if self.values.get(field_names::APPLICATION).is_empty() {
                self.problem(
                    FormPart::Duration,
                    "Only the duration of an application is predicted. Choose one, or enter a duration.",
                );
            }
            return None;
        }
        let mut total = None;
        for (field, unit, seconds) in [
            (field_names::HOURS, "hours", 3_600),
            (field_names::MINUTES, "minutes", 60),
            (field_names::SECONDS, "seconds", 1),
        ] {
            let expected = format!("the {unit} as a whole number, such as 1, or leave them empty");
            if let Some(amount) = self.number(field, FormPart::Duration, &expected) {
                total = Some(total.unwrap_or(0) + i64::from(amount) * seconds);
            }
        }
        let duration = total.map(i32::try_from)?;
        if duration.is_err() {
            self.problem(FormPart::Duration, "Enter a shorter duration.");
        }
        duration.ok()
    }

    /// An amount of money, of the provider's currency.
    fn budget(&mut self, currency: Option<&str>) -> Option<Budget> {
        let text = self.values.trimmed(field_names::BUDGET);
        if text.is_empty() {
            return None;
        }
        let amount = wsag::budget::parse_amount(text)
            .ok()
            .filter(|amount| *amount >= 0);
        if amount.is_none() {
            self.problem(
                FormPart::Budget,
                "Enter an amount of money, such as 12.50, or leave it empty.",
            );
        }
        Some(Budget {
            amount_micros: amount?,
            currency: currency?.to_owned(),
        })
    }

    /// The deadline, which leaves time enough after the start; the end of the duration where the request is for exactly then.
    fn deadline(&mut self, start: Option<i64>, duration: Option<i32>) -> Option<i64> {
        let least = start
            .zip(duration)
            .map(|(start, duration)| start + i64::from(duration));
        if self.values.has(field_names::EXACT) {
            let is_said = self
                .problems
                .iter()
                .any(|problem| matches!(problem.place, FormPart::Start | FormPart::Duration));
            if least.is_none() && !is_said {
                self.problem(
                    FormPart::Deadline,
                    "For exact times, enter the start and the duration, too.",
                );
            }
            return least;
        }
        let end = self.second(field_names::DEADLINE, FormPart::Deadline)?;
        if let Some(least) = least.filter(|least| *least > end) {
            let least = text::moment(&text::date_time(least));
            let message =
                format!("It leaves too little time: set it to {least} or later, or shorten the duration.");
            self.problem(FormPart::Deadline, message);
        }
        Some(end)
    }

    /// The second of a date and a time in the form's zone. A date alone is its beginning, as a deadline its end.
    fn second(&mut self, (date_field, time_field): (&str, &str), place: FormPart) -> Option<i64> {
        let (date, time) = (self.values.trimmed(date_field), self.values.trimmed(time_field));
        if date.is_empty() {
            if !time.is_empty() {
                self.problem(place, "Enter the date too, or leave both empty.");
            }
            return None;
        }
        let mut day = Date::strptime("%Y-%m-%d", date).ok();
        if day.is_none() {
            self.problem(place, "Enter the date as year-month-day, such as 2026-11-21.");
        }
        let clock = if time.is_empty() {
            if date_field == field_names::DEADLINE.0 {
                day = day.and_then(|day| day.tomorrow().ok());
            }
            Some(Time::midnight())
        } else {
            let clock = Time::strptime("%H:%M:%S", time).or_else(|_| Time::strptime("%H:%M", time));
            if clock.is_err() {
                self.problem(place, "Enter the time as hours:minutes, such as 16:30.");
            }
            clock.ok()
        };
        zone_of_form(self.values).second_of(day?.to_datetime(clock?))
    }
}

/// The second of the plan in a date and a time field of any form; none where both are empty.
///
/// # Errors
/// Their mistakes.
pub(crate) fn read_form_time(values: &Values, fields: (&str, &str)) -> Result<Option<i64>, String> {
    let mut form = FormReader {
        values,
        problems: Vec::new(),
    };
    let at = form.second(fields, FormPart::Whole);
    match form.problems.pop() {
        Some(problem) => Err(problem.message),
        None => Ok(at),
    }
}

/// The duration of any form in seconds; none where there is none or it cannot be read.
pub(crate) fn read_form_duration(values: &Values) -> Option<i64> {
    let mut form = FormReader {
        values,
        problems: Vec::new(),
    };
    form.duration().map(i64::from)
}

/// The time zone that the times of a form are in.
pub(crate) fn zone_of_form(values: &Values) -> Zone {
    Zone::named(values.get(field_names::ZONE)).unwrap_or(Zone::UTC)
}

/// The form with its times in another zone. Texts that are no time stay as they are. A form with a time that the other zone
/// does not tell stays in its own.
pub(crate) fn form_read_in_zone(mut values: Values, zone: &Zone) -> Values {
    let own = zone_of_form(&values);
    if own == *zone {
        return values.with(field_names::ZONE, zone.name());
    }
    let times = [field_names::START, field_names::DEADLINE]
        .into_iter()
        .filter_map(|fields| Some((fields, read_form_time(&values, fields).ok()??)));
    let times: Vec<_> = times.collect();
    if times.iter().any(|(_, at)| !zone.tells(*at)) {
        return values.with(field_names::ZONE, own.name());
    }
    for ((date_field, time_field), at) in times {
        let (date, time) = date_and_time_in_zone(at, zone);
        values = values.with(date_field, date).with(time_field, time);
    }
    values.with(field_names::ZONE, zone.name())
}

#[cfg(test)]
mod tests;
