//! The numbers that the planner counts while it works, and the ones that can be asked of it at any time.

use std::collections::BTreeMap;

use domain::agreement::{
    Account, Agreement, Currency, EventKind, GuaranteeState, Money, NegotiationRole, Posting,
};
use domain::change::Change;
use domain::clock::MICROS_PER_SECOND;
use metrics::{Exposition, Histogram, Metric, SECONDS, metrics};
use planner::{AHEAD, Census, ResourceCensus};

use crate::batches::DecisionRecord;

metrics! {
    BATCHES = Histogram "bespeak_planner_batch_commands": "Commands that the planner decided together.";
    COMMITS = Histogram "bespeak_planner_commit_seconds": "How long storing a batch of decisions took.";
    WAITS = Histogram "bespeak_planner_wait_seconds": "How long commands waited in the queue to be decided.";
    DECIDING = Histogram "bespeak_planner_decision_seconds":
        "How long deciding a command took, without the wait before it and without storing.";
    FAILED = Counter "bespeak_planner_failed_commits_total":
        "Batches that were not stored, or of which that is not known.";
    GIVEN_UP = Counter "bespeak_planner_impossible_total":
        "Batches that were given up because of a fault in the plan: each is a fault of the service.";
    UNREAD_TARIFFS = Counter "bespeak_energy_tariffs_unread_total":
        "How often the tariff of energy could not be read; the last one holds then.";
    DECISIONS = Counter "bespeak_decisions_total": "Decisions, by the kind of request and the result.";
    REFUSALS = Counter "bespeak_refusals_total": "Refusals, by the kind of request and the reason.";
    CUT_SHORT = Counter "bespeak_refusals_cut_short_total":
        "Refusals where the search for a place was cut short, by the kind of request.";
    MOVES = Counter "bespeak_moves_total": "Starts of waiting agreements that were moved.";
    SETTLED = Counter "bespeak_moves_settled_total":
        "Agreements that have moved with many others by one record, and whose rows and timelines say so since.";
    ENDED = Counter "bespeak_agreements_ended_total": "Agreements that are over, by their final state.";
    OFFERS_MADE = Counter "bespeak_offers_made_total":
        "Offers made in negotiations, by the state that they were made in.";
    EXECUTIONS = Counter "bespeak_executions_total": "Work that has ended, by how.";
    GUARANTEES = Counter "bespeak_guarantees_assessed_total": "Guarantees that were assessed, by the state that was found.";
    EARNED = Counter "bespeak_earned_total": "Money that the provider was owed, in units of the currency, by kind of posting.";
    OWED = Counter "bespeak_owed_total": "Money that the provider owed, in units of the currency, by kind of posting.";
    BOOKED = Counter "bespeak_booked_node_seconds_total":
        "Time for which agreements that are over had nodes, times their number.";
    USED = Counter "bespeak_used_node_seconds_total": "Time for which the programs of ended work ran, times their nodes.";
    UNSETTLED = Gauge "bespeak_moves_unsettled": "Agreements of which only a record of moves says where they are.";
    AGREEMENTS = Gauge "bespeak_agreements": "Agreements that are not over, by state.";
    JOBS = Gauge "bespeak_jobs_running": "Agreements with a job that runs or is about to.";
    NEGOTIATIONS = Gauge "bespeak_negotiations_open": "Negotiations that go on.";
    OFFERS_OPEN = Gauge "bespeak_offers_open":
        "Offers that were made in them and are neither rejected, expired nor accepted.";
    OFFERS_HELD = Gauge "bespeak_offers_held": "Those for which nodes are kept.";
    NEAR_QUOTA = Gauge "bespeak_parties_near_quota":
        "Parties that have at least 80 percent of the agreements that they may have, or of the questions of a minute.";
    NODES = Gauge "bespeak_resource_nodes": "Nodes that a resource has; retired ones are left out.";
    NODES_UP = Gauge "bespeak_resource_nodes_up": "Those that are up.";
    NODES_BUSY = Gauge "bespeak_resource_nodes_busy": "Those that are in a slot now.";
    TAKEN = Gauge "bespeak_resource_taken_ratio":
        "The part of the time of its nodes that is promised, held or out of use, of the next day and of the next week.";
}

/// Upper bounds for the commands of a batch.
const COMMANDS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];
/// Upper bounds for the seconds of a decision: most take microseconds, and a thorough search its budget of work.
const MOMENTS: &[f64] = &[
    0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.1, 1.0,
];

/// The states of guarantees that were assessed.
const DETERMINED: [GuaranteeState; 2] = [GuaranteeState::Fulfilled, GuaranteeState::Violated];

