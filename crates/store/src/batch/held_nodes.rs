//! What a batch does to the sums, before it is written. The nodes that agreements have are changed, too, where they are handed over or given
//! back: these are read first.

use std::collections::BTreeMap;

use domain::change::Change;
use domain::resources::Binding;
use scheduler::Interval;
use uuid::Uuid;

use super::rows::ledger_rows;
use super::sums::{SummedTable, TableSums};
use crate::engine::{Record, Result, Value, bulk};
use crate::store::{ANSWER_WAIT, Store};

/// The nodes that agreements have before a batch.
#[derive(Debug, Clone, Default)]
pub(crate) struct HeldNodes(BTreeMap<Uuid, Vec<Binding>>);

impl HeldNodes {
    /// The agreements of a batch for which they have to be known.
    pub(crate) fn needed(batch: &[Change]) -> Vec<Uuid> {
        let mut needed = Vec::new();
        for change in batch {
            match change {
                Change::HandOverNodes { from, to, .. } => needed.extend([*from, *to]),
                Change::ReleaseNodes { agreement, .. } => needed.push(*agreement),
                _ => {}
            }
        }
        needed.sort_unstable();
        needed.dedup();
        needed
    }

    pub(crate) fn of(bindings: Vec<Binding>) -> Self {
        let mut held = Self::default();
        for bound in bindings {
            held.0.entry(bound.agreement).or_default().push(bound);
        }
        held
    }
}

/// The nodes that agreements of a batch have which gives some of them back or hands them over: only a decider changes them.
pub(super) async fn held_nodes_before(store: &Store, batch: &[Change]) -> Result<HeldNodes> {
    let needed = HeldNodes::needed(batch);
    if needed.is_empty() {
        return Ok(HeldNodes::default());
    }
    let needed: Vec<Value<'_>> = needed.into_iter().map(Value::from).collect();
    let readers = &store.database.readers;
    let mut connection = readers.acquire().await?;
    let read = bulk::NODES_OF.read(&mut connection, &needed, Binding::of);
    Ok(HeldNodes::of(readers.answer(ANSWER_WAIT, read).await??))
}

/// The sums after a batch, where the agreements that give nodes back or hand them over have these nodes before it.
pub(crate) fn sums_with_held_nodes(mut sums: TableSums, batch: &[Change], held: &HeldNodes) -> TableSums {
    let mut held = held.clone();
    for change in batch {
        match change {
            Change::BindNodes {
                agreement,
                resource,
                nodes,
                interval,
            } => {
                for node in nodes {
                    let bound = Binding {
                        resource: resource.clone(),
                        node: *node,
                        interval: *interval,
                        agreement: *agreement,
                    };
                    sums.add(SummedTable::Bindings, &bound.values());
                    held.0.entry(*agreement).or_default().push(bound);
                }
            }
            Change::HandOverNodes { from, to, now, end } => {
                let bindings = held.0.remove(from).unwrap_or_default();
                let (handed, kept): (Vec<_>, Vec<_>) = bindings
                    .into_iter()
                    .partition(|binding| binding.interval.end > *now);
                held.0.insert(*from, kept);
                for mut bound in handed {
                    sums.take(SummedTable::Bindings, &bound.values());
                    bound.agreement = *to;
                    bound.interval = Interval::new(bound.interval.start, *end);
                    sums.add(SummedTable::Bindings, &bound.values());
                    held.0.entry(*to).or_default().push(bound);
                }
            }
            Change::ReleaseNodes { agreement, end } => {
                let bindings_held = held.0.entry(*agreement).or_default();
                for mut bound in std::mem::take(bindings_held) {
                    if bound.interval.start < *end && bound.interval.end <= *end {
                        bindings_held.push(bound);
                        continue;
                    }
                    sums.take(SummedTable::Bindings, &bound.values());
                    if bound.interval.start < *end {
                        bound.interval = Interval::new(bound.interval.start, *end);
                        sums.add(SummedTable::Bindings, &bound.values());
                        bindings_held.push(bound);
                    }
                }
            }
            Change::RecordExecution(execution) => sums.add(SummedTable::Executions, &execution.values()),
            Change::Post(posting) => {
                for side in ledger_rows(posting) {
                    sums.add(SummedTable::Ledger, &side);
                }
            }
            Change::Spend {
                agreement,
                key,
                micros,
            } => {
                let row = [(*agreement).into(), (*key).into(), (*micros).into()];
                sums.add(SummedTable::Spendings, &row);
            }
            Change::RecordMoves(record) => sums.add(SummedTable::Moves, &record.values()),
            Change::ForgetMoves(record) => sums.take(SummedTable::Moves, &record.values()),
            Change::Supersede { old, new } => {
                sums.add(SummedTable::Successions, &[(*old).into(), (*new).into()]);
            }
            _ => {}
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use scheduler::Time;

    use super::*;

    #[test]
    fn nodes_that_are_bound_handed_over_and_given_back_leave_nothing() {
        let (one, other) = (Uuid::now_v7(), Uuid::now_v7());
        let bind = Change::BindNodes {
            agreement: one,
            resource: "local".into(),
            nodes: vec![0, 1],
            interval: Interval::new(Time(10), Time(20)),
        };
        let hand_over = Change::HandOverNodes {
            from: one,
            to: other,
            now: Time(15),
            end: Time(30),
        };
        let release = |end| Change::ReleaseNodes {
            agreement: other,
            end: Time(end),
        };
        let bound = |agreement, end| {
            let bind = Change::BindNodes {
                agreement,
                resource: "local".into(),
                nodes: vec![0, 1],
                interval: Interval::new(Time(10), Time(end)),
            };
            sums_with_held_nodes(TableSums::default(), &[bind], &HeldNodes::default())
        };
        let after =
            |batch: &[Change]| sums_with_held_nodes(TableSums::default(), batch, &HeldNodes::default());
        let batch = [bind.clone(), hand_over.clone()];
        assert_eq!(after(&batch), bound(other, 30));
        let batch = [bind.clone(), hand_over.clone(), release(25)];
        assert_eq!(after(&batch), bound(other, 25));
        let batch = [bind, hand_over, release(10)];
        assert_eq!(after(&batch), TableSums::default());
    }
}
