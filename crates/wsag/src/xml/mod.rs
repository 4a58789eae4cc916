//! The XML below all terms: bytes to a tree of nodes, nodes to values, values to text.
//!
//! Nothing here reads a term or a message. [`guard`] lets bytes in, [`tree`] makes a [`document`] of them and [`node`] walks it;
//! [`document_check`] collects [`violation`]s with their paths and [`children`] takes the children of a node in order,
//! [`datatypes`], [`time`] and [`names`] read simple values. [`writer`] is the way back. [`mod@element`] does both for structs whose fields name
//! elements.

mod attributes;
mod children;
pub(crate) mod datatypes;
mod document;
mod document_check;
pub(crate) mod double;
mod element;
mod fragment;
pub mod guard;
mod named_value;
mod names;
mod node;
pub mod ns;
mod repeated;
pub mod time;
mod tree;
mod unchosen_terms;
mod uri;
mod value_places;
mod violation;
mod writer;
mod xsi_type;

pub(crate) use children::{Children, read_foreign_children};
pub(crate) use datatypes::collapse_space;
pub(crate) use document::INHERITED_MAX;
pub use document::{BuiltOffer, Document};
pub(crate) use document_check::{DocumentCheck, read_simple};
pub(crate) use element::{Field, Readable, element, written};
pub use fragment::Fragment;
pub use named_value::NamedValue;
pub(crate) use named_value::{named_values, service_values};
pub(crate) use names::{is_name_char, is_name_start, is_ncname, qualified_name};
pub(crate) use node::Node;
pub(crate) use repeated::check_repeated_element;
pub(crate) use time::{DateTime, Duration};
pub use unchosen_terms::UnchosenTerms;
pub use value_places::ValuePlaces;
pub use violation::{VIOLATIONS_MAX, Violation, ViolationKind, Violations};
pub(crate) use violation::{list_names_in_violation, shorten_text_in_violation};
pub(crate) use writer::{WrittenValue, Xml};
