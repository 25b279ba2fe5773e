//! The receive queue of an AF_XDP port: one or more of the interface's hardware queues.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use allosaur_packet::shared_payload::SplitFrame;
use libc::xdp_desc;

use super::attachment::Attachment;
use super::checksum;
use super::mapping::Chunks;
use super::ring::{Consumer, Producer};
use super::socket::XdpSocket;
use crate::RxQueue;

/// Frames that are handed over together at most.
const BURST: usize = 32;
/// How often the kernel is asked what it dropped.
const STATISTICS_NS: u64 = 100_000_000;

/// The socket of a hardware queue that receives, and its rings.
#[derive(Debug)]
pub(super) struct HardwareQueue {
    socket: XdpSocket,
    rings: ReceiveRings,
    lost_packets: u64,
}

/// The rings of a hardware queue that receives, before its socket is bound.
#[derive(Debug)]
pub(super) struct ReceiveRings {
    ring: Consumer<xdp_desc>,
    fill: Producer<u64>,
    chunks: Chunks,
}

impl ReceiveRings {
    /// The queue of the socket whose rings these are.
    pub(super) fn on(self, socket: XdpSocket) -> HardwareQueue {
        HardwareQueue {
            socket,
            rings: self,
            lost_packets: 0,
        }
    }

    /// Gives all chunks to the kernel; the fill ring has room for them.
    pub(super) fn new(
        ring: Consumer<xdp_desc>,
        mut fill: Producer<u64>,
        chunks: Chunks,
    ) -> ReceiveRings {
        assert!(fill.has_room(chunks.count() as u32), "room for all chunks");
        for chunk in 0..chunks.count() {
            fill.push(chunks.address(chunk));
        }
        fill.publish();
        ReceiveRings { ring, fill, chunks }
    }

