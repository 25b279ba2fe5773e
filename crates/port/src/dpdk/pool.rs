//! Pools of mbufs, the buffers that DPDK's devices take and give back.
//!
//! A pool is used again or freed only when all its mbufs are back, and only where nobody but the
//! thread that sends brings them back: else it is left to the end of the process, because a ring
//! between two ports, or who reads it, may still hold some.

use std::ffi::CString;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use super::ffi;
use super::ffi::{ChecksumOffload, HEADROOM_BYTES, KEPT_BY_SENDER, MBUF_BYTES, Mbuf, Mempool};
use crate::buffers::{BufferSpace, Gauge};

/// Mbufs that a thread keeps at hand, of each pool. DPDK allows 512.
const CACHE_MBUFS: u32 = 256;
/// Mbufs that are taken out of a pool at once to be written.
const FILL: usize = 16;

/// A pool. Mbufs may come back from any thread.
#[derive(Debug)]
pub(super) struct Pool {
    pool: NonNull<Mempool>,
    mbufs: u32,
    /// Whether mbufs come back by the thread that takes them, and no other.
    is_private: bool,
    /// The longest frame in an mbuf.
    pub(super) frame_bytes_max: usize,
}

// SAFETY: DPDK's pools are made to be used by many threads at once.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

impl Pool {
    /// A pool of so many mbufs for frames of up to `frame_bytes_max` bytes, in the memory of a
    /// NUMA node, or any (-1); `None` when DPDK has no memory for it. Its mbufs come back by the
    /// thread that takes them, and by no other, if it `is_private`.
    pub(super) fn new(
        mbufs: u32,
        frame_bytes_max: usize,
        socket: i32,
        is_private: bool,
    ) -> Option<Pool> {
        let pool = create(mbufs, 0, frame_bytes_max, socket)?;
        Some(Pool {
            pool,
            mbufs,
            is_private,
            frame_bytes_max,
        })
    }

    /// A pool of mbufs for frames of up to `frame_bytes_max` bytes, each of which has another behind it that
    /// refers to bytes elsewhere. Who sends keeps them, see `short`.
    pub(super) fn of_pairs(mbufs: u32, frame_bytes_max: usize, socket: i32) -> Option<Pool> {
        let pool = create(mbufs, MBUF_BYTES as u16, frame_bytes_max, socket)?;
        // SAFETY: all mbufs are in the pool, and each has a private area that holds another.
        unsafe { ffi::allosaur_dpdk_stamp_pairs(pool.as_ptr()) };
        Some(Pool {
            pool,
            mbufs,
            is_private: false,
            frame_bytes_max,
        })
    }

    /// Fills `mbufs` from the front, as far as there are any. Returns how many. All their fields are
    /// as they were stamped, but for the length and bytes that who took them last wrote.
    pub(super) fn take(&self, mbufs: &mut [*mut Mbuf]) -> usize {
        let take_all = |mbufs: &mut [*mut Mbuf]| {
            // SAFETY: the pool lives as long as `self`; as many pointers are written as there is room.
            unsafe {
                let room = mbufs.as_mut_ptr();
                ffi::allosaur_dpdk_take(self.pool.as_ptr(), room, mbufs.len() as u16) == 0
            }
        };
        if take_all(mbufs) {
            return mbufs.len();
        }
        // DPDK gives all or none. It happens only when a device holds nearly all of the pool.
        (0..mbufs.len())
            .find(|n| !take_all(&mut mbufs[*n..=*n]))
            .unwrap_or(mbufs.len())
    }

    /// Whether surely nobody holds an mbuf. While other threads bring mbufs back they cannot be
    /// counted, so of a pool that is not private it is never sure.
    pub(super) fn is_whole(&self) -> bool {
        // SAFETY: the pool lives as long as `self`.
        let count = || unsafe { ffi::rte_mempool_avail_count(self.pool.as_ptr()) };
        self.is_private && count() == self.mbufs
    }

    /// Nobody but the thread that has it will bring mbufs back from now on.
    pub(super) fn make_private(&mut self) {
        self.is_private = true;
    }

