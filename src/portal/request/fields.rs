//! The offer form as it is shown: each field with its label, the value entered, and its problem.

use domain::catalogue::{Application, ArgumentKind, Catalogue};
use domain::resources::NUMBERS;

use crate::portal::request::attributes::{amounts_in_words, architectures_of};
use crate::portal::request::field;
use crate::portal::request::form::{self, CHOICES_MAX, FormPart, Problem};
use crate::portal::request::hints::{hint_of_argument, resource_in_words, saving_by_slack};
use crate::portal::request::values_of_request::{form_address, with_nodes};
use crate::portal::text::capitalised;
use crate::portal::values::Values;
use crate::service::{OfferedResourceView, PriceListView};

/// What the form can offer to choose from.
pub(in crate::portal) struct Supply<'a> {
    pub(in crate::portal) catalogue: &'a Catalogue,
    /// Names of the party's input files.
    pub(in crate::portal) files: Vec<String>,
    /// The price list, where something is charged.
    pub(in crate::portal) prices: Option<&'a PriceListView>,
    /// The resources that something can lie on.
    pub(in crate::portal) resources: Vec<OfferedResourceView>,
}

/// The offer form.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says of one part of the form how it is shown"
)]
pub(in crate::portal) struct OfferForm {
    /// One for every form that is shown.
    pub(in crate::portal) once: String,
    pub(in crate::portal) applications: Vec<ApplicationChoice>,
    pub(in crate::portal) application_errors: Vec<String>,
    /// Whether only nodes are to be reserved.
    pub(in crate::portal) nodes_only: bool,
    pub(in crate::portal) name: Field,
    pub(in crate::portal) nodes: Group,
    pub(in crate::portal) duration: Group,
    /// Whether the duration is to be predicted.
    pub(in crate::portal) is_predicted: bool,
    /// The most that it may cost, where something is charged.
    pub(in crate::portal) budget: Option<Field>,
    pub(in crate::portal) start: Group,
    pub(in crate::portal) deadline: Group,
    /// Whether it is to lie exactly there.
    pub(in crate::portal) is_exact: bool,
    /// The largest resource, where more nodes are wanted: its size, and the form with it.
    pub(in crate::portal) largest: Option<(u32, String)>,
    /// What each node must have; none where no resource says what its nodes have.
    pub(in crate::portal) attributes: Option<Group>,
    /// The other fields that are rarely filled in.
    pub(in crate::portal) more: Vec<Field>,
    /// All that is wrong, with the field to go to.
    pub(in crate::portal) summary: Vec<ProblemLine>,
    /// Names of the provider's input files.
    pub(in crate::portal) files: Vec<String>,
    /// Whether it answers an offer: then it asks for less, and an empty field means the value of the offer.
    pub(in crate::portal) is_counter: bool,
}

/// An application to choose.
pub(in crate::portal) struct ApplicationChoice {
    pub(in crate::portal) id: String,
    pub(in crate::portal) value: String,
    pub(in crate::portal) name: String,
    pub(in crate::portal) version: Option<String>,
    pub(in crate::portal) description: String,
    pub(in crate::portal) chosen: bool,
    pub(in crate::portal) arguments: Vec<Field>,
}

/// A field.
pub(in crate::portal) struct Field {
    pub(in crate::portal) id: String,
    pub(in crate::portal) name: String,
    pub(in crate::portal) label: String,
    pub(in crate::portal) hint: String,
    pub(in crate::portal) value: String,
    pub(in crate::portal) errors: Vec<String>,
    pub(in crate::portal) input: Input,
}

/// Fields that belong together.
pub(in crate::portal) struct Group {
    pub(in crate::portal) id: String,
    pub(in crate::portal) legend: String,
    pub(in crate::portal) hint: String,
    pub(in crate::portal) errors: Vec<String>,
    pub(in crate::portal) fields: Vec<Field>,
}

