//! The rows of a batch, table by table and statement by statement, with the hashes of the trail, before anything is sent. Several
//! changes of one row become one. A change that contradicts its own batch is found here; a change that contradicts the store is
//! found by how many rows a statement changes.

use std::collections::{BTreeMap, BTreeSet};

use domain::agreement::{
    Agreement, AtPeer, Event, EventKind, NegotiationOffer, Note, NoteKind, PartyEvent, staging_transfer_rate,
};
use domain::change::Change;
use domain::clock::Micros;
use domain::resources::{NodeRow, ResourceRow};
use scheduler::Interval;
use uuid::Uuid;

use super::held_nodes::{HeldNodes, sums_with_held_nodes};
use super::rows::{agreement_event_row, changed_offer_row, ledger_rows, note_line_row};
use super::sums::TableSums;
use super::trail::{StatedRows, Trail};
use crate::engine::bulk::{self, ALL_BULK, Bulk};
use crate::engine::joined::Part;
use crate::engine::{Connection, Error, Record, Result, StoredValue, Value, is_contention_error};
use crate::records::agreements;
use crate::records::ledger;

/// Why an attempt failed.
pub(crate) enum Failure {
    /// Nothing was written, and trying again may help.
    Contention(sqlx::Error),
    /// Nothing was written.
    Refused(Error),
    /// Whether COMMIT was carried out is not known.
    Unknown(sqlx::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Unavailable(why) if is_contention_error(&why) => Self::Contention(*why),
            error => Self::Refused(error),
        }
    }
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Error::from(error).into()
    }
}

/// Changes of bindings of one kind that follow each other in a batch and do not depend on each other.
struct BindingRun<'a> {
    kind: Binding,
    agreements: BTreeSet<Uuid>,
    values: Vec<Value<'a>>,
    /// The nodes that it binds, with their times.
    bound: Vec<(&'a str, u32, Interval)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Binding {
    Bind,
    HandOver,
    Release,
}

/// From when on a resource has how many nodes.
type Capacity = (Micros, u32);

