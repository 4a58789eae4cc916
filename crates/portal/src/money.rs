//! Money: what a party has been charged and credited, by month, and the entries behind a month.

use askama::Template;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use futures_util::stream;
use jiff::civil::Date;
use uuid::Uuid;

use super::failure::Failure;
use super::session::{self, Visitor};
use super::values::Values;
use super::{Answer, Frame, page_attachment, render_page, text};
use access::Role;
use api::Api;
use service::{MoneyView, MonthView, NamedEntryView, Service, is_month};

/// Months in the picture and in the table.
const MONTHS: usize = 12;
/// Entries on a page, and of one part of an export.
const ENTRIES: u32 = 50;
const EXPORTED: u32 = 200;
/// Pixels of a bar of the picture at its highest.
const BAR: i128 = 80;

#[derive(Template)]
#[template(path = "portal/money.html")]
struct MoneyPage {
    frame: Frame,
    /// The account that is shown.
    party: String,
    /// Whether others can be shown.
    is_everybodys: bool,
    balances: Vec<BalanceLine>,
    cap: Option<Cap>,
    pictures: Vec<Bars>,
    months: Vec<MonthLine>,
    /// The month whose entries are shown; the newest where none is asked for.
    month: Option<String>,
    entries: Vec<EntryLine>,
    /// Where the entries go on.
    next: Option<String>,
    /// Where the months go on.
    older: Option<String>,
    export: String,
}

/// The present balance in a currency.
struct BalanceLine {
    amount: MoneyView,
    words: &'static str,
}

/// What the visitor's key may spend.
struct Cap {
    most: MoneyView,
    spent: MoneyView,
}

struct MonthLine {
    is: MonthView,
    address: String,
}

struct EntryLine {
    is: NamedEntryView,
    name: String,
    title: &'static str,
}

/// Months of one currency as bars.
struct Bars {
    title: String,
    bars: Vec<Bar>,
}

struct Bar {
    /// Parts of the width, in percent.
    x: String,
    middle: String,
    width: String,
    /// Pixels.
    credit: i128,
    charge: i128,
    label: String,
}

/// GET /portal/money.
pub(super) async fn show_money_page(State(api): State<Api>, headers: HeaderMap, uri: Uri) -> Answer {
    let visitor = session::visitor_of_session(&api, &headers, None).await?;
    let asked = Values::read(uri.query().unwrap_or_default().as_bytes());
    let party = party_of_money_page(&visitor, &asked);
    let all = service::list_account_months(&api.service, &party).await?;
    let before = asked.trimmed("before");
    let earlier = all
        .iter()
        .filter(|month| before.is_empty() || month.month.as_str() < before);
    let earlier: Vec<&MonthView> = earlier.collect();
    // A month has a line for each currency.
    let mut named_months: Vec<&str> = earlier.iter().map(|earlier| earlier.month.as_str()).collect();
    named_months.dedup();
    let oldest = named_months.get(MONTHS - 1).copied().unwrap_or_default();
    let months: Vec<&MonthView> = earlier
        .into_iter()
        .filter(|earlier| earlier.month.as_str() >= oldest)
        .collect();
    let is_more = months.last().is_some_and(|last| all.last() != Some(*last));
    let month = Some(asked.trimmed("month").to_owned()).filter(|month| is_month(month));
    let month = month.or_else(|| months.first().map(|month| month.month.clone()));
    let after: Option<Uuid> = asked.get("after").parse().ok();
    let (entries, next) = match &month {
        None => (Vec::new(), None),
        Some(month) => {
            service::list_account_entries(&api.service, &party, Some(month), after, Some(ENTRIES)).await?
        }
    };
    let is_everybodys = visitor.caller.role == Role::Operator;
    let named: Vec<(&str, &str)> = if is_everybodys {
        vec![("party", &party)]
    } else {
        Vec::new()
    };
    let address = |page: &str, more: &[(&str, &str)]| {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(named.iter().chain(more));
        format!("/portal/money{page}?{}", query.finish())
    };
    let shown = MoneyPage {
        frame: visitor.frame("Money"),
        balances: money_balances_of_months(&all),
        cap: money_cap_of_key(&api, &visitor).await?,
        pictures: money_pictures_of_months(&months),
        older: months
            .last()
            .filter(|_| is_more)
            .map(|last| address("", &[("before", &last.month)])),
        next: next.zip(month.as_ref()).map(|(after, month)| {
            address(
                "",
                &[
                    ("month", month),
                    ("before", before),
                    ("after", &after.to_string()),
                ],
            )
        }),
        months: months
            .into_iter()
            .map(|month| MonthLine {
                address: address("", &[("month", &month.month), ("before", before)]) + "#entries",
                is: month.clone(),
            })
            .collect(),
        entries: entries.into_iter().map(money_entry_line).collect(),
        export: address("/export.csv", &[]),
        month,
        party,
        is_everybodys,
    };
    render_page(StatusCode::OK, &shown)
}

