//! The transmit queue of an AF_XDP port: a socket of its own, and one system call a turn.
//!
//! A registered frame has a chunk of its own, written once: it may be in flight any number of times,
//! as nobody writes to it. Other frames take the chunks in turn.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use libc::xdp_desc;

use super::completions::Completions;
use super::mapping::Chunks;
use super::ring::Producer;
use super::socket::XdpSocket;
use crate::buffers::{Gauge, SlotGauge};
use crate::refusals::{Fate, Refusals};
use crate::registered::Registered;
use crate::{FrameId, TxQueue};

/// A transmit queue of an AF_XDP port.
#[derive(Debug)]
pub struct AfXdpTx {
    wakeup: TxWakeup,
    ring: Producer<xdp_desc>,
    outgoing: Outgoing,
    limits: Limits,
    /// The chunk of the next frame that is written.
    next: usize,
    /// The length of that frame, when it was begun and is not committed yet.
    begun: Option<usize>,
    registered: Registered,
    stamped: Stamped,
    has_unsent: bool,
    /// Frames were given up, and the kernel may not have passed all of them by yet.
    has_given_up: bool,
    refusals: Refusals,
    /// Frames that the kernel had not taken after the last flush, for others to look at.
    waiting: Arc<AtomicU64>,
}

/// The chunks of a queue, and how often each was given to the kernel.
#[derive(Debug)]
pub(super) struct Outgoing {
    chunks: Chunks,
    given: Box<[u32]>,
    completions: Arc<Completions>,
}

impl Outgoing {
    /// Chunks, none of which was given.
    pub(super) fn new(chunks: Chunks, completions: Arc<Completions>) -> Outgoing {
        Outgoing {
            given: vec![0; chunks.count()].into(),
            chunks,
            completions,
        }
    }

    /// Whether the kernel is done with a chunk.
    #[inline]
    fn is_free(&self, chunk: usize) -> bool {
        let counted = self.completions.count(self.chunks.first() + chunk);
        counted == self.given[chunk]
    }

    /// The same, with a look at the ring.
    #[inline]
    fn is_returned(&self, chunk: usize) -> bool {
        self.is_free(chunk) || {
            self.completions.look();
            self.is_free(chunk)
        }
    }

    /// Notes that the frame at an address of ours goes out once more.
    fn give_again(&mut self, address: u64) {
        let chunk = self.chunks.chunk_at(address);
        self.given[chunk] = self.given[chunk].wrapping_add(1);
    }

    /// Notes that the frame at an address of ours did not go out: it is not given back.
    fn take_back(&mut self, address: u64) {
        let chunk = self.chunks.chunk_at(address);
        self.given[chunk] = self.given[chunk].wrapping_sub(1);
    }

    /// What the kernel is told of a frame in a chunk that goes out `count` times.
    #[inline]
    fn give(&mut self, chunk: usize, len: usize, count: u32) -> xdp_desc {
        self.given[chunk] = self.given[chunk].wrapping_add(count);
        xdp_desc {
            addr: self.chunks.address(chunk),
            len: len as u32,
            options: 0,
        }
    }
}

/// What the kernel passes by: it lies in no chunk.
const NOTHING: xdp_desc = xdp_desc {
    addr: u64::MAX,
    len: 0,
    options: 0,
};

/// Whether the kernel has thrown the last frame that it took away, which it says where it copies:
/// the interface has no link, or is going down; or its other end does not take the frame.
fn is_dropped(kicked: &io::Result<()>) -> bool {
    let error = kicked.as_ref().err();
    error.and_then(io::Error::raw_os_error) == Some(libc::EBUSY)
}

/// Which chunks registered frames have.
#[derive(Debug)]
struct Stamped {
    /// By the number of the frame; `None` for those that found no chunk.
    chunks: Vec<Option<usize>>,
    /// Those that are free, though the kernel may still read the first ones.
    free: VecDeque<usize>,
}

/// What a transmit queue is held to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// How many chunks, the first ones, are for frames that are written each time; the others are for
    /// registered ones.
    pub(super) slots: usize,
    /// The longest frame, in bytes without FCS.
    pub(super) frame_bytes_max: usize,
    /// Whether the device reads the frames itself, after the wake-up.
    pub(super) is_zero_copy: bool,
}

/// How the kernel learns of frames.
#[derive(Debug)]
pub(super) struct TxWakeup {
    socket: XdpSocket,
    /// Whether the ring says truly that nobody needs to ring: a driver keeps that up for the first
    /// socket on its queue, not for those that join it. Where the kernel copies, it waits for a call.
    may_be_needless: bool,
}

impl TxWakeup {
    pub(super) fn new(socket: XdpSocket, may_be_needless: bool) -> TxWakeup {
        TxWakeup {
            socket,
            may_be_needless,
        }
    }
}

