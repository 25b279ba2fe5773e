//! The receive queue of a DPDK port.

use std::sync::Arc;

use allosaur_packet::shared_payload::SplitFrame;

use super::device::Device;
use super::eal;
use super::ffi;
use super::ffi::Mbuf;
use super::pool;
use super::short::second_of;
use crate::RxQueue;
use crate::memory::FRAME_BYTES_MAX;

/// Mbufs that are taken from the device at once.
const BURST: usize = 32;
/// How often the device is asked what it lost.
const STATISTICS_NS: u64 = 100_000_000;
/// How long the device may be left alone: nobody tells when a frame arrives, and at 1 Mpps it holds
/// what comes in a millisecond.
const ALONE_NS_MAX: u64 = 1_000_000;

/// The receive queue of a DPDK port.
#[derive(Debug)]
pub struct DpdkRx {
    mbufs: Box<[*mut Mbuf; BURST]>,
    /// Where a frame that lies in several mbufs is put together.
    whole: Vec<u8>,
    /// The same of frames whose payload is apart, for who wants them whole.
    scratch: Vec<u8>,
    lost_here: u64,
    lost_packets: u64,
    statistics_at_ns: u64,
    polled_at_ns: u64,
    /// Which reader of the device it is.
    reader: u16,
    /// Which of its queues is read first: they take turns.
    first: u16,
    device: Arc<Device>,
}

// SAFETY: between calls the queue holds no mbufs; within one they are this thread's alone.
unsafe impl Send for DpdkRx {}

impl DpdkRx {
    /// Those of a device that runs: one for each of its readers.
    pub(super) fn all(device: &Arc<Device>) -> Vec<DpdkRx> {
        let readers = 0..device.readers;
        let all = readers.map(|reader| DpdkRx::new(Arc::clone(device), reader));
        all.collect()
    }

    fn new(device: Arc<Device>, reader: u16) -> DpdkRx {
        DpdkRx {
            mbufs: Box::new([std::ptr::null_mut(); BURST]),
            whole: vec![0; FRAME_BYTES_MAX],
            scratch: Vec::new(),
            lost_here: 0,
            lost_packets: 0,
            statistics_at_ns: 0,
            polled_at_ns: 0,
            reader,
            first: 0,
            device,
        }
    }

    /// Frames that arrived and are lost, as the device counts them (told once, by who reads its first
    /// queue), and those that are longer than any port takes. Up to 0.1 s old.
    pub fn lost_packets(&self) -> u64 {
        self.lost_packets
    }

    /// When the device should be looked after again.
    pub fn next_look_ns(&self) -> u64 {
        self.polled_at_ns + ALONE_NS_MAX
    }

    /// Its queues, each time from another one on, so that one that is always full holds up no other.
    #[inline]
    fn turns(&mut self) -> impl Iterator<Item = u16> + use<> {
        let (reader, readers) = (self.reader, self.device.readers);
        let count = (self.device.rx_queues - reader).div_ceil(readers);
        let first = self.first;
        self.first = if first + 1 < count { first + 1 } else { 0 };
        let turns = (first..count).chain(0..first);
        turns.map(move |turn| reader + turn * readers)
    }

    fn ask_for_losses(&mut self, now_ns: u64) {
        if now_ns >= self.statistics_at_ns {
            self.statistics_at_ns = now_ns + STATISTICS_NS;
            let by_device = match self.reader {
                0 => self.device.lost_packets(),
                _ => 0,
            };
            let lost = by_device + self.lost_here;
            self.lost_packets = self.lost_packets.max(lost);
        }
    }

