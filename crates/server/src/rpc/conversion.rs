//! From the frames of messages to exchanges, and from these to the frames of replies. Long texts may be read and
//! written by a thread of their own, which may take its time: a message of a megabyte takes several
//! milliseconds.

use allosaur_api::exchange::TEXT_BYTES_SHORT;
use allosaur_api::{Dialect, Error, Exchange};

use crate::transport::{Codec, framing};

/// What there is to do for one message.
#[derive(Debug)]
pub enum Conversion<D: Dialect> {
    /// Take it apart; so many bytes at its end were left out.
    Read(Vec<u8>, usize),
    /// Write the reply to it.
    Write(Exchange<D>),
}

/// What came of it.
#[derive(Debug)]
pub enum Converted<D: Dialect> {
    /// The message.
    Read(Exchange<D>),
    /// The frame of its reply.
    Written(Vec<u8>),
}

impl<D: Dialect> Conversion<D> {
    /// Whether it takes long.
    pub fn is_long(&self) -> bool {
        match self {
            Conversion::Read(frame, _) => framing::text_bytes(frame) > TEXT_BYTES_SHORT,
            Conversion::Write(exchange) => exchange.is_longer_than(TEXT_BYTES_SHORT),
        }
    }

    /// Does it.
    pub fn run(self, codec: &mut Codec) -> Converted<D> {
        match self {
            Conversion::Read(frame, left_out) => {
                Converted::Read(read_frame(codec, frame, left_out))
            }
            Conversion::Write(exchange) => Converted::Written(frame_of(codec, exchange)),
        }
    }
}

/// Takes a message apart, of which the transport has left out so many bytes at its end.
pub fn read_frame<D: Dialect>(codec: &mut Codec, frame: Vec<u8>, left_out: usize) -> Exchange<D> {
    if left_out > 0 {
        let error = Error::too_large(frame.len() + left_out, codec.bytes_max());
        return Exchange::failed(error, framing::is_zipped(&frame));
    }
    let (bytes, zipped) = match codec.decode(&frame) {
        Ok(text) if text.zipped => (text.bytes.into_owned(), true),
        Ok(_) => (frame, false),
        Err(error) => return Exchange::failed(error, framing::is_zipped(&frame)),
    };
    Exchange::read(bytes, zipped)
}

/// The frame of the reply to a message, compressed if the message was.
pub fn frame_of<D: Dialect>(codec: &mut Codec, exchange: Exchange<D>) -> Vec<u8> {
    let is_zipped = exchange.is_zipped();
    codec.encode(exchange.into_text(), is_zipped)
}
