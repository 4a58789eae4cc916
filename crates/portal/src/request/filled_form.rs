//! From requests to forms: the values with which a form asks for what an offer says, and for changes of it.

use domain::catalogue::Catalogue;
use domain::resources::NUMBERS;
use uuid::Uuid;
use wsag::time::DateTime;

use crate::request::attributes::{self, amount_as_text};
use crate::request::field_names;
use crate::request::form_reader::{self};
use crate::values::Values;
use crate::zone::{Zone, date_and_time_in_zone};
use api::Api;
use service::{Attribute, RelaxationView, Request};

/// The address of a form that is filled in with values.
pub(crate) fn form_address(values: &Values) -> String {
    format!("/portal?{}", values.query())
}

/// A form that is filled in, and where it stands.
pub(crate) struct FilledForm {
    /// The path of its page.
    path: String,
    values: Values,
}

impl FilledForm {
    /// The form of a new reservation.
    pub(crate) fn new_reservation(values: Values) -> Self {
        Self::at("/portal".to_owned(), values)
    }

    /// A form on another page. An empty field means the agreed or offered value.
    pub(crate) fn at(path: String, values: Values) -> Self {
        Self { path, values }
    }

    /// The form that asks for what a negotiation was about, once more: for a new reservation, or for the change of one.
    pub(crate) fn about(agreement: Option<Uuid>, values: Values) -> Self {
        match agreement {
            Some(id) => Self::at(format!("/portal/agreements/{id}/change"), values),
            None => Self::new_reservation(values),
        }
    }

    /// The address of the page that fills it in.
    pub(crate) fn address(&self) -> String {
        self.address_with(&self.values)
    }

    /// The address with a change that would let its request in.
    pub(crate) fn address_with_change(&self, change: &RelaxationView) -> String {
        self.address_with(&form_filled_with_change(&self.values, change))
    }

    /// The address with another window, in seconds since the epoch. A form of a new reservation asks for `near` times without an
    /// earliest start.
    pub(crate) fn address_within(&self, (start, end): (i64, i64), near: bool) -> String {
        let start = Some(start).filter(|_| !near || self.path != "/portal");
        self.address_with(&filled_with_deadline(
            filled_with_start(self.values.clone(), start),
            Some(end),
        ))
    }

    fn address_with(&self, values: &Values) -> String {
        format!("{}?{}", self.path, values.query())
    }
}

/// The values with which a form asks for this.
pub(crate) fn form_filled_from_request(request: &Request, catalogue: &Catalogue) -> Values {
    let mut values = Values::default().with(field_names::APPLICATION, "");
    let applications = catalogue.applications().iter();
    let run = request.run.as_ref();
    let named = run.and_then(|run| {
        let is_it = |application: &&domain::catalogue::Application| {
            application.name == run.name && (run.version.is_none() || application.version == run.version)
        };
        Some((run, applications.clone().find(is_it)?))
    });
    if let Some((run, application)) = named {
        values = values.with(
            field_names::APPLICATION,
            form_reader::form_value_of_application(application),
        );
        for (index, argument) in run.arguments.iter().enumerate() {
            values = values.with(
                &form_reader::argument_field(application, index),
                argument.as_str(),
            );
        }
    }
    values = values.with(field_names::NAME, request.name.clone().unwrap_or_default());
    values = form_filled_with_plan(values, request);
    values = match request.nodes {
        None => values,
        Some((least, most)) => form_filled_with_nodes(values, least, most),
    };
    values = match request.duration {
        Some(duration) => form_filled_with_duration(values, duration.into()),
        None if run.is_some() => values.with(field_names::PREDICT, "1"),
        None => values,
    };
    let seconds = |at: DateTime| at.floor();
    filled_with_deadline(
        filled_with_start(values, request.start.map(seconds)),
        request.end.map(seconds),
    )
}

/// With how the request may be planned, and what its nodes must have.
fn form_filled_with_plan(mut values: Values, request: &Request) -> Values {
    let plan = &request.scheduling;
    let texts = [
        (
            field_names::BUDGET,
            plan.budget
                .as_ref()
                .map(|budget| wsag::budget::write_amount(budget.amount_micros)),
        ),
        (
            field_names::FLEXIBILITY,
            plan.max_deviation.map(|max_deviation| max_deviation.to_string()),
        ),
        (field_names::FIX, plan.fix_at.map(|fix_at| fix_at.to_string())),
        (field_names::RESOURCE, plan.resource.clone()),
        (
            field_names::PIECES,
            plan.preemption.map(|preemption| preemption.pieces.to_string()),
        ),
    ];
    let attributes = &request.attributes;
    let numbers = NUMBERS.iter().map(|number| match attributes.get(number.name) {
        Some(Attribute::Number(least)) => (number.field, Some(amount_as_text(number, *least))),
        _ => (number.field, None),
    });
    let architecture = match attributes.get(attributes::ARCHITECTURE) {
        Some(Attribute::Word(word)) => Some(word.clone()),
        _ => None,
    };
    let texts = texts
        .into_iter()
        .chain(numbers)
        .chain([(field_names::ARCHITECTURE, architecture)]);
    for (name, text) in texts {
        if let Some(text) = text {
            values = values.with(name, text);
        }
    }
    values
}

