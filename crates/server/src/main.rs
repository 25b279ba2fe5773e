//! The server process.
fn main() {}
