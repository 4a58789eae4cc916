//! Golden traces of fifty stories: random verbs on a plan in memory, by a clock that the story turns. The same seed tells the same
//! story. A trace has each verb, its answer with the alternatives of a refusal, and every change that would have been stored: agreements
//! with their slots, prices and guarantees, events, postings, offers, nodes and resources.
//!
//! Half of the verbs of a story are those of its theme, the seed modulo the number of themes:
//!
//! | theme | verbs |
//! |---|---|
//! | 0 slices | agreements end early, and counted slices move others up; with each move, or with those that gain enough |
//! | 1 prices and fees | agreements are ended by their parties and by the provider, evicted with a compensation, and moved |
//! | 2 faults and repair | nodes fail, are drained, busy, and come back |
//! | 3 held offers | parties ask for offers, accept and reject them, let them lapse, and end negotiations |
//! | 4 renegotiation | agreements are changed, before their slots and in them |
//! | 5 peers | all nodes fail, and a peer carries agreements out, moves, loses or settles them |
//! | 6 dry runs | what is asked first, and nothing follows |
//! | 7 resources | they come, grow, shrink, are frozen and retired |
//!
//! In all of them parties ask for agreements (of one size or several, in pieces, restarting, within quotas), time passes, work ends
//! in every way, and the provider proposes. The seeds differ in their resources, in the order, the rule and the objective of
//! decisions, in prices and in how much refusals show.
//!
//! No story has clusters that reserve nodes, pending agreements, predictions or energy, and none is stored: see `tests/it/golden.rs`
//! for the traces that are.

mod bargains;
pub(crate) mod state_digest;
mod trace;
mod verbs;

#[path = "../../../../tests/it/golden/digests.rs"]
mod digests;
#[path = "../../../../tests/it/support/random.rs"]
mod random;

use std::collections::BTreeMap;
use std::path::Path;

use domain::agreement::{AtPeer, Currency, JobEnd, NegotiationInstance, NegotiationOffer, Run, RunOutcome};
use domain::clock::MICROS_PER_SECOND;
use domain::resources::{PEER, Resource};
use scheduler::domain::Objective;
use scheduler::pricing::Discount;
use scheduler::schedule::DecisionRule;
use scheduler::{Fraction, Order, Seconds, Time};
use uuid::Uuid;

use self::digests::assert_golden;
use self::random::Random;
use self::state_digest::state_digest;
use self::trace::{agreement_in_words, error_in_words};
use super::super::decider::Decider;
use super::super::{Error, ImprovementSettings, Pricing, Quotas, Settings};
use super::harness::{Domain, rated};
use crate::commands::{BeginDue, Place, ReportEnded, ReportStarted};

pub(crate) use self::trace::Trace;

/// How many stories there are.
const STORIES: usize = 50;
/// Verbs of one story, beside the requests and the time between them.
const VERBS: usize = 60;
const THEMES: usize = 8;
/// How far ahead is planned.
const HORIZON: Seconds = 4_000;
/// The template of work that is run again when it is lost.
const RESTARTING: &str = "restarting";

#[test]
fn golden_stories_are_told_as_before() {
    let traces: BTreeMap<String, String> = (1..=STORIES)
        .map(|seed| (format!("planner {seed}"), Story::tell(seed, false)))
        .collect();
    // A trace of stories in which nothing happens would hold nothing still.
    for happens in [
        "into time that became free",
        " price from party:",
        " cancellation from party:",
        " change from party:",
        " penalty from provider",
        " compensation from provider",
        "refused: NO_CAPACITY_IN_WINDOW",
        "refused: QUOTA_EXCEEDED",
        " 1 lost, ",
        " 1 moved, ",
        " Acceptable, expires",
        "not done: the offer has expired",
        " supersedes ",
        "other domains are asked",
        "charged by the peer",
        "dry place",
        "dry terminate",
        "capacity of fast",
        " + ",
    ] {
        assert!(
            traces.values().any(|trace| trace.contains(happens)),
            "in no story: {happens}"
        );
    }
    let digests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden.txt");
    assert_golden(&digests, &traces);
}

#[test]
fn what_is_tried_out_is_answered_as_what_is_decided_and_leaves_all_as_it_was() {
    for seed in 1..=STORIES {
        Story::tell(seed, true);
    }
}

fn euro() -> Currency {
    Currency::parse("EUR").unwrap()
}

/// A price list with every rule.
fn pricing() -> Pricing {
    let mut pricing = Pricing::flat(700_000, euro());
    pricing.resources = [("fast".to_owned(), 900_000)].into();
    pricing.profiles = [("biology".to_owned(), Fraction::percent(90))].into();
    pricing.late = Fraction::percent(10);
    pricing.busy = Fraction::percent(80);
    pricing.flexible = Discount {
        most: Fraction::percent(40),
        half: 50,
    };
    pricing.cancellation = Fraction::percent(10);
    pricing.change = Fraction::percent(5);
    pricing
}

