//! Reads the command line, nothing else.
fn main() {}
