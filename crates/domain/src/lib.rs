//! The values of the service and total functions on them: agreements with their states, slots, offers, money and events,
//! requests, the provider's applications, the resources, the changes that are stored, the past, and the clock. Nothing here waits, and nothing
//! but the clock depends on when it is called.

pub mod access;
pub mod agreement;
pub mod catalogue;
pub mod change;
pub mod clock;
mod kept_attributes;
pub mod past;
pub mod request;
pub mod resources;

pub use scheduler::worded;