    /// Hands a burst of one queue to `each`, as far as frames lie in one mbuf each, or in two between ends
    /// of rings. Returns how many frames there were.
    fn receive_burst(
        &mut self,
        queue: u16,
        most: usize,
        each: &mut impl FnMut(&[SplitFrame<'_>]),
    ) -> usize {
        let is_ring_end = self.device.ring_end.is_some();
        let first = self.mbufs.as_mut_ptr();
        let most = most.min(BURST) as u16;
        // SAFETY: the device runs and has this queue, which only this thread uses; there is room
        // for as many pointers.
        let count = unsafe {
            match is_ring_end {
                false => ffi::allosaur_dpdk_rx_burst(self.device.port, queue, first, most),
                true => ffi::allosaur_dpdk_rx_ring_burst(self.device.port, queue, first, most),
            }
        };
        let count = usize::from(count);
        let at_ns = self.polled_at_ns;
        let mut frames = [SplitFrame::default(); BURST];
        let mut waiting = 0;
        for &mbuf in &self.mbufs[..count] {
            // SAFETY: the mbuf is ours until it is freed below. A frame in one piece begins at
            // `data_off` and has `data_len` bytes.
            let (pieces, bytes) = unsafe {
                let Mbuf {
                    buf_addr,
                    data_off,
                    nb_segs,
                    data_len,
                    ..
                } = *mbuf;
                let start = buf_addr.add(usize::from(data_off));
                let bytes = std::slice::from_raw_parts(start, usize::from(data_len));
                (nb_segs, bytes)
            };
            if pieces == 1 && !bytes.is_empty() {
                frames[waiting] = SplitFrame::whole(at_ns, bytes);
                waiting += 1;
                continue;
            }
            if pieces == 2 && is_ring_end {
                // SAFETY: as above; only `ShortTx` sends two to an end of rings.
                frames[waiting] = unsafe { split(mbuf, bytes, at_ns) };
                waiting += 1;
                continue;
            }
            // There is one place to put pieces together.
            if waiting > 0 {
                each(&frames[..waiting]);
                waiting = 0;
            }
            let whole = &mut self.whole[..];
            // SAFETY: as above; the shim copies all pieces, up to the room that it is told.
            let len =
                unsafe { ffi::allosaur_dpdk_gather(mbuf, whole.as_mut_ptr(), whole.len() as u32) };
            match &whole[..len as usize] {
                [] => self.lost_here += 1,
                bytes => each(&[SplitFrame::whole(at_ns, bytes)]),
            }
        }
        if waiting > 0 {
            each(&frames[..waiting]);
        }
        let arrived = &mut self.mbufs[..count];
        match &self.device.ring_end {
            None => pool::free(arrived),
            Some(end) => {
                let kept = pool::put_received(arrived);
                end.rings.note_received(1 - end.port, queue, kept);
            }
        }
        count
    }
}

/// The frame of two mbufs whose first has `head`.
///
/// # Safety
///
/// `ShortTx` sent it, and it was not counted as received.
#[inline(always)]
unsafe fn split(mbuf: *mut Mbuf, head: &[u8], at_ns: u64) -> SplitFrame<'_> {
    // SAFETY: the second mbuf has the payload, which the sender keeps and nobody writes until the frame is
    // counted, and its sum.
    unsafe {
        let payload = &*second_of(mbuf);
        let start = payload.buf_addr.add(usize::from(payload.data_off));
        SplitFrame {
            at_ns,
            head,
            payload: std::slice::from_raw_parts(start, usize::from(payload.data_len)),
            payload_sum: payload.user as u16,
        }
    }
}

impl RxQueue for DpdkRx {
    fn receive(&mut self, now_ns: u64, budget: usize, mut each: impl FnMut(u64, &[u8])) -> usize {
        let mut scratch = std::mem::take(&mut self.scratch);
        let taken = self.receive_split(now_ns, budget, |frames| {
            for frame in frames {
                each(frame.at_ns, frame.bytes(&mut scratch));
            }
        });
        self.scratch = scratch;
        taken
    }

    fn receive_split(
        &mut self,
        now_ns: u64,
        budget: usize,
        mut each: impl FnMut(&[SplitFrame<'_>]),
    ) -> usize {
        eal::join();
        self.polled_at_ns = now_ns;
        self.ask_for_losses(now_ns);
        let mut taken = 0;
        let mut hand_over = |frames: &[SplitFrame<'_>]| {
            each(frames);
            taken += frames.len();
        };
        let mut left = budget;
        for queue in self.turns() {
            while left > 0 {
                let most = left.min(BURST);
                let count = self.receive_burst(queue, most, &mut hand_over);
                left -= count;
                if count < most {
                    break;
                }
            }
        }
        taken
    }
}
