//! What is asked one by one while so much waits.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use reqwest::{Method, StatusCode};
use scheduler::{Interval, Seconds, Time};
use serde_json::{Value, json};

use super::client::{Answer, Asked, Client};
use super::mix::{Format, HOUR, MINUTE, Wish};
use super::site::{Seen, Site};
use super::{Failure, Options};

/// The length of an urgent request.
const URGENT_LENGTH: Seconds = 5 * MINUTE;
/// How many are listed on a page.
const PAGE: usize = 200;

/// What was seen with one number of waiting ones, by the request.
#[derive(Default)]
pub(super) struct Level {
    pub(super) seen: BTreeMap<&'static str, Seen>,
    /// Everything that can be looked at, by its address.
    pub(super) looks: BTreeMap<String, Seen>,
    /// Addresses that answered something else than success when they were tried, with the status.
    pub(super) left_out: Vec<(String, u16)>,
    /// Milliseconds of work in a second of a pause.
    pub(super) idle: f64,
    /// Seconds until it was ready again.
    pub(super) start: f64,
}

/// The requests, in the order of the table. What follows from the last three is part of them.
pub(super) const REQUESTS: [&str; 16] = [
    "an offer that fits",
    "the same as a dry run",
    "held: negotiation",
    "held: acceptance",
    "refused, with alternatives",
    "urgent, all nodes, others move",
    "a change of a waiting one: quote",
    "a change of a waiting one: acceptance",
    LIST,
    OVERVIEW,
    GANTT,
    CALENDAR,
    "its calendar, of a party",
    MIDDLE,
    NEAR,
    FRONT,
];
pub(super) const URGENT: &str = REQUESTS[5];
const LIST: &str = "GET /agreements?state=…";
const OVERVIEW: &str = "the operator's overview";
const GANTT: &str = "the operator's Gantt";
const CALENDAR: &str = "the operator's calendar";
pub(super) const MIDDLE: &str = "ending one in the middle";
pub(super) const NEAR: &str = "ending one near the front";
pub(super) const FRONT: &str = "ending the reservation in front";

/// Sends each request as often as the options say, and looks at everything.
pub(super) async fn measure_requests(
    site: &mut Site,
    options: &Options,
    front: Option<Asked>,
    fronts: usize,
) -> Result<Level, Failure> {
    let mut level = Level {
        idle: site.measure_pause().await?.total(),
        ..Level::default()
    };
    let mut asking = Asking {
        site,
        options,
        level: &mut level,
        fronts_end: Time(0),
    };
    asking.fronts_end = asking.site.begin + asking.site.mix.front() * Seconds::try_from(fronts)?;
    let known = asking.ask_offers().await?;
    asking.ask_changes(known.last).await?;
    asking.look(&known).await?;
    asking.ask_ends(known.last).await?;
    if let Some(front) = front {
        asking.ask(FRONT, &[front], 200, true).await?;
    }
    level.start = site.service.restart().await?.as_secs_f64();
    Ok(level)
}

struct Asking<'a> {
    site: &'a mut Site,
    options: &'a Options,
    level: &'a mut Level,
    /// The end of what lies in front of all that waits.
    fronts_end: Time,
}

/// The ids of what was made, of the first party, and the last planned start.
struct Known {
    agreement: String,
    negotiation: String,
    offer: String,
    refusal: String,
    last: Time,
}

