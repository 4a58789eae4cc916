//! The CPU time of commands against the number of agreements that wait: measured, not compared with bounds, since it depends on the
//! machine.
#![expect(
    clippy::cast_precision_loss,
    clippy::too_many_lines,
    reason = "it prints a table with a row for each command"
)]

use std::fs;
use std::time::Instant;

use domain::agreement::{
    Currency, NegotiationInstance, NegotiationOffer, NegotiationRole, OfferState, Shape,
};
use domain::change::Change;
use domain::clock::MICROS_PER_SECOND;
use domain::resources::Resource;
use scheduler::pricing::Discount;
use scheduler::{Fraction, Seconds, Time};
use uuid::Uuid;

use super::super::decider::Decider;
use super::super::{Pricing, Quotas, RememberedAnswers, Request, Settings, State};
use super::harness::{proposal, work};
use crate::options::CommandOptions;
use crate::{
    Accept, Command, DecisionStep, Error, ExchangeOffers, ImprovementSettings, Initiate, OfferOrigin,
    OfferWords, Place, Quote, QuoteEnding, QuoteOffers, Terminate, Weights, rank_best_candidates,
};

const DAY: Seconds = 86_400;
/// The length of the reservation in front of all.
const FRONT: Seconds = DAY;
/// The instant at which all is decided.
const NOW: Seconds = 1_000;
/// How often each command is measured.
const TIMES: usize = 200;

/// Seconds of CPU of this thread, where the system tells them; else seconds of a clock.
struct Cpu(Instant);

impl Cpu {
    fn micros(&self) -> f64 {
        let told = fs::read_to_string("/proc/thread-self/schedstat").ok();
        let nanos = told.and_then(|told| told.split(' ').next()?.parse::<u64>().ok());
        nanos.map_or_else(
            || self.0.elapsed().as_secs_f64() * 1e6,
            |nanos| nanos as f64 / 1e3,
        )
    }
}

struct Site {
    settings: Settings,
    state: State,
    /// The next number of the generator.
    seed: u64,
    waiting: Vec<Uuid>,
    cpu: Cpu,
    figures: Vec<(&'static str, f64, f64, f64)>,
    many: usize,
}

impl Site {
    fn new() -> Self {
        let mut settings = Settings::new(vec![Resource::new("local", "local", 64)], 120 * DAY);
        let mut pricing = Pricing::flat(700_000, Currency::parse("EUR").unwrap());
        pricing.late = Fraction::percent(10);
        pricing.busy = Fraction::percent(80);
        pricing.flexible = Discount {
            most: Fraction::percent(40),
            half: 3_600,
        };
        pricing.cancellation = Fraction::percent(10);
        pricing.change = Fraction::percent(5);
        settings.pricing = Some(pricing);
        settings.improving = ImprovementSettings::default();
        settings.negotiation.holds_max = 100_000;
        settings.negotiation.open_max = 100_000;
        settings.quotas = Quotas {
            node_hours: Some(100_000_000),
            horizon: Some(110 * DAY),
            agreements: Some(1_000_000),
            probes_per_minute: Some(1_000_000),
            share_percent: Some(50),
        };
        let state =
            State::rebuild(&settings, &settings.resources, Vec::new(), Vec::new(), Time(NOW)).unwrap();
        let mut site = Self {
            settings,
            state,
            seed: 1,
            waiting: Vec::new(),
            cpu: Cpu(Instant::now()),
            figures: Vec::new(),
            many: 0,
        };
        let front = Request {
            party: "operations".into(),
            ..proposal(64, FRONT, (NOW + 1, NOW + 1 + FRONT))
        };
        site.place(front).unwrap();
        site.waiting.clear();
        site
    }

    fn below(&mut self, most: u64) -> i64 {
        self.seed = self.seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.seed;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        i64::try_from((bits ^ (bits >> 31)) % most).unwrap()
    }

    /// As users ask.
    fn request(&mut self) -> Request {
        let nodes = u32::try_from(1 + self.below(8)).unwrap();
        let duration = 300 + self.below(900);
        let party = format!("party {}", self.below(8));
        Request {
            party,
            ..work(nodes, duration, (NOW, NOW + 90 * DAY))
        }
    }

    /// One that finds no place: within the reservation in front, near its end.
    fn refused(&mut self) -> Request {
        let end = NOW + FRONT - self.below(600);
        Request {
            shapes: vec![Shape {
                nodes: 8,
                duration: 1_200,
            }],
            ready: Some(Time(end - 7_200)),
            deadline: Some(Time(end)),
            ..self.request()
        }
    }

    fn decide<C: Command>(&mut self, command: C, is_dry: bool) -> (Result<C::Answer, Error>, Vec<Change>) {
        let mut batch = Vec::new();
        self.state.advance(Time(NOW));
        let mut decider = Decider::new(
            &self.settings,
            &mut self.state,
            NOW * MICROS_PER_SECOND,
            Uuid::now_v7,
            &mut batch,
            RememberedAnswers::new(),
        );
        decider.make_due_decisions();
        let options = CommandOptions::default().or_dry(is_dry);
        let decision = decider.make_decision(command, &options);
        drop(decider.finish());
        self.state.take_suggestions();
        let _ = self.state.next_due();
        assert_eq!(self.state.why_impossible(), None);
        (decision.map(DecisionStep::done), batch)
    }

