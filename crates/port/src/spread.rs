//! One receive queue for several threads: shared out by flow, or by a port of TCP and UDP, in software.
//!
//! On a frame of 60 bytes, finding its share takes about 220 instructions, most of them the parser's;
//! copying it into a ring takes about 100 more, and reading it there 20.

#[cfg(test)]
mod tests;

use crate::RxQueue;
use crate::memory::FRAME_BYTES_MAX;
use crate::memory::ring::{Consumer, Producer, ring};

pub use crate::sharing::{Sharing, flow_hash, share_of};

/// What the ring of a share holds: 65,536 of the shortest frames, so that at 10 Mpps a thread may be
/// away for 6 ms. Frames that do not fit are lost and counted.
pub const SPREAD_BYTES: usize = 4 << 20;
/// Shares that a queue can have.
pub const SHARES_MAX: usize = 64;

/// Shares a queue out by flow. The reader keeps share 0, and there is an end for each of the
/// others, in order; together `shares`, 1 to [`SHARES_MAX`].
///
/// # Panics
///
/// When there are fewer or more shares.
pub fn spread<Q: RxQueue>(queue: Q, shares: usize) -> (SpreadReader<Q>, Vec<SpreadEnd>) {
    spread_by(queue, shares, Sharing::ByFlow)
}

/// Shares a queue out by the rule that is given; else as [`spread`].
///
/// # Panics
///
/// When there are fewer or more shares.
pub fn spread_by<Q: RxQueue>(
    queue: Q,
    shares: usize,
    sharing: Sharing,
) -> (SpreadReader<Q>, Vec<SpreadEnd>) {
    assert!((1..=SHARES_MAX).contains(&shares), "1 to 64 shares");
    let (rings, ends) = (1..shares).map(|_| ring(SPREAD_BYTES)).unzip();
    let reader = SpreadReader {
        queue,
        sharing,
        rings,
        passed: 0,
        passed_packets: 0,
        lost_packets: 0,
    };
    let ends: Vec<Consumer> = ends;
    (reader, ends.into_iter().map(SpreadEnd).collect())
}

/// The owner of the real queue.
#[derive(Debug)]
pub struct SpreadReader<Q> {
    queue: Q,
    sharing: Sharing,
    /// Of the shares from 1 on.
    rings: Vec<Producer>,
    /// The shares that got something since they were last asked for, as bits.
    passed: u64,
    passed_packets: u64,
    lost_packets: u64,
}

impl<Q> SpreadReader<Q> {
    /// The shares that frames were passed on to since the last call, as bits: whose threads sleep,
    /// wakes them now.
    pub fn take_passed(&mut self) -> u64 {
        std::mem::take(&mut self.passed)
    }

    /// Frames that were passed on.
    pub fn passed_packets(&self) -> u64 {
        self.passed_packets
    }

    /// Frames that found no room in the ring of their share.
    pub fn lost_packets(&self) -> u64 {
        self.lost_packets
    }

    /// The real queue, shared out no more: what is in the rings of other shares can still be read.
    pub fn into_queue(self) -> Q {
        self.queue
    }

    /// The real queue.
    pub fn queue(&self) -> &Q {
        &self.queue
    }

    /// The real queue, for what is not receiving.
    pub fn queue_mut(&mut self) -> &mut Q {
        &mut self.queue
    }
}

impl<Q: RxQueue> RxQueue for SpreadReader<Q> {
    /// Returns how many frames the queue had, those of other shares included: none means that
    /// nothing has arrived for anybody.
    fn receive(&mut self, now_ns: u64, budget: usize, mut each: impl FnMut(u64, &[u8])) -> usize {
        let (rings, passed) = (&mut self.rings, &mut self.passed);
        let (passed_packets, lost_packets) = (&mut self.passed_packets, &mut self.lost_packets);
        let (sharing, shares) = (self.sharing, rings.len() + 1);
        let taken = self.queue.receive(now_ns, budget, |at, frame| {
            let share = sharing.share_of(frame, shares);
            let Some(number) = share.checked_sub(1) else {
                each(at, frame);
                return;
            };
            match push(&mut rings[number], at, frame) {
                true => {
                    *passed |= 1 << share;
                    *passed_packets += 1;
                }
                false => *lost_packets += 1,
            }
        });
        for ring in rings {
            ring.flush();
        }
        taken
    }
}

/// Copies a frame; false when there is no room.
#[inline]
fn push(ring: &mut Producer, at: u64, frame: &[u8]) -> bool {
    if frame.len() > FRAME_BYTES_MAX {
        return false;
    }
    let slot = ring.slot(at, frame.len());
    slot.map(|slot| slot.copy_from_slice(frame)).is_some()
}

/// The receive queue of a share that the reader does not keep.
#[derive(Debug)]
pub struct SpreadEnd(Consumer);

impl SpreadEnd {
    /// When the frame in front arrived; `None` when there is none.
    pub fn next_arrival_ns(&mut self) -> Option<u64> {
        self.0.refresh();
        self.0.peek().map(|front| front.at_ns)
    }
}

impl RxQueue for SpreadEnd {
    /// Frames have the time at which they arrived at the real queue. Those that the reader passed on
    /// after the caller's turn began wait for the next turn, as in the real queue: no frame is
    /// handled at a time before it arrived.
    fn receive(&mut self, now_ns: u64, budget: usize, mut each: impl FnMut(u64, &[u8])) -> usize {
        self.0.refresh();
        let mut taken = 0;
        while taken < budget {
            let Some(front) = self.0.peek().filter(|front| front.at_ns <= now_ns) else {
                break;
            };
            // What the reader passes on, it copies whole.
            each(front.at_ns, front.head);
            self.0.pop();
            taken += 1;
        }
        self.0.release();
        taken
    }
}
