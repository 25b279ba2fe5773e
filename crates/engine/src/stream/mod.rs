//! Streams: what a user asks for, checked and compiled to what one core sends.
//!
//! * [`spec`]: the stream as asked for ([`StreamSpec`]).
//! * [`check`]: what must hold for the streams of a profile together ([`CompileError`]).
//! * [`graph`]: the highest rate that a profile reaches, which the multiplier is measured by.
//! * [`compile`]: a checked profile, and its share for one core ([`CoreProgram`]).
//! * [`recording`]: from a capture file to what is sent again ([`Replay`]).
//! * [`replay`]: which frame of a capture is due when.
//! * `run`: which packet of a stream is due when, on one core of several.

pub mod check;
pub mod compile;
pub mod graph;
pub mod recording;
pub mod replay;
pub(crate) mod run;
pub mod spec;

pub use check::CompileError;
pub use compile::{CoreProgram, CoreShare, Profile, StreamPortInfo};
pub use graph::{ProfileRates, RateEvent, RateGraph};
pub use replay::Replay;
pub use spec::{DestinationMac, Mode, ProfileKey, Rate, StreamId, StreamSpec};
