//! A peer as it is spoken to: asked for offers, told which of them are taken, followed, and ended.
//!
//! Nothing here waits for longer than it says, and nothing that was opened at the peer is left open there: a negotiation whose
//! answer came too late, or could not be read, is ended in the background.

mod breaker;
mod error;
mod exchange;
mod files;
mod peer;
mod words;

pub use breaker::PeerHealth;
pub use error::PeerError;
pub(super) use exchange::fetch_bounded;
pub use files::PeerFile;
pub use peer::{ListedAgreement, Peer};
pub use words::{PeerAnswer, PeerOffer, PeerStatus, money_of_sum};