    /// Hands up to `budget` frames to `each`, in bursts. Returns how many there were.
    fn receive(
        &mut self,
        at_ns: u64,
        budget: u32,
        needs_checksums: bool,
        mut each: impl FnMut(&[SplitFrame<'_>]),
    ) -> u32 {
        let count = self.ring.waiting().min(budget);
        if count == 0 {
            return 0;
        }
        let has_room = self.fill.has_room(count);
        debug_assert!(has_room, "the kernel holds less than all chunks");
        let mut left = count;
        while left > 0 {
            let burst = left.min(BURST as u32);
            left -= burst;
            let mut arrived = [(0, 0); BURST];
            for place in &mut arrived[..burst as usize] {
                let frame = self.ring.pop();
                let (address, len) = (frame.addr, frame.len as usize);
                if let (true, Some(bytes)) =
                    (needs_checksums, self.chunks.received_mut(address, len))
                {
                    checksum::complete(bytes);
                }
                *place = (address, len);
            }
            self.hand_over(at_ns, &arrived[..burst as usize], &mut each);
        }
        self.ring.release();
        self.fill.publish();
        count
    }

    /// Hands a burst to `each`, by the addresses and lengths of its frames, and their chunks back to
    /// the kernel when they are published.
    fn hand_over(
        &mut self,
        at_ns: u64,
        arrived: &[(u64, usize)],
        each: &mut impl FnMut(&[SplitFrame<'_>]),
    ) {
        let mut frames = [SplitFrame::default(); BURST];
        let mut whole = 0;
        for &(address, len) in arrived {
            // The kernel hands out only what it was given.
            let Some(bytes) = self.chunks.received(address, len) else {
                continue;
            };
            frames[whole] = SplitFrame::whole(at_ns, bytes);
            whole += 1;
            let chunk = self.chunks.chunk_at(address);
            self.fill.push(self.chunks.address(chunk));
        }
        if whole > 0 {
            each(&frames[..whole]);
        }
    }
}

impl HardwareQueue {
    /// Lets frames that arrive on hardware queue `number` come here.
    pub(super) fn start(
        &self,
        number: u32,
        busy_poll: bool,
        attachment: &Attachment,
    ) -> io::Result<()> {
        if busy_poll {
            self.socket.prefer_busy_poll()?;
        }
        attachment.hand_to(number, self.socket.as_fd())
    }

    /// Wakes the driver, where it must be: for chunks, or to look for frames.
    fn wake(&self, always: bool) {
        if always || self.rings.fill.needs_wakeup() {
            // It may have nothing to do (EAGAIN), or the interface is down: the next time tells.
            drop(self.socket.wake_receiver());
        }
    }
}

/// A receive queue of an AF_XDP port.
#[derive(Debug)]
pub struct AfXdpRx {
    queues: Vec<HardwareQueue>,
    /// The queue that is looked at first the next time.
    first: usize,
    /// What becomes readable when one of several sockets does.
    gathered: Option<OwnedFd>,
    statistics_at_ns: u64,
    /// What other senders of this machine leave to hardware that there is not.
    needs_checksums: bool,
    busy_poll: bool,
    /// Keeps the program on the interface.
    _attachment: Arc<Attachment>,
}

impl AfXdpRx {
    /// One that reads so many hardware queues.
    pub(super) fn new(
        queues: Vec<HardwareQueue>,
        attachment: Arc<Attachment>,
        needs_checksums: bool,
        busy_poll: bool,
    ) -> io::Result<AfXdpRx> {
        assert!(!queues.is_empty(), "there is something to read");
        let gathered = match queues.len() {
            1 => None,
            _ => Some(gather(queues.iter().map(|queue| queue.socket.as_fd()))?),
        };
        Ok(AfXdpRx {
            queues,
            first: 0,
            gathered,
            statistics_at_ns: 0,
            needs_checksums,
            busy_poll,
            _attachment: attachment,
        })
    }

    /// Frames that arrived and are lost: no chunk was free, the ring was full, or the frame was too
    /// long. Up to 0.1 s old.
    pub fn lost_packets(&self) -> u64 {
        self.queues.iter().map(|queue| queue.lost_packets).sum()
    }

    fn ask_kernel(&mut self, now_ns: u64) {
        if now_ns < self.statistics_at_ns {
            return;
        }
        self.statistics_at_ns = now_ns + STATISTICS_NS;
        for queue in &mut self.queues {
            // It cannot fail while the socket is open; if it does, the next time tells.
            if let Ok(lost) = queue.socket.lost_packets() {
                queue.lost_packets = lost;
            }
        }
    }
}

impl RxQueue for AfXdpRx {
    fn receive(&mut self, now_ns: u64, budget: usize, mut each: impl FnMut(u64, &[u8])) -> usize {
        self.receive_split(now_ns, budget, |frames| {
            for frame in frames {
                each(frame.at_ns, frame.head);
            }
        })
    }

    /// None is apart.
    fn receive_split(
        &mut self,
        now_ns: u64,
        budget: usize,
        mut each: impl FnMut(&[SplitFrame<'_>]),
    ) -> usize {
        self.ask_kernel(now_ns);
        let mut left = budget.min(u32::MAX as usize) as u32;
        let total = left;
        let count = self.queues.len();
        for turn in 0..count {
            let queue = &mut self.queues[(self.first + turn) % count];
            let rings = &mut queue.rings;
            left -= rings.receive(now_ns, left, self.needs_checksums, &mut each);
            queue.wake(self.busy_poll);
            if left == 0 {
                self.first = (self.first + turn) % count;
                break;
            }
        }
        (total - left) as usize
    }
}

impl AsFd for AfXdpRx {
    /// Becomes readable when a frame has arrived.
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.gathered {
            Some(files) => files.as_fd(),
            None => self.queues[0].socket.as_fd(),
        }
    }
}

/// One file that is readable when one of `files` is.
fn gather<'a>(files: impl Iterator<Item = BorrowedFd<'a>>) -> io::Result<OwnedFd> {
    // SAFETY: takes a number, and no memory.
    let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    if epoll < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made, and nobody else has it.
    let epoll = unsafe { OwnedFd::from_raw_fd(epoll) };
    for file in files {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: 0,
        };
        let (add, file) = (libc::EPOLL_CTL_ADD, file.as_raw_fd());
        // SAFETY: both descriptors are open, and the kernel reads one event that outlives the call.
        let answer = unsafe { libc::epoll_ctl(epoll.as_raw_fd(), add, file, &mut event) };
        if answer != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(epoll)
}

#[cfg(test)]
mod tests {
    use super::super::mapping::Mapping;
    use super::super::ring::tests::pair;
    use super::*;

    #[test]
    fn chunks_go_to_the_kernel_and_come_back_to_it() {
        let memory = Arc::new(Mapping::anonymous(4 * 2048).expect("memory"));
        let chunks = Chunks::share(&memory, 2048, [2, 2]).remove(1);
        let (mut arrived, ring) = pair::<xdp_desc>(2);
        let (fill, mut free) = pair::<u64>(2);
        let mut rings = ReceiveRings::new(ring, fill, chunks);
        assert_eq!(free.waiting(), 2);
        let mut seen = Vec::new();
        for round in 0..5 {
            for _ in 0..2 {
                let chunk = free.pop();
                assert!([2 * 2048, 3 * 2048].contains(&chunk));
                let frame = xdp_desc {
                    addr: chunk + 256,
                    len: 60 + round,
                    options: 0,
                };
                assert!(arrived.has_room(1));
                arrived.push(frame);
            }
            free.release();
            arrived.publish();
            let mut see = |frames: &[SplitFrame<'_>]| {
                seen.extend(frames.iter().map(|frame| frame.head.len()));
            };
            assert_eq!(rings.receive(7, 1, true, &mut see), 1);
            assert_eq!(free.waiting(), 1);
            assert_eq!(rings.receive(7, 9, true, &mut see), 1);
            let nothing = |_: &[SplitFrame<'_>]| panic!("nothing is there");
            assert_eq!(rings.receive(7, 9, true, nothing), 0);
            assert_eq!(free.waiting(), 2);
        }
        assert_eq!(seen, [60, 60, 61, 61, 62, 62, 63, 63, 64, 64]);
    }
}