    /// Makes all slices of moves into free time that the last command leads to.
    fn make_slices(&mut self) {
        while self.state.may_move_up(Time(NOW)) {
            let (mut batch, settings) = (Vec::new(), &self.settings);
            let now = NOW * MICROS_PER_SECOND;
            let mut decider = Decider::new(
                settings,
                &mut self.state,
                now,
                Uuid::now_v7,
                &mut batch,
                RememberedAnswers::new(),
            );
            decider.move_some_up();
        }
    }

    fn place(&mut self, request: Request) -> Result<(), Error> {
        let id = request.id;
        self.decide(Place(request), false).0?;
        self.waiting.push(id);
        Ok(())
    }

    fn fill(&mut self, many: usize) {
        while self.waiting.len() < many {
            let request = self.request();
            self.place(request).unwrap();
        }
        self.many = many;
    }

    /// Has something measured that is made ready before.
    fn measure<T>(
        &mut self,
        what: &'static str,
        times: usize,
        mut ready: impl FnMut(&mut Self) -> T,
        mut run: impl FnMut(&mut Self, T),
    ) {
        let (mut each, mut slices): (Vec<f64>, f64) = (Vec::new(), 0.0);
        for _ in 0..times {
            let made = ready(self);
            let before = self.cpu.micros();
            run(self, made);
            each.push(self.cpu.micros() - before);
            let before = self.cpu.micros();
            self.make_slices();
            slices += self.cpu.micros() - before;
        }
        let slices = slices / each.len() as f64;
        each.sort_by(f64::total_cmp);
        let mean = each.iter().sum::<f64>() / each.len() as f64;
        self.figures
            .push((what, mean, each[each.len() * 99 / 100], slices));
    }

    fn offer(negotiation: Uuid, parent: Option<Uuid>, candidate: Option<&crate::Candidate>) -> OfferWords {
        let id = Uuid::now_v7();
        let offer = NegotiationOffer {
            id,
            negotiation,
            name: id.to_string(),
            parent,
            creator: match candidate {
                Some(_) => NegotiationRole::Responder,
                None => NegotiationRole::Initiator,
            },
            state: match candidate {
                Some(_) => OfferState::Acceptable,
                None => OfferState::Solicited,
            },
            created: NOW * MICROS_PER_SECOND,
            expires: candidate.map(|candidate| candidate.expires),
            terms: candidate.map(|candidate| candidate.terms.clone()),
            refusal: None,
            held: None,
            released: None,
            agreement: None,
        };
        OfferWords {
            offer,
            document: "<offer/>".into(),
        }
    }

    fn instance(request: &Request, agreement: Option<Uuid>) -> NegotiationInstance {
        NegotiationInstance {
            id: Uuid::now_v7(),
            party: request.party.clone(),
            agreement,
            created: NOW * MICROS_PER_SECOND,
            expires: Time(NOW + 3_600),
            ended: None,
            proposed: None,
        }
    }

    fn quote(&mut self, instance: &NegotiationInstance, proposal: Request) -> Quote {
        let ask = QuoteOffers {
            about: OfferOrigin::Opening(Box::new(instance.clone())),
            proposal,
            others: None,
            weights: Weights::default(),
        };
        self.decide(ask, false).0.unwrap()
    }

    /// Opens a negotiation in which the best of a quote are held. Returns these offers.
    fn hold(&mut self, instance: NegotiationInstance, quote: &Quote) -> Vec<NegotiationOffer> {
        let incoming = Self::offer(instance.id, None, None);
        let best = rank_best_candidates(&quote.candidates, Weights::default());
        let answers = best.iter();
        let answers = answers.map(|each| Self::offer(instance.id, Some(incoming.offer.id), Some(each)));
        let exchange = ExchangeOffers {
            negotiation: instance.id,
            answers: answers.collect(),
            incoming: Some(incoming),
            otherwise: OfferState::Rejected,
            opening: Some(Initiate {
                negotiation: instance,
                document: "<opening/>".into(),
                idempotency: None,
            }),
            idempotency: None,
        };
        self.decide(exchange, false).0.unwrap()
    }

    fn acceptance(offer: &NegotiationOffer, proposal: Request) -> Accept {
        Accept {
            negotiation: offer.negotiation,
            offer: offer.id,
            proposal,
            barred: None,
        }
    }

    /// A waiting agreement and a request for less in its place.
    fn change(&mut self, front: bool) -> (NegotiationInstance, Request) {
        let many = self.waiting.len();
        let at = if front {
            0
        } else {
            usize::try_from(self.below(many as u64)).unwrap()
        };
        let id = self.waiting[at];
        let old = self.state.agreements.get(id).unwrap().clone();
        let request = Request {
            party: old.party.clone(),
            shapes: vec![Shape {
                nodes: old.nodes(),
                duration: old.duration - 60,
            }],
            ..work(old.nodes(), old.duration - 60, (NOW, NOW + 90 * DAY))
        };
        (Self::instance(&request, Some(id)), request)
    }

