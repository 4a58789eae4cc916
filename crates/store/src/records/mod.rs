//! The stored records, a file a noun: how their rows are read. What a batch writes is in `batch`.

pub mod agreements;
pub mod at_peer;
pub mod bindings;
pub mod call_backs;
pub mod executions;
pub mod idempotency;
pub mod key_changes;
pub mod keys;
pub mod ledger;
pub mod moves;
pub mod negotiations;
pub mod nodes;
pub mod open_state;
pub mod party_events;
pub mod party_files;
pub mod past_use;
pub mod portal_sessions;
pub(crate) mod recorded_moves;
pub mod registrations;
pub mod replicas;
pub mod reservations;
pub mod resources;
pub mod templates;
pub mod trail_lines;
pub mod undecided_agreements;
