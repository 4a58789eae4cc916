//! One test binary, a module a topic.

mod adaptive;
mod admission;
mod admission_equals_plain;
mod alternatives;
mod exchange;
mod fewest_moves;
mod freed_time;
mod plain;
mod prediction;
mod relaxations;
mod slot_tree_at_scale;
