//! Frames on their way out.

use crate::memory;

/// A frame to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit<'q> {
    /// The port that it leaves by.
    pub port: u16,
    /// All of it, without the frame check sequence. Not padded.
    pub frame: &'q [u8],
}

/// Most bytes that wait. A port may be slower than the requests that make clients send; frames
/// beyond are dropped and counted.
const BYTES_MAX: usize = 64 << 20;

/// Bytes of frames that were taken, before the memory is used again while others wait.
const COMPACT_BYTES: usize = 1 << 20;

/// Frames that wait to be sent, in one block of memory that is used again.
#[derive(Debug, Default)]
pub(crate) struct TxQueue {
    bytes: Vec<u8>,
    frames: Vec<(u16, u32)>,
    /// The next frame to give out, and where it begins.
    next: usize,
    at: usize,
    /// Where a frame is written that is dropped.
    dropped: Vec<u8>,
    pub(crate) packets: u64,
    pub(crate) octets: u64,
    pub(crate) drops: u64,
}

impl TxQueue {
    /// Room for a frame of `len` zeros.
    #[inline]
    pub(crate) fn push(&mut self, port: u16, len: usize) -> &mut [u8] {
        if self.at >= COMPACT_BYTES && self.at >= self.bytes.len() / 2 {
            self.compact();
        }
        let at = self.bytes.len();
        if at + len > BYTES_MAX {
            self.drops += 1;
            self.dropped.clear();
            self.dropped.resize(len, 0);
            return &mut self.dropped;
        }
        self.bytes.resize(at + len, 0);
        let end = u32::try_from(self.bytes.len()).expect("the queue is bounded");
        self.frames.push((port, end));
        self.packets += 1;
        self.octets += len as u64;
        &mut self.bytes[at..]
    }

    /// Forgets the frames that were taken, when there are many and others wait behind them.
    #[cold]
    fn compact(&mut self) {
        self.bytes.drain(..self.at);
        self.frames.drain(..self.next);
        let taken = self.at as u32;
        self.frames.iter_mut().for_each(|(_, end)| *end -= taken);
        (self.next, self.at) = (0, 0);
    }

    /// Bytes of memory for frames: of most of them that waited at one time.
    pub(crate) fn table_bytes(&self) -> usize {
        self.bytes.capacity() + memory::list::<(u16, u32)>(self.frames.capacity())
    }

    /// Whether frames wait.
    pub(crate) fn is_waiting(&self) -> bool {
        self.next < self.frames.len()
    }

    /// The next frame.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Transmit<'_>> {
        let Some(&(port, end)) = self.frames.get(self.next) else {
            self.bytes.clear();
            self.frames.clear();
            (self.next, self.at) = (0, 0);
            return None;
        };
        let from = std::mem::replace(&mut self.at, end as usize);
        self.next += 1;
        let frame = &self.bytes[from..end as usize];
        Some(Transmit { port, frame })
    }
}

crate::counters! {
    /// Frames that came and went.
    pub(crate) struct VethCounters: u64, "veth" {
        rx_zmq_error: "RxZmqErr", "RxZmqErr", "pkts", Error;
        tx_packets: "TxPkts", "TxPkts", "pkts", Info;
        tx_octets: "TxBytes", "TxBytes", "bytes", Info;
        rx_packets: "RxPkts", "RxPkts", "pkts", Info;
        rx_octets: "RxBytes", "RxBytes", "bytes", Info;
        tx_drop_unresolved: "TxDropNotResolve", "TxDropNotResolve", "pkts", Error;
        rx_parse_error: "RxParseErr", "RxParseErr", "pkts", Error;
        rx_batch: "RxBatch", "RxBatch", "pkts", Error;
        tx_batch: "TxBatch", "TxBatch", "pkts", Error;
    }
}

crate::counters! {
    /// Frames that were lost before they came here. The reference has no such table; it is shown when it
    /// counts.
    pub(crate) struct RxQueueCounters: u64, "rxq" {
        dropped: "drops", "frames dropped because too many waited for the core of their client", "pkts", Error;
    }
}

crate::counters! {
    /// Frames that did not come so far. The reference has no such table; it is shown when it counts.
    pub(crate) struct TxQueueCounters: u64, "txq" {
        dropped: "drops", "frames dropped because too many waited to be sent", "pkts", Error;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_in_order_while_others_wait() {
        let mut queue = TxQueue::default();
        let mut taken = 0_u32;
        for number in 0..100_000_u32 {
            queue.push(7, 60)[..4].copy_from_slice(&number.to_be_bytes());
            if number % 2 == 0 || number > 50_000 {
                let sent = queue.pop().expect("one waits");
                assert_eq!((sent.port, sent.frame.len()), (7, 60));
                assert_eq!(sent.frame[..4], taken.to_be_bytes());
                taken += 1;
            }
        }
        assert!(queue.bytes.len() < 4 << 20, "{}", queue.bytes.len());
        assert!(queue.is_waiting());
        while queue.pop().is_some() {
            taken += 1;
        }
        assert_eq!((taken, queue.is_waiting()), (100_000, false));
        assert_eq!((queue.packets, queue.drops), (100_000, 0));
    }

    #[test]
    fn what_is_too_much_is_dropped_and_counted() {
        let mut queue = TxQueue::default();
        let frames = BYTES_MAX / 9000 + 3;
        for _ in 0..frames {
            queue.push(0, 9000).fill(1);
        }
        let mut sent = 0;
        while queue.pop().is_some() {
            sent += 1;
        }
        assert_eq!((sent, queue.drops), (BYTES_MAX / 9000, 3));
    }
}