/// The values of a form with what another form says in place of them. What that one leaves empty stays.
pub(crate) fn form_filled_with_said(values: Values, said: &Values) -> Values {
    let mut values = form_reader::form_read_in_zone(values, &form_reader::zone_of_form(said));
    // Fields that say one thing together.
    let groups: [&[&str]; 2] = [
        &[
            field_names::HOURS,
            field_names::MINUTES,
            field_names::SECONDS,
            field_names::PREDICT,
        ],
        &[field_names::NODES, field_names::NODES_MAX],
    ];
    let is_said = |name: &&str| !said.get(name).is_empty();
    for group in groups.into_iter().filter(|group| group.iter().any(is_said)) {
        values = group.iter().fold(values, |values, name| values.without(name));
    }
    let own = [field_names::CSRF, field_names::ONCE, field_names::OFFER];
    let filled = said
        .iter()
        .filter(|(name, value)| !value.is_empty() && !own.contains(name));
    filled.fold(values, |values, (name, value)| values.with(name, value))
}

/// The form for another number of nodes.
pub(crate) fn form_filled_with_nodes(values: Values, least: u32, most: u32) -> Values {
    let most = (most != least).then(|| most.to_string());
    values
        .with(field_names::NODES, least.to_string())
        .with(field_names::NODES_MAX, most.unwrap_or_default())
}

/// The form for another number of seconds.
pub(crate) fn form_filled_with_duration(values: Values, seconds: i64) -> Values {
    let part = |amount: i64| {
        if amount == 0 {
            String::new()
        } else {
            amount.to_string()
        }
    };
    values
        .without(field_names::PREDICT)
        .with(field_names::HOURS, part(seconds / 3_600))
        .with(field_names::MINUTES, part(seconds / 60 % 60))
        .with(field_names::SECONDS, part(seconds % 60))
}

/// The form with another earliest start, in seconds since the epoch; None leaves it open.
pub(crate) fn filled_with_start(values: Values, at: Option<i64>) -> Values {
    form_filled_with_instant(values, field_names::START, at)
}

/// The form with another deadline, in seconds since the epoch; None leaves it open.
pub(crate) fn filled_with_deadline(values: Values, at: Option<i64>) -> Values {
    form_filled_with_instant(values.without(field_names::EXACT), field_names::DEADLINE, at)
}

/// The values of a date and a time field for a second of the plan, in the form's zone; in UTC where that zone does not tell it.
fn form_filled_with_instant(mut values: Values, (date, time): (&str, &str), at: Option<i64>) -> Values {
    if at.is_some_and(|at| !form_reader::zone_of_form(&values).tells(at)) {
        values = form_reader::form_read_in_zone(values, &Zone::UTC);
    }
    let zone = form_reader::zone_of_form(&values);
    let (day, clock) = at.map_or_else(Default::default, |at| date_and_time_in_zone(at, &zone));
    values.with(date, day).with(time, clock)
}

/// The form with a change that would let its request in.
fn form_filled_with_change(values: &Values, change: &RelaxationView) -> Values {
    let mut values = values.clone();
    if values.has(field_names::EXACT) {
        // Each change that would let it in changes one thing alone.
        let start = form_reader::read_form_time(&values, field_names::START)
            .ok()
            .flatten();
        let end = start
            .zip(form_reader::read_form_duration(&values))
            .map(|(start, duration)| start + duration);
        values = filled_with_deadline(values, end);
    }
    if let Some(nodes) = change.nodes {
        values = form_filled_with_nodes(values, nodes, nodes);
    }
    if let Some(seconds) = change.duration_seconds {
        values = form_filled_with_duration(values, seconds);
    }
    if let Some(ready) = change.ready {
        values = filled_with_start(values, Some(ready.seconds()));
    }
    if let Some(deadline) = change.deadline {
        values = filled_with_deadline(values, Some(deadline.seconds()));
    }
    if let Some(budget) = change.budget {
        values = values.with(field_names::BUDGET, budget.amount());
    }
    values
}

