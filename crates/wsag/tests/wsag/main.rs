//! One test binary, a module a topic.

mod answers;
mod bindings;
mod built_offers;
mod constraints;
mod expressions;
mod fragments;
mod guard;
mod hostile;
mod kept;
mod languages;
mod locations;
mod messages;
mod patterns;
mod round_trip;
mod schemas;
mod support;
mod times;
mod types;
