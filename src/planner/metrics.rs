//! The numbers that the planner counts while it works, and the ones that can be asked of it at any time.

use std::collections::BTreeMap;

use crate::agreement::{Agreement, AgreementState, OfferCreator};
use crate::metrics::{Exposition, Histogram, SECONDS, metrics};
use crate::planner::batches::DecisionRecord;
use crate::planner::decider::Decider;
use crate::store::Change;

metrics! {
    BATCHES = Histogram "bespeak_planner_batch_commands": "Commands that the planner decided together.";
    COMMITS = Histogram "bespeak_planner_commit_seconds": "How long storing a batch of decisions took.";
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
    ENDED = Counter "bespeak_agreements_ended_total": "Agreements that are over, by their final state.";
    OFFERS_MADE = Counter "bespeak_offers_made_total":
        "Offers made in negotiations, by the state that they were made in.";
    EXECUTIONS = Counter "bespeak_executions_total": "Work that has ended, by how.";
    AGREEMENTS = Gauge "bespeak_agreements": "Agreements that are not over, by state.";
    JOBS = Gauge "bespeak_jobs_running": "Agreements with a job that runs or is about to.";
    NEGOTIATIONS = Gauge "bespeak_negotiations_open": "Negotiations that go on.";
    OFFERS_OPEN = Gauge "bespeak_offers_open":
        "Offers that were made in them and are neither rejected, expired nor accepted.";
    OFFERS_HELD = Gauge "bespeak_offers_held": "Those for which nodes are kept.";
    NODES = Gauge "bespeak_resource_nodes": "Nodes that a resource has; retired ones are left out.";
    NODES_UP = Gauge "bespeak_resource_nodes_up": "Those that are neither down nor drained.";
}

/// Upper bounds for the commands of a batch.
const COMMANDS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];
/// The counts of the life of this process.
#[derive(Debug)]
pub(super) struct PlannerMetrics {
    /// Commands decided together.
    batches: Histogram,
    /// Seconds that storing a batch took, where it worked.
    commits: Histogram,
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
    ended: BTreeMap<&'static str, u64>,
    offers: BTreeMap<&'static str, u64>,
    executions: BTreeMap<&'static str, u64>,
}

impl Default for PlannerMetrics {
    fn default() -> Self {
        Self {
            batches: Histogram::new(COMMANDS),
            commits: Histogram::new(SECONDS),
            failed: 0,
            given_up: 0,
            unread_tariffs: 0,
            decisions: BTreeMap::new(),
            refusals: BTreeMap::new(),
            cut_short: BTreeMap::new(),
            ended: BTreeMap::new(),
            offers: BTreeMap::new(),
            executions: BTreeMap::new(),
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

    /// Counts the decisions and, of the stored changes, the ones that matter.
    pub(super) fn decided(&mut self, decisions: &[DecisionRecord], batch: &[Change]) {
        for decision in decisions {
            let of = (decision.request, decision.outcome);
            *self.decisions.entry(of).or_default() += 1;
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
                Change::CreateOffer { offer, .. } if offer.creator == OfferCreator::Responder => {
                    (&mut self.offers, offer.state.word())
                }
                Change::RecordExecution(execution) => (&mut self.executions, execution.outcome.word()),
                _ => continue,
            };
            *counts.entry(word).or_default() += 1;
        }
    }

    /// Writes them.
    pub(super) fn expose(&self, text: &mut Exposition) {
        text.family(BATCHES).histogram(&[], &self.batches);
        text.family(COMMITS).histogram(&[], &self.commits);
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
        text.numbers(ENDED, "state", &self.ended);
        text.numbers(OFFERS_MADE, "state", &self.offers);
        text.numbers(EXECUTIONS, "outcome", &self.executions);
    }
}

/// How the plan stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Census {
    /// Agreements that are not over, by state.
    agreements: BTreeMap<&'static str, u64>,
    /// The ones among them with a job that runs or is about to.
    jobs: u64,
    /// Negotiations that go on.
    negotiations: u64,
    /// Offers in them by which something can be had or held, that were not accepted.
    offers: u64,
    /// Those for which nodes are kept.
    held: u64,
    /// Name, nodes, and nodes that are up, of each resource.
    resources: Vec<(String, u32, u32)>,
}

impl Decider<'_> {
    /// Counts the contents of the plan. O(r) for r resources.
    pub(super) fn census(&self) -> Census {
        let live = &self.plan.live;
        let states = AgreementState::ALL.into_iter().filter(|state| !state.is_final());
        let runs = |agreement: &&Agreement| agreement.job.is_some();
        let mut census = Census {
            agreements: states.map(|state| (state.word(), live.count(state))).collect(),
            jobs: live.processing().filter(runs).count() as u64,
            negotiations: self.plan.table.len() as u64,
            offers: self.plan.table.standing.len() as u64,
            held: self.plan.table.standing_held as u64,
            resources: Vec::new(),
        };
        for of in self.plan.resources.in_service() {
            let (name, nodes) = (of.resource.name.clone(), of.resource.capacity);
            census.resources.push((name, nodes, of.nodes.up(nodes)));
        }
        census
    }
}

impl Census {
    /// Writes them.
    pub(super) fn expose(&self, text: &mut Exposition) {
        text.numbers(AGREEMENTS, "state", &self.agreements);
        text.number(JOBS, self.jobs);
        text.number(NEGOTIATIONS, self.negotiations);
        text.number(OFFERS_OPEN, self.offers);
        text.number(OFFERS_HELD, self.held);
        let nodes = self.resources.iter();
        text.numbers(
            NODES,
            "resource",
            nodes.clone().map(|(name, nodes, _)| (name, nodes)),
        );
        text.numbers(NODES_UP, "resource", nodes.map(|(name, _, up)| (name, up)));
    }
}
