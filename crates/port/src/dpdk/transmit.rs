//! The transmit queue of a DPDK port: mbufs in order, handed to the device in bursts.
//!
//! A registered frame has a pool of its own, and each of its mbufs was written once. The device
//! gives an mbuf back to its pool after sending; nobody else writes into it, so it is ready again:
//! to be repeated as it is, or with some bytes written anew.

use std::sync::Arc;

use allosaur_packet::offload::TxChecksumOffload;
use allosaur_packet::shared_payload::SharedPayload;

use super::device::Device;
use super::eal;
use super::ffi;
use super::ffi::{ChecksumOffload, HEADROOM_BYTES, Mbuf};
use super::pool::{self, MbufCache, Pool};
use super::rings::RingGauge;
use super::short::{SHORT_BYTES_MAX, ShortTx};
use crate::buffers::Gauge;
use crate::{FrameId, TxQueue, copy_payload};

/// Mbufs that are handed to the device at once, at most.
const BURST: usize = 64;
/// The same while frames are written: those of two queues stay in the first cache of a core.
const WRITTEN_BURST: usize = 32;
/// Frames of a queue that have a pool of their own; the engine writes the others each time. A pool
/// takes 2 MiB and its frames; making one takes about a millisecond.
pub const FRAMES_MAX: usize = 8;

/// A transmit queue of a DPDK port.
#[derive(Debug)]
pub struct DpdkTx {
    /// Written, in order, and not taken by the device yet: the first `pending_mbufs`.
    pending: Box<[*mut Mbuf; BURST]>,
    pending_mbufs: usize,
    /// For slots.
    empty: MbufCache,
    frame_bytes_max: usize,
    queue: u16,
    pool: Arc<Pool>,
    frames: Vec<Registered>,
    /// For short slots, and those that share a payload, where the device is an end of rings.
    short: Option<ShortTx>,
    device: Arc<Device>,
}

/// A frame with its pool, or a pool that waits for another frame.
#[derive(Debug)]
struct Registered {
    pool: Pool,
    /// For those that are sent with some bytes changed.
    cache: MbufCache,
    bytes: Vec<u8>,
    is_in_use: bool,
}

// SAFETY: the mbufs behind the pointers are this queue's alone until it hands them to the device;
// no other thread knows them.
unsafe impl Send for DpdkTx {}

impl DpdkTx {
    /// The queue of a device that runs for the thread of this number; `None` when there is no memory
    /// for it.
    pub(super) fn new(device: Arc<Device>, thread: usize) -> Option<DpdkTx> {
        let frame_bytes_max = device.frame_bytes_max();
        let is_private = !device.is_ring;
        let (mbufs, socket) = (device.tx_mbufs(), device.socket());
        let mut pool = Pool::new(mbufs, frame_bytes_max, socket, is_private)?;
        // From now on only the length and the bytes of an mbuf change.
        pool.stamp(&[], None);
        let pool = Arc::new(pool);
        if let Some(end) = &device.ring_end {
            end.rings.keep(Arc::clone(&pool));
        }
        let short = match &device.ring_end {
            // Who shares a ring with others cannot tell its own frames from theirs.
            Some(_) if !device.has_shared_queues() => Some(ShortTx::new(&device)?),
            _ => None,
        };
        Some(DpdkTx {
            pending: Box::new([std::ptr::null_mut(); BURST]),
            pending_mbufs: 0,
            empty: MbufCache::new(),
            frame_bytes_max,
            queue: device.tx_queue(thread),
            pool,
            frames: Vec::new(),
            short,
            device,
        })
    }

    /// The longest frame, in bytes without FCS.
    pub fn frame_bytes_max(&self) -> usize {
        self.frame_bytes_max
    }

    /// Its room, for others to look at.
    pub(crate) fn gauge(&self) -> Arc<dyn Gauge> {
        match &self.device.ring_end {
            None => Arc::<Pool>::clone(&self.pool),
            Some(end) => Arc::new(RingGauge {
                rings: Arc::clone(&end.rings),
                port: end.port,
                queue: self.queue,
            }),
        }
    }

    /// Hands to the device what is pending. Returns whether there is room for more.
    fn push(&mut self) -> bool {
        let (first, count) = (self.pending.as_mut_ptr(), self.pending_mbufs);
        let held = self.device.hold(self.queue);
        // SAFETY: the device runs and has this queue, which only this thread uses, or only one at a
        // time; the first `count` mbufs are ours, and those that the device takes are forgotten
        // below.
        let taken = unsafe {
            ffi::allosaur_dpdk_tx_burst(self.device.port, self.queue, first, count as u16)
        };
        drop(held);
        let taken = usize::from(taken);
        if taken < count {
            self.pending.copy_within(taken..count, 0);
        }
        self.pending_mbufs = count - taken;
        self.pending_mbufs < BURST
    }

