//! Estimates of cost: the filled form and some variants of it, with the first place and the price of each. Nothing is held.

use askama::Template;
use axum::extract::{Request as HttpRequest, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use domain::agreement::OfferKind;

use crate::failure::Failure;
use crate::negotiation::cards::card_deviation_in_words;
use crate::request::field_names;
use crate::request::filled_form::{
    filled_with_deadline, filled_with_start, form_address, form_filled_with_duration, form_filled_with_nodes,
};
use crate::request::form_reader::{PIECES_MAX, Problem};
use crate::request::offer_form::{OfferForm, make_offer_form};
use crate::request::problems::ProblemLine;
use crate::request::problems::problems_of_offer;
use crate::request::refusal::refusal_reason_in_words;
use crate::request::submitted_form::{SubmittedForm, read_submitted_values};
use crate::session::{self, Visitor};
use crate::text;
use crate::values::Values;
use crate::{Answer, Frame, redirect_to, render_page};
use api::{Api, use_cases_of_caller};
use service::{EstimateView, MoneyView, Request};

/// Seconds of a day.
const DAY: i64 = 86_400;

#[derive(Template)]
#[template(path = "portal/estimate.html")]
struct Estimate {
    frame: Frame,
    /// The mistakes of the form.
    wrong: Vec<ProblemLine>,
    variants: Vec<EstimateVariant>,
    /// Whether something is charged.
    is_priced: bool,
    /// Whether the probability of some variant is known.
    is_sure: bool,
    /// The form as it is filled in.
    address: String,
}

/// A variant of the form, and its best offer.
struct EstimateVariant {
    name: &'static str,
    address: String,
    /// The first place.
    start: Option<String>,
    end: Option<String>,
    /// The first offer beside the request, or why there is none.
    words: String,
    price: String,
    confidence: String,
}

/// POST /portal/estimate: the address of the page that says what the form would cost, without what belongs to this form alone.
pub(crate) async fn ask_for_estimate(State(api): State<Api>, request: HttpRequest) -> Answer {
    let (_, values) = session::read_session_form(&api, request).await?;
    Ok(redirect_to(&format!("/portal/estimate?{}", values.query())))
}

/// GET /portal/estimate: a page, or a part of the one with the form.
pub(crate) async fn show_estimate_page(State(api): State<Api>, headers: HeaderMap, uri: Uri) -> Answer {
    let visitor = session::visitor_of_session(&api, &headers, None).await?;
    let values = Values::read(uri.query().unwrap_or_default().as_bytes());
    let read = read_submitted_values(&api, &values);
    let mut form = SubmittedForm {
        problems: read.problems,
        ..SubmittedForm::default()
    };
    let mut variants = Vec::new();
    if form.problems.is_empty() {
        let may_be_cut = is_cut_cheaper(&api, &visitor, &read.wish);
        for (name, values) in variants_to_estimate(&read.wish, &values, may_be_cut) {
            let variant = read_submitted_values(&api, &values);
            if !variant.problems.is_empty() {
                variants.push(EstimateVariant::impossible(name, &values, variant.problems));
                continue;
            }
            match estimate_variant(&api, &visitor, (name, &values), variant.wish).await? {
                Ok(variant) => variants.push(variant),
                // A mistake of the form itself is in each variant.
                Err(error) if variants.is_empty() => {
                    form.note_error(error)?;
                    break;
                }
                Err(service::Error::Invalid(found) | service::Error::NotOffered(found)) => {
                    variants.push(EstimateVariant::impossible(
                        name,
                        &values,
                        problems_of_offer(&found, Vec::new()),
                    ));
                }
                Err(other) => return Err(other.into()),
            }
        }
    } else if let Err(error) = service::check_form(&api.service, &visitor.caller.party, read.wish).await {
        form.note_error(error)?;
    }
    form.values = values;
    let address = form_address(&form.values);
    let OfferForm { summary, .. } = make_offer_form(&api, &visitor, &form).await;
    let page = Estimate {
        frame: visitor.frame("What it would cost"),
        wrong: summary,
        is_priced: api.service.currency().is_some(),
        is_sure: variants.iter().any(|variant| !variant.confidence.is_empty()),
        variants,
        address,
    };
    render_page(StatusCode::OK, &page)
}

impl EstimateVariant {
    /// A variant that the provider does not take.
    fn impossible(name: &'static str, values: &Values, problems: Vec<Problem>) -> Self {
        let words: Vec<_> = problems.into_iter().map(|problem| problem.message).collect();
        Self {
            name,
            address: form_address(values),
            start: None,
            end: None,
            words: words.join(" "),
            price: String::new(),
            confidence: String::new(),
        }
    }
}

/// The offers for a variant; or its mistakes.
async fn estimate_variant(
    api: &Api,
    visitor: &Visitor,
    (name, values): (&'static str, &Values),
    wish: Request,
) -> Result<Result<EstimateVariant, service::Error>, Failure> {
    let use_cases = use_cases_of_caller(&api.service, &visitor.caller);
    match service::estimate_from_form(&use_cases, &visitor.caller.party, wish).await {
        Ok(estimate) => Ok(Ok(view_estimate_variant(name, values, &estimate))),
        Err(why @ (service::Error::Invalid(_) | service::Error::NotOffered(_))) => Ok(Err(why)),
        Err(service::Error::Refused(refusal)) => {
            let estimate = EstimateView {
                offers: Vec::new(),
                refusal: Some(refusal),
            };
            Ok(Ok(view_estimate_variant(name, values, &estimate)))
        }
        Err(other) => Err(other.into()),
    }
}

fn view_estimate_variant(name: &'static str, values: &Values, estimate: &EstimateView) -> EstimateVariant {
    let first = estimate.offers.first();
    let words = match (first, &estimate.refusal) {
        (Some(first), _) if first.kind == OfferKind::Exact => {
            format!(
                "There is room: {}.",
                text::size(first.nodes, first.duration_seconds)
            )
        }
        (Some(first), _) => format!(
            "No room as asked. The nearest is {}, {}.",
            text::size(first.nodes, first.duration_seconds),
            card_deviation_in_words(first)
        ),
        // The party may ask no more, or have no more: which of these, is said there.
        (None, Some(refusal)) if refusal.reason.word() == "QUOTA_EXCEEDED" => {
            format!("{}.", text::capitalised(&refusal.binding_constraint))
        }
        (None, Some(refusal)) => refusal_reason_in_words(refusal.reason.word()).to_owned(),
        (None, None) => "It cannot be offered.".to_owned(),
    };
    EstimateVariant {
        name,
        address: form_address(values),
        start: first.map(|first| first.start.clone()),
        end: first.map(|first| first.end.clone()),
        words,
        price: estimated_price_range(estimate.offers.iter().filter_map(|offer| offer.price.as_ref())),
        confidence: first
            .and_then(|first| first.confidence)
            .map_or_else(String::new, |sure| format!("{:.1} %", sure * 100.0)),
    }
}

/// `15 EUR`, or `15 to 20 EUR` where offers have several prices.
fn estimated_price_range<'a>(prices: impl Iterator<Item = &'a MoneyView> + Clone) -> String {
    let micros = |price: &&MoneyView| wsag::budget::parse_amount(&price.amount).unwrap_or(0);
    let bounds = (prices.clone().min_by_key(micros), prices.max_by_key(micros));
    match bounds {
        (Some(least), Some(most)) if least == most => least.to_string(),
        (Some(least), Some(most)) => format!("{} to {most}", least.amount),
        _ => String::new(),
    }
}

/// Whether the work of the form could be cut, and would cost less then.
fn is_cut_cheaper(api: &Api, visitor: &Visitor, wish: &Request) -> bool {
    let prices = service::list_prices(&api.service, &visitor.caller.party).prices;
    let is_cheaper = prices.is_some_and(|prices| prices.preemptive_percent > 0.0);
    let catalogue = api.service.catalogue();
    let application = (wish.run.as_ref()).and_then(|run| catalogue.find(&run.name, run.version.as_deref()));
    let saves = application.is_some_and(|application| application.checkpoint.is_some());
    is_cheaper && saves && wish.scheduling.preemption.is_none()
}

/// The form, and variants of it; one in pieces where its work `may_be_cut`.
fn variants_to_estimate(wish: &Request, values: &Values, may_be_cut: bool) -> Vec<(&'static str, Values)> {
    let mut variants = vec![("As it is filled in", values.clone())];
    if let Some((least, most)) = wish.nodes {
        if least > 1 {
            variants.push((
                "Half of the nodes",
                form_filled_with_nodes(values.clone(), least / 2, most / 2),
            ));
        }
        let twice = (least.saturating_mul(2), most.saturating_mul(2));
        variants.push((
            "Twice the nodes",
            form_filled_with_nodes(values.clone(), twice.0, twice.1),
        ));
    }
    if let Some(duration) = wish.duration.map(i64::from) {
        if duration > 1 {
            variants.push((
                "Half as long",
                form_filled_with_duration(values.clone(), duration / 2),
            ));
        }
        variants.push((
            "Twice as long",
            form_filled_with_duration(values.clone(), duration * 2),
        ));
    }
    if may_be_cut {
        let cut = values.clone().with(field_names::PIECES, PIECES_MAX.to_string());
        variants.push(("In up to ten slots", cut));
    }
    if let Some(end) = wish.end {
        let later = filled_with_deadline(values.clone(), Some(end.floor() + DAY));
        variants.push(("A deadline one day later", later.clone()));
        if let Some(start) = wish.start {
            let later = filled_with_start(later, Some(start.floor() + DAY));
            variants.push(("All one day later", later));
        }
    }
    variants
}

#[cfg(test)]
mod tests {
    use wsag::time::DateTime;

    use super::*;

    #[test]
    fn prices_are_told_as_a_range_where_they_differ() {
        let money = |amount: &str| MoneyView {
            amount: amount.to_owned(),
            currency: "EUR".to_owned(),
        };
        let prices = [money("9.5"), money("10"), money("20")];
        assert_eq!(estimated_price_range(prices.iter()), "9.5 to 20 EUR");
        assert_eq!(estimated_price_range(prices[..1].iter()), "9.5 EUR");
        assert_eq!(estimated_price_range([].iter()), "");
    }

    #[test]
    fn variants_change_only_what_is_said() {
        let names = |wish: &Request| {
            let variants = variants_to_estimate(wish, &Values::default(), false);
            variants.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names(&Request::default()), ["As it is filled in"]);
        let whole = Request {
            nodes: Some((2, 2)),
            duration: Some(60),
            start: Some(DateTime::from_seconds(0)),
            end: Some(DateTime::from_seconds(600)),
            ..Request::default()
        };
        assert_eq!(names(&whole).len(), 7);
        let cut = variants_to_estimate(&whole, &Values::default(), true);
        let cut = cut.into_iter().find(|(name, _)| *name == "In up to ten slots");
        assert_eq!(cut.unwrap().1.get(field_names::PIECES), "10");
    }
}
