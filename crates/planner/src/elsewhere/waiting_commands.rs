//! The commands that wait for their clusters.

use std::collections::BTreeMap;

use domain::agreement::Agreement;
use domain::clock::{MICROS_PER_SECOND, Micros};
use scheduler::{Interval, Move, Seconds, Time};
use uuid::Uuid;

use crate::elsewhere::HolderWord;
use crate::journal::{JournaledMap, TakeBack};
use crate::placement::places::Placement;

/// For how long a command waits for its cluster.
const PATIENCE: Micros = 20 * MICROS_PER_SECOND;
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
#[derive(Debug, Clone)]
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
#[derive(Debug, Clone)]
pub(crate) struct ReservedSlot {
    pub(crate) admitted: Placement,
    pub(crate) window: Interval,
    pub(crate) moved: Vec<Agreement>,
}

/// The word of a cluster, with which a waiting command is decided again.
pub(crate) type ClusterWord = HolderWord<Box<ReservedSlot>, ReservationTries>;

/// The commands that wait for their clusters, by the ids of the agreements that they would make.
#[derive(Debug, Clone, Default)]
pub(crate) struct WaitingCommands {
    commands: JournaledMap<BTreeMap<Uuid, WaitingCommand>>,
    beside: BesideCommands,
}

/// What there is beside the commands: it is small.
#[derive(Debug, Clone, Default)]
pub(crate) struct BesideCommands {
    /// The word of the cluster for the present command, where the command has waited.
    word: Option<(Uuid, ClusterWord)>,
    /// Up to how many seconds before their begin slots have to be reserved, by the names of the resources where they have.
    within: BTreeMap<String, Seconds>,
    /// Up to how many seconds before their begin slots are reserved that are handed over to their parties, by resource.
    handed_within: BTreeMap<String, Seconds>,
    /// When the slot of the present command begins at the earliest, where others were refused.
    not_before: Option<Time>,
    /// Whether one has come or gone that executors have not been told of.
    has_changed: bool,
}

impl WaitingCommands {
    /// Keeps a command until its cluster has answered.
    pub(crate) fn wait_for(&mut self, waiting: WaitingCommand) {
        self.beside.has_changed = true;
        self.commands.insert(waiting.agreement.id, waiting);
    }

    /// Begins a command about an agreement: what it has waited with, where it has waited, is with the caller from now on.
    pub(crate) fn begin(&mut self, id: Uuid) -> Option<WaitingCommand> {
        self.beside.word = None;
        let waiting = self.commands.remove(&id)?;
        self.beside.has_changed |= waiting.outcome != ReservationState::Reserved;
        Some(waiting)
    }

    /// Notes the word of the cluster with which the present command is decided.
    pub(crate) fn set_word(&mut self, id: Uuid, word: ClusterWord) {
        self.beside.word = Some((id, word));
    }

    /// Whether the cluster has reserved the slot of the present command, if that is about this agreement.
    pub(crate) fn has_reserved(&self, id: Uuid) -> bool {
        matches!(&self.beside.word, Some((decided, HolderWord::Held(_))) if *decided == id)
    }

    /// Takes the agreements that have moved for an agreement while its command waited.
    pub(crate) fn take_moved(&mut self, id: Uuid) -> Vec<Agreement> {
        match &mut self.beside.word {
            Some((decided, HolderWord::Held(reserved))) if *decided == id => {
                std::mem::take(&mut reserved.moved)
            }
            _ => Vec::new(),
        }
    }

    /// Sets when the slot of the present command begins at the earliest, where others were refused.
    pub(crate) fn begin_after_refused(&mut self, not_before: Option<Time>) {
        self.beside.not_before = not_before;
    }

    /// When the slot of the present command begins at the earliest; none where no slot of the command was refused.
    pub(crate) fn not_before(&self) -> Option<Time> {
        self.beside.not_before
    }

