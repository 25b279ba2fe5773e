//! The transmit queue of an AF_PACKET port: a ring of its own, and one system call a turn.
//!
//! Each frame carries a header of offloads (`struct virtio_net_hdr`) that says that all of it is
//! header. The kernel then copies the frame. Without, it would lend the pages of the ring to the
//! device, and veth, bridges and taps would have to allocate and copy pages again: on veth that
//! costs a third of the rate.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::offloads::{OFFLOAD_BYTES, Offloads};
use super::ring::{Place, Ring};
use super::socket::PacketSocket;
use crate::buffers::{Gauge, SlotGauge};
use crate::refusals::{Fate, Refusals};
use crate::registered::Registered;
use crate::{FrameId, TxQueue};

/// What the kernel has of a frame: it waits to be sent, or is being sent, or was refused.
const KERNELS: u32 =
    libc::TP_STATUS_SEND_REQUEST | libc::TP_STATUS_SENDING | libc::TP_STATUS_WRONG_FORMAT;

/// A transmit queue of an AF_PACKET port.
#[derive(Debug)]
pub struct AfPacketTx {
    socket: PacketSocket,
    ring: Ring,
    /// Where the next frame goes.
    head: Place,
    /// The length of the frame at the head, when it was begun and is not committed yet.
    begun: Option<usize>,
    /// The first frame that the kernel has not taken yet.
    oldest_unsent: Place,
    unsent: usize,
    /// The last frame that was given up, until the kernel has passed it by.
    given_up: Option<Place>,
    frame_bytes_max: usize,
    registered: Registered,
    refusals: Refusals,
    /// `unsent`, for others to look at.
    waiting: Arc<AtomicU64>,
}

impl AfPacketTx {
    /// A queue over the ring of a socket that is bound; frames have `frame_bytes_max` bytes at most.
    pub(super) fn new(
        socket: PacketSocket,
        ring: Ring,
        frame_bytes_max: usize,
        refusals: Refusals,
    ) -> AfPacketTx {
        AfPacketTx {
            socket,
            ring,
            head: Place::default(),
            begun: None,
            oldest_unsent: Place::default(),
            unsent: 0,
            given_up: None,
            frame_bytes_max,
            registered: Registered::new(),
            refusals,
            waiting: Arc::default(),
        }
    }

    /// How full it is, for others to look at.
    pub(crate) fn gauge(&self) -> Arc<dyn Gauge> {
        Arc::new(SlotGauge {
            count: self.ring.frames() as u64,
            waiting: Arc::clone(&self.waiting),
        })
    }

    /// The longest frame, in bytes without FCS.
    pub fn frame_bytes_max(&self) -> usize {
        self.frame_bytes_max
    }

    #[inline]
    fn commit(&mut self) {
        if let Some(len) = self.begun.take() {
            self.ring.set_len(self.head, (OFFLOAD_BYTES + len) as u32);
            self.ring.give(self.head, libc::TP_STATUS_SEND_REQUEST);
            self.head = self.ring.next(self.head);
            self.unsent += 1;
        }
    }

    /// Counts off what the kernel has taken.
    fn note_taken(&mut self) {
        let before = self.unsent;
        let wants_lengths = self.refusals.wants_lengths();
        let mut longest = 0;
        while self.unsent > 0
            && self.ring.status(self.oldest_unsent) & libc::TP_STATUS_SEND_REQUEST == 0
        {
            if wants_lengths {
                longest = longest.max(self.frame_bytes(self.oldest_unsent));
            }
            self.oldest_unsent = self.ring.next(self.oldest_unsent);
            self.unsent -= 1;
        }
        if self.unsent < before {
            self.refusals.note_left(longest);
        }
    }

    /// The length of a frame that waits.
    fn frame_bytes(&self, place: Place) -> usize {
        (self.ring.len(place) as usize).saturating_sub(OFFLOAD_BYTES)
    }

    /// Has the kernel take what waits, and gives up what it refuses for good.
    fn send_waiting(&mut self) {
        while (self.unsent > 0 || self.given_up.is_some()) && !self.refusals.is_too_early() {
            let kicked = self.socket.kick();
            self.note_taken();
            let waits =
                |place: &Place| self.ring.status(*place) & libc::TP_STATUS_SEND_REQUEST != 0;
            self.given_up = self.given_up.filter(waits);
            if self.unsent == 0 {
                return;
            }
            let now_ns = self.refusals.now_ns();
            if !is_refused(&kicked) {
                return self.refusals.note_held(now_ns);
            }
            let frame_bytes = self.frame_bytes(self.oldest_unsent);
            if self.refusals.judge(now_ns, frame_bytes) == Fate::Wait {
                return;
            }
            self.lose_oldest();
        }
    }

