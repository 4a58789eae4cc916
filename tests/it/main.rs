//! One test binary, a module a topic.

mod execution;
mod licences;
mod support;
mod tidy;
