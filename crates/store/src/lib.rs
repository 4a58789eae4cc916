//! The durable data. The only crate that knows sqlx.
//!
//! One SQL text serves two engines: SQLite, a file in the data folder that one process owns, and Postgres. Their differences are
//! in [`engine`], and so are all statements; everything else is written once.
//!
//! A [`Store`] opens, closes, decides and verifies. What is read and written of a noun has functions in the module of the noun, which
//! take the store first: [`agreements::agreement`].
//!
//! Two rules keep it right. Only a decider writes decisions: [`Store::acquire_lease`] gives it an epoch, and every batch of
//! [`Store::commit`] is refused once a later epoch exists. And a batch is one transaction: an answer to a client was stored
//! together with everything that belongs to it, or not at all.

pub mod backup;
mod batch;
mod engine;
mod history;
pub mod lasting_file;
mod records;
pub mod signed_heads;
mod store;
mod verify;

// SQLite calls its functions by name, also where Rust allocates otherwise (`.cargo/config.toml`).
use mimalloc as _;

pub use batch::lease::Lease;
pub use batch::{free_space, known_trail, leader, trail_end};
pub use engine::connection::Engine;
pub use engine::error::Error;
pub use engine::hex::hex;
pub use history::{archive, execution_hours, past_executions, pruning, samples};
pub use records::{
    agreements, at_peer, bindings, call_backs, executions, idempotency, key_changes, keys, ledger, moves,
    negotiations, nodes, open_state, party_events, party_files, past_use, portal_sessions, registrations,
    replicas, reservations, resources, templates, trail_lines, undecided_agreements,
};
pub use store::Store;
pub use verify::{Finding, Invariant, engine_check};
