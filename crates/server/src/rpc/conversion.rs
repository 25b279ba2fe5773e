//! Long texts are read and written by a thread of their own, which may take its time: a message of a
//! megabyte takes several milliseconds.

use super::Exchange;
use crate::transport::{Codec, framing};

/// Texts of more bytes are long.
pub const TEXT_BYTES_SHORT: usize = 64 << 10;

/// What there is to do for one message.
#[derive(Debug)]
pub enum Conversion {
    /// Take it apart; so many bytes at its end were left out.
    Read(Vec<u8>, usize),
    /// Write the reply to it.
    Write(Exchange),
}

/// What came of it.
#[derive(Debug)]
pub enum Converted {
    /// The message.
    Read(Exchange),
    /// The frame of its reply.
    Written(Vec<u8>),
}

impl Conversion {
    /// Whether it takes long.
    pub fn is_long(&self) -> bool {
        match self {
            Conversion::Read(frame, _) => framing::text_bytes(frame) > TEXT_BYTES_SHORT,
            Conversion::Write(exchange) => exchange.is_longer_than(TEXT_BYTES_SHORT),
        }
    }

    /// Does it.
    pub fn run(self, codec: &mut Codec) -> Converted {
        match self {
            Conversion::Read(frame, left_out) => {
                Converted::Read(Exchange::read_received(codec, frame, left_out))
            }
            Conversion::Write(exchange) => Converted::Written(exchange.into_frame(codec)),
        }
    }
}
