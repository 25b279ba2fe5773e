//! Opening a hardware queue of an interface: its memory, and the sockets on it.
//!
//! The first sender's socket brings the memory and binds by itself, so that its transmit ring tells
//! truly whether the driver must be woken. The socket that receives and the further senders join it.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use allosaur_netdev::interface::{Interface, InterfaceControl};
use libc::c_int;

use super::completions::Completions;
use super::mapping::{Chunks, Mapping};
use super::receive::{HardwareQueue, ReceiveRings};
use super::socket::{RingKind, XdpSocket};
use super::transmit::{AfXdpTx, Limits, Outgoing, TxWakeup};
use crate::refusals::Refusals;

/// Frames that arrived and wait, of all hardware queues together, unless each has its least.
const RECEIVE_FRAMES: usize = 4096;
/// The least that each hardware queue has.
const RECEIVE_FRAMES_MIN: usize = 1024;
/// What a sender's ring holds.
const TRANSMIT_FRAMES: u32 = 2048;
/// Chunks of a sender for frames that are written each time.
const SLOTS: usize = 1024;
/// Chunks of a sender for registered frames; others are written each time.
const STAMPED: usize = 512;
/// How long a queue may be taken by a server that has just ended: the kernel takes its sockets down
/// a little later.
const TAKEN_MAX: Duration = Duration::from_secs(2);
const TAKEN_RETRY: Duration = Duration::from_millis(10);

/// How an interface's queues are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Hardware queues.
    pub(super) queues: usize,
    /// Threads that send.
    pub(super) senders: usize,
    /// Threads that receive, at most one for each hardware queue.
    pub(super) receivers: usize,
    pub(super) chunk_bytes: usize,
    /// The longest frame, with a VLAN tag.
    pub(super) tagged_bytes_max: usize,
}

impl Plan {
    /// How many threads send on a hardware queue.
    pub(super) fn senders_on(&self, queue: usize) -> usize {
        (0..self.senders)
            .filter(|sender| sender % self.queues == queue)
            .count()
    }

    /// How many frames wait on a hardware queue.
    fn receive_frames(&self) -> usize {
        let share = RECEIVE_FRAMES / self.queues.next_power_of_two();
        share.max(RECEIVE_FRAMES_MIN)
    }
}

/// A hardware queue, as threads will own it.
#[derive(Debug)]
pub(super) struct OpenQueue {
    pub(super) tx: Vec<AfXdpTx>,
    pub(super) rx: HardwareQueue,
    pub(super) is_zero_copy: bool,
}

/// Opens a hardware queue, bound with `flags`. It receives nothing until a program sends it frames.
pub(super) fn open_queue(
    interface: &Interface,
    control: &InterfaceControl,
    queue: usize,
    plan: &Plan,
    flags: u16,
) -> io::Result<OpenQueue> {
    let senders = plan.senders_on(queue);
    let (memory, mut shares) = share_memory(plan, senders)?;
    // The last one receives. The first one brings the memory, and is the last one where nobody sends.
    let opened = (0..=senders).map(|_| XdpSocket::open());
    let mut sockets: Vec<XdpSocket> = opened.collect::<Result<_, _>>()?;
    let base = &sockets[0];
    base.register(&memory, plan.chunk_bytes)?;
    let fill = base.producer(RingKind::Fill, plan.receive_frames() as u32)?;
    let done = base.consumer(RingKind::Completion, completion_frames(senders))?;
    let transmit = |socket: &XdpSocket| socket.producer(RingKind::Transmit, TRANSMIT_FRAMES);
    let rings = sockets[..senders].iter().map(transmit);
    let rings: Vec<_> = rings.collect::<Result<_, _>>()?;
    let receive = sockets[senders].consumer(RingKind::Receive, plan.receive_frames() as u32)?;
    let received = ReceiveRings::new(receive, fill, shares.remove(0));
    bind_patiently(base, interface.index, queue as u32, flags)?;
    for socket in &sockets[1..] {
        socket.bind_beside(base, interface.index, queue as u32)?;
    }
    let is_zero_copy = base.is_zero_copy()?;
    let rx = received.on(sockets.pop().expect("the one that receives"));
    let chunks = memory.bytes() / plan.chunk_bytes;
    let completions = Arc::new(Completions::new(done, chunks, plan.chunk_bytes));
    let limits = Limits {
        slots: SLOTS,
        frame_bytes_max: plan.tagged_bytes_max,
        is_zero_copy,
    };
    let tx = sockets.into_iter().zip(rings).zip(shares).enumerate();
    let tx = tx.map(|(number, ((socket, ring), chunks))| {
        socket.allow_at_once(TRANSMIT_FRAMES);
        let wakeup = TxWakeup::new(socket, is_zero_copy && number == 0);
        let refusals = Refusals::new(control.link_query(), TRANSMIT_FRAMES as usize);
        let transmit = Outgoing::new(chunks, Arc::clone(&completions));
        AfXdpTx::new(wakeup, ring, transmit, limits, refusals)
    });
    Ok(OpenQueue {
        tx: tx.collect(),
        rx,
        is_zero_copy,
    })
}

/// The memory of a hardware queue, and who has which chunks: who receives, then each sender.
fn share_memory(plan: &Plan, senders: usize) -> io::Result<(Arc<Mapping>, Vec<Chunks>)> {
    let mut counts = vec![SLOTS + STAMPED; senders + 1];
    counts[0] = plan.receive_frames();
    let chunks: usize = counts.iter().sum();
    let memory = Arc::new(Mapping::anonymous(chunks * plan.chunk_bytes)?);
    let shares = Chunks::share(&memory, plan.chunk_bytes, counts);
    Ok((memory, shares))
}

/// Room for all that so many senders have in flight; a power of two.
fn completion_frames(senders: usize) -> u32 {
    TRANSMIT_FRAMES * (senders.max(1) as u32).next_power_of_two()
}

/// Binds a socket to a hardware queue, and waits while one of a server that ended is taken down.
fn bind_patiently(socket: &XdpSocket, interface: c_int, queue: u32, flags: u16) -> io::Result<()> {
    let until = Instant::now() + TAKEN_MAX;
    loop {
        match socket.bind(interface, queue, flags) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < until => {
                std::thread::sleep(TAKEN_RETRY);
            }
            bound => return bound,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_share_hardware_queues_evenly() {
        let plan = |queues, senders| Plan {
            queues,
            senders,
            receivers: 1,
            chunk_bytes: 2048,
            tagged_bytes_max: 1518,
        };
        let spread = |queues, senders| -> Vec<usize> {
            let plan = plan(queues, senders);
            (0..queues).map(|queue| plan.senders_on(queue)).collect()
        };
        assert_eq!(spread(1, 5), [5]);
        assert_eq!(spread(2, 5), [3, 2]);
        assert_eq!(spread(4, 2), [1, 1, 0, 0]);
        assert_eq!(plan(1, 1).receive_frames(), 4096);
        assert_eq!(plan(3, 1).receive_frames(), 1024);
        assert_eq!(plan(64, 1).receive_frames(), 1024);
        assert_eq!(
            [0, 1, 2, 3].map(completion_frames),
            [2048, 2048, 4096, 8192]
        );
    }
}
