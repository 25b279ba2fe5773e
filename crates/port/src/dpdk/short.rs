//! What a port writes of frames that stay in this process, between ends of rings: short frames, and the
//! headers of frames whose payload others share.
//!
//! They lie in mbufs that a transmit queue took from their pool once and for all, and uses in turn. Who
//! receives them gives none back: frames come out of a ring in the order in which they were sent, so it counts
//! them, and those that were counted are used again. They are few and lie in a row, so they stay in the second
//! cache of a core.
//!
//! A payload that is shared is the second mbuf of its frame, which refers to it where it is, and has its sum.
//! It lies behind the first, and belongs to it.

use std::sync::Arc;

use allosaur_packet::shared_payload::SharedPayload;

use super::device::{Device, RingEnd};
use super::ffi::{MBUF_BYTES, Mbuf};
use super::payloads::SentPayloads;
use super::pool::{self, Pool};

/// The longest frame, or head of one, in a short mbuf.
pub(super) const SHORT_BYTES_MAX: usize = 192;
/// Short mbufs of a transmit queue, a power of two. With 1,024 of them, connections with 32 KB each were 5 %
/// fewer on a core whose second cache has 512 KB.
const SHORT_MBUFS: usize = 512;

/// Short mbufs, and the payloads that frames in the ring refer to.
#[derive(Debug)]
pub(super) struct ShortTx {
    /// In the order in which they are sent.
    mbufs: Box<[*mut Mbuf]>,
    /// Those that were sent or are about to be, ever.
    sent: u64,
    /// Of these, those that are known to be read no more.
    received: u64,
    payloads: SentPayloads,
    pool: Arc<Pool>,
}

impl ShortTx {
    /// For a queue of an end of rings; `None` when there is no memory for it.
    pub(super) fn new(device: &Device) -> Option<ShortTx> {
        let pool = Pool::of_pairs(SHORT_MBUFS as u32, SHORT_BYTES_MAX, device.socket())?;
        let mut mbufs = vec![std::ptr::null_mut(); SHORT_MBUFS].into_boxed_slice();
        assert!(
            pool.take(&mut mbufs) == mbufs.len(),
            "a new pool has all of its mbufs"
        );
        mbufs.sort_unstable();
        Some(ShortTx {
            mbufs,
            sent: 0,
            received: 0,
            payloads: SentPayloads::default(),
            pool: Arc::new(pool),
        })
    }

    /// Whether the next mbuf is free.
    #[inline(always)]
    pub(super) fn has_room(&mut self, end: &RingEnd, queue: u16) -> bool {
        self.sent - self.received < self.mbufs.len() as u64 || self.look_again(end, queue)
    }

    #[cold]
    fn look_again(&mut self, end: &RingEnd, queue: u16) -> bool {
        self.received = end.rings.received(end.port, queue);
        self.sent - self.received < self.mbufs.len() as u64
    }

    #[inline(always)]
    fn next(&mut self) -> *mut Mbuf {
        let place = self.sent as usize & (self.mbufs.len() - 1);
        self.sent += 1;
        self.mbufs[place]
    }

    /// The next mbuf, where there is [room](ShortTx::has_room), for a whole frame of so many bytes.
    #[inline(always)]
    pub(super) fn whole(&mut self, len: usize) -> *mut Mbuf {
        let mbuf = self.next();
        // SAFETY: the mbuf was taken from the pool of this queue, and all frames that had it are read no
        // more, so it is the queue's own until it is handed to the device.
        unsafe {
            (*mbuf).nb_segs = 1;
            (*mbuf).data_len = len as u16;
            (*mbuf).pkt_len = len as u32;
        }
        mbuf
    }

    /// Keeps what a payload is a slice of. Returns whether there was room, and frames can refer to it.
    #[inline(always)]
    pub(super) fn keep(&mut self, payload: &SharedPayload<'_>) -> bool {
        u16::try_from(payload.len).is_ok() && self.payloads.keep(payload.bytes)
    }

    /// The same for a frame of so many bytes and a payload, which is [kept](ShortTx::keep).
    ///
    /// # Panics
    ///
    /// When the payload reaches beyond what it is a slice of.
    #[inline(always)]
    pub(super) fn split(&mut self, head_bytes: usize, payload: &SharedPayload<'_>) -> *mut Mbuf {
        let bytes = payload.slice();
        let head = self.next();
        // SAFETY: as above, of both mbufs. Who receives the frame only reads what the second refers to, and
        // only until it counts the frame: so long the payload is kept.
        unsafe {
            (*head).nb_segs = 2;
            (*head).data_len = head_bytes as u16;
            (*head).pkt_len = (head_bytes + bytes.len()) as u32;
            let second = second_of(head);
            (*second).buf_addr = bytes.as_ptr().cast_mut();
            (*second).data_len = bytes.len() as u16;
            (*second).user = payload.sum.into();
        }
        head
    }

    /// Lets payloads go.
    pub(super) fn let_go(&mut self) {
        self.payloads.let_go(self.sent);
    }

    /// Frees what was let go and no frame in the ring refers to.
    #[inline]
    pub(super) fn free_payloads(&mut self, end: &RingEnd, queue: u16) {
        if self.payloads.has_let_go() {
            self.look_again(end, queue);
            self.payloads.note_received(self.received);
        }
    }

    /// Leaves all to the rings: frames in them have some of it.
    pub(super) fn close(&mut self, end: &RingEnd) {
        let payloads = std::mem::take(&mut self.payloads);
        end.rings.keep_payloads(payloads.into_kept());
        // They are read by who receives them, and put into their pool by nobody else.
        pool::put(&mut self.mbufs);
        end.rings.keep(Arc::clone(&self.pool));
    }
}

/// The second mbuf of a frame that was split.
#[inline(always)]
pub(super) fn second_of(head: *mut Mbuf) -> *mut Mbuf {
    head.wrapping_byte_add(MBUF_BYTES)
}
