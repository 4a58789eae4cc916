//! Statements about many rows at once. The rows are arguments, and the statement has them as the table `r`. So its text is the
//! same for one row and for thousands, and a batch takes one way to the server and back for each table.
//!
//! Postgres takes an array for each column, SQLite one JSON text with a list for each row: that is where the two differ.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use sqlx::Arguments;
use sqlx::error::BoxDynError;
use sqlx::postgres::PgArguments;
use uuid::Uuid;

use super::columns::Columns;
use super::connection::{Connection, Engine};
use super::digest::{RowDigest, digest_of_row};
use super::error::Result;
use super::hex::hex;
use super::stored_value::Value;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Integer,
    Text,
    Id,
}

/// A column of the rows that are given.
pub(crate) type Column = (&'static str, Kind);

/// A statement about rows that are its arguments.
#[derive(Debug)]
pub(crate) struct Bulk {
    pub(crate) name: &'static str,
    columns: &'static [Column],
    /// The action on the table `r`.
    body: &'static str,
    /// A name for the rows, if each of them must change a row of the database.
    pub(crate) each: Option<&'static str>,
    sqlite: OnceLock<String>,
    postgres: OnceLock<String>,
    by_name: OnceLock<Vec<usize>>,
}

impl Bulk {
    /// The digest of a row of a table that is to be written, with the values of all columns in the order of the statement.
    pub(crate) fn digest(&self, table: &str, values: &[Value<'_>]) -> RowDigest {
        let columns = self.by_name().iter();
        digest_of_row(
            table,
            columns.filter_map(|at| Some((self.columns[*at].0, values.get(*at)?))),
        )
    }

    /// The digest of a row of a table as it is stored.
    pub(crate) fn stored_digest(&self, table: &str, row: &Columns<'_>) -> Result<RowDigest> {
        let mut values = Vec::with_capacity(self.columns.len());
        for (name, kind) in self.columns {
            values.push(match kind {
                Kind::Integer => Value::Integer(row.maybe_integer(name)?),
                Kind::Text => Value::Text(row.maybe_borrowed_text(name)?.map(Into::into)),
                Kind::Id => Value::Id(row.maybe_id(name)?),
            });
        }
        Ok(self.digest(table, &values))
    }

    /// The places of the columns, in the order of their names.
    fn by_name(&self) -> &[usize] {
        self.by_name.get_or_init(|| {
            let mut places: Vec<_> = (0..self.columns.len()).collect();
            places.sort_unstable_by_key(|at| self.columns[*at].0);
            places
        })
    }

    /// How many rows there are in values that stand row by row.
    pub(crate) fn count(&self, values: &[Value<'_>]) -> usize {
        values.len() / self.columns.len()
    }

    /// The table that it changes: the word behind the verb.
    pub(crate) fn table(&self) -> &'static str {
        let verbs = ["INSERT INTO ", "DELETE FROM ", "UPDATE "];
        let behind = verbs.into_iter().find_map(|verb| self.body.strip_prefix(verb));
        behind
            .and_then(|behind| behind.split(' ').next())
            .unwrap_or_default()
    }

    /// The ids of rows, where rows have one in the column `id`.
    pub(crate) fn ids(&self, values: &[Value<'_>]) -> Option<BTreeSet<Uuid>> {
        let at = self.columns.iter().position(|(name, _)| *name == "id")?;
        let ids = values.iter().skip(at).step_by(self.columns.len());
        ids.map(|value| match value {
            Value::Id(id) => *id,
            _ => None,
        })
        .collect()
    }

    /// How many columns its rows have: on PostgreSQL each is a parameter.
    pub(crate) fn width(&self) -> usize {
        self.columns.len()
    }

    /// The text of the statement.
    pub(crate) fn statement(&'static self, engine: Engine) -> &'static str {
        let text = match engine {
            Engine::Sqlite => &self.sqlite,
            Engine::Postgres => &self.postgres,
        };
        text.get_or_init(|| match engine {
            Engine::Sqlite => {
                let read = |(at, (_, kind)): (usize, &Column)| match kind {
                    Kind::Integer | Kind::Text => format!("value ->> {at}"),
                    Kind::Id => format!("unhex(value ->> {at})"),
                };
                let columns = self.columns.iter().enumerate().map(read).collect::<Vec<_>>();
                self.text_about(&format!("SELECT {} FROM json_each($1)", columns.join(", ")))
            }
            Engine::Postgres => self.postgres_text(1, ""),
        })
    }

    /// The text of the statement on PostgreSQL, where its parameters have the numbers from `first` on and its rows a condition.
    pub(super) fn postgres_text(&self, first: usize, condition: &str) -> String {
        let read = |(at, (_, kind)): (usize, &Column)| match kind {
            Kind::Integer => format!("${}::BIGINT[]", first + at),
            Kind::Text => format!("${}::TEXT[]", first + at),
            Kind::Id => format!("${}::UUID[]", first + at),
        };
        let columns = self.columns.iter().enumerate().map(read).collect::<Vec<_>>();
        self.text_about(&format!(
            "SELECT * FROM unnest({}){condition}",
            columns.join(", ")
        ))
    }

    /// The text of the statement about the rows that a query has.
    fn text_about(&self, rows: &str) -> String {
        let names: Vec<_> = self.columns.iter().map(|(name, _)| *name).collect();
        format!("WITH r ({}) AS ({rows}) {}", names.join(", "), self.body)
    }

    /// The rows as a JSON text.
    fn json(&self, values: &[Value<'_>]) -> String {
        let one = |value: &Value<'_>| match value {
            Value::Integer(integer) => serde_json::Value::from(*integer),
            Value::Text(text) => text.as_deref().into(),
            Value::Id(id) => id.map(|id| id.simple().to_string()).into(),
            Value::Bytes(bytes) => bytes.as_deref().map(hex).into(),
        };
        let rows = values.chunks(self.columns.len());
        let rows = rows.map(|row| row.iter().map(one).collect::<serde_json::Value>());
        rows.collect::<serde_json::Value>().to_string()
    }

    /// The rows as arrays, one for each column.
    fn arrays(&self, values: &[Value<'_>]) -> sqlx::Result<PgArguments> {
        let mut arguments = PgArguments::default();
        self.add_arrays(&mut arguments, values)
            .map_err(sqlx::Error::Encode)?;
        Ok(arguments)
    }

    /// Adds the rows as arrays, one for each column.
    pub(super) fn add_arrays(
        &self,
        arguments: &mut PgArguments,
        values: &[Value<'_>],
    ) -> Result<(), BoxDynError> {
        for (at, (name, kind)) in self.columns.iter().enumerate() {
            let column = values.iter().skip(at).step_by(self.columns.len());
            let other = || BoxDynError::from(format!("{}: {name} is of another kind", self.name));
            macro_rules! add {
                ($of:ident $value:ident $given:expr) => {{
                    let given = column.map(|value| match value {
                        Value::$of($value) => Ok($given),
                        _ => Err(other()),
                    });
                    arguments.add(given.collect::<Result<Vec<_>, _>>()?)?;
                }};
            }
            match kind {
                Kind::Integer => add!(Integer integer *integer),
                Kind::Text => add!(Text text text.as_deref()),
                Kind::Id => add!(Id id *id),
            }
        }
        Ok(())
    }

    /// Runs a statement about rows, with their values row by row, and says how many rows of the database it changed.
    pub(crate) async fn execute(
        &'static self,
        connection: &mut Connection,
        values: &[Value<'_>],
    ) -> sqlx::Result<u64> {
        let sql = self.statement(connection.engine());
        match connection {
            Connection::Sqlite(_) => connection.execute(sql, &[self.json(values).into()]).await,
            Connection::Postgres(connection) => {
                let arrays = self.arrays(values)?;
                let query = sqlx::query_with(sql, arrays);
                Ok(query.execute(&mut **connection).await?.rows_affected())
            }
        }
    }

    /// Reads the rows of a statement about rows.
    pub(crate) async fn read<T: Send>(
        &'static self,
        connection: &mut Connection,
        values: &[Value<'_>],
        one: impl Fn(&Columns<'_>) -> Result<T> + Send,
    ) -> Result<Vec<T>> {
        let sql = self.statement(connection.engine());
        match connection {
            Connection::Sqlite(_) => connection.read(sql, &[self.json(values).into()], one).await,
            Connection::Postgres(connection) => {
                let arrays = self.arrays(values)?;
                let rows = sqlx::query_with(sql, arrays).fetch_all(&mut **connection);
                let rows = rows.await?;
                rows.iter().map(|row| one(&Columns::Postgres(row))).collect()
            }
        }
    }
}

/// Declares statements about many rows, and lists them. The short form adds the rows to a table. After `each` stands a name for
/// the rows where each of them must change a row of the database.
macro_rules! bulk {
    ($($name:ident $(each $each:literal)? ($($column:ident $kind:ident),+) = $body:tt;)+) => {
        $(pub(crate) static $name: Bulk = Bulk {
            name: stringify!($name),
            columns: &[$((stringify!($column), Kind::$kind)),+],
            body: bulk!(@body $body $($column)+),
            each: bulk!(@each $($each)?),
            sqlite: OnceLock::new(),
            postgres: OnceLock::new(),
            by_name: OnceLock::new(),
        };)+
        /// In the order in which a batch runs them: each finds the rows that its own refer to.
        pub(crate) static ALL_BULK: &[&Bulk] = &[$(&$name),+];
    };
    (@body [$table:ident] $first:ident $($column:ident)*) => {
        concat!("INSERT INTO ", stringify!($table), " (", stringify!($first) $(, ", ", stringify!($column))*,
            ") SELECT ", stringify!($first) $(, ", ", stringify!($column))*, " FROM r")
    };
    (@body $body:literal $($column:ident)+) => { $body };
    (@each $each:literal) => { Some($each) };
    (@each) => { None };
}

bulk! {
    // The resources, to which the others refer, and what they have from when on.
    PUT_RESOURCES (name Text, kind Text, capacity Integer, position Integer, rate Integer, details Text,
        configured Text, retired_us Integer, frozen_us Integer) = "INSERT INTO resources (name, kind, capacity, position, \
        rate, details, configured, retired_us, frozen_us) SELECT name, kind, capacity, position, rate, details, \
        configured, retired_us, frozen_us FROM r WHERE TRUE ON CONFLICT (name) DO UPDATE SET kind = excluded.kind, capacity = excluded.capacity, \
        position = excluded.position, rate = excluded.rate, details = excluded.details, \
        configured = excluded.configured, retired_us = excluded.retired_us, frozen_us = excluded.frozen_us";
    FORGET_CAPACITIES (resource Text, since_us Integer) = "DELETE FROM capacities WHERE EXISTS (SELECT 1 FROM r \
        WHERE r.resource = capacities.resource AND r.since_us <= capacities.since_us)";
    INSERT_CAPACITIES (resource Text, since_us Integer, capacity Integer) = [capacities];

    // Agreements.
    INSERT_AGREEMENTS (id Id, party Text, name Text, template Text, resource Text, duration_s Integer, ready_s Integer,
        deadline_s Integer, nodes Integer, planned_start_s Integer, planned_end_s Integer, pieces Text, fixed Integer,
        price_micros Integer, price_currency Text, leeway Text, job Text, guarantees Text, state Text, service Text,
        started_us Integer, ended_us Integer, outcome Text, exit_status Integer, created_us Integer, version Integer,
        origin Id, initiator_id Text, choices Text) = [agreements];
    INSERT_DOCUMENTS (agreement Id, document Text, template Id) = [agreement_documents];
    UPDATE_AGREEMENTS each "agreements that are stored with the version before" (before Integer, id Id, party Text,
        name Text, template Text, resource Text, duration_s Integer, ready_s Integer, deadline_s Integer, nodes Integer,
        planned_start_s Integer, planned_end_s Integer, pieces Text, fixed Integer, price_micros Integer,
        price_currency Text, leeway Text, job Text, guarantees Text, state Text, service Text, started_us Integer,
        ended_us Integer, outcome Text, exit_status Integer, created_us Integer, version Integer, origin Id,
        initiator_id Text, choices Text)
        = "UPDATE agreements SET resource = r.resource, nodes = r.nodes, duration_s = r.duration_s, ready_s = r.ready_s, deadline_s = r.deadline_s, \
        planned_start_s = r.planned_start_s, planned_end_s = r.planned_end_s, job = r.job, \
        guarantees = r.guarantees, state = r.state, service = r.service, started_us = r.started_us, \
        ended_us = r.ended_us, outcome = r.outcome, exit_status = r.exit_status, version = r.version, \
        fixed = r.fixed, price_micros = r.price_micros, price_currency = r.price_currency, leeway = r.leeway, \
        origin = r.origin, pieces = r.pieces, choices = r.choices FROM r WHERE agreements.id = r.id AND agreements.version = r.before";
    // Of one that waits as before: columns that other indexes have are left alone, as each index that is written costs pages of the log.
    MOVE_AGREEMENTS each "agreements that wait and are stored with the version before" (before Integer, id Id, party Text,
        name Text, template Text, resource Text, duration_s Integer, ready_s Integer, deadline_s Integer, nodes Integer,
        planned_start_s Integer, planned_end_s Integer, pieces Text, fixed Integer, price_micros Integer,
        price_currency Text, leeway Text, job Text, guarantees Text, state Text, service Text, started_us Integer,
        ended_us Integer, outcome Text, exit_status Integer, created_us Integer, version Integer, origin Id,
        initiator_id Text, choices Text)
        = "UPDATE agreements SET resource = r.resource, nodes = r.nodes, duration_s = r.duration_s, ready_s = r.ready_s, deadline_s = r.deadline_s, \
        planned_start_s = r.planned_start_s, planned_end_s = r.planned_end_s, job = r.job, guarantees = r.guarantees, \
        started_us = r.started_us, exit_status = r.exit_status, version = r.version, fixed = r.fixed, price_micros = r.price_micros, \
        price_currency = r.price_currency, leeway = r.leeway, pieces = r.pieces, choices = r.choices FROM r \
        WHERE agreements.id = r.id AND agreements.version = r.before AND agreements.state = r.state AND agreements.service = r.service";

    // Moves that no row of an agreement has yet. A record that is added and forgotten in one batch is not there after it.
    INSERT_MOVES (number Integer, at_us Integer, cause Id, why Text, moves Text) = [moves];
    FORGET_MOVES each "records of moves that are there" (number Integer) = "DELETE FROM moves \
        WHERE number IN (SELECT number FROM r)";

    // The timelines. Lines are numbered from 1 per agreement; the single writer makes the numbers free of gaps.
    INSERT_EVENTS (agreement Id, at_us Integer, kind Text, detail Text, version Integer, state Text, service Text,
        number Integer, hash Text, digest Id, sums Text) = "INSERT INTO events (agreement, seq, at_us, kind, detail, version, state, \
        service, number, hash, digest, sums) SELECT r.agreement, (SELECT COALESCE(MAX(e.seq), 0) FROM events e \
        WHERE e.agreement = r.agreement) + ROW_NUMBER() OVER (PARTITION BY r.agreement ORDER BY r.number), r.at_us, \
        r.kind, r.detail, r.version, r.state, r.service, r.number, r.hash, r.digest, r.sums FROM r";

    // Negotiations.
    INSERT_NEGOTIATIONS (id Id, party Text, agreement Id, created_us Integer, expires_s Integer, ended_us Integer,
        proposed Text, document Text) = [negotiations];
    END_NEGOTIATIONS each "negotiations that have not ended" (id Id, ended_us Integer)
        = "UPDATE negotiations SET ended_us = r.ended_us FROM r \
        WHERE negotiations.id = r.id AND negotiations.ended_us IS NULL";
    INSERT_OFFERS (id Id, negotiation Id, name Text, parent Id, creator Text, state Text, created_us Integer,
        expires_s Integer, terms Text, refusal Text, held_us Integer, released_us Integer, agreement Id, document Text)
        = [offers];
    UPDATE_OFFERS each "offers that have not been accepted" (id Id, state Text, refusal Text, held_us Integer,
        released_us Integer, agreement Id)
        = "UPDATE offers SET state = r.state, refusal = r.refusal, held_us = r.held_us, released_us = r.released_us, \
        agreement = r.agreement FROM r WHERE offers.id = r.id AND NOT (offers.agreement IS NOT NULL)";

    // The lines of the audit trail that are no agreement's.
    INSERT_NOTES (number Integer, hash Text, at_us Integer, kind Text, subject Id, negotiation Id, party Text,
        detail Text, sums Text) = [notes];

    // The states of nodes that are not up.
    FORGET_NODE_STATES (resource Text, node Integer, reporter Text) = "DELETE FROM node_states \
        WHERE (resource, node, reporter) IN (SELECT resource, node, reporter FROM r)";
    INSERT_NODE_STATES (resource Text, node Integer, reporter Text, state Text, since_us Integer, reason Text)
        = [node_states];

    INSERT_EXECUTIONS (agreement Id, ended_us Integer, application Text, version Text, arguments Text,
        input_bytes Integer, output_bytes Integer, resource Text, nodes Integer, planned_start_s Integer,
        planned_end_s Integer, estimate_s Integer, queue_time_us Integer, run_time_us Integer, transfer_in_us Integer,
        transfer_out_us Integer, moved_in_bytes Integer, moved_out_bytes Integer, outcome Text, exit_status Integer)
        = [executions];
    // One of the same resource and instant stays as it is.
    INSERT_TRANSFERS (resource Text, at_us Integer, transfer_in Integer, transfer_out Integer)
        = "INSERT INTO resource_samples (resource, at_us, transfer_in, transfer_out) \
        SELECT resource, at_us, transfer_in, transfer_out FROM r WHERE TRUE ON CONFLICT (resource, at_us) DO NOTHING";
    INSERT_SUCCESSIONS (old Id, new Id) = [successions];

    // The ledger: a row for each side of a posting.
    INSERT_ENTRIES (posting Id, account Text, amount_micros Integer, currency Text, agreement Id, kind Text, detail Text,
        at_us Integer) = [ledger];
    // What the postings of a batch add to the days of the accounts.
    ADD_TO_DAYS (account Text, currency Text, day Integer, credits_micros Integer, charges_micros Integer)
        = "INSERT INTO ledger_days (account, currency, day, credits_micros, charges_micros) \
        SELECT account, currency, day, credits_micros, charges_micros FROM r WHERE TRUE \
        ON CONFLICT (account, currency, day) DO UPDATE SET \
        credits_micros = ledger_days.credits_micros + excluded.credits_micros, \
        charges_micros = ledger_days.charges_micros + excluded.charges_micros";

    // A settled row stays as it is: its money is posted once, also where a late answer of the peer comes after it.
    PUT_AT_PEERS (id Id, agreement Id, peer Text, address Text, intent Text, price_micros Integer, price_currency Text,
        made_us Integer, state Text, charged_micros Integer, paid_back_micros Integer, lost Integer, guarantees Text,
        settled_us Integer)
        = "INSERT INTO peer_agreements (id, agreement, peer, address, intent, price_micros, price_currency, made_us, state, \
        charged_micros, paid_back_micros, lost, guarantees, settled_us) SELECT id, agreement, peer, address, intent, price_micros, \
        price_currency, made_us, state, charged_micros, paid_back_micros, lost, guarantees, settled_us FROM r WHERE TRUE \
        ON CONFLICT (id) DO UPDATE SET address = excluded.address, intent = excluded.intent, state = excluded.state, \
        charged_micros = excluded.charged_micros, paid_back_micros = excluded.paid_back_micros, lost = excluded.lost, \
        guarantees = excluded.guarantees, settled_us = excluded.settled_us WHERE peer_agreements.settled_us IS NULL";

    INSERT_SPENDINGS (agreement Id, api_key Id, micros Integer) = [spendings];

    // A key that is older than they are kept is free again.
    REMEMBER_REQUESTS each "idempotency keys that are not taken" (party Text, key Text, request_hash Text, answer Text,
        created_us Integer)
        = "INSERT INTO idempotency (party, key, request_hash, answer, created_us) \
        SELECT party, key, request_hash, answer, created_us FROM r WHERE TRUE \
        ON CONFLICT (party, key) DO UPDATE SET request_hash = excluded.request_hash, answer = excluded.answer, \
        created_us = excluded.created_us WHERE idempotency.created_us < excluded.created_us - 86400000000";

    // Pending agreements and calls.
    AWAIT_DECISIONS (agreement Id, offer Id, api_key Id, acceptance Text, reference_parameters Text)
        = [pending_agreements];
    DECIDED (agreement Id) = "DELETE FROM pending_agreements WHERE agreement IN (SELECT agreement FROM r)";
    INSERT_CALL_BACKS (id Id, agreement Id, address Text, body Text, attempts Integer, due_us Integer,
        created_us Integer) = [call_backs];

    INSERT_PARTY_EVENTS (party Text, number Integer, id Text, at_us Integer, kind Text, agreement Id, negotiation Id,
        state Text, planned_start_s Integer, planned_end_s Integer, detail Text) = [party_events];

    // The nodes that agreements have, to be read.
    NODES_OF (agreement Id) = "SELECT b.resource, b.node, b.start_s, b.end_s, b.agreement FROM r \
        JOIN node_bindings b ON b.agreement = r.agreement";

    // Nodes. The condition refuses a second owner on either engine; Postgres has a constraint as well. As owners do not overlap,
    // only the last one before the interval's end can reach into it, for any length of the history.
    BIND_NODES each "nodes without another owner in their interval" (resource Text, node Integer, start_s Integer,
        end_s Integer, agreement Id) = "INSERT INTO node_bindings (resource, node, start_s, end_s, agreement) SELECT r.resource, r.node, r.start_s, r.end_s, r.agreement FROM r \
        WHERE NOT EXISTS (SELECT 1 FROM (SELECT b.end_s FROM node_bindings b WHERE b.resource = r.resource \
        AND b.node = r.node AND b.start_s < r.end_s ORDER BY b.start_s DESC LIMIT 1) AS last \
        WHERE last.end_s > r.start_s)";
    HAND_OVER_NODES (old Id, new Id, end_s Integer, now_s Integer) = "UPDATE node_bindings SET agreement = r.new, \
        end_s = r.end_s FROM r WHERE node_bindings.agreement = r.old AND node_bindings.end_s > r.now_s";
    RELEASE_NODES (agreement Id, end_s Integer) = "DELETE FROM node_bindings WHERE (resource, node, start_s) IN \
        (SELECT b.resource, b.node, b.start_s FROM r JOIN node_bindings b ON b.agreement = r.agreement \
        WHERE b.start_s >= r.end_s)";
    SHORTEN_BINDINGS (agreement Id, end_s Integer) = "UPDATE node_bindings SET end_s = r.end_s FROM r \
        WHERE node_bindings.agreement = r.agreement AND node_bindings.end_s > r.end_s";

    // The archive.
    ARCHIVE_EVENTS (agreement Id) = "INSERT INTO archived_events (agreement, seq, at_us, kind, detail, version, state, \
        service, number, hash, digest, sums) SELECT agreement, seq, at_us, kind, detail, version, state, service, number, hash, \
        digest, sums FROM events WHERE agreement IN (SELECT agreement FROM r)";
    DELETE_EVENTS (agreement Id) = "DELETE FROM events WHERE agreement IN (SELECT agreement FROM r)";
    ARCHIVE_BINDINGS (agreement Id) = "INSERT INTO archived_bindings (resource, node, start_s, end_s, agreement) \
        SELECT resource, node, start_s, end_s, agreement FROM node_bindings WHERE agreement IN (SELECT agreement FROM r)";
    DELETE_BINDINGS (agreement Id) = "DELETE FROM node_bindings WHERE agreement IN (SELECT agreement FROM r)";
    ARCHIVE_DOCUMENTS (agreement Id) = "INSERT INTO archived_documents (agreement, document, template) \
        SELECT agreement, document, template FROM agreement_documents WHERE agreement IN (SELECT agreement FROM r)";
    DELETE_DOCUMENTS (agreement Id) = "DELETE FROM agreement_documents WHERE agreement IN (SELECT agreement FROM r)";
}