/// The values of an empty form: the first application, and the template's size and duration.
pub(crate) fn empty_form_values(api: &Api) -> Values {
    let (nodes, duration) = service::size_proposed_by_templates(&api.service);
    let catalogue = api.service.catalogue();
    let first = catalogue.applications().first();
    let mut values = Values::default().with(
        field_names::APPLICATION,
        first.map_or_else(String::new, form_reader::form_value_of_application),
    );
    if let Some(nodes) = nodes {
        values = form_filled_with_nodes(values, nodes, nodes);
    }
    if let Some(duration) = duration {
        values = form_filled_with_duration(values, duration.into());
    }
    values
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use domain::catalogue::{Application, ArgumentKind, ArgumentSpec, JobLimits};
    use wsag::budget::Budget;
    use wsag::scheduling::{Preemption, Scheduling};

    use super::*;
    use service::RequestedJob;

    fn catalogue() -> Catalogue {
        let application = Application {
            name: "fit".to_owned(),
            version: Some("1.0".to_owned()),
            description: String::new(),
            program: "/usr/bin/fit".into(),
            arguments: vec![ArgumentSpec {
                name: "rounds".to_owned(),
                kind: ArgumentKind::File,
            }],
            limits: JobLimits::default(),
            checkpoint: None,
            isolation: None,
        };
        Catalogue::new(vec![application]).unwrap()
    }

    #[test]
    fn a_form_that_is_filled_from_a_request_asks_for_it_again() {
        let request = Request {
            name: Some("my <fit>".to_owned()),
            run: Some(RequestedJob {
                name: "fit".to_owned(),
                version: Some("1.0".to_owned()),
                arguments: vec!["a & b".to_owned()],
            }),
            staging: None,
            nodes: Some((2, 4)),
            attributes: BTreeMap::from([
                ("cpus".to_owned(), Attribute::Number(8)),
                ("memory_bytes".to_owned(), Attribute::Number(17_179_869_184)),
                (
                    "cpu_architecture".to_owned(),
                    Attribute::Word("x86_64".to_owned()),
                ),
            ]),
            start: Some(DateTime::from_seconds(1_795_278_605)),
            end: Some(DateTime::from_seconds(1_795_305_600)),
            duration: Some(3_725),
            scheduling: Scheduling {
                budget: Some(Budget {
                    amount_micros: 12_500_000,
                    currency: "EUR".to_owned(),
                }),
                preemption: Some(Preemption {
                    pieces: 3,
                    interval: 0.1,
                    independent: false,
                }),
                max_deviation: Some(0.25),
                fix_at: Some(0.5),
                resource: Some("local".to_owned()),
                ..Scheduling::default()
            },
        };
        let again = |request: &Request| {
            let values = form_filled_from_request(request, &catalogue());
            let query = form_address(&values);
            let sent = Values::read(query.split_once('?').unwrap().1.as_bytes());
            form_reader::read_form(&sent, &catalogue(), Some("EUR"))
        };
        let read = again(&request);
        assert_eq!((&read.wish, &read.problems), (&request, &Vec::new()));
        let predicted = Request {
            duration: None,
            ..request
        };
        assert_eq!(again(&predicted).wish, predicted);
        let berlin = Zone::named("Europe/Berlin").unwrap();
        let values =
            form_reader::form_read_in_zone(form_filled_from_request(&predicted, &catalogue()), &berlin);
        assert_eq!(values.get("start-time"), "17:30:05", "one hour ahead of UTC");
        assert_eq!(
            form_reader::read_form(&values, &catalogue(), Some("EUR")).wish,
            predicted
        );
        // The second 02:00 of the night in which the clocks go back.
        let twice = Some(DateTime::from_seconds(1_792_890_000));
        let autumn = Request {
            start: twice,
            ..predicted
        };
        let values = form_reader::form_read_in_zone(form_filled_from_request(&autumn, &catalogue()), &berlin);
        assert_eq!(values.get("start-time"), "01:00:00", "in UTC");
        let read = |values: &Values| {
            form_reader::read_form(values, &catalogue(), Some("EUR"))
                .wish
                .start
        };
        assert_eq!(read(&values), twice);
        let elsewhen = Values::default().with("zone", "Europe/Berlin");
        assert_eq!(read(&filled_with_start(elsewhen, Some(1_792_890_000))), twice);
        let bare = Request {
            nodes: Some((1, 1)),
            ..Request::default()
        };
        assert_eq!(again(&bare).wish, bare);
    }
}