    /// Writes a frame into every mbuf of a pool that was never used, or that
    /// [is whole](Pool::is_whole), and the checksums that are left to the device.
    ///
    /// # Panics
    ///
    /// When the frame is longer than the pool's mbufs.
    pub(super) fn stamp(&mut self, frame: &[u8], offload: Option<&ChecksumOffload>) {
        assert!(frame.len() <= self.frame_bytes_max, "the frame fits");
        // SAFETY: see `is_whole`; nobody took an mbuf of a new pool.
        let free = unsafe { ffi::rte_mempool_avail_count(self.pool.as_ptr()) };
        assert!(
            free == self.mbufs,
            "a pool is stamped when all its mbufs are free"
        );
        // SAFETY: all mbufs are in the pool, so nobody reads or writes them, and each has room for
        // `frame_bytes_max` bytes behind its headroom.
        unsafe {
            let offload = offload.map_or(std::ptr::null(), std::ptr::from_ref);
            let (bytes, length) = (frame.as_ptr(), frame.len() as u16);
            ffi::allosaur_dpdk_stamp(self.pool.as_ptr(), bytes, length, offload);
        }
    }

    /// For the setup of a receive queue, which takes mbufs as long as its device runs.
    pub(super) fn as_ptr(&self) -> *mut Mempool {
        self.pool.as_ptr()
    }
}

/// A pool of DPDK's, with so many bytes of its user's behind each mbuf.
fn create(
    mbufs: u32,
    private_bytes: u16,
    frame_bytes_max: usize,
    socket: i32,
) -> Option<NonNull<Mempool>> {
    // DPDK wants a name that no other pool of the process has.
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let name = format!("allosaur{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let name = CString::new(name).expect("letters and digits");
    let room = u16::try_from(HEADROOM_BYTES + frame_bytes_max).ok()?;
    // As DPDK allows.
    let cache = CACHE_MBUFS.min(mbufs * 2 / 3);
    // SAFETY: DPDK was started before there was a device to make pools for; the name ends with
    // a zero and is copied.
    NonNull::new(unsafe {
        ffi::rte_pktmbuf_pool_create(name.as_ptr(), mbufs, cache, private_bytes, room, socket)
    })
}

impl Gauge for Pool {
    /// How many of its mbufs are free, and how many there are; each holds any frame of the port. While
    /// threads take some and bring them back, the count may be off by those.
    fn space(&self, _frame_bytes: usize) -> BufferSpace {
        // SAFETY: the pool lives as long as `self`, and DPDK's pools may be asked from any thread.
        let free = unsafe { ffi::rte_mempool_avail_count(self.pool.as_ptr()) };
        BufferSpace {
            free: free.min(self.mbufs).into(),
            total: self.mbufs.into(),
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if self.is_whole() {
            // SAFETY: nobody holds an mbuf of the pool, and nobody can take one any more.
            unsafe { ffi::rte_mempool_free(self.pool.as_ptr()) };
        }
    }
}

/// Mbufs of one pool that were taken out of it and not used yet.
#[derive(Debug)]
pub(super) struct MbufCache {
    /// The first `count`.
    mbufs: [*mut Mbuf; FILL],
    count: usize,
}

impl MbufCache {
    pub(super) fn new() -> MbufCache {
        MbufCache {
            mbufs: [std::ptr::null_mut(); FILL],
            count: 0,
        }
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<*mut Mbuf> {
        self.count = self.count.checked_sub(1)?;
        Some(self.mbufs[self.count])
    }

    /// Takes what `pool` has, up to a burst. Only an empty hand is filled.
    pub(super) fn fill(&mut self, pool: &Pool) {
        self.count = pool.take(&mut self.mbufs[..]);
    }

    /// Gives all back.
    pub(super) fn clear(&mut self) {
        put(&mut self.mbufs[..self.count]);
        self.count = 0;
    }
}

/// Gives mbufs back to the pools that they are from.
pub(super) fn free(mbufs: &mut [*mut Mbuf]) {
    // SAFETY: callers own these mbufs, and forget them with this call.
    unsafe { ffi::rte_pktmbuf_free_bulk(mbufs.as_mut_ptr(), mbufs.len() as u32) };
}

/// Gives mbufs back to their pools as they are: those that were not sent, or that rings passed on.
pub(super) fn put(mbufs: &mut [*mut Mbuf]) {
    // SAFETY: as above. Nobody else holds one, since rings pass mbufs on as they are.
    unsafe { ffi::allosaur_dpdk_put(mbufs.as_mut_ptr(), mbufs.len() as u32) };
}

/// The same of what came out of a ring, but for those that their sender keeps. Returns how many these are.
pub(super) fn put_received(mbufs: &mut [*mut Mbuf]) -> u64 {
    let mut others = 0;
    for place in 0..mbufs.len() {
        let mbuf = mbufs[place];
        // SAFETY: the mbuf came out of a ring, and its sender writes it only when it was counted.
        if unsafe { (*mbuf).user } != KEPT_BY_SENDER {
            mbufs[others] = mbuf;
            others += 1;
        }
    }
    let kept = mbufs.len() - others;
    if others > 0 {
        put(&mut mbufs[..others]);
    }
    kept as u64
}
