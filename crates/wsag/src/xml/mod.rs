//! The XML below all terms: bytes to a tree of nodes, nodes to values, values to text.
//!
//! Nothing here knows a term or a message. [`guard`] lets bytes in, [`tree`] makes nodes of them and [`document`] walks these;
//! [`reader`] takes the children of a node in order and collects [`violation`]s with their paths, [`datatypes`], [`time`] and
//! [`names`] read simple values. [`writer`] is the way back. [`mod@element`] does both for structs whose fields name elements.

mod attributes;
pub(crate) mod datatypes;
mod document;
pub(crate) mod doubles;
mod element;
mod fragment;
pub mod guard;
mod names;
pub mod ns;
mod places;
mod reader;
mod repeated;
pub mod time;
mod tree;
mod typed;
mod uri;
mod violation;
mod writer;

pub(crate) use attributes::is_ncname;
pub(crate) use datatypes::collapse_space;
pub use document::{BuiltOffer, Document, UnchosenTerms};
pub(crate) use document::{INHERITED_MAX, Node};
pub(crate) use element::{Field, Readable, WrittenValue, element, written};
pub use fragment::Fragment;
pub use names::NamedValue;
pub(crate) use names::named_values;
pub use places::ValuePlaces;
pub(crate) use reader::{
    Children, DocumentCheck, qualified_name, read_foreign_elements, read_simple, read_uri,
};
pub(crate) use repeated::check_repeated_element;
pub(crate) use time::{DateTime, Duration};
pub use violation::{VIOLATIONS_MAX, Violation, ViolationKind, Violations};
pub(crate) use violation::{list_names, shorten_text};
pub(crate) use writer::{Xml, escape_attribute};
