//! The clock of who uses the ports: what ports tell is by it.

use std::fmt::Debug;

/// A clock that threads share and that never goes back.
pub trait TimeSource: Debug + Send + Sync {
    /// Now, in nanoseconds since a moment of its own.
    fn now_ns(&self) -> u64;
}