    /// Gives the oldest frame that waits up. It has no bytes any more, which is too few for its header
    /// of offloads, so that the kernel passes it by with the next call.
    fn lose_oldest(&mut self) {
        self.refusals
            .note_lost(self.frame_bytes(self.oldest_unsent));
        self.ring.set_len(self.oldest_unsent, 0);
        self.given_up = Some(self.oldest_unsent);
        self.oldest_unsent = self.ring.next(self.oldest_unsent);
        self.unsent -= 1;
    }
}

/// The part of a frame's place for its bytes, with the header of offloads written in front.
#[inline]
fn begin(area: &mut [u8], len: usize) -> &mut [u8] {
    let (header, frame) = area.split_at_mut(OFFLOAD_BYTES);
    Offloads::write_plain(header, len);
    &mut frame[..len]
}

/// Whether the kernel refused the oldest frame that waits. It has no room for more when it took some
/// and says nothing, or says EAGAIN; and the interface is down (ENETDOWN) or gone (ENXIO).
fn is_refused(kicked: &io::Result<()>) -> bool {
    let error = kicked.as_ref().err();
    let held = [libc::EAGAIN, libc::EINTR, libc::ENETDOWN, libc::ENXIO];
    error.is_some_and(|error| {
        !error
            .raw_os_error()
            .is_some_and(|code| held.contains(&code))
    })
}

#[inline]
fn is_ours(status: u32) -> bool {
    status & KERNELS == 0
}

impl TxQueue for AfPacketTx {
    #[inline]
    fn slot(&mut self, _now_ns: u64, len: usize) -> Option<&mut [u8]> {
        assert!(len <= self.frame_bytes_max, "frame too long for a port");
        self.commit();
        let (_, area) = self.ring.own(self.head, is_ours)?;
        self.begun = Some(len);
        Some(begin(area, len))
    }

    fn has_room(&mut self, _now_ns: u64, len: usize) -> bool {
        assert!(len <= self.frame_bytes_max, "frame too long for a port");
        self.commit();
        is_ours(self.ring.status(self.head))
    }

    fn repeat(&mut self, _now_ns: u64, frame: FrameId, count: u32) -> u32 {
        self.commit();
        let bytes = self.registered.frame(frame);
        for sent in 0..count {
            let Some((_, area)) = self.ring.own(self.head, is_ours) else {
                return sent;
            };
            begin(area, bytes.len()).copy_from_slice(bytes);
            let len = (OFFLOAD_BYTES + bytes.len()) as u32;
            self.ring.set_len(self.head, len);
            self.ring.give(self.head, libc::TP_STATUS_SEND_REQUEST);
            self.head = self.ring.next(self.head);
            self.unsent += 1;
        }
        count
    }

    fn register(&mut self, frame: &[u8]) -> Option<FrameId> {
        assert!(
            frame.len() <= self.frame_bytes_max,
            "frame too long for a port"
        );
        self.registered.insert(frame.into())
    }

    fn unregister(&mut self, frame: FrameId) {
        self.registered.remove(frame);
    }

    fn copy_registered(&self, frame: FrameId, copy: &mut Vec<u8>) {
        copy.clear();
        copy.extend_from_slice(self.registered.frame(frame));
    }

    /// One system call, if there is anything to send, and one for each frame that is given up. What
    /// the kernel or the device has no room for, or cannot send while the interface is down, stays in
    /// the ring for the next call.
    #[inline]
    fn flush(&mut self) {
        self.commit();
        if self.unsent == 0 && self.given_up.is_none() {
            return;
        }
        self.send_waiting();
        self.waiting.store(self.unsent as u64, Ordering::Relaxed);
    }

    fn has_unsent(&self) -> bool {
        self.unsent > 0
    }

    fn unsent(&mut self, each: &mut dyn FnMut(usize)) {
        let mut place = self.oldest_unsent;
        for _ in 0..self.unsent {
            each(self.frame_bytes(place));
            place = self.ring.next(place);
        }
    }

    fn take_lost(&mut self, each: &mut dyn FnMut(usize)) {
        self.refusals.take_lost(each);
    }

    fn end_traffic(&mut self) -> bool {
        if !self.refusals.is_last_call_over() {
            return true;
        }
        while self.unsent > 0 {
            self.lose_oldest();
        }
        false
    }
}
