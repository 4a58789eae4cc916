//! Creation constraints: the demands of a template on the offers made from it (GFD.192, section 5.1).
//!
//! Each item selects nodes of the offer by its Location. Facets and simple types hold for every selected node. An item that
//! selects nothing is met, because a particle checks presence: one that needs children must select at least one element, and its
//! children must match. A `Constraint` is an expression in our dialect over the values of the offer (`ready`, `deadline`,
//! `duration`, `nodes`) and the variables of its service properties; where a value is absent it decides nothing.
//!
//! Items are checked on the document, and not on the values that were read from it: a Location may select several elements,
//! attributes or contents, and a facet compares a value as it was written. Constraints are checked on the values.
//!
//! A template is compiled once. An item that cannot be evaluated is kept with its reason, and every offer is then refused with
//! it: a constraint that is not checked must not look like one that was met.

pub(crate) mod bindings;
mod compiled_constraints;
mod compiled_template;
mod constraint;
mod item;
mod location;
mod particles;
mod path_parser;
mod pattern;
mod published;
mod selected_node;
mod steps;
mod types;
mod view;

pub use compiled_constraints::{CompiledConstraints, ConstraintOutcome};
pub use compiled_template::CompiledTemplate;
