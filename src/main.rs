//! Reads the command line, nothing else.

use std::process::ExitCode;

/// Memory stays flat under a steady load, and allocating takes less processor time: `docs/decisions/0311`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    bespeak::cli::run()
}
