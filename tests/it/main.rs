//! One test binary, a module a topic.

mod licences;
mod support;
mod tidy;
