//! Negotiations: quotes, their holds, acceptance, and the provider's proposals.

pub(super) mod accept;
pub(super) mod change_end;
pub(super) mod exchange;
pub(super) mod gains;
pub(super) mod hold;
pub(super) mod holds;
pub(super) mod messages;
pub(super) mod negotiate;
pub(super) mod open;
pub(super) mod propose;
pub(super) mod quote;
pub(super) mod ranking;
pub(super) mod replace;

mod sizes;
pub(super) mod suggestion;