/// The account that is asked for: a visitor's own, for an operator anyone's.
fn party_of_money_page(visitor: &Visitor, asked: &Values) -> String {
    let named = asked.trimmed("party");
    if visitor.caller.role == Role::Operator && !named.is_empty() {
        return named.replace('\0', "");
    }
    visitor.caller.party.clone()
}

/// The balance of each currency: at the end of the newest month in which something happened in it.
fn money_balances_of_months(months: &[MonthView]) -> Vec<BalanceLine> {
    let mut known: Vec<BalanceLine> = Vec::new();
    for month in months {
        if known
            .iter()
            .all(|line| line.amount.currency != month.balance.currency)
        {
            let words = match month.balance.amount.as_str() {
                "0" => "nothing is owed",
                amount if amount.starts_with('-') => "is owed to the provider",
                _ => "is owed by the provider",
            };
            let amount = MoneyView {
                amount: month.balance.amount.trim_start_matches('-').to_owned(),
                ..month.balance.clone()
            };
            known.push(BalanceLine { amount, words });
        }
    }
    known
}

async fn money_cap_of_key(api: &Api, visitor: &Visitor) -> Result<Option<Cap>, Failure> {
    let Some(most) = visitor.caller.limits.spending_cap else {
        return Ok(None);
    };
    let spent = api.access.spent().await.map_err(service::Error::from)?;
    let micros = spent.get(&visitor.caller.key).copied().unwrap_or(0);
    Ok(Some(Cap {
        spent: MoneyView::of(domain::agreement::Money { micros, ..most }),
        most: MoneyView::of(most),
    }))
}

/// A picture for each currency, with the oldest month first.
fn money_pictures_of_months(months: &[&MonthView]) -> Vec<Bars> {
    let mut currencies: Vec<&str> = months
        .iter()
        .map(|month| month.credits.currency.as_str())
        .collect();
    currencies.sort_unstable();
    currencies.dedup();
    let picture = |currency: &str| {
        let own = months
            .iter()
            .rev()
            .filter(|month| month.credits.currency == currency);
        let own: Vec<_> = own.collect();
        let most = own
            .iter()
            .map(|month| month.micros.0.max(month.micros.1.saturating_neg()))
            .max();
        let most = i128::from(most.unwrap_or(1).max(1));
        let height = |micros: i64| (i128::from(micros) * BAR / most).max(i128::from(micros > 0));
        // As wide in a first month as in a whole year.
        let count = own.len().max(MONTHS);
        let percent = |hundredths: usize| format!("{}.{:02}%", hundredths / 100, hundredths % 100);
        let bars = own.iter().enumerate().map(|(index, month)| Bar {
            x: percent(index * 10_000 / count),
            middle: percent((index * 2 + 1) * 5_000 / count),
            width: percent(4_000 / count),
            credit: height(month.micros.0),
            charge: height(month.micros.1.saturating_neg()),
            label: short_money_month(&month.month),
        });
        Bars {
            title: format!("Charges and credits in {currency} by month, as in the table"),
            bars: bars.collect(),
        }
    };
    currencies.into_iter().map(picture).collect()
}

/// A month such as 2026-11 under a bar: `Nov`, with its year where that begins.
fn short_money_month(month: &str) -> String {
    let first = Date::strptime("%Y-%m-%d", format!("{month}-01"));
    first.map_or_else(
        |_| month.to_owned(),
        |first| {
            first
                .strftime(if first.month() == 1 { "%b %Y" } else { "%b" })
                .to_string()
        },
    )
}

