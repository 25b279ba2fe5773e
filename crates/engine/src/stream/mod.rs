//! Streams: what a user asks for, checked and compiled to what one core sends.
//!
//! * [`spec`]: the stream as asked for ([`StreamSpec`]).
//! * [`compile`]: a profile checked as a whole, and its share for one core ([`CoreProgram`]).
//! * `error`: what is wrong with a profile, in words ([`CompileError`]).
//! * [`graph`]: the highest rate that a profile reaches, which the multiplier is measured by.
//! * [`recording`]: from a capture file to what is sent again ([`Replay`]).
//! * [`replay`]: which frame of a capture is due when.
//! * `tunnel`: the frames of a stream in the tunnel of its port.
//! * `run`: which packet of a stream is due when, on one core of several.

pub mod compile;
mod error;
pub mod graph;
pub mod recording;
pub mod replay;
pub(crate) mod run;
pub mod spec;
mod tunnel;

pub use compile::{CoreProgram, CoreShare, Profile, StreamPortInfo};
pub use error::CompileError;
pub use graph::{ProfileRates, RateEvent, RateGraph};
pub use replay::Replay;
pub use spec::{DestinationMac, Mode, ProfileKey, Rate, StreamId, StreamSpec};
