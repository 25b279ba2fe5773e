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
use super::pool::{self, Pool};

/// Mbufs that a ring holds: what 64 connections answer to requests that arrive together, 32 KB each.
/// DPDK makes it a power of two, and one less of it is used.
pub(super) const RING_MBUFS: u32 = 2048;
/// Receive queues that a port of net_ring has at most, and transmit queues.
pub(super) const RINGS_MAX: usize = 16;

/// The rings between two ports.
#[derive(Debug)]
pub(super) struct Rings {
    /// Those that each port sends into.
    from: [Vec<NonNull<ffi::Ring>>; 2],
    /// Whose mbufs may be in them.
    pools: Mutex<Vec<Arc<Pool>>>,
}

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
            pools: Mutex::default(),
        };
        for (port, queues) in tx_queues.into_iter().enumerate() {
            for _ in 0..queues {
                rings.from[port].push(ring()?);
            }
        }
        Some(rings)
    }

    /// Makes the device of one of the ports, 0 or 1. Returns whether DPDK did.
    pub(super) fn make_device(&self, port: usize, name: &CString) -> bool {
        let pointers = |rings: &[NonNull<ffi::Ring>]| -> Vec<_> {
            rings.iter().map(|ring| ring.as_ptr()).collect()
        };
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
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        pools.push(pool);
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
                let count = unsafe { ffi::allosaur_dpdk_dequeue(ring.as_ptr(), first, room) };
                if count == 0 {
                    break;
                }
                pool::free(&mut mbufs[..count as usize]);
            }
            // SAFETY: as above; the ring is empty and forgotten.
            unsafe { ffi::rte_ring_free(ring.as_ptr()) };
        }
        let pools = self.pools.get_mut().unwrap_or_else(PoisonError::into_inner);
        // All queues are gone with the devices that they hold, and what was in the rings is back.
        let pools = pools.iter_mut().filter_map(Arc::get_mut);
        pools.for_each(Pool::make_private);
    }
}