fn money_entry_line(is: NamedEntryView) -> EntryLine {
    EntryLine {
        title: title_of_money_entry(&is.entry.kind),
        name: text::name_or(is.name.as_deref(), is.application.as_deref()),
        is,
    }
}

/// The reason of a posting in plain words.
pub(super) fn title_of_money_entry(kind: &str) -> &'static str {
    match kind {
        "price" => "Price",
        "cancellation" => "Fee for cancelling",
        "change" => "Fee for a change",
        "overrun" => "More time than was agreed",
        "penalty" => "For a broken guarantee",
        "reward" => "For a kept guarantee",
        "compensation" => "Compensation",
        _ => "Other",
    }
}

/// GET /portal/money/export.csv: every entry of the account, newest first.
pub(super) async fn export_money_entries(State(api): State<Api>, headers: HeaderMap, uri: Uri) -> Answer {
    let visitor = session::visitor_of_session(&api, &headers, None).await?;
    let asked = Values::read(uri.query().unwrap_or_default().as_bytes());
    let party = party_of_money_page(&visitor, &asked);
    // The first part is read here, so that a failure is an answer of its own.
    let first = money_export_part(&api.service, &party, None).await?;
    let heading = "time,month,reason,amount,currency,reservation,name,particulars\r\n".to_owned();
    let state = Some((heading + &first.0, first.1));
    let parts = stream::unfold(state, move |state| {
        let (api, party) = (api.clone(), party.clone());
        async move {
            let (text, next) = state?;
            let following = match next {
                None => None,
                Some(after) => match money_export_part(&api.service, &party, Some(after)).await {
                    Ok(part) => Some(part),
                    // The file breaks off, so that no reader takes a part for the whole.
                    Err(why) => return Some((Err(why), None)),
                },
            };
            Some((Ok(Bytes::from(text)), following))
        }
    });
    let kind = "text/csv; charset=utf-8; header=present";
    Ok(page_attachment(kind, "entries.csv", Body::from_stream(parts)))
}

/// Some entries as lines, and where the next ones begin.
async fn money_export_part(
    service: &Service,
    party: &str,
    after: Option<Uuid>,
) -> Result<(String, Option<Uuid>), service::Error> {
    let (entries, next) = service::list_account_entries(service, party, None, after, Some(EXPORTED)).await?;
    Ok((entries.iter().map(line_of_money_page_export).collect(), next))
}

fn line_of_money_page_export(named: &NamedEntryView) -> String {
    let entry = &named.entry;
    let agreement = entry.agreement.to_string();
    let texts = [
        entry.at.as_str(),
        entry.at.get(..7).unwrap_or_default(),
        title_of_money_entry(&entry.kind),
    ];
    let more = [
        agreement.as_str(),
        named.name.as_deref().unwrap_or_default(),
        &entry.detail,
    ];
    let texts = texts.map(cell_of_money_export).join(",");
    let more = more.map(cell_of_money_export).join(",");
    // A number stays one, also below zero.
    format!(
        "{texts},{},{},{more}\r\n",
        entry.amount.amount, entry.amount.currency
    )
}

/// A text as a cell of a file with comma-separated values (RFC 4180). A program for tables would take one that begins with a sign for a
/// formula, so an apostrophe stands before it.
fn cell_of_money_export(text: &str) -> String {
    let is_formula =
        text.trim_start().starts_with(['=', '+', '-', '@']) || text.starts_with(['\t', '\r', '\n']);
    let safe = if is_formula { "'" } else { "" };
    format!("\"{safe}{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula_or_ends_early() {
        for (text, cell) in [
            ("plain", "\"plain\""),
            ("a \"b\", c", "\"a \"\"b\"\", c\""),
            ("=1+1", "\"'=1+1\""),
            (" @x", "\"' @x\""),
            ("-2", "\"'-2\""),
            ("\t=1", "\"'\t=1\""),
        ] {
            assert_eq!(cell_of_money_export(text), cell);
        }
    }
}