/// The side that money of a posting goes to, its currency, and its kind.
type PostingsOf = (bool, Currency, &'static str);

/// The counts of the life of this process.
#[derive(Debug)]
pub(super) struct PlannerMetrics {
    /// Commands decided together.
    batches: Histogram,
    /// Seconds that storing a batch took, where it worked.
    commits: Histogram,
    /// Seconds that commands waited to be decided.
    waits: Histogram,
    /// Seconds that deciding a command took.
    deciding: Histogram,
    /// Batches that were not stored, or of which that is not known.
    pub(super) failed: u64,
    /// Batches that were given up because of a fault in the plan.
    pub(super) given_up: u64,
    /// Tariffs of energy that could not be read.
    pub(super) unread_tariffs: u64,
    decisions: BTreeMap<(&'static str, &'static str), u64>,
    refusals: BTreeMap<(&'static str, &'static str), u64>,
    /// The refusals where the search for a place was cut short, by the kind of request.
    cut_short: BTreeMap<&'static str, u64>,
    /// Moves of waiting agreements.
    moves: u64,
    /// Agreements whose moves were settled.
    settled: u64,
    ended: BTreeMap<&'static str, u64>,
    offers: BTreeMap<&'static str, u64>,
    executions: BTreeMap<&'static str, u64>,
    guarantees: BTreeMap<&'static str, u64>,
    /// In millionths of the currency.
    postings: BTreeMap<PostingsOf, i128>,
    /// Node-seconds, by resource.
    booked: BTreeMap<String, u64>,
    /// Node-microseconds, by resource.
    used: BTreeMap<String, i128>,
}

impl Default for PlannerMetrics {
    fn default() -> Self {
        Self {
            batches: Histogram::new(COMMANDS),
            commits: Histogram::new(SECONDS),
            waits: Histogram::new(SECONDS),
            deciding: Histogram::new(MOMENTS),
            failed: 0,
            given_up: 0,
            unread_tariffs: 0,
            decisions: BTreeMap::new(),
            refusals: BTreeMap::new(),
            cut_short: BTreeMap::new(),
            moves: 0,
            settled: 0,
            ended: BTreeMap::new(),
            offers: BTreeMap::new(),
            executions: BTreeMap::new(),
            // They begin at zero: a series that appears with its first count shows no increase.
            guarantees: DETERMINED.map(|state| (state.word(), 0)).into(),
            postings: BTreeMap::new(),
            booked: BTreeMap::new(),
            used: BTreeMap::new(),
        }
    }
}

impl PlannerMetrics {
    /// Counts a decided batch with its commands that a caller waits for, if any, and the seconds that storing it took, where
    /// there was something to store.
    pub(super) fn batch(&mut self, commands: usize, commit: Option<f64>) {
        if commands > 0 {
            // At most 128.
            self.batches
                .observe(f64::from(u32::try_from(commands).unwrap_or(u32::MAX)));
        }
        if let Some(seconds) = commit {
            self.commits.observe(seconds);
        }
    }

    /// Counts commands that were decided: for each the seconds that it waited before, and that deciding it took.
    pub(super) fn took(&mut self, times: &[(f64, f64)]) {
        for (waited, deciding) in times {
            self.waits.observe(*waited);
            self.deciding.observe(*deciding);
        }
    }

    /// Counts the decisions and, of the stored changes, the ones that matter.
    pub(super) fn decided(&mut self, decisions: &[DecisionRecord], batch: &[Change]) {
        for decision in decisions {
            let labels = (decision.request, decision.outcome);
            *self.decisions.entry(labels).or_default() += 1;
            if let Some(reason) = decision.reason {
                *self
                    .refusals
                    .entry((decision.request, reason.word()))
                    .or_default() += 1;
            }
            if decision.cut_short {
                *self.cut_short.entry(decision.request).or_default() += 1;
            }
        }
        for change in batch {
            let (counts, word) = match change {
                // Nothing follows a final state, so that each agreement is counted once.
                Change::UpdateAgreement { agreement, .. } if agreement.state.is_final() => {
                    (&mut self.ended, agreement.state.word())
                }
                Change::CreateOffer { offer, .. } if offer.creator == NegotiationRole::Responder => {
                    (&mut self.offers, offer.state.word())
                }
                Change::RecordExecution(execution) => (&mut self.executions, execution.outcome.word()),
                _ => continue,
            };
            *counts.entry(word).or_default() += 1;
        }
        self.count_what_came_of_it(batch);
    }

    /// Counts the assessed guarantees, the moves and the money of agreements.
    fn count_what_came_of_it(&mut self, batch: &[Change]) {
        for change in batch {
            match change {
                Change::UpdateAgreement { agreement, events } => {
                    for event in events.iter().filter(|event| event.kind == EventKind::Assessed) {
                        let assessed = agreement.guarantees.iter();
                        let assessed =
                            assessed.filter(|guarantee| event.detail.starts_with(&guarantee.assessed()));
                        for guarantee in assessed.take(1) {
                            *self.guarantees.entry(guarantee.state.word()).or_default() += 1;
                        }
                    }
                    let moved = events.iter().filter(|event| event.kind == EventKind::Moved);
                    self.moves += moved.count() as u64;
                    if agreement.state.is_final() {
                        self.count_booked(agreement);
                    }
                }
                Change::RecordMoves(record) => self.moves += record.moves.len() as u64,
                Change::SettleMoves { .. } => self.settled += 1,
                Change::Post(posting) => self.count_posting(posting),
                Change::RecordExecution(agreement) => {
                    let used = i128::from(agreement.run_time) * i128::from(agreement.nodes);
                    *self.used.entry(agreement.resource.clone()).or_default() += used.max(0);
                }
                _ => {}
            }
        }
    }

    /// Counts the slots that are over. If another agreement goes on with its nodes, the slot is counted there.
    fn count_booked(&mut self, agreement: &Agreement) {
        let over = agreement.slots.iter();
        let over = over.filter(|slot| slot.ended.is_some() && !slot.taken_over);
        let seconds = over.map(|slot| slot.occupied().duration().unsigned_abs() * u64::from(slot.nodes));
        *self.booked.entry(agreement.resource.clone()).or_default() += seconds.sum::<u64>();
    }

    fn count_posting(&mut self, posting: &Posting) {
        let is_earned = match (&posting.from, &posting.to) {
            (_, Account::Provider) => true,
            (Account::Provider, _) => false,
            _ => return,
        };
        let Money { micros, currency } = posting.amount;
        let labels = (is_earned, currency, posting.kind.word());
        *self.postings.entry(labels).or_default() += i128::from(micros);
    }

    fn expose_postings(&self, is_earned: bool, metric: Metric, text: &mut Exposition) {
        let mut family = text.family(metric);
        for ((_, currency, kind), micros) in
            self.postings.iter().filter(|(posting, _)| posting.0 == is_earned)
        {
            let labels = [("currency", currency.code()), ("kind", kind)];
            family.sample(&labels, metric_in_units(*micros));
        }
    }

    /// Writes them.
    pub(super) fn expose(&self, text: &mut Exposition) {
        text.family(BATCHES).histogram(&[], &self.batches);
        text.family(COMMITS).histogram(&[], &self.commits);
        text.family(WAITS).histogram(&[], &self.waits);
        text.family(DECIDING).histogram(&[], &self.deciding);
        text.number(FAILED, self.failed);
        text.number(GIVEN_UP, self.given_up);
        text.number(UNREAD_TARIFFS, self.unread_tariffs);
        let mut family = text.family(DECISIONS);
        for ((request, outcome), count) in &self.decisions {
            family.sample(&[("request", request), ("outcome", outcome)], *count);
        }
        let mut family = text.family(REFUSALS);
        for ((request, reason), count) in &self.refusals {
            family.sample(&[("request", request), ("reason", reason)], *count);
        }
        text.numbers(CUT_SHORT, "request", &self.cut_short);
        text.number(MOVES, self.moves);
        text.number(SETTLED, self.settled);
        text.numbers(ENDED, "state", &self.ended);
        text.numbers(OFFERS_MADE, "state", &self.offers);
        text.numbers(EXECUTIONS, "outcome", &self.executions);
        text.numbers(GUARANTEES, "state", &self.guarantees);
        self.expose_postings(true, EARNED, text);
        self.expose_postings(false, OWED, text);
        text.numbers(BOOKED, "resource", &self.booked);
        let used = self
            .used
            .iter()
            .map(|(used, micros)| (used, metric_in_units(*micros)));
        text.numbers(USED, "resource", used);
    }
}

/// Millionths as a decimal of whole ones.
fn metric_in_units(micros: i128) -> String {
    let one = i128::from(MICROS_PER_SECOND);
    format!("{}.{:06}", micros / one, micros % one)
}

/// Writes how the plan stands.
pub(super) fn expose_census(census: &Census, text: &mut Exposition) {
    text.numbers(AGREEMENTS, "state", &census.agreements);
    text.number(UNSETTLED, census.unsettled);
    text.number(JOBS, census.jobs);
    text.number(NEGOTIATIONS, census.negotiations);
    text.number(OFFERS_OPEN, census.offers);
    text.number(OFFERS_HELD, census.held);
    text.number(NEAR_QUOTA, census.near_quota);
    let of_each = |count: fn(&ResourceCensus) -> u64| {
        let resources = census.resources.iter();
        resources.map(move |resource| (&resource.name, count(resource)))
    };
    text.numbers(NODES, "resource", of_each(|decider| decider.nodes.into()));
    text.numbers(NODES_UP, "resource", of_each(|each| each.up.into()));
    text.numbers(NODES_BUSY, "resource", of_each(|each| each.busy));
    let mut family = text.family(TAKEN);
    for census in &census.resources {
        for ((ahead, _), (taken, all)) in AHEAD.iter().zip(census.taken) {
            #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
            let ratio = taken as f64 / (all as f64).max(1.0);
            family.sample(&[("resource", &census.name), ("ahead", ahead)], ratio);
        }
    }
}
