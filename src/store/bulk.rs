//! Statements about many rows at once. The rows are arguments, and the statement has them as the table `r`. So its text is the
//! same for one row and for thousands, and a batch takes one way to the server and back for each table.
//!
//! Postgres takes an array for each column, SQLite one JSON text with a list for each row: that is where the two differ.

use std::sync::OnceLock;

use sqlx::error::BoxDynError;
use sqlx::{Arguments, Postgres, Sqlite};
use uuid::Uuid;

use super::engine::{Dialect, Value};

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Integer,
    Text,
    Id,
}

/// A column of the rows that are given.
pub(super) type Column = (&'static str, Kind);

/// A statement about rows that are its arguments.
#[derive(Debug)]
pub(super) struct Bulk {
    pub(super) name: &'static str,
    columns: &'static [Column],
    /// The action on the table `r`.
    body: &'static str,
    sqlite: OnceLock<String>,
    postgres: OnceLock<String>,
}

impl Bulk {
    pub(super) const fn new(name: &'static str, columns: &'static [Column], body: &'static str) -> Self {
        Self {
            name,
            columns,
            body,
            sqlite: OnceLock::new(),
            postgres: OnceLock::new(),
        }
    }

    /// How many rows there are in values that stand row by row.
    pub(super) fn count(&self, values: &[Value<'_>]) -> usize {
        values.len() / self.columns.len()
    }

    /// The whole statement, where `rows` reads the rows from the arguments.
    fn with(&self, rows: &str) -> String {
        let names: Vec<_> = self.columns.iter().map(|(name, _)| *name).collect();
        format!("WITH r ({}) AS ({rows}) {}", names.join(", "), self.body)
    }
}

/// How an engine takes rows as arguments.
pub(super) trait TakesRows: sqlx::Database {
    /// The text of a statement.
    fn statement(of: &'static Bulk) -> &'static str;

    /// The arguments of a statement for rows, with their values row by row.
    fn rows(of: &Bulk, values: &[Value<'_>]) -> Result<Self::Arguments, BoxDynError>;
}

impl TakesRows for Sqlite {
    fn statement(of: &'static Bulk) -> &'static str {
        of.sqlite.get_or_init(|| {
            let read = |(at, (_, kind)): (usize, &Column)| match kind {
                Kind::Integer | Kind::Text => format!("value ->> {at}"),
                Kind::Id => format!("unhex(value ->> {at})"),
            };
            let columns: Vec<_> = of.columns.iter().enumerate().map(read).collect();
            of.with(&format!("SELECT {} FROM json_each($1)", columns.join(", ")))
        })
    }

    fn rows(of: &Bulk, values: &[Value<'_>]) -> Result<Self::Arguments, BoxDynError> {
        let one = |value: &Value<'_>| match value {
            Value::Integer(integer) => serde_json::Value::from(*integer),
            Value::Text(text) => text.as_deref().into(),
            Value::Id(id) => id.map(|id| id.simple().to_string()).into(),
        };
        let rows = values.chunks(of.columns.len());
        let rows = rows.map(|row| row.iter().map(one).collect::<serde_json::Value>());
        let mut arguments = Self::Arguments::default();
        arguments.add(rows.collect::<serde_json::Value>().to_string())?;
        Ok(arguments)
    }
}

impl TakesRows for Postgres {
    fn statement(of: &'static Bulk) -> &'static str {
        of.postgres.get_or_init(|| {
            let array = |(at, (_, kind)): (usize, &Column)| match kind {
                Kind::Integer => format!("${}::BIGINT[]", at + 1),
                Kind::Text => format!("${}::TEXT[]", at + 1),
                Kind::Id => format!("${}::UUID[]", at + 1),
            };
            let arrays: Vec<_> = of.columns.iter().enumerate().map(array).collect();
            of.with(&format!("SELECT * FROM unnest({})", arrays.join(", ")))
        })
    }

    fn rows(of: &Bulk, values: &[Value<'_>]) -> Result<Self::Arguments, BoxDynError> {
        let mut arguments = Self::Arguments::default();
        for (at, (name, kind)) in of.columns.iter().enumerate() {
            let column = values.iter().skip(at).step_by(of.columns.len());
            let other = || BoxDynError::from(format!("{}: {name} is of another kind", of.name));
            match kind {
                Kind::Integer => {
                    let integers = column.map(|value| match value {
                        Value::Integer(integer) => Ok(*integer),
                        _ => Err(other()),
                    });
                    arguments.add(integers.collect::<Result<Vec<Option<i64>>, _>>()?)?;
                }
                Kind::Text => {
                    let texts = column.map(|value| match value {
                        Value::Text(text) => Ok(text.as_deref()),
                        _ => Err(other()),
                    });
                    arguments.add(texts.collect::<Result<Vec<Option<&str>>, _>>()?)?;
                }
                Kind::Id => {
                    let ids = column.map(|value| match value {
                        Value::Id(id) => Ok(*id),
                        _ => Err(other()),
                    });
                    arguments.add(ids.collect::<Result<Vec<Option<Uuid>>, _>>()?)?;
                }
            }
        }
        Ok(arguments)
    }
}

/// Runs a statement about rows, with their values row by row, and says how many rows of the database it changed.
pub(super) async fn execute_bulk<D: Dialect>(
    connection: &mut D::Connection,
    of: &'static Bulk,
    values: &[Value<'_>],
) -> sqlx::Result<u64> {
    let arguments = D::rows(of, values).map_err(sqlx::Error::Encode)?;
    D::execute(connection, D::statement(of), arguments).await
}

/// Declares statements about many rows, and lists them for the test. The short form adds the rows to a table.
macro_rules! bulk {
    ($($name:ident ($($column:ident $kind:ident),+) = $body:tt;)+) => {
        $(pub(super) static $name: Bulk = Bulk::new(
            stringify!($name),
            &[$((stringify!($column), Kind::$kind)),+],
            bulk!(@body $body $($column)+),
        );)+
        pub(super) static ALL_BULK: &[&Bulk] = &[$(&$name),+];
    };
    (@body [$table:ident] $first:ident $($column:ident)*) => {
        concat!("INSERT INTO ", stringify!($table), " (", stringify!($first) $(, ", ", stringify!($column))*,
            ") SELECT ", stringify!($first) $(, ", ", stringify!($column))*, " FROM r")
    };
    (@body $body:literal $($column:ident)+) => { $body };
}

bulk! {
    // Agreements. Of each the version before is named; how many rows change says whether all of them were those.
    INSERT_AGREEMENTS (id Id, party Text, name Text, template Text, resource Text, nodes Integer, duration_s Integer,
        ready_s Integer, deadline_s Integer, planned_start_s Integer, planned_end_s Integer, job Text, guarantees Text,
        state Text, service Text, started_us Integer, ended_us Integer, outcome Text, exit_status Integer,
        created_us Integer, version Integer, fixed Integer, price_micros Integer, price_currency Text, leeway Text,
        origin Id, pieces Text) = [agreements];
    INSERT_DOCUMENTS (agreement Id, document Text, template Id) = [agreement_documents];
    UPDATE_AGREEMENTS (id Id, before Integer, resource Text, nodes Integer, duration_s Integer, ready_s Integer,
        deadline_s Integer, planned_start_s Integer, planned_end_s Integer, job Text, guarantees Text, state Text,
        service Text, started_us Integer, ended_us Integer, outcome Text, exit_status Integer, version Integer,
        fixed Integer, pieces Text) = "UPDATE agreements SET resource = r.resource, nodes = r.nodes, \
        duration_s = r.duration_s, ready_s = r.ready_s, deadline_s = r.deadline_s, \
        planned_start_s = r.planned_start_s, planned_end_s = r.planned_end_s, job = r.job, \
        guarantees = r.guarantees, state = r.state, service = r.service, started_us = r.started_us, \
        ended_us = r.ended_us, outcome = r.outcome, exit_status = r.exit_status, version = r.version, \
        fixed = r.fixed, pieces = r.pieces FROM r WHERE agreements.id = r.id AND agreements.version = r.before";

    // The trail. Lines are numbered from 1 per agreement; the single writer makes the numbers free of gaps.
    INSERT_EVENTS (agreement Id, at_us Integer, kind Text, detail Text, version Integer, state Text, service Text,
        number Integer, hash Text) = "INSERT INTO events (agreement, seq, at_us, kind, detail, version, state, service, \
        number, hash) SELECT r.agreement, (SELECT COALESCE(MAX(e.seq), 0) FROM events e \
        WHERE e.agreement = r.agreement) + ROW_NUMBER() OVER (PARTITION BY r.agreement ORDER BY r.number), r.at_us, \
        r.kind, r.detail, r.version, r.state, r.service, r.number, r.hash FROM r";
    INSERT_NOTES (number Integer, hash Text, at_us Integer, kind Text, subject Id, negotiation Id, party Text,
        detail Text) = [notes];

    // The archive.
    ARCHIVE_EVENTS (agreement Id) = "INSERT INTO archived_events (agreement, seq, at_us, kind, detail, version, state, \
        service, number, hash) SELECT agreement, seq, at_us, kind, detail, version, state, service, number, hash \
        FROM events WHERE agreement IN (SELECT agreement FROM r)";
    DELETE_EVENTS (agreement Id) = "DELETE FROM events WHERE agreement IN (SELECT agreement FROM r)";
    ARCHIVE_BINDINGS (agreement Id) = "INSERT INTO archived_bindings (resource, node, start_s, end_s, agreement) \
        SELECT resource, node, start_s, end_s, agreement FROM node_bindings WHERE agreement IN (SELECT agreement FROM r)";
    DELETE_BINDINGS (agreement Id) = "DELETE FROM node_bindings WHERE agreement IN (SELECT agreement FROM r)";
    ARCHIVE_DOCUMENTS (agreement Id) = "INSERT INTO archived_documents (agreement, document, template) \
        SELECT agreement, document, template FROM agreement_documents WHERE agreement IN (SELECT agreement FROM r)";
    DELETE_DOCUMENTS (agreement Id) = "DELETE FROM agreement_documents WHERE agreement IN (SELECT agreement FROM r)";

    // Nodes. The condition refuses a second owner on either engine; Postgres has a constraint as well. As owners do not overlap,
    // only the last one before the interval's end can reach into it, for any length of the history.
    BIND_NODES (resource Text, node Integer, start_s Integer, end_s Integer, agreement Id) = "INSERT INTO node_bindings \
        (resource, node, start_s, end_s, agreement) SELECT r.resource, r.node, r.start_s, r.end_s, r.agreement FROM r \
        WHERE NOT EXISTS (SELECT 1 FROM (SELECT b.end_s FROM node_bindings b WHERE b.resource = r.resource \
        AND b.node = r.node AND b.start_s < r.end_s ORDER BY b.start_s DESC LIMIT 1) AS last \
        WHERE last.end_s > r.start_s)";
    RELEASE_NODES (agreement Id, end_s Integer) = "DELETE FROM node_bindings WHERE (resource, node, start_s) IN \
        (SELECT b.resource, b.node, b.start_s FROM r JOIN node_bindings b ON b.agreement = r.agreement \
        WHERE b.start_s >= r.end_s)";
    SHORTEN_BINDINGS (agreement Id, end_s Integer) = "UPDATE node_bindings SET end_s = r.end_s FROM r \
        WHERE node_bindings.agreement = r.agreement AND node_bindings.end_s > r.end_s";
    HAND_OVER_NODES (old Id, new Id, end_s Integer, now_s Integer) = "UPDATE node_bindings SET agreement = r.new, \
        end_s = r.end_s FROM r WHERE node_bindings.agreement = r.old AND node_bindings.end_s > r.now_s";
    FORGET_NODE_STATES (resource Text, node Integer, reporter Text) = "DELETE FROM node_states \
        WHERE (resource, node, reporter) IN (SELECT resource, node, reporter FROM r)";
    INSERT_NODE_STATES (resource Text, node Integer, reporter Text, state Text, since_us Integer, reason Text)
        = [node_states];

    INSERT_EXECUTIONS (agreement Id, ended_us Integer, application Text, version Text, arguments Text,
        input_bytes Integer, output_bytes Integer, resource Text, nodes Integer, planned_start_s Integer,
        planned_end_s Integer, estimate_s Integer, queue_time_us Integer, run_time_us Integer, transfer_in_us Integer,
        transfer_out_us Integer, outcome Text, exit_status Integer) = [executions];

    // Negotiations.
    INSERT_NEGOTIATIONS (id Id, party Text, agreement Id, created_us Integer, expires_s Integer, ended_us Integer,
        document Text, proposed Text) = [negotiations];
    END_NEGOTIATIONS (id Id, ended_us Integer) = "UPDATE negotiations SET ended_us = r.ended_us FROM r \
        WHERE negotiations.id = r.id AND negotiations.ended_us IS NULL";
    INSERT_OFFERS (id Id, negotiation Id, name Text, parent Id, creator Text, state Text, created_us Integer,
        expires_s Integer, terms Text, refusal Text, held_us Integer, released_us Integer, agreement Id, document Text)
        = [offers];
    UPDATE_OFFERS (id Id, state Text, refusal Text, held_us Integer, released_us Integer, agreement Id)
        = "UPDATE offers SET state = r.state, refusal = r.refusal, held_us = r.held_us, released_us = r.released_us, \
        agreement = r.agreement FROM r WHERE offers.id = r.id AND NOT (offers.agreement IS NOT NULL)";
    INSERT_SUCCESSIONS (old Id, new Id) = [successions];

    // The ledger: a row for each side of a posting.
    INSERT_ENTRIES (posting Id, account Text, amount_micros Integer, currency Text, agreement Id, kind Text, detail Text,
        at_us Integer) = [ledger];

    // A key that is older than they are kept is free again.
    REMEMBER_REQUESTS (party Text, key Text, request_hash Text, answer Text, created_us Integer)
        = "INSERT INTO idempotency (party, key, request_hash, answer, created_us) \
        SELECT party, key, request_hash, answer, created_us FROM r WHERE TRUE \
        ON CONFLICT (party, key) DO UPDATE SET request_hash = excluded.request_hash, answer = excluded.answer, \
        created_us = excluded.created_us WHERE idempotency.created_us < excluded.created_us - 86400000000";

    // Pending agreements and calls.
    AWAIT_DECISIONS (agreement Id, acceptance Text, offer Id) = [pending_agreements];
    DECIDE (id Id, price_micros Integer, price_currency Text, leeway Text, origin Id) = "UPDATE agreements \
        SET price_micros = r.price_micros, price_currency = r.price_currency, leeway = r.leeway, origin = r.origin \
        FROM r WHERE agreements.id = r.id";
    DECIDED (agreement Id) = "DELETE FROM pending_agreements WHERE agreement IN (SELECT agreement FROM r)";
    INSERT_CALL_BACKS (id Id, agreement Id, address Text, body Text, attempts Integer, due_us Integer,
        created_us Integer) = [call_backs];
}
