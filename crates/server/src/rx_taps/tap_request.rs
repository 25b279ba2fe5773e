//! What the requests of all taps have in common.

use std::fmt;

/// A request to one tap, which alone knows what can be asked of it and what it answers.
pub trait TapRequest: Send + fmt::Debug {
    /// What the tap answers.
    type Answer: Send + fmt::Debug;

    /// Whether the answer is about frames of the past: those that had arrived when it was asked
    /// are shown to taps before.
    fn looks_back(&self) -> bool {
        false
    }
}