    /// Whether slots of a resource have to be reserved before they are promised.
    pub(crate) fn reserves_on(&self, resource: &str) -> bool {
        self.beside.within.contains_key(resource)
    }

    /// Whether slots of any resource have to be reserved before they are promised.
    pub(crate) fn reserves_anywhere(&self) -> bool {
        !self.beside.within.is_empty()
    }

    /// Notes up to how many seconds before their begin slots on a resource have to be reserved.
    pub(crate) fn set_within(&mut self, resource: String, within: Seconds) {
        self.beside.within.insert(resource, within);
    }

    /// Notes up to how many seconds before their begin slots on a resource are reserved that are handed over.
    pub(crate) fn set_handed_within(&mut self, resource: String, within: Seconds) {
        self.beside.handed_within.insert(resource, within);
    }

    /// Up to how many seconds before their begin slots on a resource are reserved that are handed over; 0 where its cluster has not been
    /// seen yet.
    pub(crate) fn handed_within(&self, resource: &str) -> Seconds {
        self.beside
            .handed_within
            .get(resource)
            .copied()
            .unwrap_or_default()
    }

    /// Has no slot reserved before it is promised.
    pub(crate) fn promise_at_once(&mut self) {
        self.beside.within.clear();
    }

    /// Takes over what executors have said of their clusters. The commands that waited before are not decided.
    pub(crate) fn recall_reports(&mut self, before: &Self) {
        self.beside.within.clone_from(&before.beside.within);
        self.beside.handed_within.clone_from(&before.beside.handed_within);
    }

    /// Whether no command waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// The agreements that the commands would make.
    pub(crate) fn agreements(&self) -> impl Iterator<Item = &Agreement> {
        self.commands.values().map(|waiting| &waiting.agreement)
    }

    /// The agreements that the commands of a party would make, without acceptances: the offers count for those.
    pub(crate) fn placed_for(&self, party: &str) -> impl Iterator<Item = &Agreement> {
        let own = self
            .commands
            .values()
            .filter(move |waiting| waiting.agreement.party == party && !waiting.numbers.is_empty());
        own.map(|waiting| &waiting.agreement)
    }

    /// Notes which commands have their nodes on a resource.
    pub(crate) fn note_reserved(&mut self, resource: &str, has_nodes: impl Fn(&WaitingCommand) -> bool) {
        self.set_outcomes(ReservationState::Reserved, |waiting| {
            let is_unknown =
                waiting.agreement.resource == resource && waiting.outcome == ReservationState::Unknown;
            is_unknown && has_nodes(waiting)
        });
    }

    /// Notes which slots a resource could not reserve nodes for, by their work and their begins.
    pub(crate) fn note_refused(&mut self, resource: &str, refused: &[(Uuid, Time)]) {
        self.set_outcomes(ReservationState::Refused, |waiting| {
            // A slot that was tried before says nothing of this one.
            let is_refused =
                |(slot, _): &(Interval, u32)| refused.contains(&(waiting.agreement.id, slot.start));
            let is_its =
                waiting.agreement.resource == resource && waiting.agreement.loads().iter().any(is_refused);
            let is_moved = waiting.moved.iter().any(|moved| {
                moved.resource == resource && refused.contains(&(moved.execution_id(), moved.slot().start))
            });
            (is_its || is_moved) && waiting.outcome == ReservationState::Unknown
        });
    }

    /// Notes that the nodes of a resource were reported.
    pub(crate) fn note_reported(&mut self, resource: &str) {
        self.set_outcomes(ReservationState::RefusedAndReported, |waiting| {
            waiting.agreement.resource == resource && waiting.outcome == ReservationState::Refused
        });
    }

    /// Sets the outcome of the commands that fit.
    fn set_outcomes(&mut self, outcome: ReservationState, fits: impl Fn(&WaitingCommand) -> bool) {
        for id in self.ids_where(fits) {
            self.change(id, |waiting| waiting.outcome = outcome);
        }
    }

