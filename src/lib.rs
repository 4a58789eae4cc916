//! Bespeak: negotiated, guaranteed reservations of computing capacity in advance.
//!
//! The map, one line a module; `ARCHITECTURE.md` says who may import whom.

/// Memory stays flat under a steady load, and allocating takes less processor time: `docs/decisions/0033`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

// Who may: parties, keys, sessions, roles.
pub mod access;
// Calls that tell decisions and events.
pub mod callbacks;
// The command line.
pub mod cli;
// Other domains: asked before a requester is turned down, and what they carry out.
pub mod federation;
// The API over HTTP.
pub mod http;
// The web pages.
pub mod portal;
// The processes that serve from one database.
pub mod replicas;
// The use cases: from documents to requests and back.
pub mod service;
