//! What the system refused to a thread, such as a file descriptor or another thread.

use thiserror::Error;

/// What the system refused, and what it said.
#[derive(Debug, Error)]
#[error("the system refused {what}: {error}")]
pub struct Refusal {
    /// What was asked for.
    pub what: &'static str,
    /// What it said.
    pub error: std::io::Error,
}

/// Makes a refusal of `what` out of an error.
pub fn refused(what: &'static str) -> impl FnOnce(std::io::Error) -> Refusal {
    move |error| Refusal { what, error }
}