impl Asking<'_> {
    async fn ask(
        &mut self,
        what: &'static str,
        requests: &[Asked],
        expected: u16,
        watched: bool,
    ) -> Result<Vec<Answer>, Failure> {
        let at_most = Duration::from_secs(self.options.row_seconds);
        let (seen, answers) = self.site.ask(requests, expected, at_most, watched).await?;
        if seen.unexpected.0 > 0 {
            eprintln!(
                "{what}: {} unexpected answers: {}",
                seen.unexpected.0, seen.unexpected.1
            );
        }
        eprintln!("{what}: {} × {:.2} ms", seen.done, seen.work.total());
        self.level.seen.insert(what, seen);
        Ok(answers)
    }

    /// Offers of the mix to an address, one of each party in turn.
    fn offers(&mut self, path: &str, format: Format) -> Vec<Asked> {
        let clients = self.site.parties.clone();
        let clients = clients.iter().cycle().take(self.options.each);
        clients
            .map(|client| client.asks(Method::POST, path, self.site.wish().body(format)))
            .collect()
    }

    /// Offers that fit, are tried, are held, are refused, and move others.
    async fn ask_offers(&mut self) -> Result<Known, Failure> {
        let format = self.options.format;
        let fitting = self.offers("/agreements", format);
        let made = self.ask(REQUESTS[0], &fitting, 201, false).await?;
        self.site.offer = self.level.seen[REQUESTS[0]].work;
        let dry = self.offers("/agreements?dryRun=true", format);
        self.ask(REQUESTS[1], &dry, 200, false).await?;
        let wished = self.offers("/negotiations", Format::Json);
        let opened = self.ask(REQUESTS[2], &wished, 201, false).await?;
        let negotiation = opened
            .first()
            .map(|opened| opened.made.clone())
            .unwrap_or_default();
        let offer = self.accept(REQUESTS[3], &wished, &opened).await?;
        let refused = self.ask_impossible().await?;
        let refusal = refused
            .first()
            .and_then(|answer| answer.value()["refusal"]["id"].as_str().map(str::to_owned));
        self.ask_urgent().await?;
        let mut last = self.fronts_end;
        for made in made.iter().rev().take(20) {
            let path = format!("/agreements/{}", made.made);
            last = last.max(planned_start(&self.site.operator.looks(path).value().await?));
        }
        Ok(Known {
            agreement: made.first().map(|made| made.made.clone()).unwrap_or_default(),
            negotiation,
            offer,
            refusal: refusal.unwrap_or_default(),
            last,
        })
    }

    /// Accepts the first offer of each answer. Returns the id of the first one of all.
    async fn accept(
        &mut self,
        what: &'static str,
        asked: &[Asked],
        opened: &[Answer],
    ) -> Result<String, Failure> {
        let held = asked.iter().zip(opened).filter_map(|(asked, opened)| {
            let offer = opened.value()["offers"][0]["id"].as_str()?.to_owned();
            Some((asked.client.clone(), offer))
        });
        let held: Vec<_> = held.collect();
        let acceptances = held
            .iter()
            .map(|(client, offer)| client.posts("/agreements", json!({ "offer": offer })));
        let acceptances: Vec<_> = acceptances.collect();
        self.ask(what, &acceptances, 201, false).await?;
        Ok(held
            .into_iter()
            .next()
            .map(|(_, offer)| offer)
            .unwrap_or_default())
    }

    /// Offers for times at which the reservation in front has all nodes.
    async fn ask_impossible(&mut self) -> Result<Vec<Answer>, Failure> {
        let mut requests = Vec::new();
        let clients = self.site.parties.clone();
        for (number, client) in (0..).zip(clients.iter().cycle().take(self.options.each)) {
            let from = self.site.begin + HOUR + number % 60 * MINUTE;
            let wish = Wish {
                nodes: 4,
                duration: 10 * MINUTE,
                window: Interval::of(from, 2 * HOUR),
            };
            requests.push(client.asks(Method::POST, "/agreements", wish.body(self.options.format)));
        }
        self.ask(REQUESTS[4], &requests, 409, false).await
    }

    /// Offers for all nodes, each for the time at which what waits begins.
    async fn ask_urgent(&mut self) -> Result<(), Failure> {
        let mut requests = Vec::new();
        let (clients, mut start) = (self.site.parties.clone(), self.fronts_end);
        for client in clients.iter().cycle().take(self.options.each) {
            let wish = Wish::exactly(self.site.mix.nodes(), Interval::of(start, URGENT_LENGTH));
            requests.push(client.asks(Method::POST, "/agreements", wish.body(self.options.format)));
            start = wish.window.end;
        }
        let sent = self.ask(URGENT, &requests, 201, true).await?.len();
        self.fronts_end = self.fronts_end + URGENT_LENGTH * Seconds::try_from(sent)?;
        Ok(())
    }

    /// Makes waiting agreements in the middle a minute longer.
    async fn ask_changes(&mut self, last: Time) -> Result<(), Failure> {
        let waiting = self.waiting_from(self.middle(last)).await?;
        let changes = waiting.iter().map(|(client, agreement)| {
            let longer = agreement["durationSeconds"].as_i64().unwrap_or(0) + MINUTE;
            let change = json!({ "agreement": agreement["id"], "durationSeconds": longer });
            client.posts("/negotiations", change)
        });
        let changes: Vec<_> = changes.collect();
        let quoted = self.ask(REQUESTS[6], &changes, 201, false).await?;
        self.accept(REQUESTS[7], &changes, &quoted).await?;
        Ok(())
    }

    /// Ends waiting agreements in the middle, and then near the front.
    async fn ask_ends(&mut self, last: Time) -> Result<(), Failure> {
        for (what, from) in [(MIDDLE, self.middle(last)), (NEAR, self.fronts_end)] {
            let waiting = self.waiting_from(from).await?;
            let ends = waiting.iter().map(|(client, agreement)| {
                let id = agreement["id"].as_str().unwrap_or_default();
                client.posts(format!("/agreements/{id}/terminate"), json!({}))
            });
            let ends: Vec<_> = ends.collect();
            self.ask(what, &ends, 200, true).await?;
        }
        Ok(())
    }

    /// The middle of what waits, where its last begins then.
    fn middle(&self, last: Time) -> Time {
        Time(i64::midpoint(self.fronts_end.0, last.0))
    }

    /// Agreements that lie behind an instant, as many as requests are sent, each with its party.
    async fn waiting_from(&self, from: Time) -> Result<Vec<(Client, Value)>, Failure> {
        let (mut found, mut from, mut hours) = (BTreeMap::new(), from, 1);
        while found.len() < self.options.each && hours < 5_000 {
            let window = Wish::exactly(1, Interval::of(from, hours * HOUR)).json();
            let text = |member: &str| window["window"][member].as_str().unwrap_or_default().to_owned();
            let path = format!(
                "/agreements?state=Observed&limit={PAGE}&start={}&end={}",
                text("start"),
                text("end")
            );
            let mut after = String::new();
            loop {
                let page = self.site.operator.looks(format!("{path}{after}")).value().await?;
                for agreement in page["agreements"].as_array().into_iter().flatten() {
                    let number = agreement["party"]
                        .as_str()
                        .and_then(|party| party.strip_prefix("party-"));
                    let number = number.and_then(|number| number.parse::<usize>().ok());
                    let Some(client) = number.and_then(|number| self.site.parties.get(number)) else {
                        continue;
                    };
                    // Those that began before are found, too.
                    if planned_start(agreement) >= from {
                        let id = agreement["id"].as_str().unwrap_or_default().to_owned();
                        found.insert(
                            (planned_start(agreement), id),
                            (client.clone(), agreement.clone()),
                        );
                    }
                }
                match page["next"].as_str() {
                    Some(next) if found.len() < 20 * self.options.each => after = format!("&after={next}"),
                    _ => break,
                }
            }
            from = from + hours * HOUR;
            hours *= 2;
        }
        Ok(found.into_values().take(self.options.each).collect())
    }

    /// Looks at everything that there is, as an operator and as a party.
    async fn look(&mut self, known: &Known) -> Result<(), Failure> {
        let Site {
            operator,
            operator_page,
            parties,
            party_page,
            ..
        } = &*self.site;
        let (operator, party) = (operator.clone(), parties[0].clone());
        let (operator_page, party_page) = (operator_page.clone(), party_page.clone());
        for (what, client, path) in [
            (LIST, &operator, "/agreements?state=Observed"),
            (OVERVIEW, &operator_page, "/portal/operator"),
            (GANTT, &operator_page, "/portal/gantt"),
            (CALENDAR, &operator_page, "/portal/calendar"),
            (REQUESTS[12], &party_page, "/portal/calendar"),
        ] {
            let requests = vec![client.looks(path); self.options.each];
            self.ask(what, &requests, 200, false).await?;
        }
        if self.options.only_table {
            return Ok(());
        }
        let described = operator.looks("/openapi.json").value().await?;
        let described = described["paths"].as_object().into_iter().flatten();
        let looked = described.filter(|(_, operations)| operations.get("get").is_some());
        let paths: Vec<&str> = looked.map(|(path, _)| path.as_str()).chain(QUERIES).collect();
        let menu = portal::OPERATOR_PAGES.iter().map(|(path, _)| *path);
        let pages: Vec<&str> = menu.chain(PAGES).collect();
        for (who, client, paths) in [
            ("operator", operator, &paths),
            ("party", party, &paths),
            ("operator", operator_page, &pages),
            ("party", party_page, &pages),
        ] {
            for path in paths {
                self.look_at(format!("{path} ({who})"), &client.looks(self.filled(path, known)))
                    .await?;
            }
        }
        Ok(())
    }

    /// Looks at something again and again, where that can be looked at.
    async fn look_at(&mut self, name: String, asked: &Asked) -> Result<(), Failure> {
        let tried = asked.send().await?.status;
        if !tried.is_success() {
            // What parties may not look at is no surprise.
            if tried != StatusCode::FORBIDDEN {
                self.level.left_out.push((name, tried.as_u16()));
            }
            return Ok(());
        }
        let at_most = Duration::from_secs(self.options.row_seconds);
        let requests = vec![asked.clone(); self.options.each];
        let (seen, _) = self.site.ask(&requests, tried.as_u16(), at_most, false).await?;
        self.level.looks.insert(name, seen);
        Ok(())
    }

    /// An address with the id of something that is there.
    fn filled(&self, path: &str, known: &Known) -> String {
        for (noun, id) in [
            ("agreements/{id}", known.agreement.as_str()),
            ("negotiations/{id}", &known.negotiation),
            ("offers/{id}", &known.offer),
            ("refusals/{id}", &known.refusal),
            ("keys/{id}", &self.site.first_key),
            ("templates/{id}", "advance-reservation"),
            ("resources/{name}", "local"),
        ] {
            if let Some((before, after)) = path.split_once(noun) {
                let (noun, _) = noun.split_once('{').unwrap_or((noun, ""));
                return format!("{before}{noun}{id}{after}");
            }
        }
        path.to_owned()
    }
}

