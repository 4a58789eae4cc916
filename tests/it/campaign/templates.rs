//! Random templates: no counter offer breaks a creation constraint or a rule of offers. The same template without constraints shows
//! that some would.

use jiff::Timestamp;
use reqwest::{Method, StatusCode};
use serde_json::json;

use super::http::World;
use crate::support::client::Client;
use crate::support::negotiation::{Counter, SentOffer, negotiate, open};
use crate::support::offers::{Offer, date_time};
use crate::support::random::Random;
use crate::support::xml::texts;

/// The template without demands, and the one with them.
const FREE: &str = "advance-reservation";
const DEMANDING: &str = "demanding";
/// Most requests for advice in a run.
const ASKED_MAX: usize = 200;
/// Times of offers and templates are multiples of it, in seconds.
const STEP: i64 = 900;

/// The demands of a template.
#[derive(Debug)]
pub(super) struct Demands {
    nodes: Vec<u32>,
    /// The least and the greatest duration, in seconds.
    duration: (i64, i64),
    /// The earliest start and the latest end.
    window: (i64, i64),
    /// On more nodes than this, the duration is this at most.
    short: (u32, i64),
}

/// The numbers of an offer.
#[derive(Debug)]
struct Numbers {
    nodes: u32,
    start: i64,
    end: i64,
    /// None where it follows from the nodes.
    duration: Option<i64>,
}

impl Demands {
    pub(super) fn random(random: &mut Random, from: i64) -> Self {
        let all = [vec![1, 2, 4], vec![2, 3, 4], vec![1, 4], vec![2, 4], vec![3, 4]];
        Self {
            nodes: random.choose(&all).expect("some").clone(),
            duration: ((1 + random.seconds(2)) * STEP, (6 + random.seconds(4)) * STEP),
            window: (
                from + (2 + random.seconds(4)) * STEP,
                from + (20 + random.seconds(8)) * STEP,
            ),
            short: (2, (3 + random.seconds(3)) * STEP),
        }
    }

    /// A template with these demands, from one without.
    pub(super) fn template(&self, free: &str) -> String {
        // Items come before constraints.
        let last = "<wsag:Constraint>ready";
        free.replace(last, &format!("{}{last}", self.xml()))
            .replace(FREE, DEMANDING)
    }

    fn xml(&self) -> String {
        let item = |name: &str, location: &str, facets: String| {
            format!(
                "<wsag:Item wsag:Name=\"{name}\"><wsag:Location>{location}</wsag:Location><wsag:ItemConstraint>{facets}\
                 </wsag:ItemConstraint></wsag:Item>"
            )
        };
        let sizes = self
            .nodes
            .iter()
            .map(|node| format!("<xs:enumeration value=\"{node}\"/>"));
        let (least, most) = self.duration;
        let between = format!("<xs:minInclusive value=\"{least}\"/><xs:maxInclusive value=\"{most}\"/>");
        let earliest = format!("<xs:minInclusive value=\"{}\"/>", date_time(self.window.0));
        let latest = format!("<xs:maxInclusive value=\"{}\"/>", date_time(self.window.1));
        let (few, short) = self.short;
        [
            item("sizes", "//jsdl:TotalResourceCount/jsdl:Exact", sizes.collect()),
            item("duration", "//arp:Duration", between),
            item("earliest", "//arp:StartTime", earliest),
            item("latest", "//arp:EndTime", latest),
            format!("<wsag:Constraint>nodes le {few} or duration le PT{short}S</wsag:Constraint>"),
        ]
        .concat()
    }

    /// Whether an offer with these numbers keeps to the template and to the rules of offers.
    fn are_met(&self, one_numbers: &Numbers) -> bool {
        let within = |duration: i64| {
            (self.duration.0..=self.duration.1).contains(&duration)
                && one_numbers.end - one_numbers.start >= duration
                && (one_numbers.nodes <= self.short.0 || duration <= self.short.1)
        };
        self.nodes.contains(&one_numbers.nodes)
            && one_numbers.start >= self.window.0
            && one_numbers.end <= self.window.1
            && one_numbers.end > one_numbers.start
            && one_numbers.duration.is_none_or(within)
    }

    /// An offer that keeps to them, often with no time to spare.
    fn offer(&self, random: &mut Random) -> Offer {
        let nodes = *random.choose(&self.nodes).expect("some");
        let most = if nodes > self.short.0 {
            self.duration.1.min(self.short.1)
        } else {
            self.duration.1
        };
        let steps = |bound: i64| usize::try_from(bound / STEP + 1).expect("a few");
        let duration = self.duration.0 + random.seconds(steps(most - self.duration.0)) * STEP;
        let last = self.window.1 - duration;
        let start = self.window.0 + random.seconds(steps(last - self.window.0)) * STEP;
        let spare = random.seconds(2) * random.seconds(steps(last - start)) * STEP;
        Offer::reserve(nodes, duration).within(start, start + duration + spare)
    }
}

