//! Ports in memory: no network card, no privilege, no hugepages.
//!
//! What lives here: pairs of ports joined by a link, the sink, and how big their rings are. What
//! does not: the ring (`ring`), what a link does to a frame (`link`), its settings ([`LinkSettings`]).
//!
//! Each transmit queue writes into a ring of its own; the peer's receive queue reads all of them
//! and applies the link: rate, then delay, then loss. A frame stays in the ring until it arrives,
//! so the rings' size limits what is under way: on a link with a rate or a delay they are made
//! larger, see [`RING_BYTES_MAX`]. When a ring is full, the sender gets no room: nothing is lost
//! but what the link was told to lose.

mod link;
mod ring;
mod settings;
mod sink;

use link::{Link, Loss, Passage};
use ring::{Consumer, Producer, Record};

use crate::{Capabilities, FrameId, RxQueue, TxQueue};

pub use ring::FRAME_BYTES_MAX;
pub use settings::{DELAY_NS_MAX, LinkSettings, RATE_BPS_MAX, RATE_BPS_MIN};
pub use sink::SinkTx;

/// The rate that a memory port says it has when its link has none.
pub const NOMINAL_RATE_BPS: f64 = 100e9;
/// Size of the ring of a transmit queue when the link has no delay: 65,536 of the shortest frames,
/// so that at 10 Mpps a receiving thread may be away for 6 ms, and more than 400 of the longest.
/// Memory that was never written to is not taken from the system.
pub const RING_BYTES: usize = 4 << 20;
/// What the rings of one direction of a link have together at most. A link holds what is sent in
/// its delay twice over, up to this; past it the sender is held back, and a flow through the
/// link is slower than the link (at 100 Gb/s from a delay of about 2.5 ms on).
pub const RING_BYTES_MAX: usize = 64 << 20;
/// What the frames that a queue keeps ready have together at most, in rounded up bytes.
pub const REGISTERED_BYTES_MAX: usize = 16 << 20;
/// Frames that the receive side takes from one ring before it looks at the next.
const FRAMES_PER_VISIT: usize = 64;

/// A port in memory: its queues, for the threads that will own them.
#[derive(Debug)]
pub struct Port {
    /// One for each thread that sends.
    pub tx: Vec<MemoryTx>,
    /// One, over all the peer's transmit queues.
    pub rx: MemoryRx,
    line_rate_bps: f64,
}

impl crate::Port for Port {
    type Tx = MemoryTx;
    type Rx = MemoryRx;

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            line_rate_bps: self.line_rate_bps,
            frame_bytes_max: FRAME_BYTES_MAX,
        }
    }

    fn into_queues(self) -> (Vec<MemoryTx>, MemoryRx) {
        (self.tx, self.rx)
    }
}

/// Two ports joined by a link that is the same in both directions.
pub fn pair(queues_a: usize, queues_b: usize, settings: &LinkSettings) -> (Port, Port) {
    pair_with(queues_a, queues_b, settings, settings)
}

/// Two ports joined by a link; `leaving_a` are the settings of the direction from a to b,
/// `leaving_b` those from b to a.
pub fn pair_with(
    queues_a: usize,
    queues_b: usize,
    leaving_a: &LinkSettings,
    leaving_b: &LinkSettings,
) -> (Port, Port) {
    let (tx_a, rx_b) = direction(queues_a, leaving_a, 0);
    let (tx_b, rx_a) = direction(queues_b, leaving_b, 1);
    let port = |tx, rx, leaving: &LinkSettings| Port {
        tx,
        rx,
        line_rate_bps: leaving.rate_bps.unwrap_or(NOMINAL_RATE_BPS),
    };
    (port(tx_a, rx_a, leaving_a), port(tx_b, rx_b, leaving_b))
}

/// A port without a peer: frames sent are counted and forgotten, none arrive.
pub fn sink(queues: usize) -> Port {
    let (_, rx) = direction(0, &LinkSettings::default(), 0);
    let tx = (0..queues).map(|_| MemoryTx::Sink(SinkTx::new())).collect();
    Port {
        tx,
        rx,
        line_rate_bps: NOMINAL_RATE_BPS,
    }
}

/// The ports of a server: one a description, with `queues` transmit queues each. Ports 0 and 1
/// are a pair, 2 and 3, and so on; an odd last one is a sink. Each description's settings are
/// those of the direction that leaves its port.
pub fn ports(descriptions: &[LinkSettings], queues: usize) -> Vec<Port> {
    let mut ports = Vec::with_capacity(descriptions.len());
    for two in descriptions.chunks(2) {
        match two {
            [leaving_a, leaving_b] => {
                let (a, b) = pair_with(queues, queues, leaving_a, leaving_b);
                ports.extend([a, b]);
            }
            _ => ports.push(sink(queues)),
        }
    }
    ports
}

