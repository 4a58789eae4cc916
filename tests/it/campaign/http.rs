//! The campaign over HTTP: random verbs of two parties on things of their own, of the other or of neither. They come in
//! both representations, with repeated keys and stale tags, over kills of the service. Nothing fails, every state is reached
//! along an edge that the protocol has, every answer stays true, and no counter offer breaks a demand of its template.

use std::collections::BTreeMap;
use std::fs;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use super::templates::{Advised, Demands};
use crate::support::client::{Answer, Client};
use crate::support::negotiation::{Counter, SentOffer, counters, message, replacing};
use crate::support::offers::{Offer, date_time, file, hours_ahead};
use crate::support::random::Random;
use crate::support::run;
use crate::support::server::Server;
use crate::support::stores::TestDatabase;

/// Verbs of one run.
const VERBS: usize = 160;
/// The service is killed once in this number of verbs.
const KILL_EVERY: usize = 60;
const HOUR: i64 = 3_600;
const PARTIES: [&str; 2] = ["physics", "biology"];
const XML: &str = "application/xml";
const JSON: &str = "application/json";

/// Four nodes, holds for more than one answer, and two templates.
const CONFIGURATION: &str = "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n\
    [negotiation]\nholds_max = 50\noffers_max = 60\n\
    [[template]]\nfile = \"free.xml\"\n[[template]]\nfile = \"demanding.xml\"\n";

/// The known state of an offer of the service.
#[derive(Clone)]
struct KnownOffer {
    party: usize,
    counter: Counter,
    negotiation: Uuid,
    replaces: Option<Uuid>,
}

/// A request that had an effect under its key, and the answer.
#[derive(Clone)]
struct Keyed {
    party: usize,
    path: String,
    kind: &'static str,
    body: String,
    key: String,
    answer: String,
    status: StatusCode,
}

pub(super) struct World {
    pub(super) server: Server,
    keys: Vec<String>,
    clients: Vec<Client>,
    pub(super) random: Random,
    pub(super) demands: Demands,
    pub(super) advised: Advised,
    /// The party, and the agreement that is replaced.
    pub(super) negotiations: Vec<(usize, Uuid, Option<Uuid>)>,
    offers: Vec<KnownOffer>,
    pub(super) agreements: Vec<(usize, Uuid)>,
    keyed: Vec<Keyed>,
    /// The last state that was seen of each object.
    pub(super) states: BTreeMap<String, String>,
    told: RunLog,
}

/// The steps of a run, to look into a failure.
struct RunLog {
    seed: u64,
    lines: Vec<String>,
}

impl Drop for RunLog {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let from = self.lines.len().saturating_sub(30);
            eprintln!(
                "BESPEAK_TEST_SEED={}; the last of {} verbs:\n{}",
                self.seed,
                self.lines.len(),
                self.lines[from..].join("\n")
            );
        }
    }
}

#[test]
fn random_verbs_fail_nowhere_and_move_states_along_their_edges_only_on_sqlite() {
    live_on(TestDatabase::sqlite);
}

#[test]
fn random_verbs_fail_nowhere_and_move_states_along_their_edges_only_on_postgres() {
    live_on(TestDatabase::postgres);
}

/// Negotiations, offers, agreements, counter offers that differ, and those that break demands, in the runs of all seeds. Some random
/// templates allow none of the last two.
type Tally = [usize; 5];

fn live_on(make: fn() -> TestDatabase) {
    let mut tally = Tally::default();
    let seeds = super::seeds(super::SEEDS);
    let are_chosen = seeds.start > 1;
    for seed in seeds {
        let (database, before) = (make(), tally);
        run(live(database.url(), seed, &mut tally));
        let mut made = tally.iter().zip(before).zip([4, 6, 4]);
        assert!(
            made.all(|((now, before), least)| now - before >= least),
            "{seed}: {before:?} {tally:?}"
        );
    }
    assert!(are_chosen || tally.iter().all(|count| *count >= 1), "{tally:?}");
}