    fn ids_where(&self, fits: impl Fn(&WaitingCommand) -> bool) -> Vec<Uuid> {
        let all = self.commands.iter();
        all.filter(|(_, waiting)| fits(waiting))
            .map(|(id, _)| *id)
            .collect()
    }

    /// Changes a command; whether it waits.
    fn change(&mut self, id: Uuid, change: impl FnOnce(&mut WaitingCommand)) -> bool {
        self.commands.get_mut(&id).map(change).is_some()
    }

    /// Takes the commands that are to be decided again, by the agreements that they would make. Their slots are kept until then.
    pub(crate) fn take_decidable(&mut self, now: Micros) -> Vec<Uuid> {
        let commands = self.ids_where(|waiting| {
            let is_settled = matches!(
                waiting.outcome,
                ReservationState::Reserved | ReservationState::RefusedAndReported
            );
            is_settled || now - waiting.tried.since > PATIENCE
        });
        for id in &commands {
            self.change(*id, |waiting| waiting.is_kept = false);
        }
        commands
    }

    /// Notes that the command about an agreement is kept to be decided again; false where it does not wait for its cluster.
    pub(crate) fn keep(&mut self, id: Uuid) -> bool {
        self.change(id, |waiting| waiting.is_kept = true)
    }

    /// Whether a command waits for an agreement that it would make.
    pub(crate) fn has(&self, id: Uuid) -> bool {
        self.commands.contains_key(&id)
    }

    /// The agreements on a resource that commands wait for.
    pub(crate) fn waiting_on(&self, resource: &str) -> impl Iterator<Item = &Agreement> {
        let all = self.agreements();
        all.filter(move |agreement| agreement.resource == resource)
    }

    /// The work on a resource that the agreements of waiting commands replace, by the ids of these agreements.
    pub(crate) fn replaced_on(&self, resource: &str) -> BTreeMap<Uuid, Uuid> {
        let here = self
            .commands
            .iter()
            .filter(|(_, waiting)| waiting.agreement.resource == resource);
        here.filter_map(|(id, waiting)| Some((*id, waiting.replaces?.work)))
            .collect()
    }

    /// Up to which begin slots on a resource have to be reserved, where it reserves slots.
    pub(crate) fn near_until(&self, resource: &str, now: Time) -> Option<Time> {
        let within = self.beside.within.get(resource)?;
        Some(Time(now.seconds().saturating_add(*within)))
    }

    /// The work of the agreements on a resource that have moved for commands.
    pub(crate) fn moved_on(&self, resource: &str) -> impl Iterator<Item = Uuid> {
        let moved = self.commands.values().flat_map(|waiting| &waiting.moved);
        moved
            .filter(move |moved| moved.resource == resource)
            .map(Agreement::execution_id)
    }

    /// The numbers under which slots are kept on a resource.
    pub(crate) fn numbers_on(&self, resource: &str) -> impl Iterator<Item = u64> {
        let here = self
            .commands
            .values()
            .filter(move |waiting| waiting.agreement.resource == resource);
        here.flat_map(|waiting| waiting.numbers.iter().copied())
    }

    /// The node-seconds of a party's waiting commands, without acceptances: the offers count for those.
    pub(crate) fn node_seconds(&self, party: &str) -> u128 {
        self.placed_for(party).map(Agreement::node_seconds).sum()
    }