/// One resource, so that requests meet each other, or several; and a peer where the story is about one.
fn resources(seed: usize) -> Vec<Resource> {
    let mut resources = vec![Resource::new("local", "local", 4)];
    if seed % 2 == 1 {
        resources.push(rated("fast", 3, 1_500_000));
        resources.push(Resource::new("third", "local", 2));
    }
    if seed % THEMES == 5 || seed.is_multiple_of(6) {
        resources.push(Resource::new("west", PEER, 4));
    }
    resources
}

fn settings(seed: usize) -> Settings {
    let mut settings = Settings::new(resources(seed), HORIZON);
    settings.order = [Order::Mdf, Order::Edf, Order::Fifo, Order::Lff, Order::Bjf][seed % 5];
    settings.decision = if seed % 4 == 3 {
        DecisionRule::Published
    } else {
        DecisionRule::Standing
    };
    settings.objective = match seed % 7 {
        1 => Objective::Cheapest,
        2 => Objective::LatestStart,
        3 => Objective::LeastWorkLost,
        _ => Objective::EarliestCompletion,
    };
    settings.fix_after = (seed % 5 == 4).then(|| Fraction::percent(50));
    settings.refusals.coarsen = if seed % 9 == 8 { 10 } else { 1 };
    settings.improving = if seed % 3 == 2 {
        ImprovementSettings::default()
    } else {
        ImprovementSettings::ANY
    };
    settings.pricing = (seed % 11 != 10).then(pricing);
    settings.proposals.moves_max = 2;
    settings.announce = 30;
    settings.negotiation.hold = 40;
    settings.failures.repair = 400;
    settings.failures.settle = 20;
    settings.restarting = [RESTARTING.to_owned()].into();
    settings.overruns.percent = 60;
    settings.overruns.saving = [(("sleep".to_owned(), None), 2)].into();
    let few = Quotas {
        node_hours: Some(1),
        agreements: Some(4),
        ..Quotas::default()
    };
    settings.quotas_of_parties = [("biology".to_owned(), few)].into();
    settings
}

/// A story while it is told.
struct Story {
    theme: usize,
    random: Random,
    domain: Domain,
    negotiations: Vec<NegotiationInstance>,
    offers: Vec<NegotiationOffer>,
    /// The agreements of peers, by ours.
    at_peer: BTreeMap<Uuid, AtPeer>,
    /// Whether everything is tried out before it is decided.
    tries_first: bool,
}

impl Story {
    /// Tells the story of a seed; its trace.
    fn tell(seed: usize, tries_first: bool) -> String {
        let mut domain = Domain::with(settings(seed));
        // Slices are verbs of the story.
        domain.moves_up = false;
        domain.trace = Some(Trace::default());
        let mut story = Self {
            theme: seed % THEMES,
            random: Random::new(u64::try_from(seed).unwrap()),
            domain,
            negotiations: Vec::new(),
            offers: Vec::new(),
            at_peer: BTreeMap::new(),
            tries_first,
        };
        for _ in 0..VERBS {
            story.step();
        }
        story.domain.trace.take().unwrap().text()
    }

    fn step(&mut self) {
        if self.random.below(3) > 0 {
            let party = *self.random.choose(&["physics", "physics", "biology"]).unwrap();
            self.place(party);
        }
        let of_theme = self.random.below(2) == 0;
        let theme = if of_theme {
            self.theme
        } else {
            self.random.below(THEMES)
        };
        match theme {
            0 => self.make_slices(),
            1 => self.end_or_move(),
            2 => self.report_nodes(),
            3 => self.negotiate(),
            4 => self.renegotiate(),
            5 => self.hear_of_peers(),
            6 => self.ask_dry(),
            _ => self.change_resource(),
        }
        self.propose();
        if self.random.below(2) == 0 {
            self.pass();
        }
    }

    /// One more line of the trace.
    fn note(&mut self, line: &str) {
        if let Some(trace) = &mut self.domain.trace {
            trace.line(line);
        }
    }

