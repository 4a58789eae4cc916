//! One test binary, a module a topic.

mod access;
mod dispatcher;
mod execution;
mod licences;
mod random_domain;
mod store;
mod support;
mod tidy;
