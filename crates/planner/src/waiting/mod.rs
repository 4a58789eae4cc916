//! The commands that wait for their clusters.

pub(super) mod reserved_starts;

use std::collections::BTreeMap;

use domain::agreement::Agreement;
use domain::clock::{MICROS_PER_SECOND, Micros};
use scheduler::{Interval, Move, Seconds, Time};
use uuid::Uuid;

use crate::schedules::need::Placement;

/// Seconds between a command and the begin of a slot that has to be reserved: as long as reserving takes.
pub(crate) const BEGINS_AFTER: Seconds = 3;
/// For how long a command waits for its cluster.
pub(crate) const PATIENCE: Micros = 20 * MICROS_PER_SECOND;
/// Commands that may wait: each holds a connection, and more are a flood.
pub(crate) const WAITING_MAX: usize = 128;
/// Slots that a cluster may refuse before its requester is told. The next one begins 3, 6, 12 and 24 seconds after the refused one.
pub(crate) const TRIES_MAX: u32 = 5;

/// The state of the nodes of a waiting command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReservationState {
    Unknown,
    Reserved,
    /// The cluster does not hold them, and its nodes were not reported since.
    Refused,
    /// They were reported: another slot may be found.
    RefusedAndReported,
}

/// A command that waits until its cluster holds the nodes.
#[derive(Clone)]
pub(crate) struct WaitingCommand {
    /// Whether the command is kept to be decided again: from when it has been decided to wait, until it is taken.
    pub(crate) is_kept: bool,
    /// The agreement that the command would make.
    pub(crate) agreement: Agreement,
    pub(crate) admitted: Placement,
    /// Agreements that have moved for it.
    pub(crate) moved: Vec<Agreement>,
    /// How they moved on its resource. Where the cluster refuses, they move back: it still holds their nodes there.
    pub(crate) moves: Vec<Move>,
    /// The numbers under which its slots are kept; none where an offer keeps them.
    pub(crate) numbers: Vec<u64>,
    /// The agreement on its resource that this one takes the place of, where it does.
    pub(crate) replaces: Option<ReplacedAgreement>,
    pub(crate) tried: ReservationTries,
    pub(crate) outcome: ReservationState,
}

/// An agreement that stays as it is while the acceptance of its successor waits, which has its nodes then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplacedAgreement {
    pub(crate) work: Uuid,
    /// Its successor goes on with the running work.
    pub(crate) has_begun: bool,
}

/// The tries of a waiting command so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReservationTries {
    pub(crate) since: Micros,
    /// How many slots its cluster has refused.
    pub(crate) slots: u32,
    /// When the next one begins at the earliest: the nodes that the plan counts as free may be others at each moment of a slot.
    pub(crate) not_before: Option<Time>,
}

/// A slot with reserved nodes.
#[derive(Clone)]
pub(crate) struct ReservedSlot {
    pub(crate) admitted: Placement,
    pub(crate) window: Interval,
    pub(crate) moved: Vec<Agreement>,
}

/// The answer of the cluster, with which a waiting command is decided again.
#[derive(Clone)]
pub(crate) enum Verdict {
    Reserved(Box<ReservedSlot>),
    Refused(ReservationTries),
    NoAnswer,
}

/// The commands that wait for their clusters, by the ids of the agreements that they would make.
#[derive(Clone, Default)]
pub(crate) struct WaitingCommands {
    pub(crate) waiting: BTreeMap<Uuid, WaitingCommand>,
    /// The answer of the cluster for the present command, where it has waited.
    pub(crate) verdict: Option<(Uuid, Verdict)>,
    /// Up to how many seconds before their begin slots have to be reserved, by the names of the resources where they have.
    pub(crate) within: BTreeMap<String, Seconds>,
    /// The same for slots that are handed over to their parties.
    pub(crate) handed_within: BTreeMap<String, Seconds>,
    /// When the slot of the present command begins at the earliest, where others were refused.
    pub(crate) not_before: Option<Time>,
    /// Whether one has come or gone that executors have not been told of.
    pub(crate) has_changed: bool,
}

impl WaitingCommands {
    /// Takes the commands that are to be decided again, by the agreements that they would make. Their slots are kept until then.
    pub(crate) fn take_decidable(&mut self, now: Micros) -> Vec<Uuid> {
        let mut commands = Vec::new();
        for (id, waiting) in &mut self.waiting {
            let is_settled = matches!(
                waiting.outcome,
                ReservationState::Reserved | ReservationState::RefusedAndReported
            );
            if is_settled || now - waiting.tried.since > PATIENCE {
                waiting.is_kept = false;
                commands.push(*id);
            }
        }
        commands
    }

