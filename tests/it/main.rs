//! One test binary, a module a topic.

mod execution;
mod licences;
mod store;
mod support;
mod tidy;
