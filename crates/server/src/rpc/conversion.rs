//! Long texts are read and written by a thread of their own, which may take its time: a message of a
//! megabyte takes several milliseconds.

use super::Exchange;
use crate::transport::{Codec, framing};

/// Texts of more bytes are long.
pub const TEXT_BYTES_SHORT: usize = 64 << 10;

/// What there is to do for one message.
#[derive(Debug)]
pub enum Conversion {
    /// Take it apart.
    Read(Vec<u8>),
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
            Conversion::Read(frame) => framing::text_bytes(frame) > TEXT_BYTES_SHORT,
            Conversion::Write(exchange) => exchange.is_longer_than(TEXT_BYTES_SHORT),
        }
    }

    /// Does it.
    pub fn run(self, codec: &mut Codec) -> Converted {
        match self {
            Conversion::Read(frame) => Converted::Read(Exchange::read(codec, &frame)),
            Conversion::Write(exchange) => Converted::Written(exchange.into_frame(codec)),
        }
    }
}
