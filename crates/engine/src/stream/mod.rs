//! Streams: what a user asks for, checked and compiled to what one core sends.
//!
//! * [`spec`]: the stream as asked for ([`StreamSpec`]).
//! * `compile`: a profile checked as a whole, and its share for one core (`CoreProgram`).
//! * `graph`: the highest rate that a profile reaches, which the multiplier is measured by.

pub mod spec;

pub use spec::{DestinationMac, Mode, ProfileKey, Rate, StreamId, StreamSpec};
