//! The two engines: their connections, and the statements in the dialect that both take.

/// Does the same with what either engine has.
macro_rules! either {
    ($of:expr, $one:ident => $does:expr) => {
        match $of {
            Self::Sqlite($one) => $does,
            Self::Postgres($one) => $does,
        }
    };
}

mod address;
pub(super) mod bulk;
pub(super) mod columns;
pub(super) mod connect;
pub(super) mod connection;
pub(super) mod digest;
pub(super) mod durability;
pub(super) mod error;
pub(super) mod files;
pub(super) mod hex;
pub(super) mod hosts;
pub(super) mod joined;
pub(super) mod migrations;
pub(super) mod record;
pub(super) mod sessions;
mod statement_parts;
pub(super) mod statements;
pub(super) mod stored_value;
pub(super) mod transaction;

pub(super) use columns::{Columns, read_json_column};
pub(super) use connection::{Connection, Engine};
pub(super) use error::{
    Error, Result, is_contention_error, is_error_of_undone_transaction, silent_database_error,
};
pub(super) use hex::{hex, unhex};
pub(super) use record::{Record, record};
pub(super) use stored_value::{StoredValue, Value};
