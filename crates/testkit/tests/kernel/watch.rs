//! What passed on the wire: whether each byte was right, what was sent again, and what stood in the headers.

use std::collections::HashMap;

use allosaur_engine::session::wire::{self, Addresses, Arrival};
use allosaur_engine::tcp::{Segment, Seq};
use allosaur_packet::frame;
use allosaur_packet::transport::tcp::TcpFlags;

use crate::script;

/// What was seen of all that one end sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) frames: u64,
    /// Frames of TCP that cannot be read: wrong lengths or checksums.
    pub(crate) unreadable: u64,
    pub(crate) resets: u64,
    pub(crate) with_data: u64,
    /// Data segments of more than a byte (that is a probe) below what was sent before.
    pub(crate) again: u64,
    /// Data that is not what stands at its place.
    pub(crate) wrong: u64,
    /// Of data, without headers.
    pub(crate) segment_bytes_max: u32,
    /// Echo of congestion, after the handshake, and answers to it.
    pub(crate) congestion_echoes: u64,
    pub(crate) windows_reduced: u64,
    pub(crate) with_timestamps: u64,
    pub(crate) with_blocks: u64,
    pub(crate) zero_windows: u64,
    /// Segments without data below what was sent before: keepalive probes.
    pub(crate) questions: u64,
    /// The first SYN.
    pub(crate) syn: Option<Segment>,
}

/// A direction of a connection: where its bytes begin, and how far it came.
#[derive(Clone, Copy, Debug)]
struct Stream {
    first: Seq,
    high: Seq,
    /// The place of `high`, from the first byte; sequence numbers go round.
    place: u64,
}

/// Who watches what one end sends.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    pub(crate) seen: Seen,
    streams: HashMap<(Addresses6, u16, u16), Stream>,
}

type Addresses6 = (u128, u128);

impl Watch {
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        let layout = frame::parse(bytes);
        if layout.transport != frame::Transport::Tcp {
            return;
        }
        self.seen.frames += 1;
        let Ok(received) = wire::read(bytes, &layout) else {
            self.seen.unreadable += 1;
            return;
        };
        let Arrival::Tcp(segment) = received.arrival else {
            return;
        };
        let addresses = match received.addresses {
            Addresses::V4(from, to) => (u128::from(from.to_bits()), u128::from(to.to_bits())),
            Addresses::V6(from, to) => (from.to_bits(), to.to_bits()),
        };
        let key = (addresses, received.ports.0, received.ports.1);
        self.count(&segment);
        if segment.has(TcpFlags::SYN) {
            self.seen.syn.get_or_insert(segment);
            let first = segment.seq + 1;
            let known = self
                .streams
                .get(&key)
                .is_some_and(|stream| stream.first == first);
            if !known {
                let place = 0;
                self.streams.insert(
                    key,
                    Stream {
                        first,
                        high: first,
                        place,
                    },
                );
            }
            return;
        }
        if let Some(stream) = self.streams.get_mut(&key) {
            let seen = &mut self.seen;
            stream.follow(seen, &segment, layout.payload(bytes));
        }
    }

    fn count(&mut self, segment: &Segment) {
        let seen = &mut self.seen;
        let is_syn = segment.has(TcpFlags::SYN);
        let has = |flags| u64::from(!is_syn && segment.has(flags));
        seen.resets += has(TcpFlags::RST);
        seen.congestion_echoes += has(TcpFlags::ECE);
        seen.windows_reduced += has(TcpFlags::CWR);
        seen.with_timestamps += u64::from(!is_syn && segment.timestamps.is_some());
        seen.with_blocks += u64::from(!segment.sack.as_slice().is_empty());
        let is_closed = segment.window == 0 && !segment.has(TcpFlags::RST);
        seen.zero_windows += u64::from(is_closed);
        seen.with_data += u64::from(segment.len > 0);
        seen.segment_bytes_max = seen.segment_bytes_max.max(segment.len);
    }
}

impl Stream {
    fn follow(&mut self, seen: &mut Seen, segment: &Segment, data: &[u8]) {
        if segment.has(TcpFlags::RST) {
            return;
        }
        let is_old = segment.seq.is_before(self.high);
        let back = segment.seq.until(self.high);
        if data.is_empty() {
            seen.questions += u64::from(is_old && !segment.has(TcpFlags::FIN));
            return;
        }
        let place = match is_old {
            true => self.place.checked_sub(u64::from(back)),
            false => Some(self.place + u64::from(self.high.until(segment.seq))),
        };
        // A probe may have any byte in the place before the oldest.
        let is_probe = data.len() == 1;
        let right = place.is_some_and(|place| script::is_right(place, data));
        seen.wrong += u64::from(!right && !is_probe);
        seen.again += u64::from(is_old && !is_probe);
        let end = segment.seq + segment.len;
        if end.is_after(self.high) && right && !is_probe {
            self.place += u64::from(self.high.until(end));
            self.high = end;
        }
    }
}