    /// Sees to it that there is a place in the burst and an empty mbuf for it.
    #[inline]
    fn make_room(&mut self) -> bool {
        (self.pending_mbufs < WRITTEN_BURST || self.push())
            && (!self.empty.is_empty() || self.refill())
    }

    /// Whether a frame of so many bytes goes into a short mbuf.
    #[inline(always)]
    fn is_short(&self, len: usize) -> bool {
        self.short.is_some() && len <= SHORT_BYTES_MAX
    }

    /// What writes into short mbufs, where there is a place in the burst and a free one.
    #[inline(always)]
    fn short(&mut self) -> Option<&mut ShortTx> {
        let is_full = self.pending_mbufs >= WRITTEN_BURST && !self.push();
        let (short, end) = (self.short.as_mut()?, self.device.ring_end.as_ref()?);
        (!is_full && short.has_room(end, self.queue)).then_some(short)
    }

    /// A slot in a short mbuf. Not in the loops that write streams, which other devices run, too.
    #[inline(never)]
    fn short_slot(&mut self, len: usize) -> Option<&mut [u8]> {
        let mbuf = self.short()?.whole(len);
        Some(self.append_short(mbuf, len))
    }

    /// Puts a short mbuf into the burst, where there is room for it. Gives its bytes, which are old.
    #[inline(always)]
    fn append_short(&mut self, mbuf: *mut Mbuf, len: usize) -> &mut [u8] {
        self.pending[self.pending_mbufs] = mbuf;
        self.pending_mbufs += 1;
        // SAFETY: as in `append`; `ShortTx` has mbufs with room for `SHORT_BYTES_MAX`.
        unsafe {
            let data = (*mbuf).buf_addr.add(HEADROOM_BYTES);
            std::slice::from_raw_parts_mut(data, len)
        }
    }

    #[inline(never)]
    fn refill(&mut self) -> bool {
        eal::join();
        self.empty.fill(&self.pool);
        if self.empty.is_empty() {
            // Devices look only now and then for what they have sent.
            self.push();
            self.empty.fill(&self.pool);
        }
        !self.empty.is_empty()
    }

    /// The next mbuf of a registered frame.
    #[inline(always)]
    fn kept(&mut self, number: usize) -> Option<*mut Mbuf> {
        let kept = &mut self.frames[number];
        match kept.cache.pop() {
            Some(mbuf) => Some(mbuf),
            None => self.refill_kept(number),
        }
    }

    #[inline(never)]
    fn refill_kept(&mut self, number: usize) -> Option<*mut Mbuf> {
        eal::join();
        let kept = &mut self.frames[number];
        kept.cache.fill(&kept.pool);
        if kept.cache.is_empty() {
            // As above.
            self.push();
            let kept = &mut self.frames[number];
            kept.cache.fill(&kept.pool);
        }
        self.frames[number].cache.pop()
    }

    /// Puts an mbuf into the burst, where there is room for it, with a frame of `len` bytes. Gives
    /// the bytes, which are those that the mbuf had.
    #[inline(always)]
    fn append(&mut self, mbuf: *mut Mbuf, len: usize) -> &mut [u8] {
        self.pending[self.pending_mbufs] = mbuf;
        self.pending_mbufs += 1;
        // SAFETY: the mbuf was taken from a pool of this queue, so it is ours until it is handed to
        // the device, which only a later call with `&mut self` does. Its data begins behind the
        // headroom, and there is room for `len` bytes, which callers see to; they are from memory
        // that the system cleared or that held frames before.
        unsafe {
            (*mbuf).pkt_len = len as u32;
            (*mbuf).data_len = len as u16;
            let data = (*mbuf).buf_addr.add(HEADROOM_BYTES);
            std::slice::from_raw_parts_mut(data, len)
        }
    }

    fn check_length(&self, len: usize) {
        assert!(len <= self.frame_bytes_max, "frame too long for a port");
    }

    /// Gives a frame a pool of its own, with what the device shall do.
    fn keep(&mut self, frame: &[u8], offload: Option<&ChecksumOffload>) -> Option<FrameId> {
        self.check_length(frame.len());
        let is_free = |old: &Registered| {
            !old.is_in_use && old.pool.frame_bytes_max >= frame.len() && old.pool.is_whole()
        };
        let number = match self.frames.iter().position(is_free) {
            Some(number) => number,
            None if self.frames.len() == FRAMES_MAX => return None,
            None => {
                let (socket, is_private) = (self.device.socket(), !self.device.is_ring);
                let pool = Pool::new(self.device.tx_mbufs(), frame.len(), socket, is_private)?;
                self.frames.push(Registered {
                    pool,
                    cache: MbufCache::new(),
                    bytes: Vec::new(),
                    is_in_use: false,
                });
                self.frames.len() - 1
            }
        };
        let registered = &mut self.frames[number];
        registered.pool.stamp(frame, offload);
        frame.clone_into(&mut registered.bytes);
        registered.is_in_use = true;
        Some(FrameId(number as u32))
    }

