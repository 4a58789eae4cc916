//! The offer form as it is shown: each field with its label, the value entered, and its problem.

use domain::catalogue::{Application, Catalogue};
use domain::resources::NUMBERS;
use uuid::Uuid;

use crate::request::attributes::{architectures_in_attributes, attribute_amounts_in_words};
use crate::request::field_names;
use crate::request::fields::{EnteredFields, Field, Group, Input, input_of_argument_field};
use crate::request::filled_form::{form_address, form_filled_with_nodes};
use crate::request::form_reader::{self, CHOICES_MAX, FormPart, Problem};
use crate::request::hints::{hint_of_argument, hint_of_resource, hint_of_saving_by_slack};
use crate::request::problems::{ProblemLine, argument_field_id, summary_of_problems};
use crate::request::submitted_form::SubmittedForm;
use crate::session::Visitor;
use crate::text::capitalised;
use crate::values::Values;
use crate::zone::Zone;
use api::Api;
use service::{OfferedResourceView, PriceListView};

/// What the form can offer to choose from.
pub(crate) struct Supply<'a> {
    pub(crate) catalogue: &'a Catalogue,
    /// Names of the party's input files.
    pub(crate) files: Vec<String>,
    /// The price list, where something is charged.
    pub(crate) prices: Option<&'a PriceListView>,
    /// The resources that something can lie on.
    pub(crate) resources: Vec<OfferedResourceView>,
}

/// The offer form.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says of one part of the form how it is shown"
)]
pub(crate) struct OfferForm {
    /// One for every form that is shown.
    pub(crate) once: String,
    pub(crate) applications: Vec<ApplicationChoice>,
    pub(crate) application_errors: Vec<String>,
    /// Whether only nodes are to be reserved.
    pub(crate) nodes_only: bool,
    pub(crate) name: Field,
    pub(crate) nodes: Group,
    pub(crate) duration: Group,
    /// Whether the duration is to be predicted.
    pub(crate) is_predicted: bool,
    /// The most that it may cost, where something is charged.
    pub(crate) budget: Option<Field>,
    pub(crate) start: Group,
    pub(crate) deadline: Group,
    /// Whether it is to lie exactly there.
    pub(crate) is_exact: bool,
    /// The largest resource, where more nodes are wanted: its size, and the form with it.
    pub(crate) largest: Option<(u32, String)>,
    /// What each node must have; none where no resource says what its nodes have.
    pub(crate) attributes: Option<Group>,
    /// The other fields that are rarely filled in.
    pub(crate) more: Vec<Field>,
    /// All that is wrong, with the field to go to.
    pub(crate) summary: Vec<ProblemLine>,
    /// Names of the provider's input files.
    pub(crate) files: Vec<String>,
    /// Whether it answers an offer: then it asks for less, and an empty field means the value of the offer.
    pub(crate) is_counter: bool,
}

/// An application to choose.
pub(crate) struct ApplicationChoice {
    pub(crate) id: String,
    pub(crate) value: String,
    pub(crate) name: String,
    pub(crate) version: Option<String>,
    pub(crate) description: String,
    pub(crate) chosen: bool,
    pub(crate) arguments: Vec<Field>,
}

/// Characters that the name of a reservation may have in the form.
const NAME_LENGTH: usize = 100;