/// The content of a counter offer without what makes it one.
fn content(counter: &Counter) -> &str {
    let (_, content) = counter.xml.split_once('>').expect("a root");
    let (content, _) = content
        .split_once("<wsag-neg:NegotiationOfferContext>")
        .expect("its context");
    content
}

fn numbers(content: &str) -> Numbers {
    let one = |name: &str| texts(content, name).first().map(|text| (*text).to_owned());
    let at = |name: &str| {
        let at: Timestamp = one(name).expect("it is said").parse().expect("an instant");
        at.as_second()
    };
    Numbers {
        nodes: one("Exact").expect("they are said").parse().expect("a number"),
        start: at("StartTime"),
        end: at("EndTime"),
        duration: one("Duration").map(|text| text.parse().expect("a number")),
    }
}

/// Whether a template takes an offer with this content: there may be no room for it.
async fn is_taken(client: &Client, content: &str) -> bool {
    let offer = format!(
        "<wsag:AgreementOffer xmlns:wsag=\"http://schemas.ggf.org/graap/2007/03/ws-agreement\" \
         xmlns:bsp=\"urn:bespeak:terms:1\">{content}</wsag:AgreementOffer>"
    );
    let answer = client.post("/agreements?dryRun=true", offer).await;
    match answer.status {
        StatusCode::OK | StatusCode::CONFLICT => true,
        StatusCode::UNPROCESSABLE_ENTITY => false,
        _ => panic!("{answer:?}"),
    }
}

/// An offer that asks for advice, so that nothing is held for its answers.
fn advisory(offer: &Offer, nth: usize) -> SentOffer {
    let said = SentOffer::solicited(&format!("o-{nth}"), offer.clone())
        .wishing("<bsp:MaxDeviation>2</bsp:MaxDeviation>");
    SentOffer {
        state: "Advisory",
        ..said
    }
}

/// What has come of requests for advice.
#[derive(Debug, Default)]
pub(super) struct Advised {
    asked: usize,
    /// Counter offers that differ from their offers.
    pub(super) differing: usize,
    /// Counter offers of the template without demands that would break those of the other.
    pub(super) breaking: usize,
}

impl World {
    /// Asks for advice with both templates. Of each second offer the duration follows from the nodes.
    pub(super) async fn advise(&mut self) {
        let client = self.server.client();
        let nth = self.advised.asked;
        self.advised.asked += 1;
        let said = advisory(&self.demands.offer(&mut self.random), nth);
        let said = if nth.is_multiple_of(2) {
            said
        } else {
            let law = "<bsp:Moldability><bsp:ConstantWork>3600</bsp:ConstantWork></bsp:Moldability><bsp:MaxDeviation>";
            let duration = format!("<arp:Duration>{}</arp:Duration>", said.offer.duration);
            SentOffer {
                wishes: said.wishes.replace("<bsp:MaxDeviation>", law),
                ..said
            }
            .replacing(&duration, "")
        };
        let demanding = SentOffer {
            id: format!("d-{nth}"),
            to: DEMANDING.to_owned(),
            ..said.clone()
        }
        .replacing(FREE, DEMANDING);
        let negotiation = open(&client).await;
        let counters = negotiate(&client, negotiation, &[demanding]).await;
        for counter in counters.iter().filter(|counter| counter.state != "Rejected") {
            let about = format!("{:?}: {said:?}: {counter:?}", self.demands);
            let found = numbers(content(counter));
            assert!(self.demands.are_met(&found), "{found:?}: {about}");
            assert!(is_taken(&client, content(counter)).await, "{about}");
            self.advised.differing += usize::from(counter.text("Kind") != "Exact");
        }
        let counters = negotiate(&client, negotiation, &[said]).await;
        for counter in counters.iter().filter(|counter| counter.state != "Rejected") {
            if !self.demands.are_met(&numbers(content(counter))) {
                let content = content(counter).replace(&format!(">{FREE}<"), &format!(">{DEMANDING}<"));
                assert!(
                    !is_taken(&client, &content).await,
                    "{:?}: {counter:?}",
                    self.demands
                );
                self.advised.breaking += 1;
            }
        }
        client
            .post(&format!("/negotiations/{negotiation}/terminate"), "")
            .await;
    }

    /// Asks on, on all nodes, until a counter offer has differed from its offer, and one has broken the demands of the other template.
    /// Some random demands allow neither: it gives up after [`ASKED_MAX`] requests.
    pub(super) async fn advise_enough(&mut self) {
        let operator = self.server.client();
        for (method, path) in [
            (Method::PUT, "/resources/local"),
            (Method::POST, "/resources/local/restore"),
            (Method::POST, "/resources/local/thaw"),
        ] {
            let request = operator.request(method, path).json(&json!({ "nodes": 4 }));
            let answer = operator.send(request).await;
            assert!(answer.status.is_success(), "{answer:?}");
        }
        while (self.advised.differing == 0 || self.advised.breaking == 0) && self.advised.asked < ASKED_MAX {
            self.advise().await;
        }
    }
}