async fn live(url: &str, seed: u64, tally: &mut Tally) {
    let mut random = Random::new(seed);
    let demands = Demands::random(&mut random, hours_ahead(3));
    let server = Server::prepared(Some(url), |folder| {
        let write =
            |name: &str, text: &str| fs::write(folder.join(name), text).expect("a file can be written");
        let free = file("templates/agreements/advance-reservation.xml");
        write("free.xml", &free);
        write("demanding.xml", &demands.template(&free));
        write("bespeak.toml", CONFIGURATION);
    });
    let keys = PARTIES.map(|party| server.key_for(party, "consumer")).to_vec();
    let mut world = World {
        server,
        keys,
        clients: Vec::new(),
        random,
        demands,
        advised: Advised::default(),
        negotiations: Vec::new(),
        offers: Vec::new(),
        agreements: Vec::new(),
        keyed: Vec::new(),
        states: BTreeMap::new(),
        told: RunLog {
            seed,
            lines: Vec::new(),
        },
    };
    world.connect();
    for number in 1..=VERBS {
        let party = world.random.below(2);
        match world.random.below(17) {
            0 => world.open(party).await,
            1..=3 => world.offer(party).await,
            4 => world.counter(party).await,
            5 => world.advertise(party).await,
            6 | 7 => world.accept(party).await,
            8 => world.renegotiate(party).await,
            9 => world.terminate(party).await,
            10 => world.end(party).await,
            11 => world.reserve(party).await,
            12 => world.repeat().await,
            13 => world.change_resource().await,
            14 | 15 => world.advise().await,
            _ => world.look(party).await,
        }
        if number % KILL_EVERY == 0 {
            world.look_at_everything().await;
            world.server.kill9();
            world.server.assert_verified();
            world.server.restart();
            world.connect();
            world.look_at_everything().await;
        }
    }
    world.look_at_everything().await;
    world.advise_enough().await;
    world.server.assert_verified();
    let Advised {
        differing, breaking, ..
    } = world.advised;
    let (negotiations, offers) = (world.negotiations.len(), world.offers.len());
    let made = [negotiations, offers, world.agreements.len(), differing, breaking];
    tally.iter_mut().zip(made).for_each(|(all, one)| *all += one);
}

impl World {
    /// A client for each party, at the address where the service listens now.
    fn connect(&mut self) {
        let client = |key: &String| self.server.client_with(key);
        self.clients = self.keys.iter().map(client).collect();
    }

    pub(super) fn client(&self, party: usize) -> Client {
        self.clients[party].clone()
    }

    /// Sends a request, with a key once in three times; its result is never a failure of the service.
    async fn post(&mut self, party: usize, path: &str, kind: &'static str, body: String) -> Answer {
        let key = (self.random.below(3) == 0).then(|| format!("key-{}", self.told.lines.len()));
        let mut request = self
            .client(party)
            .request(Method::POST, path)
            .header("content-type", kind)
            .header("accept", kind)
            .body(body.clone());
        if let Some(key) = &key {
            request = request.header("idempotency-key", key);
        }
        let answer = self.client(party).send(request).await;
        self.told.lines.push(format!(
            "{} {path} {kind} {key:?}: {}",
            PARTIES[party],
            answer.status.as_u16()
        ));
        assert!(!answer.status.is_server_error(), "{path}: {answer:?}\n{body}");
        if let Some(key) = key.filter(|_| answer.status.is_success()) {
            let (path, status) = (path.to_owned(), answer.status);
            let answer = self.without_address(&answer);
            self.keyed.push(Keyed {
                party,
                path,
                kind,
                body,
                key,
                answer,
                status,
            });
        }
        answer
    }

    /// The body of an answer wherever the service listens.
    fn without_address(&self, answer: &Answer) -> String {
        let address = self.server.address().to_string();
        answer.body.replace(&address, "localhost")
    }