/// A batch by tables.
#[derive(Default)]
pub(crate) struct BatchTables<'a> {
    /// The end of the trail after it.
    pub(crate) trail: Trail,
    /// The sums after it, where it changes them and no line has stated them yet.
    unstated: Option<TableSums>,
    /// The rows of each statement of [`ALL_BULK`].
    rows: Vec<Vec<Value<'a>>>,
    /// The stored version, the last that is in the batch, and whether it has waited all the while.
    changed: BTreeMap<Uuid, (i64, &'a Agreement, bool)>,
    changed_offers: BTreeMap<Uuid, &'a NegotiationOffer>,
    nodes: BTreeMap<(&'a str, u32, &'a str), Option<&'a NodeRow>>,
    at_peers: BTreeMap<Uuid, &'a AtPeer>,
    resources: BTreeMap<&'a str, &'a ResourceRow>,
    /// Since when each has other nodes, and which.
    capacities: BTreeMap<&'a str, (Micros, Vec<Capacity>)>,
    /// What is added to accounts and taken from them, by account, currency and day.
    days: BTreeMap<(String, &'a str, i64), (i64, i64)>,
    keys: BTreeSet<(&'a str, &'a str)>,
    /// In their order, as nodes that one gives back another may get.
    bindings: Vec<BindingRun<'a>>,
}

impl<'a> BatchTables<'a> {
    /// The rows of a batch where the trail ends so before it, and agreements have these nodes.
    ///
    /// # Errors
    /// [`Error::Conflict`] where its changes do not fit each other.
    pub(crate) fn of(batch: &'a [Change], trail: &Trail, held: &HeldNodes) -> Result<Self> {
        let sums = sums_with_held_nodes(trail.sums, batch, held);
        let mut tables = Self {
            unstated: (sums != trail.sums).then_some(sums),
            trail: trail.clone(),
            rows: vec![Vec::new(); ALL_BULK.len()],
            ..Self::default()
        };
        let now = latest_instant_of_batch(batch);
        for change in batch {
            tables.add(change, now)?;
        }
        if tables.unstated.is_some() {
            let about = (Uuid::nil(), None);
            tables.push_note(&Note::new(now, NoteKind::Stored, about, String::new()));
        }
        for (before, now, waits) in std::mem::take(&mut tables.changed).into_values() {
            let statement = if waits {
                &bulk::MOVE_AGREEMENTS
            } else {
                &bulk::UPDATE_AGREEMENTS
            };
            tables.push(statement, [before.into()]);
            tables.push(statement, now.values());
        }
        for offer in std::mem::take(&mut tables.changed_offers).into_values() {
            tables.push(&bulk::UPDATE_OFFERS, changed_offer_row(offer));
        }
        for row in std::mem::take(&mut tables.at_peers).into_values() {
            tables.push(&bulk::PUT_AT_PEERS, row.values());
        }
        for resource in std::mem::take(&mut tables.resources).into_values() {
            tables.push(&bulk::PUT_RESOURCES, resource.values());
        }
        for (resource, (since, steps)) in std::mem::take(&mut tables.capacities) {
            tables.push(&bulk::FORGET_CAPACITIES, [resource.into(), since.into()]);
            for (since, nodes) in steps {
                let row = [resource.into(), since.into(), nodes.into()];
                tables.push(&bulk::INSERT_CAPACITIES, row);
            }
        }
        for ((resource, node, reporter), stored_state) in std::mem::take(&mut tables.nodes) {
            let key = [resource.into(), node.into(), reporter.into()];
            tables.push(&bulk::FORGET_NODE_STATES, key);
            if let Some(state_to_store) = stored_state {
                tables.push(&bulk::INSERT_NODE_STATES, state_to_store.values());
            }
        }
        for ((account, currency, day), (credits, charges)) in std::mem::take(&mut tables.days) {
            let row = [
                account.into(),
                currency.into(),
                day.into(),
                credits.into(),
                charges.into(),
            ];
            tables.push(&bulk::ADD_TO_DAYS, row);
        }
        Ok(tables)
    }

    fn push(&mut self, statement: &'static Bulk, row: impl IntoIterator<Item = Value<'a>>) {
        let at = ALL_BULK.iter().position(|known| std::ptr::eq(*known, statement));
        // All statements stand there.
        self.rows[at.expect("the statement has its place")].extend(row);
    }

    fn push_events(&mut self, agreement: &'a Agreement, events: &'a [Event]) {
        self.push_timeline(agreement, events, true);
    }

    /// Adds lines to the timeline of an agreement, and the events of its party about them where it is told.
    fn push_timeline(&mut self, agreement: &'a Agreement, events: &'a [Event], is_told: bool) {
        let digest = bulk::INSERT_AGREEMENTS.digest(agreements::TABLE, &agreement.values());
        for event in events {
            let stated = StatedRows {
                digest: Some(digest),
                sums: self.unstated.take(),
            };
            let row = agreement_event_row(&mut self.trail, agreement, event, stated);
            self.push(&bulk::INSERT_EVENTS, row);
            let line = (self.trail.number, &*self.trail.hash);
            if let Some(told) = PartyEvent::of(agreement, event, line).filter(|_| is_told) {
                self.push_party_event(&told);
            }
        }
    }

    fn push_party_event(&mut self, event: &PartyEvent) {
        self.push(
            &bulk::INSERT_PARTY_EVENTS,
            event.values().into_iter().map(Value::owned),
        );
    }

    fn push_note(&mut self, note: &Note) {
        let row = note_line_row(&mut self.trail, note, self.unstated.take());
        self.push(&bulk::INSERT_NOTES, row);
    }

    /// Has the row of an agreement be as it is now, where it has the version `before`, after these events.
    fn change_agreement(&mut self, agreement: &'a Agreement, before: i64, events: &[Event]) -> Result<()> {
        // By a move alone nothing comes to wait that did not: a begin, a restart and a decision have lines of their own.
        let has_moved = !events.is_empty() && events.iter().all(|event| event.kind == EventKind::Moved);
        let waits = has_moved && agreement.is_waiting();
        match self.changed.get_mut(&agreement.id) {
            None => {
                self.changed.insert(agreement.id, (before, agreement, waits));
            }
            Some((_, last, has_waited)) if last.version == before => {
                *last = agreement;
                *has_waited &= waits;
            }
            Some((_, last, _)) => {
                let (id, has) = (agreement.id, last.version);
                let what = format!("agreement {id} has the version {has} and not {before}");
                return Err(Error::Conflict(what));
            }
        }
        Ok(())
    }

    #[expect(clippy::too_many_lines, reason = "a few lines for each kind of change")]
    fn add(&mut self, change: &'a Change, now: Micros) -> Result<()> {
        match change {
            Change::PutResource(row) => {
                self.resources.insert(&row.name, row);
            }
            Change::SetCapacity { resource, steps } => {
                let since = steps.first().map_or(now, |(since, _)| *since);
                let (from, known) = self.capacities.entry(resource).or_insert((since, Vec::new()));
                *from = since.min(*from);
                known.retain(|(at, _)| *at < since);
                known.extend(steps);
            }
            Change::CreateAgreement {
                agreement,
                document,
                events,
            } => {
                self.push(&bulk::INSERT_AGREEMENTS, agreement.values());
                let mut row = vec![agreement.id.into()];
                document.write(&mut row);
                self.push(&bulk::INSERT_DOCUMENTS, row);
                self.push_events(agreement, events);
            }
            Change::UpdateAgreement { agreement, events } => {
                self.change_agreement(agreement, agreement.version - 1, events)?;
                self.push_events(agreement, events);
            }
            Change::SettleMoves {
                agreement,
                event,
                before,
                is_told,
            } => {
                self.change_agreement(agreement, *before, std::slice::from_ref(event))?;
                self.push_timeline(agreement, std::slice::from_ref(event), *is_told);
            }
            Change::RecordMoves(record) => {
                self.push(&bulk::INSERT_MOVES, record.values());
                let subject = record.cause.unwrap_or(Uuid::nil());
                let detail = record.in_words();
                self.push_note(&Note::new(
                    record.at,
                    NoteKind::MovesRecorded,
                    (subject, None),
                    detail,
                ));
            }
            Change::ForgetMoves(record) => self.push(&bulk::FORGET_MOVES, [record.number.into()]),
            Change::BindNodes {
                agreement,
                resource,
                nodes,
                interval,
            } => {
                let bound = nodes.iter().map(|node| (resource.as_str(), *node, *interval));
                let rows = nodes.iter().flat_map(|node| -> [Value<'a>; 5] {
                    [
                        resource.into(),
                        (*node).into(),
                        interval.start.into(),
                        interval.end.into(),
                        (*agreement).into(),
                    ]
                });
                let run = self.run(Binding::Bind, &[*agreement]);
                run.values.extend(rows);
                run.bound.extend(bound);
            }
            Change::HandOverNodes { from, to, now, end } => {
                let row = [(*from).into(), (*to).into(), (*end).into(), (*now).into()];
                self.run(Binding::HandOver, &[*from, *to]).values.extend(row);
            }
            Change::ReleaseNodes { agreement, end } => {
                let row = [(*agreement).into(), (*end).into()];
                self.run(Binding::Release, &[*agreement]).values.extend(row);
            }
            Change::Post(posting) => {
                for side in ledger_rows(posting) {
                    self.push(&bulk::INSERT_ENTRIES, side);
                }
                let (currency, day) = (posting.amount.currency.code(), ledger::ledger_day(posting.at));
                let micros = posting.amount.micros;
                for (account, credit, charge) in [(&posting.from, 0, -micros), (&posting.to, micros, 0)] {
                    let sums = self.days.entry((account.to_string(), currency, day));
                    let (credits, charges) = sums.or_default();
                    *credits += credit;
                    *charges += charge;
                }
            }
            Change::AwaitDecision {
                agreement,
                acceptance,
                offer,
                spender,
            } => {
                let mut row = vec![(*agreement).into(), (*offer).into(), (*spender).into()];
                acceptance.write(&mut row);
                self.push(&bulk::AWAIT_DECISIONS, row);
            }
            Change::Spend {
                agreement,
                key,
                micros,
            } => {
                let row = [(*agreement).into(), (*key).into(), (*micros).into()];
                self.push(&bulk::INSERT_SPENDINGS, row);
            }
            Change::PutAtPeer(row) => {
                self.at_peers.insert(row.id, row);
            }
            Change::DecideAgreement(agreement) => {
                self.push(&bulk::DECIDED, [(*agreement).into()]);
            }
            Change::QueueCallBack(call) => self.push(&bulk::INSERT_CALL_BACKS, call.values()),
            Change::RecordExecution(execution) => {
                self.push(&bulk::INSERT_EXECUTIONS, execution.values());
                let rates = [
                    staging_transfer_rate(execution.moved_in, execution.transfer_in),
                    staging_transfer_rate(execution.moved_out, execution.transfer_out),
                ];
                if rates != [None, None] {
                    let [into, out] = rates.map(Value::from);
                    let at = [(&execution.resource).into(), execution.ended.into()];
                    self.push(&bulk::INSERT_TRANSFERS, at.into_iter().chain([into, out]));
                }
            }
            Change::RememberRequest(done) => {
                if !self.keys.insert((&done.party, &done.key)) {
                    let what = format!("the idempotency key {:?} is there twice", done.key);
                    return Err(Error::Conflict(what));
                }
                self.push(&bulk::REMEMBER_REQUESTS, done.values());
            }
            Change::SetNode(node) => {
                self.nodes
                    .insert((&node.resource, node.node, &node.reporter), Some(node));
            }
            Change::ForgetNode {
                resource,
                node,
                reporter,
            } => {
                self.nodes.insert((resource, *node, reporter), None);
            }
            Change::CreateNegotiation {
                negotiation,
                document,
            } => {
                let row = negotiation.values().into_iter().chain([document.into()]);
                self.push(&bulk::INSERT_NEGOTIATIONS, row);
                let note = Note::of_opening(negotiation);
                self.push_note(&note);
                if note.kind == NoteKind::Proposed {
                    let line = (self.trail.number, &*self.trail.hash);
                    self.push_party_event(&PartyEvent::of_proposal(negotiation, note.detail, line));
                }
            }
            Change::EndNegotiation { negotiation, at } => {
                self.push(&bulk::END_NEGOTIATIONS, [(*negotiation).into(), (*at).into()]);
                self.push_note(&Note::of_ending(*negotiation, *at));
            }
            Change::CreateOffer { offer, document } => {
                let row = offer.values().into_iter().chain([document.into()]);
                self.push(&bulk::INSERT_OFFERS, row);
                self.push_note(&Note::of_new_offer(offer));
            }
            Change::Supersede { old, new } => {
                self.push(&bulk::INSERT_SUCCESSIONS, [(*old).into(), (*new).into()]);
            }
            Change::UpdateOffer(offer) => {
                let before = self.changed_offers.insert(offer.id, offer);
                if before.is_some_and(|before| before.agreement.is_some()) {
                    return Err(Error::Conflict(format!("offer {} has been accepted", offer.id)));
                }
                self.push_note(&Note::of_offer(offer, now));
            }
            Change::AnnounceStart { agreement, at } => {
                let note = Note::of_start(agreement, *at);
                self.push_note(&note);
                let line = (self.trail.number, &*self.trail.hash);
                self.push_party_event(&PartyEvent::of_start(agreement, *at, note.detail, line));
            }
            Change::Note(note) => self.push_note(note),
        }
        Ok(())
    }

    /// The run that a change of the bindings of these agreements belongs to.
    fn run(&mut self, kind: Binding, agreements: &[Uuid]) -> &mut BindingRun<'a> {
        let goes_on = self.bindings.last().is_some_and(|last| {
            last.kind == kind
                && (kind == Binding::Bind
                    || agreements
                        .iter()
                        .all(|agreement| !last.agreements.contains(agreement)))
        });
        if !goes_on {
            self.bindings.push(BindingRun {
                kind,
                agreements: BTreeSet::new(),
                values: Vec::new(),
                bound: Vec::new(),
            });
        }
        // One has just been made where there was none.
        let run = self.bindings.last_mut().expect("there is one");
        run.agreements.extend(agreements);
        run
    }

    /// The statements that write everything but the end of the trail, in their order, with their rows.
    ///
    /// # Errors
    /// [`Error::Conflict`] where the batch binds a node twice.
    pub(crate) fn parts(&self) -> Result<Vec<Part<'_>>> {
        let rows = ALL_BULK.iter().zip(&self.rows);
        let of_tables = rows.filter(|(_, rows)| !rows.is_empty());
        let mut parts: Vec<Part<'_>> = of_tables.map(|(bulk, rows)| (*bulk, &**rows)).collect();
        for run in &self.bindings {
            let statements: &[&'static Bulk] = match run.kind {
                Binding::Bind => {
                    run.check_owners()?;
                    &[&bulk::BIND_NODES]
                }
                Binding::HandOver => &[&bulk::HAND_OVER_NODES],
                Binding::Release => &[&bulk::RELEASE_NODES, &bulk::SHORTEN_BINDINGS],
            };
            parts.extend(statements.iter().map(|bulk| (*bulk, &*run.values)));
        }
        Ok(parts)
    }

    /// Writes everything but the end of the trail, one statement after the other.
    ///
    /// # Errors
    /// [`Error::Conflict`] where it does not fit the store, and the errors of the engine.
    pub(crate) async fn write(&self, connection: &mut Connection) -> Result<(), Failure> {
        for (statement, rows) in self.parts()? {
            send_bulk_statement(connection, statement, rows).await?;
        }
        Ok(())
    }
}

