//! How the service stands, on one page.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};

use crate::{Answer, Frame, render_page, text};
use api::Api;
use service::{
    EntryView, MoneyView, OperationsQueueEntryView, OperationsView, PastUseView, PriceListView, Scope,
};

/// The newest postings among which violations are looked for.
const POSTINGS: u32 = 100;

#[derive(Template)]
#[template(path = "portal/operator/overview.html")]
struct Overview {
    frame: Frame,
    operations: OperationsView,
    /// The name of each of the queue, and its slack in words.
    queue: Vec<(OperationsQueueEntryView, String, String)>,
    /// What the provider has paid for violations lately.
    paid: Vec<EntryView>,
    balances: Vec<MoneyView>,
    /// Of how many runs the predictions are known to be true or not, and how often they were, in a sentence; none before the first.
    reliability: Option<(usize, String)>,
    prices: Option<PriceListView>,
    /// How the resources were used; none right after the start.
    past: Option<PastUseView>,
}

/// GET /portal/operator.
pub(super) async fn show_overview_page(State(api): State<Api>, headers: HeaderMap) -> Answer {
    let visitor = super::signed_in_operator(&api, &headers).await?;
    let service = &api.service;
    let operations = service::show_operations(service).await?;
    let queue = operations.queue.iter().map(|waiting| {
        let slack = match waiting.slack_seconds {
            0 => "stays where it is".to_owned(),
            seconds => text::duration(seconds),
        };
        let name = text::name_or(waiting.name.as_deref(), waiting.application.as_deref());
        (waiting.clone(), name, slack)
    });
    let accounts = service::list_accounts(service, Scope::All, None, Some(POSTINGS)).await?;
    // A penalty of a party is below zero.
    let is_paid = |entry: &EntryView| {
        matches!(entry.kind.as_str(), "penalty" | "compensation") && !entry.amount.amount.starts_with('-')
    };
    let provider = accounts
        .accounts
        .into_iter()
        .filter(|account| account.account == "provider");
    let shown = Overview {
        frame: visitor.frame("Operate"),
        queue: queue.collect(),
        paid: accounts.entries.into_iter().filter(is_paid).collect(),
        balances: provider.map(|provider| provider.balance).collect(),
        reliability: service::show_reliability(service)
            .map(|reliability| (reliability.outcomes, reliability.summary)),
        prices: service::list_prices(service, &visitor.caller.party).prices,
        past: service::show_past_use(service),
        operations,
    };
    render_page(StatusCode::OK, &shown)
}