    /// Whether the commands that wait have changed since this was last asked.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.beside.has_changed)
    }

    /// Whether no other command may wait.
    pub(crate) fn is_full(&self) -> bool {
        self.commands.len() >= WAITING_MAX
    }

    /// Forgets the commands that were taken to be decided again and are not; the numbers of their slots, by resource.
    pub(crate) fn take_dropped(&mut self) -> Vec<(usize, u64)> {
        let dropped = self.ids_where(|waiting| !waiting.is_kept).into_iter();
        let slots = dropped
            .filter_map(|id| self.commands.remove(&id))
            .flat_map(|waiting| {
                waiting
                    .numbers
                    .into_iter()
                    .map(move |number| (waiting.admitted.resource, number))
            });
        slots.collect()
    }

    /// Whether the slot of an agreement begins so soon that it has to be reserved first.
    pub(crate) fn is_needed(&self, agreement: &Agreement, now: Time) -> bool {
        let near = self.near_until(&agreement.resource, now);
        near.is_some_and(|until| agreement.slot().start <= until)
    }

    /// Whether the slot of an agreement has to be reserved first, or a slot to which another one on its resource has gone for it.
    pub(crate) fn is_needed_with_others(
        &self,
        agreement: &Agreement,
        admitted: &Placement,
        now: Time,
    ) -> bool {
        let Some(near) = self.near_until(&agreement.resource, now) else {
            return false;
        };
        let moved = admitted.moved.iter().map(|one_move| one_move.to);
        let shapes = admitted.new_shapes.iter();
        let mut starts = moved.chain(shapes.map(|shape| shape.placed.slot().start));
        agreement.slot().start <= near || starts.any(|start| start <= near)
    }

    /// The slot that was reserved for an agreement, once.
    pub(crate) fn take(&mut self, id: Uuid) -> Option<ReservedSlot> {
        match self.beside.word.take() {
            Some((decided, HolderWord::Held(reserved))) if decided == id => Some(*reserved),
            other => {
                self.beside.word = other;
                None
            }
        }
    }

    /// The tries for an agreement, if there were any. The error says in words that its cluster has refused too often, or did not
    /// answer.
    pub(crate) fn tried(&mut self, id: Uuid, now: Micros) -> Result<Option<ReservationTries>, String> {
        let word = self.beside.word.take().filter(|(decided, _)| *decided == id);
        let seconds = PATIENCE / MICROS_PER_SECOND;
        match word.map(|(_, word)| word) {
            Some(HolderWord::Refused(tried)) if tried.slots < TRIES_MAX && now - tried.since < PATIENCE => {
                Ok(Some(tried))
            }
            Some(HolderWord::Refused(tried)) => Err(waiting_command_refused_in_words(tried.slots)),
            Some(HolderWord::Silent) => Err(format!(
                "the cluster has not reserved the nodes within {seconds} seconds"
            )),
            Some(HolderWord::Held(_)) | None => Ok(None),
        }
    }
}

impl TakeBack for WaitingCommands {
    type Before = BesideCommands;

    fn begin_try(&mut self) -> BesideCommands {
        self.commands.begin_try();
        self.beside.clone()
    }

    fn take_back(&mut self, before: BesideCommands) {
        self.commands.take_back(());
        self.beside = before;
    }
}

impl WaitingCommand {
    /// A command that waits from `now` on, or since earlier tries.
    pub(crate) fn new(
        agreement: Agreement,
        admitted: Placement,
        numbers: Vec<u64>,
        tried: Option<ReservationTries>,
        now: Micros,
    ) -> Self {
        let tried = tried.unwrap_or(ReservationTries {
            since: now,
            slots: 0,
            not_before: None,
        });
        Self {
            is_kept: false,
            agreement,
            admitted,
            moved: Vec::new(),
            moves: Vec::new(),
            numbers,
            replaces: None,
            tried,
            outcome: ReservationState::Unknown,
        }
    }

    /// Whether the slot is over, or its rest may be too short for a job that begins in it.
    pub(crate) fn is_too_late(&self, now: Time) -> bool {
        let goes_on = self.replaces.is_some_and(|replace| replace.has_begun);
        let slot = self.agreement.slot();
        slot.end <= now || !goes_on && self.agreement.is_too_late_by(now - slot.start)
    }
}

/// That a cluster has refused this number of slots, in words.
pub(crate) fn waiting_command_refused_in_words(slots: u32) -> String {
    let slots = match slots {
        1 => "a slot".to_owned(),
        slots => format!("{slots} slots"),
    };
    format!("the cluster has refused to reserve the nodes of {slots} in the window, and no later one is left")
}