    fn measure_all(&mut self) {
        self.measure("offer that fits", TIMES, Self::request, |site, request| {
            site.place(request).unwrap();
        });
        self.measure("dry run", TIMES, Self::request, |site, request| {
            site.decide(Place(request), true).0.unwrap();
        });
        self.measure("dry run, refused", TIMES, Self::refused, |site, request| {
            assert!(site.decide(Place(request), true).0.is_err());
        });
        self.measure(
            "refused with alternatives",
            TIMES,
            Self::refused,
            |site, request| {
                assert!(site.decide(Place(request), false).0.is_err());
            },
        );
        self.measure(
            "negotiation: quote",
            TIMES,
            |site| {
                let request = site.request();
                (Self::instance(&request, None), request)
            },
            |site, (instance, request)| {
                site.quote(&instance, request);
            },
        );
        let mut held = Vec::new();
        self.measure(
            "negotiation: hold",
            TIMES,
            |site| {
                let request = site.request();
                let instance = Self::instance(&request, None);
                let quote = site.quote(&instance, request.clone());
                (instance, quote, request)
            },
            |site, (instance, quote, request)| {
                let offers = site.hold(instance, &quote);
                assert!(offers[0].is_held());
                held.push((offers[0].clone(), request));
            },
        );
        let mut next = held.into_iter();
        self.measure(
            "acceptance of a held offer",
            TIMES,
            |_| next.next().unwrap(),
            |site, (offer, request)| {
                let id = request.id;
                site.decide(Self::acceptance(&offer, request), false).0.unwrap();
                site.waiting.push(id);
            },
        );
        self.measure(
            "change: quote",
            TIMES,
            |site| site.change(false),
            |site, (instance, request)| {
                site.quote(&instance, request);
            },
        );
        let mut changed = Vec::new();
        self.measure(
            "change: hold",
            TIMES,
            |site| {
                let (instance, request) = site.change(false);
                let quote = site.quote(&instance, request.clone());
                (instance, quote, request)
            },
            |site, (instance, quote, request)| {
                let old = instance.agreement.unwrap();
                let offers = site.hold(instance, &quote);
                if let Some(first) = offers.into_iter().find(NegotiationOffer::is_held) {
                    changed.push((first, request, old));
                }
            },
        );
        changed.dedup_by_key(|(_, _, old)| *old);
        let (many, mut next) = (changed.len().min(150), changed.into_iter());
        self.measure(
            "change: acceptance",
            many,
            |_| next.next().unwrap(),
            |site, (offer, request, old)| {
                let id = request.id;
                if site.decide(Self::acceptance(&offer, request), false).0.is_ok() {
                    site.waiting.retain(|each| *each != old);
                    site.waiting.push(id);
                }
            },
        );
        for (asked, what, middle) in [
            ("ending in the middle: quote", "ending in the middle", true),
            ("ending near the front: quote", "ending near the front", false),
        ] {
            let chosen = move |site: &mut Self| {
                let many = site.waiting.len();
                let at = if middle { many / 2 } else { 10 };
                Terminate::of(site.waiting[at], None)
            };
            self.measure(asked, TIMES, chosen, |site, order| {
                site.decide(QuoteEnding(order), false).0.unwrap();
            });
            self.measure(what, TIMES, chosen, |site, order| {
                let id = order.id;
                site.decide(order, false).0.unwrap();
                site.waiting.retain(|each| *each != id);
            });
        }
        self.measure(
            "due decisions alone",
            TIMES,
            |_| (),
            |site, ()| {
                let settings = site.settings.clone();
                let mut batch = Vec::new();
                let now = NOW * MICROS_PER_SECOND;
                let mut decider = Decider::new(
                    &settings,
                    &mut site.state,
                    now,
                    Uuid::now_v7,
                    &mut batch,
                    RememberedAnswers::new(),
                );
                decider.make_due_decisions();
                decider.take_decidable_commands();
            },
        );
    }
}

#[test]
#[ignore = "it measures for minutes; run it with --release and --nocapture"]
fn commands_cost_no_more_where_more_wait() {
    let mut site = Site::new();
    let mut columns = Vec::new();
    let sizes = std::env::var("WAITING").unwrap_or_else(|_| "1000,16000,100000".to_owned());
    for many in sizes.split(',').map(|many| many.parse().unwrap()) {
        site.fill(many);
        site.measure_all();
        for (what, mean, late, slices) in &site.figures {
            let (mean, late, slices) = (mean / 1e3, late / 1e3, slices / 1e3);
            println!("{many:>7} {what:<32} {mean:>9.3} ms, p99 {late:>9.3} ms, slices {slices:>9.3} ms");
        }
        columns.push(std::mem::take(&mut site.figures));
    }
    for (at, (what, ..)) in columns[0].iter().enumerate() {
        let row = columns
            .iter()
            .map(|column| format!("{:>9.3}", column[at].1 / 1e3));
        println!("{what:<32} {}", row.collect::<Vec<_>>().join(" "));
    }
}