impl AfXdpTx {
    /// A queue over the ring of a socket that is bound.
    pub(super) fn new(
        wakeup: TxWakeup,
        ring: Producer<xdp_desc>,
        outgoing: Outgoing,
        limits: Limits,
        refusals: Refusals,
    ) -> AfXdpTx {
        AfXdpTx {
            wakeup,
            ring,
            next: 0,
            begun: None,
            registered: Registered::new(),
            stamped: Stamped {
                chunks: Vec::new(),
                free: (limits.slots..outgoing.chunks.count()).collect(),
            },
            outgoing,
            limits,
            has_unsent: false,
            has_given_up: false,
            refusals,
            waiting: Arc::default(),
        }
    }

    /// How full it is, for others to look at.
    pub(crate) fn gauge(&self) -> Arc<dyn Gauge> {
        Arc::new(SlotGauge {
            count: self.limits.slots as u64,
            waiting: Arc::clone(&self.waiting),
        })
    }

    /// The longest frame, in bytes without FCS.
    pub fn frame_bytes_max(&self) -> usize {
        self.limits.frame_bytes_max
    }

    #[inline]
    fn commit(&mut self) {
        if let Some(len) = self.begun.take() {
            let descriptor = self.outgoing.give(self.next, len, 1);
            self.ring.push(descriptor);
            self.next += 1;
            if self.next == self.limits.slots {
                self.next = 0;
            }
        }
    }

    /// Copies of a registered frame that has no chunk of its own.
    fn repeat_written(&mut self, frame: FrameId, count: u32) -> u32 {
        for sent in 0..count {
            if !self.ring.has_room(1) || !self.outgoing.is_returned(self.next) {
                return sent;
            }
            let bytes = self.registered.frame(frame);
            let chunk = self.outgoing.chunks.bytes_mut(self.next, bytes.len());
            chunk.copy_from_slice(bytes);
            self.begun = Some(bytes.len());
            self.commit();
        }
        count
    }

    /// Rings until the kernel has taken all, or takes no more. Each refusal is one that may pass: the
    /// call has sent its share (EAGAIN), the device had no room (ENOBUFS), the interface is down
    /// (ENETDOWN) or has no link (EBUSY).
    fn wake_kernel(&mut self) {
        let mut left = self.ring.untaken();
        self.has_given_up &= left > 0;
        self.has_unsent = self.waits(left);
        while left > 0 && !self.refusals.is_too_early() {
            self.has_unsent = false;
            if self.wakeup.may_be_needless && !self.ring.needs_wakeup() {
                return;
            }
            let kicked = self.wakeup.socket.kick();
            let before = std::mem::replace(&mut left, self.ring.untaken());
            let is_dropped = is_dropped(&kicked) && !self.limits.is_zero_copy && left < before;
            self.note_left(before - left, is_dropped);
            if is_dropped {
                if self.is_refused_for_now() {
                    return;
                }
                continue;
            }
            if self.limits.is_zero_copy || left == before {
                self.has_unsent = self.waits(left);
                if left > 0 {
                    self.refusals.note_held(self.refusals.now_ns());
                }
                return;
            }
        }
    }

    /// Whether there is a frame among the entries that the kernel has not taken.
    fn waits(&mut self, left: u32) -> bool {
        left > 0 && (!self.has_given_up || self.ring.waiting().any(|frame| frame.len > 0))
    }

    /// Tells what the kernel took, `taken` frames, of which the last one `is_dropped` or left, too.
    fn note_left(&mut self, taken: u32, is_dropped: bool) {
        let left = taken - u32::from(is_dropped);
        if left == 0 {
            return;
        }
        let shown = if self.refusals.wants_lengths() {
            taken
        } else {
            0
        };
        let left = self.ring.last_taken(shown).skip(usize::from(is_dropped));
        let longest = left.map(|frame| frame.len as usize).max();
        self.refusals.note_left(longest.unwrap_or(0));
    }

    /// The kernel has dropped the frame that it took last. Puts it back in front, where it waits, or
    /// gives it up.
    fn is_refused_for_now(&mut self) -> bool {
        let Some(frame) = self.ring.last_taken(1).next() else {
            return false;
        };
        let now_ns = self.refusals.now_ns();
        if self.refusals.judge(now_ns, frame.len as usize) == Fate::GiveUp {
            self.refusals.note_lost(frame.len as usize);
            return false;
        }
        let frame = self.ring.put_back_last();
        self.outgoing.give_again(frame.addr);
        self.has_unsent = true;
        true
    }

    /// Gives up all frames that wait. Where the device reads them itself it may be about to: they stay.
    fn lose_waiting(&mut self) {
        if self.limits.is_zero_copy {
            return;
        }
        for frame in self.ring.waiting().filter(|frame| frame.len > 0) {
            self.refusals.note_lost(frame.len as usize);
            self.outgoing.take_back(frame.addr);
        }
        self.ring.overwrite_waiting(NOTHING);
        self.has_given_up = true;
        self.has_unsent = false;
        self.waiting.store(0, Ordering::Relaxed);
    }
}

impl TxQueue for AfXdpTx {
    #[inline]
    fn slot(&mut self, now_ns: u64, len: usize) -> Option<&mut [u8]> {
        if !self.has_room(now_ns, len) {
            return None;
        }
        self.begun = Some(len);
        Some(self.outgoing.chunks.bytes_mut(self.next, len))
    }

