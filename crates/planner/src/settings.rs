//! The settings of the provider.

use std::collections::{BTreeMap, BTreeSet};

use domain::resources::Resource;
use prediction::Predictions;
use scheduler::domain::Objective;
use scheduler::schedule::{DecisionRule, LeastGain};
use scheduler::{Fraction, Order, Seconds};

use crate::overruns::Overruns;
use crate::prices::pricing::Pricing;
use crate::schedules::failures::Failures;

/// The settings of the provider.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The resources as configured, in the order in which ties are broken. What is planned on has the store.
    pub resources: Vec<Resource>,
    /// How far ahead the provider plans, in seconds.
    pub horizon: Seconds,
    /// The criterion for the better of two resources for an offer.
    pub objective: Objective,
    /// The order in which waiting agreements are placed when others come.
    pub order: Order,
    /// What is decided about an offer that fits the plan as it stands.
    pub decision: DecisionRule,
    /// How much work a decision may do on one resource, counted as [`scheduler::Schedule::budgeted`] does.
    pub decision_work: u64,
    /// After which fraction of its wait an agreement moves no more; `None` for never.
    pub fix_after: Option<Fraction>,
    /// The content of a refusal.
    pub refusals: Refusals,
    /// The waiting agreements that are moved up while no command waits.
    pub improving: ImprovementSettings,
    /// How failures of nodes are taken.
    pub failures: Failures,
    /// How much the provider proposes by itself.
    pub proposals: Proposals,
    /// By how much slots are made longer for work that is not over.
    pub overruns: Overruns,
    /// The ids of the templates that allow a restart: lost work of their agreements is run again from its start.
    pub restarting: BTreeSet<String>,
    /// What is predicted of work; `None` where nothing is learned.
    pub predictions: Option<Predictions>,
    /// The price list; `None` where nothing is charged.
    pub pricing: Option<Pricing>,
    /// How long before a slot begins its party is told of that, in seconds; 0 for not at all.
    pub announce: Seconds,
    /// How negotiations are bounded.
    pub negotiation: NegotiationLimits,
    /// How much one party may have and ask, where nothing else is said of it.
    pub quotas: Quotas,
    /// The quotas of parties by their names, in place of the others.
    pub quotas_of_parties: BTreeMap<String, Quotas>,
}

impl Settings {
    /// How much a party may have and ask.
    pub(crate) fn quotas_of(&self, party: &str) -> Quotas {
        self.quotas_of_parties.get(party).copied().unwrap_or(self.quotas)
    }

    /// The settings that are rules for parties.
    pub fn policies(&self) -> Policies {
        Policies {
            horizon: self.horizon,
            fix_after: self.fix_after,
            announce: self.announce,
            negotiation: self.negotiation,
            proposals: self.proposals,
            quotas: self.quotas,
            quotas_of_parties: self.quotas_of_parties.clone(),
        }
    }

    /// Resources planned so far ahead, in order of missing deadline, with placements that may move until they start.
    pub fn new(resources: Vec<Resource>, horizon: Seconds) -> Self {
        Self {
            resources,
            horizon,
            objective: Objective::EarliestCompletion,
            order: Order::Mdf,
            decision: DecisionRule::Standing,
            decision_work: scheduler::schedule::BUDGET,
            fix_after: None,
            refusals: Refusals {
                alternatives_phi: Fraction::percent(100),
                relaxations: true,
                availability: true,
                coarsen: 1,
            },
            improving: ImprovementSettings::ANY,
            failures: Failures::default(),
            proposals: Proposals::default(),
            overruns: Overruns::default(),
            restarting: BTreeSet::new(),
            predictions: None,
            pricing: None,
            announce: 0,
            negotiation: NegotiationLimits::default(),
            quotas: Quotas::default(),
            quotas_of_parties: BTreeMap::new(),
        }
    }
}

