//! The fields of a form: each with its label, the value entered, and its problem.

use domain::catalogue::ArgumentKind;

use crate::request::field_names;
use crate::request::form_reader::{FormPart, Problem};
use crate::values::Values;

/// A field.
pub(crate) struct Field {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) label: String,
    pub(crate) hint: String,
    pub(crate) value: String,
    pub(crate) errors: Vec<String>,
    pub(crate) input: Input,
}

/// Fields that belong together.
pub(crate) struct Group {
    pub(crate) id: String,
    pub(crate) legend: String,
    pub(crate) hint: String,
    pub(crate) errors: Vec<String>,
    pub(crate) fields: Vec<Field>,
}

/// How a field is filled in.
pub(crate) enum Input {
    /// A text of at most this many characters.
    Text(usize),
    /// A whole number.
    Whole,
    /// A decimal number.
    Decimal,
    /// A choice of one of these values, each with its label.
    Choice(Vec<(String, String)>),
    /// The name of one of the provider's files.
    File,
    Date,
    Time,
}

impl Field {
    /// Whether this is the value entered.
    pub(crate) fn is_value(&self, value: &str) -> bool {
        self.value == value
    }
}

/// How the field of an argument is filled in.
pub(super) fn input_of_argument_field(kind: &ArgumentKind) -> Input {
    match kind {
        ArgumentKind::Integer(_) => Input::Whole,
        ArgumentKind::Number(_) => Input::Decimal,
        ArgumentKind::Text { max_length, .. } => Input::Text(*max_length),
        ArgumentKind::Choice(values) => {
            let none = (String::new(), "Choose…".to_owned());
            let each = values.iter().map(|value| (value.clone(), value.clone()));
            Input::Choice(std::iter::once(none).chain(each).collect())
        }
        ArgumentKind::File => Input::File,
    }
}

/// What fields show: the values entered, and their problems.
#[derive(Clone, Copy)]
pub(crate) struct EnteredFields<'a> {
    pub(crate) values: &'a Values,
    pub(crate) problems: &'a [Problem],
}

impl EnteredFields<'_> {
    /// The problems of a part of the form.
    pub(super) fn errors(self, place: FormPart) -> Vec<String> {
        let own = self.problems.iter().filter(|problem| problem.place == place);
        own.map(|problem| problem.message.clone()).collect()
    }

    /// A field with the problems of its part of the form.
    pub(crate) fn field(
        self,
        name: &str,
        label: &str,
        hint: impl Into<String>,
        input: Input,
        place: FormPart,
    ) -> Field {
        Field {
            hint: hint.into(),
            errors: self.errors(place),
            ..self.part(name, label, input)
        }
    }

    /// A field of a group, whose problems are said once, at its head. A list to choose from has the value that was chosen, too: a request
    /// that was made elsewhere may say what the list does not have.
    pub(super) fn part(self, name: &str, label: &str, mut input: Input) -> Field {
        let value = self.values.get(name).to_owned();
        if let Input::Choice(options) = &mut input
            && !options.iter().any(|(known, _)| *known == value)
        {
            options.push((value.clone(), value.clone()));
        }
        Field {
            id: name.to_owned(),
            name: name.to_owned(),
            label: label.to_owned(),
            hint: String::new(),
            value,
            errors: Vec::new(),
            input,
        }
    }

    /// Fields that have their problems together.
    pub(super) fn group(
        self,
        name: &str,
        legend: &str,
        hint: &str,
        place: FormPart,
        fields: Vec<Field>,
    ) -> Group {
        Group {
            id: format!("{name}-group"),
            legend: legend.to_owned(),
            hint: hint.to_owned(),
            errors: self.errors(place),
            fields,
        }
    }

    /// The fields of the duration.
    pub(crate) fn duration(self, hint: &str) -> Group {
        let parts = [
            (field_names::HOURS, "Hours"),
            (field_names::MINUTES, "Minutes"),
            (field_names::SECONDS, "Seconds"),
        ];
        let fields = parts.map(|(name, label)| self.part(name, label, Input::Whole));
        self.group("duration", "Duration", hint, FormPart::Duration, fields.into())
    }

    /// The fields of an instant: its date and its time.
    pub(crate) fn instant(
        self,
        (date, time): (&str, &str),
        legend: &str,
        hint: &str,
        place: FormPart,
    ) -> Group {
        let fields = vec![
            self.part(date, "Date", Input::Date),
            self.part(time, "Time", Input::Time),
        ];
        self.group(date, legend, hint, place, fields)
    }
}