impl BindingRun<'_> {
    /// That no node is bound twice in it: a statement does not see the rows that it adds.
    fn check_owners(&self) -> Result<()> {
        let mut bound = self.bound.clone();
        bound.sort_unstable_by_key(|(resource, node, interval)| (*resource, *node, interval.start));
        let twice = |pair: &&[(&str, u32, Interval)]| {
            let [(resource, node, first), (other, same, second)] = pair else {
                return false;
            };
            (resource, node) == (other, same) && second.start < first.end
        };
        match bound.windows(2).find(twice) {
            Some([(resource, node, interval), ..]) => Err(Error::Conflict(format!(
                "node {node} of {resource} has another owner in {interval}"
            ))),
            _ => Ok(()),
        }
    }
}

/// Runs a statement. Where it has a name for its rows, each of them must change one row of the database.
async fn send_bulk_statement(
    connection: &mut Connection,
    statement: &'static Bulk,
    rows: &[Value<'_>],
) -> Result<(), Failure> {
    let changed = statement.execute(connection, rows).await?;
    let count = statement.count(rows);
    match statement.each {
        Some(what) if changed != count as u64 => {
            let what = format!("{changed} of {count} are {what}");
            Err(Error::Conflict(what).into())
        }
        _ => Ok(()),
    }
}

/// The latest instant in a batch, for changes without an instant of their own.
fn latest_instant_of_batch(batch: &[Change]) -> Micros {
    let at = |change: &Change| match change {
        Change::CreateOffer { offer, .. } => Some(offer.created),
        Change::CreateAgreement { events, .. } | Change::UpdateAgreement { events, .. } => {
            events.iter().map(|event| event.at).max()
        }
        Change::SettleMoves { event, .. } => Some(event.at),
        Change::RecordMoves(record) => Some(record.at),
        Change::UpdateOffer(offer) => offer.released,
        Change::EndNegotiation { at, .. } => Some(*at),
        Change::RecordExecution(execution) => Some(execution.ended),
        Change::Post(posting) => Some(posting.at),
        _ => None,
    };
    batch.iter().filter_map(at).max().unwrap_or(0)
}