/// Looks with parameters.
const QUERIES: [&str; 7] = [
    "/agreements?state=Observed",
    "/agreements?state=Complete",
    "/agreements?party=party-0",
    "/agreements?name=nothing",
    "/events?party=party-0",
    "/usage?party=party-0",
    "/availability?nodes=128",
];
/// Pages beside those in the operators' menu.
const PAGES: [&str; 17] = [
    "/portal",
    "/portal/calendar?view=day",
    "/portal/calendar?view=week",
    "/portal/calendar?view=month",
    "/portal/gantt?span=week",
    "/portal/gantt?span=month",
    "/portal/negotiations",
    "/portal/reservations",
    "/portal/reservations?state=done",
    "/portal/reservations?q=nothing",
    "/portal/money",
    "/portal/settings",
    "/portal/agreements/{id}",
    "/portal/agreements/{id}/change",
    "/portal/agreements/{id}/terminate",
    "/portal/agreements/{id}/document.json",
    "/portal/negotiations/{id}",
];

/// The planned start of an agreement; the first instant of all where it has none.
fn planned_start(agreement: &Value) -> Time {
    let start = agreement["plannedStart"]
        .as_str()
        .and_then(|text| text.parse::<Timestamp>().ok());
    Time(start.map_or(0, Timestamp::as_second))
}