    /// Has something decided as the writer does: what is due comes first.
    fn decide<R>(&mut self, verb: impl FnOnce(&mut Decider<'_>) -> R) -> R {
        self.domain.decide(|decider| {
            decider.make_due_decisions();
            verb(decider)
        })
    }

    /// Has something decided, and notes the verb, the changes and the answer.
    fn ask<R>(
        &mut self,
        what: &str,
        verb: impl FnOnce(&mut Decider<'_>) -> Result<R, Error> + Clone,
        words: impl Fn(&R) -> String,
    ) -> Option<R> {
        let now = self.domain.now;
        self.note(&format!("{now} {what}"));
        let in_words = |answer: &Result<R, Error>| match answer {
            Ok(done) => words(done),
            Err(error) => error_in_words(error),
        };
        let tried = self
            .tries_first
            .then(|| self.try_out(what, verb.clone(), in_words));
        let mut changes = Trace::default();
        let answer = self.decide(|decider| {
            let begun = decider.batch.len();
            let answer = verb(decider);
            changes.note_changes(&decider.batch[begun..]);
            answer
        });
        let told = in_words(&answer);
        if let Some(tried) = tried {
            changes.line(&told);
            assert_eq!(
                tried,
                changes.text(),
                "it is answered as when it was tried: {now} {what}"
            );
        }
        self.note(&format!("  = {told}"));
        answer.ok()
    }

    /// Has something tried out, of which nothing is kept: the changes that it would make, and its answer.
    fn try_out<R>(
        &mut self,
        what: &str,
        verb: impl FnOnce(&mut Decider<'_>) -> Result<R, Error>,
        in_words: impl Fn(&Result<R, Error>) -> String,
    ) -> String {
        // What is due is decided before, and each plan knows the time.
        self.decide(|_| ());
        let now = Time(self.domain.now);
        for at in 0..self.domain.state.schedules.plans().count() {
            let schedules = &mut self.domain.state.schedules;
            schedules.change_schedule(at, |schedule| (schedule.advance(now), Vec::new()));
        }
        let before = state_digest(&self.domain.state);
        let mut changes = Trace::default();
        let answer = self.domain.decide(|decider| {
            decider.try_out(|tried| {
                let answer = verb(tried);
                changes.note_changes(tried.batch);
                answer
            })
        });
        let after = state_digest(&self.domain.state);
        for (before, after) in before.iter().zip(&after) {
            assert_eq!(before, after, "nothing of it is kept: {} {what}", self.domain.now);
        }
        changes.line(&in_words(&answer.unwrap()));
        changes.text()
    }

    /// One of the agreements that are not over.
    fn any_agreement(&mut self) -> Option<Uuid> {
        let ids: Vec<Uuid> = self.domain.known.keys().copied().collect();
        self.random.choose(&ids).copied()
    }

    /// Lets time pass, as the dispatcher would: due slots begin at their instant, running work saves itself or is stopped at its slot's
    /// end, and some ends before.
    fn pass(&mut self) {
        let until = self.domain.now + 1 + self.random.seconds(60);
        while self.domain.now < until {
            let running = self.domain.state.life.running(&self.domain.state.agreements);
            let over = running.iter().map(|agreement| agreement.slot().end);
            let due = self.domain.state.next_due().into_iter().chain(over).min();
            let next = due.map_or(until, Time::seconds);
            self.domain.now = next.clamp(self.domain.now + 1, until);
            self.end_running();
            let now = self.domain.now;
            self.note(&format!("{now} pass"));
            let begun = self.decide(|decider| decider.decide(BeginDue)).unwrap();
            for agreement in begun {
                if self.random.below(4) > 0 {
                    let run = Run::from(&agreement);
                    let at = self.domain.now * MICROS_PER_SECOND;
                    self.ask(
                        "start",
                        |decider| decider.decide(ReportStarted { run, at }),
                        |()| "done".to_owned(),
                    );
                }
            }
        }
    }

    fn end_running(&mut self) {
        let now = Time(self.domain.now);
        for agreement in self.domain.state.life.running(&self.domain.state.agreements) {
            let outcome = if agreement.slot().end <= now {
                if agreement.has_more_slots() && self.random.below(8) > 0 {
                    RunOutcome::Checkpointed
                } else {
                    RunOutcome::Killed
                }
            } else if self.random.below(16) == 0 {
                let outcomes = [
                    RunOutcome::Lost,
                    RunOutcome::Failed { exit: 1 },
                    RunOutcome::Completed,
                ];
                *self.random.choose(&outcomes).unwrap()
            } else {
                continue;
            };
            let end = JobEnd::new(
                outcome,
                agreement.slot_started(),
                now.seconds() * MICROS_PER_SECOND,
            );
            let run = Run::from(&agreement);
            self.ask(
                &format!("end {} {}", agreement.id, outcome.word()),
                |decider| {
                    decider.decide(ReportEnded {
                        run,
                        end: end.clone(),
                    })
                },
                |()| "done".to_owned(),
            );
        }
    }

    /// A request of a party, and maybe a dry run before.
    fn place(&mut self, party: &str) {
        let request = self.request(party);
        let asked = format!(
            "place of {party}: {:?} in {} to {}, {:?}",
            request.shapes,
            request.ready.unwrap(),
            request.deadline.unwrap(),
            request.preemption
        );
        if self.random.below(8) == 0 {
            let dry = request.clone();
            self.ask(
                &format!("dry {asked}"),
                |decider| decider.try_out(|tried| tried.decide(Place(dry)))?,
                |accepted| agreement_in_words(&accepted.agreement),
            );
        }
        self.ask(
            &asked,
            |decider| decider.decide(Place(request)),
            |accepted| {
                let moved = accepted.moved.iter().map(|moved| moved.id.to_string());
                let moved = moved.collect::<Vec<_>>().join(" ");
                format!("accepted {}, moved {moved}", accepted.agreement.id)
            },
        );
    }
}
