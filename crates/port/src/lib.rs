//! Ports: where frames leave and arrive.
//!
//! Each kind of port has a folder ([`memory`], [`af_packet`], [`af_xdp`], [`dpdk`]) and implements
//! [`Port`], [`TxQueue`] and [`RxQueue`]; [`kinds`] has a row for each. [`description`] says how a user
//! names ports, [`open`] opens them, [`kind`] has queues of any kind side by side, and [`control`] what ports are attached to.
//! [`distribution`] tells which receive queue a frame arrives at, and [`spread`] shares one out over
//! several threads by the rules of [`sharing`]; [`tap`] copies what is sent, [`buffers`] tells how full
//! transmit queues are.
//!
//! With `netdev` this crate is the home of `unsafe`: rings shared with other threads, the kernel and
//! network cards.

pub mod af_packet;
pub mod af_xdp;
pub mod buffers;
pub mod control;
pub mod description;
pub mod distribution;
#[cfg_attr(not(feature = "dpdk"), path = "dpdk/absent.rs")]
pub mod dpdk;
pub mod kind;
pub mod kinds;
pub mod memory;
pub mod open;
mod refusals;
mod registered;
mod settings;
pub mod sharing;
pub mod spread;
pub mod tap;
pub mod time;

use allosaur_netdev::InterfaceError;
use allosaur_packet::offload::TxChecksumOffload;
use allosaur_packet::shared_payload::{SharedPayload, SplitFrame};
use sharing::Sharing;
use thiserror::Error;

/// A port: what it can do, and its queues for the threads that will own them.
pub trait Port {
    /// Its kind of transmit queue.
    type Tx: TxQueue;
    /// Its kind of receive queue.
    type Rx: RxQueue;

    /// What the port can do.
    fn capabilities(&self) -> Capabilities;

    /// Takes the port apart: a transmit queue for each thread that sends, and the receive queues.
    fn into_queues(self) -> (Vec<Self::Tx>, Vec<Self::Rx>);
}

/// How many queues a port shall have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueCounts {
    /// Transmit queues: one for each thread that sends.
    pub tx: usize,
    /// Receive queues, 1 or more. A port that cannot share out by flow what arrives has fewer.
    pub rx: usize,
    /// By which rule what arrives shall be shared out over them. A port that cannot do that has its
    /// own, see [`RxDistribution`](distribution::RxDistribution).
    pub sharing: Sharing,
}

impl QueueCounts {
    /// One of each.
    pub const ONE: QueueCounts = QueueCounts {
        tx: 1,
        rx: 1,
        sharing: Sharing::ByFlow,
    };
}

/// What a port can do, as data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capabilities {
    /// The rate at layer 1 that percentages are measured by, in bits per second.
    pub line_rate_bps: f64,
    /// The longest frame without a VLAN tag, in bytes without FCS.
    pub frame_bytes_max: usize,
}

/// A frame that a transmit queue keeps ready, see [`TxQueue::register`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameId(pub u32);

/// One transmit queue of a port, owned by one thread.
///
/// Driven like this, once a turn: any number of [`slot`](TxQueue::slot) and
/// [`repeat`](TxQueue::repeat), then one [`flush`](TxQueue::flush).
pub trait TxQueue: Send {
    /// Whether [`reuse`](TxQueue::reuse) saves its caller work: the frame lies there already.
    const REUSES: bool = false;

    /// Room for the next frame, `len` bytes without FCS; `None` when the queue is full. The
    /// caller writes every byte. The frame is committed by the next call of any method.
    /// `now_ns` is the current time, which a link's delay and rate count from.
    ///
    /// # Panics
    ///
    /// When `len` is more than the port's [`frame_bytes_max`](Capabilities::frame_bytes_max), on an
    /// interface with 4 bytes more, which are for a VLAN tag.
    fn slot(&mut self, now_ns: u64, len: usize) -> Option<&mut [u8]>;

    /// Room for the first `head_bytes` of the next frame, as [`slot`](TxQueue::slot) gives; the payload
    /// follows them. Where that saves work it is not copied, and is kept alive until
    /// [`forget_payloads`](TxQueue::forget_payloads) and until all frames that have it were received.
    ///
    /// # Panics
    ///
    /// As [`slot`](TxQueue::slot), of both parts; and when the payload reaches beyond what it is a
    /// slice of.
    #[inline]
    fn slot_sharing(
        &mut self,
        now_ns: u64,
        head_bytes: usize,
        payload: SharedPayload<'_>,
    ) -> Option<&mut [u8]> {
        copy_payload(self, now_ns, head_bytes, payload)
    }

    /// Lets go of payloads that frames shared: they may have been the last.
    fn forget_payloads(&mut self) {}

    /// Whether the next [`slot`](TxQueue::slot) of these arguments gives room, if nothing else
    /// comes between.
    ///
    /// # Panics
    ///
    /// As [`slot`](TxQueue::slot).
    fn has_room(&mut self, now_ns: u64, len: usize) -> bool;

    /// Sends up to `count` copies of a registered frame; returns how many the queue took.
    ///
    /// # Panics
    ///
    /// When the frame is not registered, on queues that look at it.
    fn repeat(&mut self, now_ns: u64, frame: FrameId, count: u32) -> u32;

