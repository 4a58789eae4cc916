//! The two engines: their connections, and the statements in the dialect that both take.

pub(super) mod bulk;
pub(super) mod connect;
pub(super) mod connection;
pub(super) mod error;
pub(super) mod migrations;
pub(super) mod rows;
pub(super) mod statements;
pub(super) mod transaction;

pub(super) use connection::{Connection, Engine, Value, silence};
pub(super) use error::{Error, is_contention, is_undone};
pub(super) use rows::{Columns, hex, to_json};