    /// Notes that the command about an agreement is kept to be decided again; false where it does not wait for its cluster.
    pub(crate) fn keep(&mut self, id: Uuid) -> bool {
        let waiting = self.waiting.get_mut(&id);
        waiting.map(|waiting| waiting.is_kept = true).is_some()
    }

    /// Whether a command waits for an agreement that it would make.
    pub(crate) fn has(&self, id: Uuid) -> bool {
        self.waiting.contains_key(&id)
    }

    /// The agreements on a resource that commands wait for.
    pub(crate) fn waiting_on(&self, resource: &str) -> impl Iterator<Item = &Agreement> {
        let all = self.waiting.values().map(|waiting| &waiting.agreement);
        all.filter(move |each| each.resource == resource)
    }

    /// The work on a resource that the agreements of waiting commands replace, by the ids of these agreements.
    pub(crate) fn replaced_on(&self, resource: &str) -> BTreeMap<Uuid, Uuid> {
        let here = self
            .waiting
            .iter()
            .filter(|(_, waiting)| waiting.agreement.resource == resource);
        here.filter_map(|(id, each)| Some((*id, each.replaces?.work)))
            .collect()
    }

    /// Up to which begin slots on a resource have to be reserved, where it reserves slots.
    pub(crate) fn near_until(&self, resource: &str, now: Time) -> Option<Time> {
        let within = self.within.get(resource)?;
        Some(Time(now.seconds().saturating_add(*within)))
    }

    /// The work of the agreements on a resource that have moved for commands.
    pub(crate) fn moved_on(&self, resource: &str) -> impl Iterator<Item = Uuid> {
        let moved = self.waiting.values().flat_map(|waiting| &waiting.moved);
        moved
            .filter(move |moved| moved.resource == resource)
            .map(Agreement::execution_id)
    }

    /// The numbers under which slots are kept on a resource.
    pub(crate) fn numbers_on(&self, resource: &str) -> impl Iterator<Item = u64> {
        let here = self
            .waiting
            .values()
            .filter(move |waiting| waiting.agreement.resource == resource);
        here.flat_map(|each| each.numbers.iter().copied())
    }

    /// The node-seconds of a party's waiting commands, without acceptances: the offers count for those.
    pub(crate) fn node_seconds(&self, party: &str) -> u128 {
        let own = self
            .waiting
            .values()
            .filter(|waiting| waiting.agreement.party == party);
        own.filter(|each| !each.numbers.is_empty())
            .map(|each| each.agreement.node_seconds())
            .sum()
    }

    /// Whether the commands that wait have changed since this was last asked.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_MAX
    }

    /// Forgets the commands that were taken to be decided again and are not; the numbers of their slots, by resource.
    pub(crate) fn take_dropped(&mut self) -> Vec<(usize, u64)> {
        let dropped = self.waiting.extract_if(.., |_, waiting| !waiting.is_kept);
        let slots = dropped.flat_map(|(_, waiting)| {
            waiting
                .numbers
                .into_iter()
                .map(move |number| (waiting.admitted.resource, number))
        });
        slots.collect()
    }

    pub(crate) fn is_needed(&self, agreement: &Agreement, now: Time) -> bool {
        let near = self.near_until(&agreement.resource, now);
        near.is_some_and(|until| agreement.slot().start <= until)
    }

    /// The slot that was reserved for an agreement, once.
    pub(crate) fn take(&mut self, id: Uuid) -> Option<ReservedSlot> {
        match self.verdict.take() {
            Some((decided, Verdict::Reserved(reserved))) if decided == id => Some(*reserved),
            other => {
                self.verdict = other;
                None
            }
        }
    }

    /// The tries for an agreement, if there were any. The error says in words that its cluster has refused too often, or did not
    /// answer.
    pub(crate) fn tried(&mut self, id: Uuid, now: Micros) -> Result<Option<ReservationTries>, String> {
        let verdict = self.verdict.take().filter(|(verdict, _)| *verdict == id);
        let seconds = PATIENCE / MICROS_PER_SECOND;
        match verdict.map(|(_, verdict)| verdict) {
            Some(Verdict::Refused(tried)) if tried.slots < TRIES_MAX && now - tried.since < PATIENCE => {
                Ok(Some(tried))
            }
            Some(Verdict::Refused(tried)) => Err(refused_slots_in_words(tried.slots)),
            Some(Verdict::NoAnswer) => Err(format!(
                "the cluster has not reserved the nodes within {seconds} seconds"
            )),
            Some(Verdict::Reserved(_)) | None => Ok(None),
        }
    }
}

/// That a cluster has refused this number of slots, in words.
pub(crate) fn refused_slots_in_words(slots: u32) -> String {
    let slots = match slots {
        1 => "a slot".to_owned(),
        slots => format!("{slots} slots"),
    };
    format!("the cluster has refused to reserve the nodes of {slots} in the window, and no later one is left")
}
