//! The rings between two ports of net_ring: what one port enqueues the other dequeues, so an mbuf moves by
//! its address, and nothing is copied.
//!
//! There is a ring for each transmit queue of each port, and each ring is a receive queue of the peer. The
//! rings outlive both devices, and the pools of their mbufs outlive the rings.

use std::ffi::CString;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::ffi;
use super::payloads::KeptPayloads;
use super::pool::{self, Pool};
use crate::buffers::{BufferSpace, Gauge};

/// Places of a ring, a power of two; DPDK uses one less.
pub(super) const RING_MBUFS: u32 = 2048;
/// Receive queues that a port of net_ring has at most, and transmit queues.
pub(super) const RINGS_MAX: usize = 16;

/// The rings between two ports.
#[derive(Debug)]
pub(super) struct Rings {
    /// Those that each port sends into.
    from: [Vec<Ring>; 2],
    /// What the mbufs in them may be of.
    kept: Mutex<Kept>,
}

/// What mbufs are of, and refer to.
#[derive(Debug, Default)]
struct Kept {
    pools: Vec<Arc<Pool>>,
    payloads: Vec<KeptPayloads>,
}

/// A ring with one producer and one consumer.
#[derive(Debug)]
struct Ring {
    ring: NonNull<ffi::Ring>,
    /// Frames in mbufs that the producer keeps, and that the consumer reads no more.
    received: Received,
}

/// A number on cache lines of its own: the consumer writes it.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Received(AtomicU64);

// SAFETY: DPDK's rings are made to be used by several threads; each has one that enqueues and one that
// dequeues, which is seen to where they are used.
unsafe impl Send for Rings {}
// SAFETY: as above.
unsafe impl Sync for Rings {}

impl Rings {
    /// As many as the two ports have transmit queues; `None` when DPDK has no memory for them.
    pub(super) fn new(tx_queues: [usize; 2]) -> Option<Rings> {
        let mut rings = Rings {
            from: [Vec::new(), Vec::new()],
            kept: Mutex::default(),
        };
        for (port, queues) in tx_queues.into_iter().enumerate() {
            for _ in 0..queues {
                rings.from[port].push(Ring {
                    ring: ring()?,
                    received: Received::default(),
                });
            }
        }
        Some(rings)
    }

    /// Makes the device of one of the ports, 0 or 1. Returns whether DPDK did.
    pub(super) fn make_device(&self, port: usize, name: &CString) -> bool {
        let pointers =
            |rings: &[Ring]| -> Vec<_> { rings.iter().map(|ring| ring.ring.as_ptr()).collect() };
        let (tx, rx) = (pointers(&self.from[port]), pointers(&self.from[1 - port]));
        // SAFETY: the lists have as many rings as said, and are copied; the rings live until the device
        // is closed, since it holds `self`. -1 is any NUMA node.
        let number = unsafe {
            ffi::rte_eth_from_rings(
                name.as_ptr(),
                rx.as_ptr(),
                rx.len() as u32,
                tx.as_ptr(),
                tx.len() as u32,
                u32::MAX,
            )
        };
        number >= 0
    }

    /// Keeps a pool until no mbuf of it can be in a ring, or in the hands of who reads one.
    pub(super) fn keep(&self, pool: Arc<Pool>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.pools.push(pool);
    }

    /// Keeps payloads until no mbuf that refers to one can be in a ring.
    pub(super) fn keep_payloads(&self, payloads: Vec<KeptPayloads>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.payloads.extend(payloads);
    }

    /// How many frames in mbufs that the sender keeps, of those that a port sent into a ring, were received
    /// and are read no more.
    pub(super) fn received(&self, port: usize, queue: u16) -> u64 {
        let received = &self.from[port][usize::from(queue)].received;
        received.0.load(Ordering::Acquire)
    }

    /// Adds to these; the one consumer of the ring does.
    pub(super) fn note_received(&self, port: usize, queue: u16, frames: u64) {
        let received = &self.from[port][usize::from(queue)].received;
        let before = received.0.load(Ordering::Relaxed);
        received.0.store(before + frames, Ordering::Release);
    }
}

/// How full the ring of a transmit queue is, for others to look at.
#[derive(Debug)]
pub(super) struct RingGauge {
    pub(super) rings: Arc<Rings>,
    /// 0 or 1: who sends into it.
    pub(super) port: usize,
    pub(super) queue: u16,
}

impl Gauge for RingGauge {
    fn space(&self, _frame_bytes: usize) -> BufferSpace {
        let ring = &self.rings.from[self.port][usize::from(self.queue)].ring;
        // SAFETY: the ring lives as long as `rings`; its places are counted at any time.
        let free = unsafe { ffi::allosaur_dpdk_ring_free(ring.as_ptr()) };
        BufferSpace {
            free: free.into(),
            total: u64::from(RING_MBUFS) - 1,
        }
    }
}

/// A ring with one producer and one consumer.
fn ring() -> Option<NonNull<ffi::Ring>> {
    // DPDK wants a name that no other ring of the process has.
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let name = format!("allosaur{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let name = CString::new(name).expect("letters and digits");
    // SAFETY: DPDK was started before there are rings; the name ends with a zero and is copied.
    NonNull::new(unsafe { ffi::allosaur_dpdk_ring(name.as_ptr(), RING_MBUFS) })
}

impl Drop for Rings {
    fn drop(&mut self) {
        let mut mbufs = [std::ptr::null_mut(); 64];
        for ring in self.from.iter().flatten() {
            loop {
                let (first, room) = (mbufs.as_mut_ptr(), mbufs.len() as u32);
                // SAFETY: both devices are closed, since they hold `self`, so nobody uses the ring; there
                // is room for as many pointers.
                let count = unsafe { ffi::allosaur_dpdk_dequeue(ring.ring.as_ptr(), first, room) };
                if count == 0 {
                    break;
                }
                pool::put_received(&mut mbufs[..count as usize]);
            }
            // SAFETY: as above; the ring is empty and forgotten.
            unsafe { ffi::rte_ring_free(ring.ring.as_ptr()) };
        }
        let kept = self.kept.get_mut().unwrap_or_else(PoisonError::into_inner);
        // All queues are gone with the devices that they hold, and what was in the rings is back.
        let pools = kept.pools.iter_mut().filter_map(Arc::get_mut);
        pools.for_each(Pool::make_private);
    }
}