    #[inline]
    fn has_room(&mut self, _now_ns: u64, len: usize) -> bool {
        assert!(
            len <= self.limits.frame_bytes_max,
            "frame too long for a port"
        );
        self.commit();
        self.ring.has_room(1) && self.outgoing.is_returned(self.next)
    }

    #[inline]
    fn repeat(&mut self, _now_ns: u64, frame: FrameId, count: u32) -> u32 {
        self.commit();
        let Some(&Some(chunk)) = self.stamped.chunks.get(frame.0 as usize) else {
            return self.repeat_written(frame, count);
        };
        let count = self.ring.room_for(count);
        let len = self.registered.frame(frame).len();
        let descriptor = self.outgoing.give(chunk, len, count);
        for _ in 0..count {
            self.ring.push(descriptor);
        }
        count
    }

    fn register(&mut self, frame: &[u8]) -> Option<FrameId> {
        assert!(
            frame.len() <= self.limits.frame_bytes_max,
            "frame too long for a port"
        );
        let id = self.registered.insert(frame.into())?;
        let number = id.0 as usize;
        let places = self.stamped.chunks.len().max(number + 1);
        self.stamped.chunks.resize(places, None);
        let free = self.stamped.free.front().copied();
        if let Some(chunk) = free.filter(|chunk| self.outgoing.is_returned(*chunk)) {
            self.stamped.free.pop_front();
            let bytes = self.outgoing.chunks.bytes_mut(chunk, frame.len());
            bytes.copy_from_slice(frame);
            self.stamped.chunks[number] = Some(chunk);
        }
        Some(id)
    }

    fn unregister(&mut self, frame: FrameId) {
        self.registered.remove(frame);
        let chunk = self.stamped.chunks.get_mut(frame.0 as usize);
        if let Some(chunk) = chunk.and_then(Option::take) {
            self.stamped.free.push_back(chunk);
        }
    }

    fn copy_registered(&self, frame: FrameId, copy: &mut Vec<u8>) {
        copy.clear();
        copy.extend_from_slice(self.registered.frame(frame));
    }

    /// One system call, if there is anything to send and the kernel does not look by itself; more on
    /// kernels that send 32 frames a call. What is not taken stays in the ring for the next one.
    #[inline]
    fn flush(&mut self) {
        self.commit();
        if !self.ring.publish() && !self.has_unsent && !self.has_given_up {
            return;
        }
        self.wake_kernel();
        self.waiting
            .store(u64::from(self.ring.untaken()), Ordering::Relaxed);
        self.outgoing.completions.look();
        // Where all is sent at once, the same few chunks serve each turn, and stay in the cache.
        let last = self.next.checked_sub(1).unwrap_or(self.limits.slots - 1);
        if !self.limits.is_zero_copy && self.outgoing.is_free(last) {
            self.next = 0;
        }
    }

    fn has_unsent(&self) -> bool {
        self.has_unsent
    }

    fn unsent(&mut self, each: &mut dyn FnMut(usize)) {
        if self.limits.is_zero_copy {
            return;
        }
        let frames = self.ring.waiting().filter(|frame| frame.len > 0);
        frames.for_each(|frame| each(frame.len as usize));
    }

    fn take_lost(&mut self, each: &mut dyn FnMut(usize)) {
        self.refusals.take_lost(each);
    }

    fn end_traffic(&mut self) -> bool {
        let is_over = self.refusals.is_last_call_over();
        if is_over {
            self.lose_waiting();
        }
        !is_over
    }
}

#[cfg(test)]
mod tests {
    use super::super::mapping::Mapping;
    use super::super::ring::tests::pair;
    use super::*;

    #[test]
    fn a_chunk_is_free_when_it_came_back_as_often_as_it_left() {
        let memory = Arc::new(Mapping::anonymous(4 * 2048).expect("memory"));
        let (mut kernel, ring) = pair::<u64>(16);
        let completions = Arc::new(Completions::new(ring, 4, 2048));
        let mut shares = Chunks::share(&memory, 2048, [1, 3]).into_iter();
        let mut outgoing = |count: usize| Outgoing {
            chunks: shares.next().expect("two runs"),
            given: vec![0; count].into(),
            completions: Arc::clone(&completions),
        };
        let (other, mut ours) = (outgoing(1), outgoing(3));
        let frame = ours.give(1, 60, 3);
        assert_eq!((frame.addr, frame.len, frame.options), (2 * 2048, 60, 0));
        ours.give_again(frame.addr);
        for left in (0..4).rev() {
            assert!(!ours.is_returned(1));
            assert!(ours.is_returned(0) && ours.is_returned(2) && other.is_returned(0));
            kernel.push(frame.addr);
            kernel.publish();
            assert_eq!(ours.is_returned(1), left == 0);
        }
        let refused = |code| Err(io::Error::from_raw_os_error(code));
        assert!(is_dropped(&refused(libc::EBUSY)));
        assert!(!is_dropped(&refused(libc::EAGAIN)) && !is_dropped(&Ok(())));
    }
}