impl OfferForm {
    /// The form with the values entered and their problems.
    pub(crate) fn new(values: &Values, problems: &[Problem], supply: Supply<'_>, once: String) -> Self {
        let Supply {
            catalogue,
            files,
            prices,
            resources,
        } = supply;
        let entered = EnteredFields { values, problems };
        let most = resources.iter().map(|resource| resource.nodes).max();
        let more = more_fields_of_offer_form(entered, prices, &resources).into();
        let attributes = attributes_of_offer_form(entered, &resources);
        let chosen = form_reader::read_form_application(values, catalogue);
        Self {
            once,
            applications: application_choices_of_offer_form(entered, catalogue),
            application_errors: entered.errors(FormPart::Application),
            nodes_only: values.has(field_names::APPLICATION) && values.get(field_names::APPLICATION).is_empty(),
            name: entered.field(
                field_names::NAME,
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
                    entered.part(field_names::NODES, "Number, or from", Input::Whole),
                    entered.part(field_names::NODES_MAX, "to (optional)", Input::Whole),
                ],
            ),
            is_predicted: values.has(field_names::PREDICT),
            duration: entered.duration(
                "How long the nodes are kept for you. A running job is stopped then. Without an application, empty \
                 means: from the earliest start to the deadline.",
            ),
            budget: prices.map(|prices| {
                let label = format!("Budget in {} (optional)", prices.currency);
                let hint = "The most that it may cost. Empty means: no limit.";
                entered.field(field_names::BUDGET, &label, hint, Input::Decimal, FormPart::Budget)
            }),
            start: entered.instant(
                field_names::START,
                "Earliest start (optional)",
                "A date alone means its beginning. Empty means: as soon as there is room.",
                FormPart::Start,
            ),
            deadline: entered.instant(
                field_names::DEADLINE,
                "Deadline (optional)",
                "The latest end; a date alone means its end. Empty means: no deadline, so it may start at any time after the \
                 earliest start.",
                FormPart::Deadline,
            ),
            is_exact: values.has(field_names::EXACT),
            largest: largest_size_for_offer_form(values, most),
            attributes,
            more,
            summary: summary_of_problems(problems, chosen, catalogue),
            files,
            is_counter: false,
        }
    }

    /// The form with which an offer is answered: without what another offer cannot change, and with words for what stays.
    pub(crate) fn into_counter(mut self) -> Self {
        self.is_counter = true;
        let empty = "Empty means: as it is in the offer.";
        for group in [&mut self.duration, &mut self.start, &mut self.deadline] {
            empty.clone_into(&mut group.hint);
        }
        if let Some(budget) = &mut self.budget {
            budget.hint = format!("The most that it may cost. {empty}");
        }
        self.more.retain(|field| field.name != field_names::CHOICES);
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
    pub(crate) fn is_more_open(&self) -> bool {
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
fn largest_size_for_offer_form(values: &Values, most: Option<u32>) -> Option<(u32, String)> {
    let numbers = [field_names::NODES, field_names::NODES_MAX].map(|name| values.trimmed(name).parse().ok());
    let wanted: u32 = numbers.into_iter().flatten().max()?;
    let most = most.filter(|most| wanted > *most)?;
    Some((
        most,
        form_address(&form_filled_with_nodes(values.clone(), most, most)),
    ))
}

/// What each node must have: what some resource has, and what is asked for already.
fn attributes_of_offer_form(entered: EnteredFields<'_>, resources: &[OfferedResourceView]) -> Option<Group> {
    let is_asked = |name: &str| !entered.values.get(name).is_empty();
    let numbers = NUMBERS
        .iter()
        .filter(|number| attribute_amounts_in_words(number, resources).is_some() || is_asked(number.field));
    let mut fields: Vec<_> = numbers
        .map(|number| entered.part(number.field, number.label, Input::Decimal))
        .collect();
    let architectures = architectures_in_attributes(resources);
    if !architectures.is_empty() || is_asked(field_names::ARCHITECTURE) {
        let any = (String::new(), "Any".to_owned());
        let named = architectures.into_iter().map(|name| (name.clone(), name));
        let options = std::iter::once(any).chain(named).collect();
        fields.push(entered.part(field_names::ARCHITECTURE, "Architecture", Input::Choice(options)));
    }
    let errors = entered.problems.iter().filter_map(|problem| {
        let label = attribute_label_in_offer_form(problem.place)?;
        Some(format!("{label}: {}", problem.message))
    });
    let found: Vec<_> = NUMBERS
        .iter()
        .filter_map(|number| attribute_amounts_in_words(number, resources))
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
fn attribute_label_in_offer_form(place: FormPart) -> Option<&'static str> {
    match place {
        FormPart::NodeNumber(index) => Some(NUMBERS[index].label),
        FormPart::Architecture => Some("Architecture"),
        _ => None,
    }
}

/// The fields that are rarely filled in.
fn more_fields_of_offer_form(
    entered: EnteredFields<'_>,
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
        .map(|resource| (resource.name.clone(), hint_of_resource(resource)));
    [
        entered.field(
            field_names::RESOURCE,
            "On which resource?",
            "Any leaves the most room.",
            Input::Choice(std::iter::once(any).chain(named).collect()),
            FormPart::Resource,
        ),
        entered.field(
            field_names::FIX,
            "How long may it move inside your times?",
            hint_of_saving_by_slack(prices),
            options(&[
                ("", "Until it starts"),
                ("0.5", "For half of its wait"),
                ("0", "Never: its time is fixed at once"),
            ]),
            FormPart::Fix,
        ),
        entered.field(
            field_names::FLEXIBILITY,
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
            field_names::PIECES,
            "Into how many slots may it be cut? (optional)",
            "2 to 10, for applications that save their work. Cut work often ends earlier.",
            Input::Whole,
            FormPart::Pieces,
        ),
        entered.field(
            field_names::CHOICES,
            "How many offers at most? (optional)",
            format!("1 to {CHOICES_MAX}. Empty means: {CHOICES_MAX}."),
            Input::Whole,
            FormPart::Choices,
        ),
    ]
}

/// The applications to choose from; the one that is chosen has the errors of its arguments.
fn application_choices_of_offer_form(
    entered: EnteredFields<'_>,
    catalogue: &Catalogue,
) -> Vec<ApplicationChoice> {
    let selected = form_reader::read_form_application(entered.values, catalogue);
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
            let name = form_reader::argument_field(application, at);
            Field {
                id: argument_field_id(index, at),
                value: entered.values.get(&name).to_owned(),
                name,
                label: capitalised(&spec.name),
                hint: hint_of_argument(spec),
                errors: errors(at),
                input: input_of_argument_field(&spec.kind),
            }
        });
        ApplicationChoice {
            id: format!("application-{index}"),
            value: form_reader::form_value_of_application(application),
            name: application.name.clone(),
            version: application.version.clone(),
            description: application.description.clone(),
            chosen,
            arguments: arguments.collect(),
        }
    };
    catalogue.applications().iter().enumerate().map(choice).collect()
}

/// The form as it is shown.
pub(crate) async fn make_offer_form(api: &Api, visitor: &Visitor, asked: &SubmittedForm) -> OfferForm {
    let party = &visitor.caller.party;
    let prices = service::list_prices(&api.service, party).prices;
    let supply = Supply {
        catalogue: &api.service.catalogue(),
        files: service::list_input_files(&api.service, party).await,
        prices: prices.as_ref(),
        resources: service::list_offered_resources(&api.service).resources,
    };
    let once = asked.once.unwrap_or_else(Uuid::now_v7).to_string();
    let values = form_reader::form_read_in_zone(asked.values.clone(), &Zone::present());
    OfferForm::new(&values, &asked.problems, supply, once)
}
