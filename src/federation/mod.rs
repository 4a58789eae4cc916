//! Federation: other domains with which this one negotiates, over the protocol that its own clients use.
//!
//! [`settings`] has what the configuration says of this domain and its peers. [`client`] is one peer as it is spoken to: its
//! `exchange` sends and reads one message within bounds, its `breaker` says whether the peer is asked at all. Answers of peers are
//! hostile input, and their clocks are not compared with ours. [`discovery`] finds out what domains say of themselves.

pub mod client;
pub mod discovery;
pub mod settings;