/// How a field is filled in.
pub(in crate::portal) enum Input {
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

/// A line of the summary of problems.
pub(in crate::portal) struct ProblemLine {
    /// The id of the field; none where it is the form as a whole.
    pub(in crate::portal) field: Option<String>,
    pub(in crate::portal) message: String,
}

/// Characters that the name of a reservation may have in the form.
const NAME_LENGTH: usize = 100;

/// Digits and letters of an id for the field of an argument: `argument-0-1`.
fn argument_field_id(application: usize, argument: usize) -> String {
    format!("argument-{application}-{argument}")
}

impl Field {
    /// Whether this is the value entered.
    pub(in crate::portal) fn is_value(&self, value: &str) -> bool {
        self.value == value
    }
}

/// What fields show: the values entered, and their problems.
#[derive(Clone, Copy)]
pub(in crate::portal) struct Entered<'a> {
    pub(in crate::portal) values: &'a Values,
    pub(in crate::portal) problems: &'a [Problem],
}

impl Entered<'_> {
    /// The problems of a part of the form.
    fn errors(self, place: FormPart) -> Vec<String> {
        let own = self.problems.iter().filter(|problem| problem.place == place);
        own.map(|problem| problem.message.clone()).collect()
    }

    /// A field with the problems of its part of the form.
    pub(in crate::portal) fn field(
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
    fn part(self, name: &str, label: &str, mut input: Input) -> Field {
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
    fn group(self, name: &str, legend: &str, hint: &str, place: FormPart, fields: Vec<Field>) -> Group {
        Group {
            id: format!("{name}-group"),
            legend: legend.to_owned(),
            hint: hint.to_owned(),
            errors: self.errors(place),
            fields,
        }
    }

    /// The fields of the duration.
    pub(in crate::portal) fn duration(self, hint: &str) -> Group {
        let parts = [
            (field::HOURS, "Hours"),
            (field::MINUTES, "Minutes"),
            (field::SECONDS, "Seconds"),
        ];
        let fields = parts.map(|(name, label)| self.part(name, label, Input::Whole));
        self.group("duration", "Duration", hint, FormPart::Duration, fields.into())
    }

    /// The fields of an instant: its date and its time.
    pub(in crate::portal) fn instant(
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

impl OfferForm {
    /// The form with the values entered and their problems.
    pub(in crate::portal) fn new(
        values: &Values,
        problems: &[Problem],
        supply: Supply<'_>,
        once: String,
    ) -> Self {
        let Supply {
            catalogue,
            files,
            prices,
            resources,
        } = supply;
        let entered = Entered { values, problems };
        let most = resources.iter().map(|resource| resource.nodes).max();
        let more = more_fields(entered, prices, &resources).into();
        let attributes = attributes_group(entered, &resources);
        let chosen = form::chosen_application(values, catalogue);
        Self {
            once,
            applications: application_choices(entered, catalogue),
            application_errors: entered.errors(FormPart::Application),
            nodes_only: values.has(field::APPLICATION) && values.get(field::APPLICATION).is_empty(),
            name: entered.field(
                field::NAME,
                "Name (optional)",
                "For your own list.",
                Input::Text(NAME_LENGTH),
                FormPart::Name,
            ),
            nodes: entered.group(
                "nodes",
                "Nodes",
                "The second number only where any number between them is right.",
                FormPart::Nodes,
                vec![
                    entered.part(field::NODES, "Number, or from", Input::Whole),
                    entered.part(field::NODES_MAX, "to (optional)", Input::Whole),
                ],
            ),
            is_predicted: values.has(field::PREDICT),
            duration: entered.duration(
                "How long the nodes are kept for you. A running job is stopped then. Without an application, empty \
                 means: from the earliest start to the deadline.",
            ),
            budget: prices.map(|prices| {
                let label = format!("Budget in {} (optional)", prices.currency);
                let hint = "The most that it may cost. Empty means: no limit.";
                entered.field(field::BUDGET, &label, hint, Input::Decimal, FormPart::Budget)
            }),
            start: entered.instant(
                field::START,
                "Earliest start (optional)",
                "A date alone means its beginning. Empty means: as soon as there is room.",
                FormPart::Start,
            ),
            deadline: entered.instant(
                field::DEADLINE,
                "Deadline (optional)",
                "The latest end; a date alone means its end. Empty means: no deadline, so it may start at any time after the \
                 earliest start.",
                FormPart::Deadline,
            ),
            is_exact: values.has(field::EXACT),
            largest: size_of_largest(values, most),
            attributes,
            more,
            summary: summary_of_problems(problems, chosen, catalogue),
            files,
            is_counter: false,
        }
    }

    /// The form with which an offer is answered: without what another offer cannot change, and with words for what stays.
    pub(in crate::portal) fn into_counter(mut self) -> Self {
        self.is_counter = true;
        let empty = "Empty means: as it is in the offer.";
        for group in [&mut self.duration, &mut self.start, &mut self.deadline] {
            empty.clone_into(&mut group.hint);
        }
        if let Some(budget) = &mut self.budget {
            budget.hint = format!("The most that it may cost. {empty}");
        }
        self.more.retain(|field| field.name != field::CHOICES);
        for field in &mut self.more {
            if let Input::Choice(options) = &mut field.input {
                options.retain(|(value, _)| !value.is_empty());
                options.insert(0, (String::new(), "As it is in the offer".to_owned()));
            } else {
                let kept = field.hint.split("Empty means").next().unwrap_or_default();
                field.hint = format!("{} {empty}", kept.trim_end());
            }
        }
        self
    }
}

impl OfferForm {
    /// Whether something is said in the fields that are rarely filled in, or wrong there.
    pub(in crate::portal) fn is_more_open(&self) -> bool {
        let attributes = self.attributes.iter().flat_map(|group| &group.fields);
        let is_said = |field: &Field| !field.value.is_empty() || !field.errors.is_empty();
        self.more.iter().chain(attributes).any(is_said)
            || self
                .attributes
                .as_ref()
                .is_some_and(|group| !group.errors.is_empty())
    }
}

/// The nodes of the largest resource where more are entered, and the form with as many.
fn size_of_largest(values: &Values, most: Option<u32>) -> Option<(u32, String)> {
    let numbers = [field::NODES, field::NODES_MAX].map(|name| values.trimmed(name).parse().ok());
    let wanted: u32 = numbers.into_iter().flatten().max()?;
    let most = most.filter(|most| wanted > *most)?;
    Some((most, form_address(&with_nodes(values.clone(), most, most))))
}

/// What each node must have: what some resource has, and what is asked for already.
fn attributes_group(entered: Entered<'_>, resources: &[OfferedResourceView]) -> Option<Group> {
    let is_asked = |name: &str| !entered.values.get(name).is_empty();
    let numbers = NUMBERS
        .iter()
        .filter(|number| amounts_in_words(number, resources).is_some() || is_asked(number.field));
    let mut fields: Vec<_> = numbers
        .map(|number| entered.part(number.field, number.label, Input::Decimal))
        .collect();
    let architectures = architectures_of(resources);
    if !architectures.is_empty() || is_asked(field::ARCHITECTURE) {
        let any = (String::new(), "Any".to_owned());
        let named = architectures.into_iter().map(|name| (name.clone(), name));
        let options = std::iter::once(any).chain(named).collect();
        fields.push(entered.part(field::ARCHITECTURE, "Architecture", Input::Choice(options)));
    }
    let errors = entered.problems.iter().filter_map(|problem| {
        let label = label_of_attribute(problem.place)?;
        Some(format!("{label}: {}", problem.message))
    });
    let found: Vec<_> = NUMBERS
        .iter()
        .filter_map(|number| amounts_in_words(number, resources))
        .collect();
    (!fields.is_empty()).then(|| Group {
        id: "attributes-group".to_owned(),
        legend: "What must each node have? (optional)".to_owned(),
        hint: if found.is_empty() {
            String::new()
        } else {
            format!("At least so much. Nodes here have {}.", found.join(", "))
        },
        errors: errors.collect(),
        fields,
    })
}

/// What stands before a mistake of an attribute; none for another place.
fn label_of_attribute(place: FormPart) -> Option<&'static str> {
    match place {
        FormPart::NodeNumber(index) => Some(NUMBERS[index].label),
        FormPart::Architecture => Some("Architecture"),
        _ => None,
    }
}

/// The fields that are rarely filled in.
fn more_fields(
    entered: Entered<'_>,
    prices: Option<&PriceListView>,
    resources: &[OfferedResourceView],
) -> [Field; 5] {
    let options = |all: &[(&str, &str)]| {
        let one = |(value, label): &(&str, &str)| ((*value).to_owned(), (*label).to_owned());
        Input::Choice(all.iter().map(one).collect())
    };
    let any = (String::new(), "Any that will do".to_owned());
    let named = resources
        .iter()
        .map(|resource| (resource.name.clone(), resource_in_words(resource)));
    [
        entered.field(
            field::RESOURCE,
            "On which resource?",
            "Any leaves the most room.",
            Input::Choice(std::iter::once(any).chain(named).collect()),
            FormPart::Resource,
        ),
        entered.field(
            field::FIX,
            "How long may it move inside your times?",
            saving_by_slack(prices),
            options(&[
                ("", "Until it starts"),
                ("0.5", "For half of its wait"),
                ("0", "Never: its time is fixed at once"),
            ]),
            FormPart::Fix,
        ),
        entered.field(
            field::FLEXIBILITY,
            "How far from your times may offers lie, where there is no room?",
            "In durations of the request.",
            options(&[
                ("", "As far as the provider offers"),
                ("0", "Not at all"),
                ("0.25", "A quarter of the duration"),
                ("0.5", "Half of the duration"),
                ("1", "The duration"),
            ]),
            FormPart::Flexibility,
        ),
        entered.field(
            field::PIECES,
            "Into how many slots may it be cut? (optional)",
            "2 to 10, for applications that save their work. Cut work often ends earlier.",
            Input::Whole,
            FormPart::Pieces,
        ),
        entered.field(
            field::CHOICES,
            "How many offers at most? (optional)",
            format!("1 to {CHOICES_MAX}. Empty means: {CHOICES_MAX}."),
            Input::Whole,
            FormPart::Choices,
        ),
    ]
}

/// The applications to choose from; the one that is chosen has the errors of its arguments.
fn application_choices(entered: Entered<'_>, catalogue: &Catalogue) -> Vec<ApplicationChoice> {
    let selected = form::chosen_application(entered.values, catalogue);
    let choice = |(index, application): (usize, &Application)| {
        let chosen = selected.is_some_and(|selected| std::ptr::eq(selected, application));
        let errors = |at| {
            if chosen {
                entered.errors(FormPart::Argument(at))
            } else {
                Vec::new()
            }
        };
        let arguments = application.arguments.iter().enumerate().map(|(at, spec)| {
            let name = form::argument_field(application, at);
            Field {
                id: argument_field_id(index, at),
                value: entered.values.get(&name).to_owned(),
                name,
                label: capitalised(&spec.name),
                hint: hint_of_argument(spec),
                errors: errors(at),
                input: input_of_argument(&spec.kind),
            }
        });
        ApplicationChoice {
            id: format!("application-{index}"),
            value: form::application_value(application),
            name: application.name.clone(),
            version: application.version.clone(),
            description: application.description.clone(),
            chosen,
            arguments: arguments.collect(),
        }
    };
    catalogue.applications().iter().enumerate().map(choice).collect()
}

fn input_of_argument(kind: &ArgumentKind) -> Input {
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

/// Every problem with the field that it is about, in the order of the form.
fn summary_of_problems(
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
                FormPart::Nodes => ranked(1_000, field::NODES, "Nodes: "),
                FormPart::Duration => ranked(1_001, field::HOURS, "Duration: "),
                FormPart::Budget => ranked(1_002, field::BUDGET, "Budget: "),
                FormPart::Start => ranked(1_003, field::START.0, "Earliest start: "),
                FormPart::Deadline => ranked(1_004, field::DEADLINE.0, "Deadline: "),
                FormPart::Name => ranked(1_005, field::NAME, "Name: "),
                FormPart::Resource => ranked(1_006, field::RESOURCE, "Resource: "),
                FormPart::NodeNumber(index) => {
                    let number = &NUMBERS[index];
                    ranked(1_005, number.field, &format!("{}: ", number.label))
                }
                FormPart::Architecture => ranked(1_005, field::ARCHITECTURE, "Architecture: "),
                FormPart::Fix => ranked(1_006, field::FIX, "Moving: "),
                FormPart::Flexibility => ranked(1_007, field::FLEXIBILITY, "How far: "),
                FormPart::Pieces => ranked(1_008, field::PIECES, "Slots: "),
                FormPart::Choices => ranked(1_009, field::CHOICES, "Offers: "),
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
