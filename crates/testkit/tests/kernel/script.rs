//! What applications do with a connection, and what they saw of it.

/// Something that an application does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Writes so many bytes.
    Send(u64),
    /// Writes so many bytes, and reads as many while it does.
    Trade(u64),
    /// Waits until so many more bytes arrived.
    Receive(u64),
    /// Waits for the peer's end, or its reset.
    ReceiveEnd,
    /// Writes no more, and still reads.
    Finish,
    /// Ends at once.
    Reset,
    /// Does nothing for so many milliseconds.
    Rest(u64),
}

/// How a connection ended for an application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It saw no end.
    #[default]
    Unseen,
    /// The peer wrote all, and said so.
    Finished,
    /// The peer, or nobody, wants it any more.
    Reset,
    /// Nobody answered.
    TimedOut,
}

/// What an application saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) connected: bool,
    pub(crate) received: u64,
    pub(crate) ended: Ended,
}

/// The bytes of all that is written, by their place: each end can check each byte by itself.
pub(crate) fn byte_at(place: u64) -> u8 {
    // Another byte at every place that a wrong offset may lead to: neighbors, segments, 64 KiB, 4 GiB.
    let mixed = place.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}

/// The bytes from `place` on.
pub(crate) fn fill(place: u64, bytes: &mut [u8]) {
    for (byte, place) in bytes.iter_mut().zip(place..) {
        *byte = byte_at(place);
    }
}

/// Whether these are the bytes from `place` on.
pub(crate) fn is_right(place: u64, bytes: &[u8]) -> bool {
    bytes
        .iter()
        .zip(place..)
        .all(|(byte, place)| *byte == byte_at(place))
}

/// How many bytes a script writes.
pub(crate) fn written(script: &[Step]) -> u64 {
    let sends = script.iter().map(|step| match step {
        Step::Send(bytes) | Step::Trade(bytes) => *bytes,
        _ => 0,
    });
    sends.sum()
}