    fn registered(&self, frame: FrameId) -> &Registered {
        let registered = self.frames.get(frame.0 as usize).filter(|f| f.is_in_use);
        registered.expect("a frame is used only while it is registered")
    }
}

impl TxQueue for DpdkTx {
    const REUSES: bool = true;

    #[inline(always)]
    fn slot(&mut self, _now_ns: u64, len: usize) -> Option<&mut [u8]> {
        self.check_length(len);
        if self.is_short(len) {
            return self.short_slot(len);
        }
        if !self.make_room() {
            return None;
        }
        let mbuf = self.empty.pop()?;
        Some(self.append(mbuf, len))
    }

    fn has_room(&mut self, _now_ns: u64, len: usize) -> bool {
        self.check_length(len);
        match self.is_short(len) {
            true => self.short().is_some(),
            false => self.make_room(),
        }
    }

    #[inline(always)]
    fn slot_sharing(
        &mut self,
        now_ns: u64,
        head_bytes: usize,
        payload: SharedPayload<'_>,
    ) -> Option<&mut [u8]> {
        self.check_length(head_bytes + payload.len);
        let keep = |short: &mut ShortTx| short.keep(&payload);
        if head_bytes > SHORT_BYTES_MAX || !self.short.as_mut().is_some_and(keep) {
            return copy_payload(self, now_ns, head_bytes, payload);
        }
        let mbuf = self.short()?.split(head_bytes, &payload);
        Some(self.append_short(mbuf, head_bytes))
    }

    fn forget_payloads(&mut self) {
        if let Some(short) = &mut self.short {
            short.let_go();
        }
    }

    #[inline(always)]
    fn reuse(&mut self, _now_ns: u64, frame: FrameId, len: usize) -> Option<&mut [u8]> {
        let kept = self.registered(frame);
        assert!(len <= kept.bytes.len(), "a frame is as long as registered");
        if self.pending_mbufs >= WRITTEN_BURST && !self.push() {
            return None;
        }
        let mbuf = self.kept(frame.0 as usize)?;
        Some(self.append(mbuf, len))
    }

    #[inline]
    fn repeat(&mut self, _now_ns: u64, frame: FrameId, count: u32) -> u32 {
        let number = frame.0 as usize;
        self.registered(frame);
        let mut left = count as usize;
        while left > 0 && (self.pending_mbufs < BURST || self.push()) {
            let place = self.pending_mbufs..BURST.min(self.pending_mbufs + left);
            eal::join();
            let pool = &self.frames[number].pool;
            let mut found = pool.take(&mut self.pending[place.clone()]);
            if found == 0 {
                // Devices look only now and then for what they have sent.
                self.push();
                let place = self.pending_mbufs..BURST.min(self.pending_mbufs + left);
                let pool = &self.frames[number].pool;
                found = pool.take(&mut self.pending[place]);
            }
            if found == 0 {
                break;
            }
            self.pending_mbufs += found;
            left -= found;
        }
        count - left as u32
    }

    fn register(&mut self, frame: &[u8]) -> Option<FrameId> {
        self.keep(frame, None)
    }

    fn register_offloaded(&mut self, frame: &[u8], offload: &TxChecksumOffload) -> Option<FrameId> {
        let offload = self.device.leave(offload)?;
        self.keep(frame, Some(&offload))
    }

    fn unregister(&mut self, frame: FrameId) {
        if let Some(registered) = self.frames.get_mut(frame.0 as usize) {
            registered.cache.clear();
            registered.is_in_use = false;
        }
    }

    fn copy_registered(&self, frame: FrameId, copy: &mut Vec<u8>) {
        self.registered(frame).bytes.clone_into(copy);
    }

    #[inline]
    fn flush(&mut self) {
        if self.pending_mbufs > 0 {
            self.push();
        }
        if let (Some(short), Some(end)) = (&mut self.short, &self.device.ring_end) {
            short.free_payloads(end, self.queue);
        }
    }

    fn has_unsent(&self) -> bool {
        self.pending_mbufs > 0
    }
}

impl Drop for DpdkTx {
    fn drop(&mut self) {
        pool::put_received(&mut self.pending[..self.pending_mbufs]);
        self.empty.clear();
        self.frames.iter_mut().for_each(|f| f.cache.clear());
        if let Some(end) = &self.device.ring_end {
            if let Some(short) = &mut self.short {
                short.close(end);
            }
            let pools = self.frames.drain(..).map(|frame| Arc::new(frame.pool));
            pools.for_each(|pool| end.rings.keep(pool));
        }
    }
}