fn direction(queues: usize, settings: &LinkSettings, number: u64) -> (Vec<MemoryTx>, MemoryRx) {
    let bytes = ring_bytes(settings, queues);
    let mut tx = Vec::with_capacity(queues);
    let mut inlets = Vec::with_capacity(queues);
    for queue in 0..queues {
        let (producer, consumer) = ring::ring(bytes);
        tx.push(MemoryTx::Ring(RingTx::new(producer)));
        inlets.push(Inlet {
            ring: consumer,
            loss: Loss::new(settings, number, queue as u64),
        });
    }
    let rx = MemoryRx {
        inlets,
        link: Link::new(settings),
        unlimited: settings.is_unlimited(),
        next_inlet: 0,
        lost_packets: 0,
    };
    (tx, rx)
}

/// The size of each of `queues` rings.
fn ring_bytes(settings: &LinkSettings, queues: usize) -> usize {
    let rate_bps = settings.rate_bps.unwrap_or(NOMINAL_RATE_BPS);
    let delay_s = settings.delay_ns.min(DELAY_NS_MAX) as f64 / 1e9;
    let under_way = (rate_bps * delay_s / 8.0).min(RING_BYTES_MAX as f64) as usize;
    // Twice, because short frames take up to 1.5 times their time on the wire in a ring.
    let bytes = (RING_BYTES + 2 * under_way).min(RING_BYTES_MAX);
    (bytes / queues.max(1)).max(RING_BYTES)
}

/// A transmit queue of a memory port.
///
/// The kinds are types of their own, so that a caller can branch once a burst and run its loop
/// on the kind itself.
#[derive(Debug)]
pub enum MemoryTx {
    /// Of a port with a peer.
    Ring(RingTx),
    /// Of a port without.
    Sink(SinkTx),
}

impl TxQueue for MemoryTx {
    #[inline]
    fn slot(&mut self, now_ns: u64, len: usize) -> Option<&mut [u8]> {
        match self {
            MemoryTx::Ring(queue) => queue.slot(now_ns, len),
            MemoryTx::Sink(queue) => queue.slot(now_ns, len),
        }
    }

    #[inline]
    fn repeat(&mut self, now_ns: u64, frame: FrameId, count: u32) -> u32 {
        match self {
            MemoryTx::Ring(queue) => queue.repeat(now_ns, frame, count),
            MemoryTx::Sink(queue) => queue.repeat(now_ns, frame, count),
        }
    }

    fn register(&mut self, frame: &[u8]) -> Option<FrameId> {
        match self {
            MemoryTx::Ring(queue) => queue.register(frame),
            MemoryTx::Sink(queue) => queue.register(frame),
        }
    }

    fn unregister(&mut self, frame: FrameId) {
        match self {
            MemoryTx::Ring(queue) => queue.unregister(frame),
            MemoryTx::Sink(queue) => queue.unregister(frame),
        }
    }

    #[inline]
    fn flush(&mut self) {
        match self {
            MemoryTx::Ring(queue) => queue.flush(),
            MemoryTx::Sink(queue) => queue.flush(),
        }
    }
}

/// A transmit queue that writes into a ring to the peer.
#[derive(Debug)]
pub struct RingTx {
    ring: Producer,
    /// By frame number.
    registered: Vec<Option<Record>>,
    /// Numbers that were unregistered, for the next ones.
    free_numbers: Vec<u32>,
    registered_bytes: usize,
}

impl RingTx {
    fn new(ring: Producer) -> RingTx {
        RingTx {
            ring,
            registered: Vec::new(),
            free_numbers: Vec::new(),
            registered_bytes: 0,
        }
    }
}

impl TxQueue for RingTx {
    #[inline(always)]
    fn slot(&mut self, now_ns: u64, len: usize) -> Option<&mut [u8]> {
        self.ring.slot(now_ns, len)
    }

    #[inline]
    fn repeat(&mut self, now_ns: u64, frame: FrameId, count: u32) -> u32 {
        let record = self.registered[frame.0 as usize]
            .as_ref()
            .expect("a frame is repeated only while it is registered");
        self.ring.repeat(now_ns, record, count)
    }

