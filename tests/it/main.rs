//! One test binary, a module a topic.

mod access;
mod commands;
mod configuration;
mod dispatcher;
mod examples;
mod execution;
mod files;
mod hostile;
mod lasting;
mod licences;
mod messages;
mod operator_commands;
mod permissions;
mod portal;
mod prices;
mod races;
mod random_domain;
mod readme;
mod reference_schedules;
mod replay;
mod running;
mod serving;
mod slow;
mod store;
mod support;
mod tidy;
