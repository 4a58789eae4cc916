//! The stored records, a file a noun: how their rows are read, and the columns that a batch writes.

pub(super) mod agreements;
pub(super) mod at_peer;
pub(super) mod bindings;
pub(super) mod call_backs;
pub(super) mod executions;
pub(super) mod idempotency;
pub(super) mod key_changes;
pub(super) mod keys;
pub(super) mod ledger;
pub(super) mod negotiations;
pub(super) mod nodes;
pub(super) mod notes;
pub(super) mod party_events;
pub(super) mod party_files;
pub(super) mod past_use;
pub(super) mod replicas;
pub(super) mod reservations;
pub(super) mod resources;
