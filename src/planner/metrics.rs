//! The numbers that the planner counts while it works, and the ones that can be asked of it at any time.

use std::collections::BTreeMap;

use crate::agreement::{Agreement, AgreementState, OfferCreator};
use crate::metrics::{Exposition, Histogram, Kind, SECONDS};
use crate::planner::batches::DecisionRecord;
use crate::planner::decider::Decider;
use crate::store::Change;

/// Upper bounds for the commands of a batch.
const COMMANDS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];
/// The counts of the life of this process.
#[derive(Debug)]
pub(super) struct Measured {
    /// Commands decided together.
    batches: Histogram,
    /// Seconds that storing a batch took, where it worked.
    commits: Histogram,
    /// Batches that were not stored, or of which that is not known.
    failed: u64,
    /// Batches that were given up because of a fault in the plan.
    pub(super) given_up: u64,
    decisions: BTreeMap<(&'static str, &'static str), u64>,
    refusals: BTreeMap<(&'static str, &'static str), u64>,
    /// The refusals where the search for a place was cut short, by the kind of request.
    cut_short: BTreeMap<&'static str, u64>,
    ended: BTreeMap<&'static str, u64>,
    offers: BTreeMap<&'static str, u64>,
    executions: BTreeMap<&'static str, u64>,
}

impl Default for Measured {
    fn default() -> Self {
        Self {
            batches: Histogram::new(COMMANDS),
            commits: Histogram::new(SECONDS),
            failed: 0,
            given_up: 0,
            decisions: BTreeMap::new(),
            refusals: BTreeMap::new(),
            cut_short: BTreeMap::new(),
            ended: BTreeMap::new(),
            offers: BTreeMap::new(),
            executions: BTreeMap::new(),
        }
    }
}

impl Measured {
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

    /// Counts a batch that was not stored.
    pub(super) fn failed(&mut self) {
        self.failed += 1;
    }

    /// Counts a batch that was given up because of a fault in the plan.
    pub(super) fn gave_up(&mut self) {
        self.given_up += 1;
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
        text.family(
            "bespeak_planner_batch_commands",
            Kind::Histogram,
            "Commands that the planner decided together.",
        )
        .histogram(&[], &self.batches);
        text.family(
            "bespeak_planner_commit_seconds",
            Kind::Histogram,
            "How long storing a batch of decisions took.",
        )
        .histogram(&[], &self.commits);
        text.family(
            "bespeak_planner_failed_commits_total",
            Kind::Counter,
            "Batches that were not stored, or of which that is not known.",
        )
        .sample(&[], self.failed);
        text.family(
            "bespeak_planner_impossible_total",
            Kind::Counter,
            "Batches that were given up because of a fault in the plan: each is a fault of the service.",
        )
        .sample(&[], self.given_up);
        let mut family = text.family(
            "bespeak_decisions_total",
            Kind::Counter,
            "Decisions, by the kind of request and the result.",
        );
        for ((request, outcome), count) in &self.decisions {
            family.sample(&[("request", request), ("outcome", outcome)], *count);
        }
        let mut family = text.family(
            "bespeak_refusals_total",
            Kind::Counter,
            "Refusals, by the kind of request and the reason.",
        );
        for ((request, reason), count) in &self.refusals {
            family.sample(&[("request", request), ("reason", reason)], *count);
        }
        let lists: [(_, _, &'static str, _); 4] = [
            (
                "bespeak_refusals_cut_short_total",
                "request",
                "Refusals where the search for a place was cut short, by the kind of request.",
                &self.cut_short,
            ),
            (
                "bespeak_agreements_ended_total",
                "state",
                "Agreements that are over, by their final state.",
                &self.ended,
            ),
            (
                "bespeak_offers_made_total",
                "state",
                "Offers made in negotiations, by the state that they were made in.",
                &self.offers,
            ),
            (
                "bespeak_executions_total",
                "outcome",
                "Work that has ended, by how.",
                &self.executions,
            ),
        ];
        for (name, label, help, counts) in lists {
            let mut family = text.family(name, Kind::Counter, help);
            for (word, count) in counts {
                family.sample(&[(label, word)], *count);
            }
        }
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
        let mut family = text.family(
            "bespeak_agreements",
            Kind::Gauge,
            "Agreements that are not over, by state.",
        );
        for (state, count) in &self.agreements {
            family.sample(&[("state", state)], *count);
        }
        let counts: [(_, &'static str, _); 4] = [
            (
                "bespeak_jobs_running",
                "Agreements with a job that runs or is about to.",
                self.jobs,
            ),
            (
                "bespeak_negotiations_open",
                "Negotiations that go on.",
                self.negotiations,
            ),
            (
                "bespeak_offers_open",
                "Offers that were made in them and are neither rejected, expired nor accepted.",
                self.offers,
            ),
            (
                "bespeak_offers_held",
                "Those for which nodes are kept.",
                self.held,
            ),
        ];
        for (name, help, count) in counts {
            text.family(name, Kind::Gauge, help).sample(&[], count);
        }
        let mut family = text.family(
            "bespeak_resource_nodes",
            Kind::Gauge,
            "Nodes that a resource has; retired ones are left out.",
        );
        for (name, nodes, _) in &self.resources {
            family.sample(&[("resource", name)], *nodes);
        }
        let mut family = text.family(
            "bespeak_resource_nodes_up",
            Kind::Gauge,
            "Those that are neither down nor drained.",
        );
        for (name, _, up) in &self.resources {
            family.sample(&[("resource", name)], *up);
        }
    }
}
