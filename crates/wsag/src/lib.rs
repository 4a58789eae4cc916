//! WS-Agreement documents: guard, reading, writing, creation constraints.
//!
//! The crate turns bytes into typed documents and typed documents into XML. For every invalid document it says where and why it
//! is invalid. It is pure: no input or output, no clock, and no URI is ever followed. It knows nothing of scheduling; the service
//! interprets the request of a document.
//!
//! The way of a document: [`Document::parse`] lets the [`guard`] read the bytes and builds a tree. [`read`] makes a [`Message`]
//! of it or collects [`Violations`]; [`answers::read_answer`] does so for a client. [`rules::check_rules`] applies rules that a schema cannot express.
//! [`constraints::CompiledTemplate::check`] compares an offer with its template.

pub mod agreement_state;
pub mod agreements;
pub mod answers;
pub mod budget;
pub mod compare;
pub mod constraints;
pub mod endpoint;
pub mod expression;
pub mod faults;
pub mod guarantees;
pub mod job_definition;
pub mod languages;
mod message;
pub mod negotiations;
pub mod operations;
pub mod placement;
pub mod quotation;
pub mod refusals;
pub mod rules;
pub mod scheduling;
pub mod states;
pub mod templates;
pub mod terms;
pub mod travel;
mod xml;

pub use message::{Message, read, read_each_offer};
pub use xml::{
    BuiltOffer, Document, Fragment, NamedValue, UnchosenTerms, VIOLATIONS_MAX, ValuePlaces, Violation,
    ViolationKind, Violations, guard, ns, time,
};
