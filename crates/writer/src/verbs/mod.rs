//! The verbs of the [`Planner`](crate::Planner), by the room of their decisions: each makes a command of a request.

mod lifecycle;
mod offers;
mod resources;
