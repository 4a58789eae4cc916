//! WS-Agreement documents: guard, reading, writing, creation constraints.
//!
//! The crate turns bytes into typed documents and typed documents into XML. For every invalid document it says where and why it
//! is invalid. It is pure: no input or output, no clock, and no URI is ever followed. It knows nothing of scheduling; the service
//! interprets the request of a document.
//!
//! The way of a document: [`Document::parse`] lets the [`guard`] read the bytes and builds a tree. [`read`] makes a [`Message`]
//! of it or collects [`Violations`]. [`rules::check`] applies rules that a schema cannot express.
//! [`constraints::CompiledTemplate::check`] compares an offer with its template.

pub mod accounts;
pub mod agreements;
pub mod allocation;
pub mod compare;
pub mod constraints;
mod datatypes;
mod document;
pub mod endpoint;
pub mod expression;
mod fragment;
pub mod guarantees;
pub mod guard;
pub mod job;
pub mod listings;
mod message;
mod names;
pub mod negotiations;
pub mod ns;
mod offers;
pub mod operations;
pub mod placement;
mod places;
pub mod quotation;
mod reader;
pub mod refusals;
pub mod rules;
pub mod scheduling;
pub mod states;
pub mod templates;
pub mod terms;
pub mod time;
mod tree;
mod violation;
mod writer;

pub use document::{Document, Made};
pub use fragment::Fragment;
pub use message::{Message, read};
pub use names::Named;
pub use places::Places;
pub use violation::{VIOLATIONS_MAX, Violation, ViolationKind, Violations};
