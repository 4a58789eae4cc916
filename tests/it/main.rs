//! One test binary, a module a topic.

mod access;
mod dispatcher;
mod execution;
mod licences;
mod store;
mod support;
mod tidy;
