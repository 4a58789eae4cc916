//! One test binary, a module a topic.

mod access;
mod dispatcher;
mod execution;
mod licences;
mod operator_commands;
mod random_domain;
mod store;
mod support;
mod tidy;
