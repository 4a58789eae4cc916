//! Sums over the rows of the tables that decide rights and money beside the agreements themselves: bound nodes, executions, the ledger,
//! the spendings of keys, successions, and records of moves. A sum adds up the digests of all rows of a table, so a batch adds those of
//! its new rows and takes away those of rows that go, whatever else the table has. The trail states the sums after each batch that
//! changes one. A row that was changed, added or deleted past the service shows in the sum of its table.

use std::fmt;

use crate::engine::bulk::{self, Bulk};
use crate::engine::{Columns, Error, Result, Value, statements};

scheduler::worded! {
    /// A table with a sum, by its name in digests and in words. The archive is a part of its table.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum SummedTable {
        Bindings = "node_bindings",
        Executions = "executions",
        Ledger = "ledger",
        Spendings = "spendings",
        Successions = "successions",
        Moves = "moves",
    }
}

impl SummedTable {
    /// The statement that adds its rows, with all its columns, and the one that reads all of them.
    pub(crate) fn statements(self) -> (&'static Bulk, &'static str) {
        match self {
            Self::Bindings => (&bulk::BIND_NODES, statements::ALL_BINDINGS),
            Self::Executions => (&bulk::INSERT_EXECUTIONS, statements::ALL_EXECUTIONS),
            Self::Ledger => (&bulk::INSERT_ENTRIES, statements::ALL_ENTRIES),
            Self::Spendings => (&bulk::INSERT_SPENDINGS, statements::ALL_SPENDINGS),
            Self::Successions => (&bulk::INSERT_SUCCESSIONS, statements::ALL_SUCCESSIONS),
            Self::Moves => (&bulk::INSERT_MOVES, statements::ALL_MOVES),
        }
    }

    /// The part of a stored row in the sum.
    pub(crate) fn part_of_row(self, row: &Columns<'_>) -> Result<u128> {
        let digest = self.statements().0.stored_digest(self.word(), row)?;
        Ok(u128::from_be_bytes(digest))
    }

    fn part(self, values: &[Value<'_>]) -> u128 {
        u128::from_be_bytes(self.statements().0.digest(self.word(), values))
    }
}

/// The sum of each table, in the order of [`SummedTable::ALL`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TableSums([u128; SummedTable::ALL.len()]);

impl TableSums {
    /// Reads them as they are written: nothing, where no row has been added yet.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut sums = Self::default();
        if text.is_empty() {
            return Ok(sums);
        }
        let wrong = || Error::Corrupt(format!("sums are {text:?}"));
        let mut parts = text.split(' ');
        for sum in &mut sums.0 {
            let part = parts.next().ok_or_else(wrong)?;
            *sum = part.parse().map_err(|_| wrong())?;
        }
        if parts.next().is_some() {
            return Err(wrong());
        }
        Ok(sums)
    }

    pub(crate) fn of(&self, table: SummedTable) -> u128 {
        self.0[table as usize]
    }

    /// Adds a row.
    pub(crate) fn add(&mut self, table: SummedTable, values: &[Value<'_>]) {
        let sum = &mut self.0[table as usize];
        *sum = sum.wrapping_add(table.part(values));
    }

    /// Takes a row away.
    pub(crate) fn take(&mut self, table: SummedTable, values: &[Value<'_>]) {
        self.take_part(table, table.part(values));
    }

    /// Takes the part of a row away.
    pub(crate) fn take_part(&mut self, table: SummedTable, part: u128) {
        let sum = &mut self.0[table as usize];
        *sum = sum.wrapping_sub(part);
    }
}

impl fmt::Display for TableSums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, others @ ..] = &self.0;
        write!(f, "{first}")?;
        others.iter().try_for_each(|sum| write!(f, " {sum}"))
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn sums_are_written_and_read_and_do_not_depend_on_the_order() {
        let rows: Vec<_> = (0..4)
            .map(|_| [Value::from(Uuid::now_v7()), Value::from(Uuid::now_v7())])
            .collect();
        let mut sums = TableSums::default();
        assert_eq!(TableSums::parse("").unwrap(), sums);
        for row in &rows {
            sums.add(SummedTable::Successions, row);
        }
        assert_eq!(TableSums::parse(&sums.to_string()).unwrap(), sums);
        for wrong in ["1", "1 2 3 4 5 6 7", "1 2 3 4 5 -6", "1 2 3 4 5 x"] {
            TableSums::parse(wrong).unwrap_err();
        }
        for row in rows.iter().rev() {
            sums.take(SummedTable::Successions, row);
        }
        assert_eq!(sums, TableSums::default());
    }
}
