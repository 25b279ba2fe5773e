//! What can be asked of echo streams.

use std::sync::Arc;

use allosaur_engine::echo::{EchoReadout, EchoTerms};

use crate::counters::EchoBlock;
use crate::rx_taps::tap_request::TapRequest;

/// What can be asked of echo streams.
#[derive(Debug)]
pub enum EchoRequest {
    /// Start echo streams, in place of those that there were, and of what they measured.
    Start {
        /// Between which ports, and how often.
        terms: EchoTerms,
        /// Where what they measure is published.
        block: Arc<EchoBlock>,
    },
    /// Another rate for them, in requests a second of each port.
    SetRate(f64),
    /// Ask no more.
    Stop,
    /// Tell what they measured.
    Read,
}

/// What echo streams answer.
#[derive(Debug, PartialEq)]
pub enum EchoAnswer {
    /// It is done.
    Done,
    /// There were none.
    Unknown,
    /// What they measured, port by port.
    Measured(Vec<EchoReadout>),
}

impl TapRequest for EchoRequest {
    type Answer = EchoAnswer;
}
