//! Bespeak: negotiated, guaranteed reservations of computing capacity in advance.
//!
//! The command line, which puts the service together from the crates of the workspace; `ARCHITECTURE.md` is their map.

/// Memory stays flat under a steady load, and allocating takes less processor time: `docs/decisions/0033`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

// The command line.
pub mod cli;