    fn register(&mut self, frame: &[u8]) -> Option<FrameId> {
        let record = Record::new(frame);
        let bytes = self.registered_bytes + record.bytes();
        if bytes > REGISTERED_BYTES_MAX {
            return None;
        }
        self.registered_bytes = bytes;
        let number = self.free_numbers.pop().unwrap_or_else(|| {
            self.registered.push(None);
            self.registered.len() as u32 - 1
        });
        self.registered[number as usize] = Some(record);
        Some(FrameId(number))
    }

    fn unregister(&mut self, frame: FrameId) {
        if let Some(record) = self.registered[frame.0 as usize].take() {
            self.registered_bytes -= record.bytes();
            self.free_numbers.push(frame.0);
        }
    }

    #[inline]
    fn flush(&mut self) {
        self.ring.flush();
    }
}

/// The receive queue of a memory port: reads the rings of the peer, and is the link.
#[derive(Debug)]
pub struct MemoryRx {
    inlets: Vec<Inlet>,
    link: Link,
    unlimited: bool,
    /// Whose turn it is.
    next_inlet: usize,
    lost_packets: u64,
}

/// One ring of the peer.
#[derive(Debug)]
struct Inlet {
    ring: Consumer,
    loss: Loss,
}

impl MemoryRx {
    /// Frames that the link lost since it was made, as it was told to.
    pub fn lost_packets(&self) -> u64 {
        self.lost_packets
    }

    /// When the next frame arrives (or has); `None` when the peer has sent none. A frame may
    /// still be lost when its time comes.
    pub fn next_arrival_ns(&mut self) -> Option<u64> {
        self.refresh();
        self.next_frame().map(|(_, passage)| passage.arrival_ns)
    }

    fn refresh(&mut self) {
        for inlet in &mut self.inlets {
            inlet.ring.refresh();
        }
    }

    /// The frame that the link takes next: of those at the front of their rings the one that can
    /// start first, and by turns when there are several.
    fn next_frame(&mut self) -> Option<(usize, Passage)> {
        let mut next: Option<(usize, Passage)> = None;
        for turn in 0..self.inlets.len() {
            let index = (self.next_inlet + turn) % self.inlets.len();
            let Some(front) = self.inlets[index].ring.peek() else {
                continue;
            };
            let passage = self.link.offer(front.sent_ns, front.bytes.len());
            if next.is_none_or(|(_, earlier)| passage.starts_before(earlier)) {
                next = Some((index, passage));
            }
        }
        next
    }

    /// The way of frames on a link that neither delays nor loses.
    fn receive_at_once(&mut self, budget: usize, each: &mut impl FnMut(u64, &[u8])) -> usize {
        let mut taken = 0;
        let mut idle_inlets = 0;
        while taken < budget && idle_inlets < self.inlets.len() {
            let inlet = &mut self.inlets[self.next_inlet];
            let visit = inlet.ring.drain(FRAMES_PER_VISIT.min(budget - taken), each);
            taken += visit;
            idle_inlets = if visit == 0 { idle_inlets + 1 } else { 0 };
            self.next_inlet = (self.next_inlet + 1) % self.inlets.len();
        }
        taken
    }

    /// The way of frames on any other link. What the peer sends meanwhile waits for the next
    /// call, so that a link that loses everything still comes to an end here.
    fn receive_over_link(
        &mut self,
        now_ns: u64,
        budget: usize,
        each: &mut impl FnMut(u64, &[u8]),
    ) -> usize {
        self.refresh();
        let mut taken = 0;
        while taken < budget {
            let Some((index, passage)) = self.next_frame() else {
                break;
            };
            if passage.arrival_ns > now_ns {
                break;
            }
            self.link.take(passage);
            self.next_inlet = (index + 1) % self.inlets.len();
            let inlet = &mut self.inlets[index];
            if inlet.loss.draw() {
                self.lost_packets += 1;
            } else if let Some(front) = inlet.ring.peek() {
                each(passage.arrival_ns, front.bytes);
                taken += 1;
            }
            inlet.ring.pop();
        }
        for inlet in &mut self.inlets {
            inlet.ring.release();
        }
        taken
    }
}

impl RxQueue for MemoryRx {
    fn receive(&mut self, now_ns: u64, budget: usize, mut each: impl FnMut(u64, &[u8])) -> usize {
        if self.unlimited {
            self.receive_at_once(budget, &mut each)
        } else {
            self.receive_over_link(now_ns, budget, &mut each)
        }
    }
}

#[cfg(test)]
mod tests;