/// The rules for parties, as they are in force.
#[derive(Debug, Clone, PartialEq)]
pub struct Policies {
    /// [`Settings::horizon`].
    pub horizon: Seconds,
    /// [`Settings::fix_after`].
    pub fix_after: Option<Fraction>,
    /// [`Settings::announce`].
    pub announce: Seconds,
    /// [`Settings::negotiation`].
    pub negotiation: NegotiationLimits,
    /// [`Settings::proposals`].
    pub proposals: Proposals,
    /// [`Settings::quotas`].
    pub quotas: Quotas,
    /// [`Settings::quotas_of_parties`].
    pub quotas_of_parties: BTreeMap<String, Quotas>,
}

/// How much a refusal shows of the plan: a provider may not want to show how busy it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusals {
    /// How far outside the window alternatives may lie, as a fraction of the duration.
    pub alternatives_phi: Fraction,
    /// Whether the smallest changes that would have been accepted are told.
    pub relaxations: bool,
    /// Whether it is told when nodes are free.
    pub availability: bool,
    /// Times are shown in steps of this number of seconds, 1 for exact times; alternatives that lie on no such step are
    /// left out.
    pub coarsen: Seconds,
}

/// How much one party may have and ask. `None` means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quotas {
    /// Node-hours in agreements that are not over and in offers that are held.
    pub node_hours: Option<u64>,
    /// How far ahead it may plan, in seconds.
    pub horizon: Option<Seconds>,
    /// Agreements that are not over, those among them that wait for their decision.
    pub agreements: Option<u32>,
    /// How often in a minute it may ask for quotes.
    pub probes_per_minute: Option<u32>,
    /// The part of the node-hours of a resource that it may have in any 30 days while other parties have work, in percent.
    pub share_percent: Option<u32>,
}

/// The limits of negotiations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NegotiationLimits {
    /// Seconds that a negotiation lasts where its initiator does not say, and at most.
    pub lasts: Seconds,
    /// Negotiations that one party may have going on at a time.
    pub open_max: usize,
    /// Offers of one negotiation, the service's answers among them.
    pub offers_max: usize,
    /// Seconds for which a counter offer stands and its nodes are held, at most.
    pub hold: Seconds,
    /// The number of answers with held offers that one party may have at a time.
    pub holds_max: usize,
}

impl Default for NegotiationLimits {
    /// A day; enough at a time for a program that plans a campaign; and five minutes to think for a person.
    fn default() -> Self {
        Self {
            lasts: 86_400,
            open_max: 100,
            offers_max: 1_000,
            hold: 300,
            holds_max: 5,
        }
    }
}

/// Which moves into free time are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImprovementSettings {
    /// Whether agreements that could have started earlier before are moved too, and not only the ones that can start
    /// earlier since time became free.
    pub idle: bool,
    /// The least gain of a move.
    pub least_gain: LeastGain,
    /// Moves of one agreement in an hour at most.
    pub moves_per_hour: usize,
}

impl ImprovementSettings {
    /// Every move that gains a second.
    pub(crate) const ANY: Self = Self {
        idle: true,
        least_gain: LeastGain::ANY,
        moves_per_hour: usize::MAX,
    };
}

impl Default for ImprovementSettings {
    /// Moves that gain a minute and a hundredth of the wait, four an hour.
    fn default() -> Self {
        Self {
            idle: true,
            least_gain: LeastGain {
                seconds: 60,
                of_wait: Fraction::percent(1),
            },
            moves_per_hour: 4,
        }
    }
}

/// How much the provider proposes by itself. A place instead of an agreement that could not be kept is always proposed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proposals {
    /// Moves that would let others in, and that stand proposed at a time, all parties' together; none for no such proposals.
    pub moves_max: usize,
    /// The discount for such a move.
    pub discount: Fraction,
}

impl Default for Proposals {
    /// No moves; a tenth.
    fn default() -> Self {
        Self {
            moves_max: 0,
            discount: Fraction::percent(10),
        }
    }
}
