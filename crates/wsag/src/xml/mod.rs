//! The XML below all terms: bytes to a tree of nodes, nodes to values, values to text.
//!
//! Nothing here knows a term or a message. [`guard`] lets bytes in, [`tree`] makes nodes of them and [`document`] walks these;
//! [`reader`] takes the children of a node in order and collects [`violation`]s with their paths, [`datatypes`], [`time`] and
//! [`names`] read simple values. [`writer`] is the way back. [`element`] does both for structs whose fields name elements.

pub(crate) mod datatypes;
pub(crate) mod document;
pub(crate) mod element;
pub(crate) mod fragment;
pub mod guard;
pub(crate) mod names;
pub mod ns;
pub(crate) mod places;
pub(crate) mod reader;
pub mod time;
pub(crate) mod tree;
pub(crate) mod violation;
pub(crate) mod writer;
