//! Random templates, plans and offers: no counter offer breaks a creation constraint or a rule of offers. The same template without
//! constraints shows that some would.

use std::fs;

use jiff::Timestamp;
use reqwest::StatusCode;

use crate::support::client::Client;
use crate::support::negotiation::{Counter, Said, negotiate, open};
use crate::support::offers::{Offer, date_time, file, hours_ahead};
use crate::support::random::Random;
use crate::support::server::Server;
use crate::support::xml::texts;
use crate::support::{run, size};

/// Templates, each of another seed; `BESPEAK_TEST_COUNTERED` asks for more.
const SEEDS: usize = 4;
/// Offers from each that are answered.
const OFFERS: usize = 12;
/// Times of offers and templates are multiples of it, in seconds.
const STEP: i64 = 900;

/// The demands of a template.
#[derive(Debug)]
struct Demands {
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
    fn random(random: &mut Random, from: i64) -> Self {
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
            .map(|of| format!("<xs:enumeration value=\"{of}\"/>"));
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
    fn are_met(&self, of: &Numbers) -> bool {
        let within = |duration: i64| {
            (self.duration.0..=self.duration.1).contains(&duration)
                && of.end - of.start >= duration
                && (of.nodes <= self.short.0 || duration <= self.short.1)
        };
        self.nodes.contains(&of.nodes)
            && of.start >= self.window.0
            && of.end <= self.window.1
            && of.end > of.start
            && of.duration.is_none_or(within)
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

/// A service with a template of these demands, and with another one, `free`, of none.
fn server(demands: &Demands) -> Server {
    let template = file("templates/agreements/advance-reservation.xml");
    // Items come before constraints.
    let last = "<wsag:Constraint>ready";
    let constrained = template.replace(last, &format!("{}{last}", demands.xml()));
    let resource = "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n";
    let templates = "[[template]]\nfile = \"constrained.xml\"\n[[template]]\nfile = \"free.xml\"\n";
    Server::prepared(None, |folder| {
        let write =
            |name: &str, text: &str| fs::write(folder.join(name), text).expect("a file can be written");
        write("constrained.xml", &constrained);
        write("free.xml", &template.replace("advance-reservation", "free"));
        write("bespeak.toml", &format!("{resource}{templates}"));
    })
}

/// An offer that asks for advice, so that nothing is held for its answers.
fn advisory(offer: &Offer, nth: usize) -> Said {
    let said =
        Said::solicited(&format!("o-{nth}"), offer.clone()).wishing("<bsp:MaxDeviation>2</bsp:MaxDeviation>");
    Said {
        state: "Advisory",
        ..said
    }
}

/// How many counter offers of a seed differ from their offer, and how many of the free template would break the demands.
async fn counter_offers_of(seed: u64) -> (usize, usize) {
    let (mut differing, mut breaking) = (0, 0);
    let mut random = Random::new(seed);
    let demands = Demands::random(&mut random, hours_ahead(3));
    let server = server(&demands);
    let client = server.client();
    for _ in 0..6 {
        let start = demands.window.0 + random.seconds(16) * STEP;
        let block = Offer::reserve(1 + u32::try_from(random.below(4)).expect("a few"), 2 * STEP);
        let block = block.within(start, start + 2 * STEP).xml();
        // Some have no room.
        client
            .post("/agreements", block.replace("advance-reservation", "free"))
            .await;
    }
    let negotiation = open(&client).await;
    for nth in 0..OFFERS {
        let said = advisory(&demands.offer(&mut random), nth);
        // Of each second one the duration follows from the nodes.
        let said = if nth % 2 == 0 {
            said
        } else {
            let law = "<bsp:Moldability><bsp:ConstantWork>3600</bsp:ConstantWork></bsp:Moldability><bsp:MaxDeviation>";
            let duration = format!("<arp:Duration>{}</arp:Duration>", said.offer.duration);
            Said {
                wishes: said.wishes.replace("<bsp:MaxDeviation>", law),
                ..said
            }
            .replacing(&duration, "")
        };
        for counter in negotiate(&client, negotiation, std::slice::from_ref(&said)).await {
            if counter.state == "Rejected" {
                continue;
            }
            let found = numbers(content(&counter));
            let about = format!("seed {seed}: {demands:?}: {said:?}: {counter:?}");
            assert!(demands.are_met(&found), "{found:?}: {about}");
            assert!(is_taken(&client, content(&counter)).await, "{about}");
            differing += usize::from(counter.text("Kind") != "Exact");
        }
        let free = Said {
            id: format!("f-{nth}"),
            to: "free".to_owned(),
            ..said
        }
        .replacing("advance-reservation", "free");
        for counter in negotiate(&client, negotiation, &[free]).await {
            if counter.state == "Rejected" {
                continue;
            }
            let content = content(&counter);
            if !demands.are_met(&numbers(content)) {
                let content = content.replace(">free<", ">advance-reservation<");
                assert!(
                    !is_taken(&client, &content).await,
                    "seed {seed}: {demands:?}: {counter:?}"
                );
                breaking += 1;
            }
        }
    }
    server.assert_verified();
    (differing, breaking)
}

#[test]
fn no_counter_offer_of_a_random_template_breaks_a_constraint_or_a_rule() {
    run(async {
        let (mut differing, mut breaking) = (0, 0);
        for seed in 1..=u64::try_from(size("BESPEAK_TEST_COUNTERED", SEEDS)).expect("not that many") {
            let found = counter_offers_of(seed).await;
            (differing, breaking) = (differing + found.0, breaking + found.1);
        }
        println!(
            "{differing} counter offers differ from their offers; {breaking} would have broken a demand"
        );
        assert!(differing > 0 && breaking > 0, "{differing} and {breaking}");
    });
}
