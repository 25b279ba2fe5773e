//! How the engine sends: the traits that a port's transmit queue is adapted to.
//!
//! The worker loop of the server implements these traits for each kind of port, by type, so that
//! the engine's burst loops compile once per kind with nothing in between; the simulator implements
//! them for its recorder.

use allosaur_packet::offload::TxChecksumOffload;
use allosaur_packet::shared_payload::SharedPayload;

use crate::time::{Due, Gap, Nanos};

/// A port, as the engine of one core numbers it (the server's own port number).
pub type PortIndex = u8;

/// A frame that a queue keeps ready, see [`Transmit::register`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameHandle(pub u32);

/// One transmit queue of one port.
pub trait Transmit {
    /// Whether [`Transmit::reuse`] saves work here. Where it does not, nobody calls it.
    const REUSES: bool;

    /// Room for the next frame of `len` bytes, due to leave at `at`; `None` when the queue is
    /// full. The bytes are those of an older frame: the caller writes every one of them. The
    /// frame counts as sent from the next call on.
    fn slot(&mut self, at: Nanos, len: usize) -> Option<&mut [u8]>;

    /// Room for the first `head_bytes` of the next frame, as [`Transmit::slot`] gives; `payload`
    /// follows them. A queue may keep what it is a slice of, until
    /// [`Transmit::forget_payloads`], instead of copying it.
    #[inline]
    fn slot_sharing(
        &mut self,
        at: Nanos,
        head_bytes: usize,
        payload: SharedPayload<'_>,
    ) -> Option<&mut [u8]> {
        let slot = self.slot(at, head_bytes + payload.len)?;
        let (head, place) = slot.split_at_mut(head_bytes);
        place.copy_from_slice(payload.slice());
        Some(head)
    }

    /// Lets go of the payloads that frames shared: they may have been the last.
    fn forget_payloads(&mut self) {}

    /// Sends up to `count` copies of a registered frame, due from `first` on, one each `gap`.
    /// Returns how many the queue took; fewer than `count` means that it is full.
    fn repeat(&mut self, frame: FrameHandle, first: Due, gap: Gap, count: u32) -> u32;

    /// Room for the next frame, of `len` bytes, due to leave at `at`; `None` when the queue is
    /// full. The bytes are the first ones of a registered frame, which is not shorter, but for those
    /// that the caller wrote into frames before: it writes the same places in each. A frame is
    /// either repeated or reused.
    fn reuse(&mut self, at: Nanos, frame: FrameHandle, len: usize) -> Option<&mut [u8]>;

    /// Gives the queue a frame to keep, for [`Transmit::repeat`] or [`Transmit::reuse`]. `None`
    /// when the queue has no room for another: the caller then sends through [`Transmit::slot`].
    fn register(&mut self, frame: &[u8]) -> Option<FrameHandle>;

    /// As [`Transmit::register`], for [`Transmit::reuse`] of frames whose checksums the port
    /// computes. `None` also where it does not.
    fn register_offloaded(
        &mut self,
        frame: &[u8],
        left: &TxChecksumOffload,
    ) -> Option<FrameHandle> {
        let _ = (frame, left);
        None
    }

    /// Forgets a registered frame.
    fn unregister(&mut self, frame: FrameHandle);
}

/// What the engine wants done with a queue: a burst. See [`TxQueues::with_queue`].
pub trait QueueOp {
    /// What the burst leaves behind.
    type Output;
    /// Runs the burst on the queue.
    fn run<T: Transmit>(self, queue: &mut T) -> Self::Output;
}

/// The transmit queues that one engine owns, one of each port of its group.
pub trait TxQueues {
    /// Runs `job` on the queue of `port`. The branch on the kind of port is taken here, once a
    /// burst.
    fn with_queue<J: QueueOp>(&mut self, port: PortIndex, job: J) -> J::Output;
}
