//! The durable data. The only crate that knows sqlx.
//!
//! One SQL text serves two engines: SQLite, a file in the data folder that one process owns, and Postgres. Their differences are
//! in [`engine`], and so are all statements; everything else is written once.
//!
//! Two rules keep it right. Only a decider writes decisions: [`Store::acquire_lease`] gives it an epoch, and every batch of
//! [`Store::commit`] is refused once a later epoch exists. And a batch is one transaction: an answer to a client was stored
//! together with everything that belongs to it, or not at all.

pub mod backup;
mod batch;
mod database;
mod engine;
mod history;
mod records;
pub mod signed_heads;
mod verify;

// SQLite calls its functions by name, also where Rust allocates otherwise (`.cargo/config.toml`).
use mimalloc as _;

pub use batch::known_trail::read_trail_end;
pub use batch::leader::{Candidate, LeaderLook, START_MAX};
pub use batch::lease::Lease;
pub use database::Store;
pub use engine::connection::Engine;
pub use engine::error::Error;
pub use engine::rows::hex;
pub use history::past_executions::{LearnedExecutions, SamplesKept};
pub use history::pruning::{ExecutionHour, KeptExecutions};
pub use records::agreements::AgreementFilter;
pub use records::call_backs::{DueCallBack, UndecidedAgreement};
pub use records::key_changes::{KEYS_KEPT, KeyChanges};
pub use records::keys::{KeyChange, KeyRow, SessionRow};
pub use records::ledger::{AccountDay, MoneyMoved};
pub use records::negotiations::{NegotiationFilter, Succession};
pub use records::notes::TrailLine;
pub use records::party_events::Registration;
pub use records::party_files::{FILE_PART_BYTES, IncomingFile, PartyFile, PartyFileChanges};
pub use records::past_use::PastUse;
pub use records::replicas::ReplicaRow;
pub use records::reservations::{ReservationFilter, StartPlace};
pub use verify::{Finding, Invariant};