    fn kind(&mut self) -> &'static str {
        if self.random.below(2) == 0 { XML } else { JSON }
    }

    /// Some window of hours. None begins while the test runs.
    fn window(&mut self) -> (i64, i64) {
        let start = hours_ahead(2 + self.random.seconds(6));
        (start, start + HOUR * (1 + self.random.seconds(2)))
    }

    fn wanted(&mut self) -> Offer {
        let (start, end) = self.window();
        // Five nodes are one more than there are.
        let nodes = [1, 1, 2, 2, 3, 4, 5][self.random.below(7)];
        Offer::reserve(nodes, HOUR).within(start, end)
    }

    fn wish(&mut self) -> Value {
        let offer = self.wanted();
        let (start, end) = (offer.start.map(date_time), offer.end.map(date_time));
        json!({"nodes": offer.nodes, "durationSeconds": HOUR, "window": {"start": start, "end": end}})
    }

    /// A negotiation, mostly the party's own, and whether it is; one that does not exist now and then.
    fn negotiation(&mut self, party: usize) -> (Uuid, Option<Uuid>, bool) {
        match self.random.choose(&self.negotiations).copied() {
            Some((owner, id, replaces)) if owner == party || self.random.below(3) == 0 => {
                (id, replaces, owner == party)
            }
            _ => {
                let own = self
                    .negotiations
                    .iter()
                    .rev()
                    .find(|(negotiation, ..)| *negotiation == party);
                match own.copied().filter(|_| self.random.below(8) > 0) {
                    Some((_, id, replaces)) => (id, replaces, true),
                    None => (Uuid::nil(), None, false),
                }
            }
        }
    }

    fn agreement(&mut self, party: usize) -> (Uuid, bool) {
        match self.random.choose(&self.agreements).copied() {
            Some((owner, id)) => (id, owner == party),
            None => (Uuid::nil(), false),
        }
    }

    /// The answer to a foreign or unknown id: that there is none.
    fn assert_hidden(own: bool, answer: &Answer) {
        assert!(own || answer.status == StatusCode::NOT_FOUND, "{answer:?}");
    }

    fn learn(&mut self, party: usize, (negotiation, replaces): (Uuid, Option<Uuid>), answer: &Answer) {
        let known = |counter| KnownOffer {
            party,
            counter,
            negotiation,
            replaces,
        };
        if answer.content_type() == XML {
            self.offers.extend(counters(answer).into_iter().map(known));
        } else if answer.status.is_success() {
            for offer in answer.json()["offers"].as_array().into_iter().flatten() {
                let counter = Counter {
                    id: offer["id"].as_str().expect("an id").to_owned(),
                    state: offer["state"].as_str().expect("a state").to_owned(),
                    xml: String::new(),
                };
                self.offers.push(known(counter));
            }
        }
    }

    async fn open(&mut self, party: usize) {
        let kind = self.kind();
        let body = if kind == XML {
            file("tests/messages/m12-initiate-negotiation-input.xml").replace(
                "<wsag-neg:ExpirationTime>2026-01-09T12:00:00Z</wsag-neg:ExpirationTime>",
                "",
            )
        } else {
            self.wish().to_string()
        };
        let answer = self.post(party, "/negotiations", kind, body).await;
        if answer.status == StatusCode::CREATED {
            let id = answer.created();
            self.negotiations.push((party, id, None));
            if kind == JSON {
                self.learn(party, (id, None), &answer);
            }
        }
    }

    async fn offer(&mut self, party: usize) {
        let (id, replaces, own) = self.negotiation(party);
        let to = self
            .random
            .choose(&self.offers)
            .map(|known| known.counter.id.clone());
        let states = ["Solicited", "Solicited", "Acceptable", "Advisory", "Rejected"];
        let state = states[self.random.below(states.len())];
        let mut said = SentOffer {
            state,
            ..SentOffer::solicited(&format!("o-{}", self.random.below(300)), self.wanted())
        };
        if let Some(to) = to.filter(|_| state == "Rejected" || self.random.below(3) == 0) {
            said.to = to;
        }
        let mut offers = vec![said];
        if self.random.below(4) == 0 {
            let wanted = self.wanted();
            offers.push(SentOffer::solicited(
                &format!("p-{}", self.random.below(300)),
                wanted,
            ));
        }
        let path = format!("/negotiations/{id}/offers");
        let answer = self
            .post(party, &path, XML, message("NegotiateInput", &offers))
            .await;
        Self::assert_hidden(own, &answer);
        if answer.status == StatusCode::OK {
            self.learn(party, (id, replaces), &answer);
        }
    }

    async fn counter(&mut self, party: usize) {
        let (id, replaces, own) = self.negotiation(party);
        let mut wish = self.wish();
        if let Some(known) = self.random.choose(&self.offers) {
            wish["counterOfferTo"] = known.counter.id.clone().into();
        }
        if self.random.below(4) == 0 {
            wish["state"] = "Rejected".into();
        }
        let path = format!("/negotiations/{id}/offers");
        let answer = self.post(party, &path, JSON, wish.to_string()).await;
        Self::assert_hidden(own, &answer);
        self.learn(party, (id, replaces), &answer);
    }

    async fn advertise(&mut self, party: usize) {
        let (id, _, own) = self.negotiation(party);
        let path = format!("/negotiations/{id}/advertisements");
        let kind = self.kind();
        let body = if kind == XML {
            let said = SentOffer {
                state: "Advisory",
                ..SentOffer::solicited(&format!("a-{}", self.random.below(300)), self.wanted())
            };
            message("AdvertiseInput", &[said])
        } else {
            self.wish().to_string()
        };
        let answer = self.post(party, &path, kind, body).await;
        Self::assert_hidden(own, &answer);
    }

    async fn accept(&mut self, party: usize) {
        let Some(known) = self.random.choose(&self.offers).cloned() else {
            return;
        };
        let later = self.random.below(4) == 0;
        let (kind, body) = if known.counter.xml.is_empty() || self.random.below(2) == 0 {
            let body = if later {
                json!({"offer": known.counter.id, "pending": true})
            } else {
                json!({"offer": known.counter.id})
            };
            (JSON, body.to_string())
        } else {
            let mut input = known.counter.acceptance();
            // Now and then it is given the wrong kind.
            if let Some(old) = known.replaces.filter(|_| self.random.below(5) > 0) {
                input = replacing(&input, known.negotiation, old);
            }
            if later {
                input = input.replace("CreateAgreementInput", "CreatePendingAgreementInput");
            }
            (XML, input)
        };
        let answer = self.post(party, "/agreements", kind, body).await;
        // A rejected offer is in no tree, or no counter offer any more; the service chooses which of the two.
        let may = known.party == party;
        assert!(
            may || !answer.status.is_success(),
            "another party's offer: {answer:?}"
        );
        assert!(
            known.counter.state == "Acceptable" || !answer.status.is_success(),
            "it was {}: {answer:?}",
            known.counter.state
        );
        if answer.status.is_success() {
            let made = self.made(party, &answer);
            if later {
                return;
            }
            let accepted = format!("accepted {}", known.counter.id);
            let before = self.states.insert(accepted, made.to_string());
            // The same acceptance again has the same agreement.
            let same = before.is_none_or(|before| before == made.to_string());
            assert!(same, "an offer becomes one agreement");
            if let Some(old) = known.replaces {
                let old = self.client(party).get_json(&format!("/agreements/{old}")).await;
                assert_eq!(old["state"], "Complete", "{old}");
                assert_eq!(old["supersededBy"], made.to_string(), "{old}");
            }
        }
    }

    /// The agreement that was made.
    fn made(&mut self, party: usize, answer: &Answer) -> Uuid {
        let location = answer.headers["location"].to_str().expect("a path");
        let id = location.rsplit('/').next().unwrap_or_default();
        let id = id.parse().expect("an id");
        self.agreements.push((party, id));
        id
    }

    async fn renegotiate(&mut self, party: usize) {
        let (id, own) = self.agreement(party);
        let kind = self.kind();
        let body = if kind == XML {
            let about = file("tests/messages/m18-initiate-renegotiation-input.xml");
            about.replace("/a-1", &format!("/{id}"))
        } else {
            let mut wish = self.wish();
            wish["agreement"] = id.to_string().into();
            wish.to_string()
        };
        let answer = self.post(party, "/negotiations", kind, body).await;
        Self::assert_hidden(own || kind == JSON, &answer);
        if answer.status == StatusCode::CREATED {
            assert!(own, "another party's agreement: {answer:?}");
            let opened = answer.created();
            self.negotiations.push((party, opened, Some(id)));
            if kind == JSON {
                self.learn(party, (opened, Some(id)), &answer);
            }
        }
    }

    async fn terminate(&mut self, party: usize) {
        let (id, own) = self.agreement(party);
        let path = format!("/agreements/{id}/terminate");
        let tags = ["*", "\"1\"", "\"99\"", "W/\"1\""];
        let tag = tags[self.random.below(tags.len())];
        let request = self
            .client(party)
            .request(Method::POST, &path)
            .header("content-type", JSON)
            .header("accept", JSON)
            .header("if-match", tag)
            .body("{}");
        let answer = self.client(party).send(request).await;
        self.told.lines.push(format!(
            "{} {path} if-match {tag}: {}",
            PARTIES[party],
            answer.status.as_u16()
        ));
        assert!(!answer.status.is_server_error(), "{answer:?}");
        Self::assert_hidden(own, &answer);
        if tag != "*" && tag != "\"1\"" {
            assert!(!answer.status.is_success(), "a stale tag: {answer:?}");
        }
    }

    async fn end(&mut self, party: usize) {
        // Not too often, or nothing would go on.
        if self.random.below(2) == 0 {
            return;
        }
        let (id, _, own) = self.negotiation(party);
        let path = format!("/negotiations/{id}/terminate");
        let kind = self.kind();
        let body = if kind == XML { "" } else { "{}" };
        let answer = self.post(party, &path, kind, body.to_owned()).await;
        Self::assert_hidden(own, &answer);
    }

    async fn reserve(&mut self, party: usize) {
        let kind = self.kind();
        let body = if kind == XML {
            self.wanted().xml()
        } else {
            self.wish().to_string()
        };
        let answer = self.post(party, "/agreements", kind, body).await;
        if answer.status.is_success() {
            self.made(party, &answer);
        }
    }

    /// Sends an earlier request again, as it was and with another body.
    async fn repeat(&mut self) {
        let Some(keyed) = self.random.choose(&self.keyed).cloned() else {
            return;
        };
        let request = |client: &Client, body: String| {
            client
                .request(Method::POST, &keyed.path)
                .header("content-type", keyed.kind)
                .header("accept", keyed.kind)
                .header("idempotency-key", &keyed.key)
                .body(body)
        };
        let client = self.client(keyed.party);
        self.told.lines.push(format!("{} again", keyed.key));
        let again = client.send(request(&client, keyed.body.clone())).await;
        assert_eq!(again.status, keyed.status, "{again:?}");
        assert_eq!(self.without_address(&again), keyed.answer);
        let other = client.send(request(&client, format!("{} ", keyed.body))).await;
        assert_eq!(other.status, StatusCode::UNPROCESSABLE_ENTITY, "{other:?}");
    }

    /// An operator adds, resizes, retires, restores, freezes or thaws a resource, or asks what would follow.
    async fn change_resource(&mut self) {
        let name = ["local", "other"][self.random.below(2)];
        let asks = if self.random.below(3) == 0 {
            "?dryRun=true"
        } else {
            ""
        };
        let operator = self.server.client();
        let request = match self.random.below(8) {
            3 => operator.request(Method::POST, &format!("/resources/{name}/freeze{asks}")),
            4 | 5 => operator.request(Method::POST, &format!("/resources/{name}/thaw{asks}")),
            0 => operator.request(Method::POST, &format!("/resources/{name}/retire{asks}")),
            1 | 2 => operator.request(Method::POST, &format!("/resources/{name}/restore{asks}")),
            _ => operator
                .request(Method::PUT, &format!("/resources/{name}{asks}"))
                .json(&json!({ "nodes": 1 + self.random.below(6) })),
        };
        let answer = operator.send(request.header("accept", JSON)).await;
        self.told
            .lines
            .push(format!("operator {name} {asks}: {}", answer.status.as_u16()));
        assert!(
            answer.status == StatusCode::OK || name == "other" && answer.status == StatusCode::NOT_FOUND,
            "{answer:?}"
        );
    }

    async fn look(&mut self, party: usize) {
        let (id, _, own) = self.negotiation(party);
        let answer = self.client(party).get(&format!("/negotiations/{id}")).await;
        Self::assert_hidden(own, &answer);
        let (id, own) = self.agreement(party);
        let answer = self.client(party).get(&format!("/agreements/{id}")).await;
        Self::assert_hidden(own, &answer);
    }
}