    /// Room for the next frame, as [`slot`](TxQueue::slot) gives. Its bytes are the first `len` of a
    /// registered frame, but for those that the caller wrote into frames before: it writes the same
    /// places in each. A frame is either repeated or reused.
    ///
    /// # Panics
    ///
    /// When the frame is not registered, or is shorter.
    fn reuse(&mut self, now_ns: u64, frame: FrameId, len: usize) -> Option<&mut [u8]> {
        let mut copy = Vec::new();
        self.copy_registered(frame, &mut copy);
        let slot = self.slot(now_ns, len)?;
        slot.copy_from_slice(&copy[..len]);
        Some(slot)
    }

    /// Keeps a copy of a frame for [`repeat`](TxQueue::repeat) or [`reuse`](TxQueue::reuse); `None`
    /// when there is no room.
    fn register(&mut self, frame: &[u8]) -> Option<FrameId>;

    /// As [`register`](TxQueue::register), for [`reuse`](TxQueue::reuse) of frames whose checksums the
    /// port computes; `None` also where it does not.
    fn register_offloaded(&mut self, frame: &[u8], offload: &TxChecksumOffload) -> Option<FrameId> {
        let _ = (frame, offload);
        None
    }

    /// Forgets a registered frame.
    fn unregister(&mut self, frame: FrameId);

    /// Writes the bytes of a registered frame to `copy`, in the place of what was there.
    ///
    /// # Panics
    ///
    /// When the frame is not registered.
    fn copy_registered(&self, frame: FrameId, copy: &mut Vec<u8>);

    /// Hands over what was written: to the peer, the kernel or the device.
    fn flush(&mut self);

    /// Whether frames wait for another [`flush`](TxQueue::flush): the last one could not pass all
    /// of them on.
    fn has_unsent(&self) -> bool {
        false
    }

    /// Hands the length of each frame that waits for another [`flush`](TxQueue::flush) to `each`,
    /// where others count frames as sent when they were written.
    fn unsent(&mut self, each: &mut dyn FnMut(usize)) {
        let _ = each;
    }

    /// Hands the length of each frame that could not leave to `each`, once: of those that the kernel
    /// refused, and of those that were given up by [`end_traffic`](TxQueue::end_traffic).
    fn take_lost(&mut self, each: &mut dyn FnMut(usize)) {
        let _ = each;
    }

    /// Called each turn while frames wait and nothing more is to be sent. What has not left some fifty
    /// milliseconds later is given up: it would leave when nobody expects it any more. Returns whether
    /// some may still leave.
    fn end_traffic(&mut self) -> bool {
        false
    }
}

/// Room for the head of a frame, in front of a copy of its payload.
#[inline]
fn copy_payload<'q, Q: TxQueue + ?Sized>(
    queue: &'q mut Q,
    now_ns: u64,
    head_bytes: usize,
    payload: SharedPayload<'_>,
) -> Option<&'q mut [u8]> {
    let slot = queue.slot(now_ns, head_bytes + payload.len)?;
    let (head, place) = slot.split_at_mut(head_bytes);
    place.copy_from_slice(payload.slice());
    Some(head)
}

/// One receive queue of a port, owned by one thread.
pub trait RxQueue: Send {
    /// Hands up to `budget` frames that have arrived by `now_ns` to `each`, in order, as
    /// (arrival time, bytes without FCS). Returns how many.
    fn receive(&mut self, now_ns: u64, budget: usize, each: impl FnMut(u64, &[u8])) -> usize;

    /// The same in bursts, of one frame where the queue does not have several at once. None is empty.
    fn receive_bursts(
        &mut self,
        now_ns: u64,
        budget: usize,
        mut each: impl FnMut(&[RxFrame<'_>]),
    ) -> usize {
        self.receive(now_ns, budget, |at_ns, bytes| {
            each(&[RxFrame { at_ns, bytes }]);
        })
    }

    /// The same, with the payload apart where the sender shared it
    /// ([`slot_sharing`](TxQueue::slot_sharing)) and the queue has it so.
    fn receive_split(
        &mut self,
        now_ns: u64,
        budget: usize,
        mut each: impl FnMut(&[SplitFrame<'_>]),
    ) -> usize {
        self.receive(now_ns, budget, |at_ns, bytes| {
            each(&[SplitFrame::whole(at_ns, bytes)]);
        })
    }
}

/// A frame that has arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RxFrame<'f> {
    /// When it arrived.
    pub at_ns: u64,
    /// Without FCS.
    pub bytes: &'f [u8],
}

/// What may go wrong with a port, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PortError {
    /// The description of a port could not be understood.
    #[error("port '{given}': {problem}. {remedy}")]
    Description {
        /// What the user wrote.
        given: String,
        /// What is wrong with it.
        problem: String,
        /// What to write instead.
        remedy: String,
    },
    /// An interface that cannot be used.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// A device of DPDK's that cannot be used.
    #[error("port '{device}': {problem}. {remedy}")]
    Dpdk {
        /// What the user wrote.
        device: String,
        /// What is wrong with it.
        problem: String,
        /// What to do about it.
        remedy: String,
    },
}
