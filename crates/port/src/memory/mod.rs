//! Ports in memory: no network card, no privilege, no hugepages.
//!
//! `ring` is the memory between a transmit queue and the receive queues (`receive`) that read it, `sink`
//! a transmit queue without a peer, `link` and `police` what happens to a frame on the way.
//!
//! Each transmit queue writes into a ring of its own; the peer's receive queue reads all of them
//! and applies the link: rate, then policer, then loss, then delay. A frame stays in the ring until it arrives,
//! so the rings' size limits what is in flight: on a link with a delay they are made larger, see
//! [`RING_BYTES_MAX`]. When a ring is full, the sender gets no room: nothing is lost
//! but what the link was told to lose.

mod link;
mod police;
mod receive;
pub(crate) mod ring;
mod settings;
mod sink;

use crate::{Capabilities, TxQueue};

pub use receive::MemoryRx;
pub use ring::{FRAME_BYTES_MAX, RingTx};
pub use settings::{
    BURST_FRAMES_MAX, DELAY_NS_MAX, LinkSettings, POLICE_PPS_MAX, POLICE_PPS_MIN, QUEUE_NS,
    RATE_BPS_MAX, RATE_BPS_MIN,
};
pub use sink::SinkTx;

/// The rate that a memory port says it has when its link has none.
pub const NOMINAL_RATE_BPS: f64 = 100e9;
/// Size of the ring of a transmit queue when the link has no delay: 65,536 of the shortest frames,
/// so that at 10 Mpps a receiving thread may be away for 6 ms, and more than 400 of the longest.
/// Memory that was never written to is not taken from the system.
pub const RING_BYTES: usize = 4 << 20;
/// The least that the ring of a transmit queue holds on a link with a rate: 1,024 of the shortest
/// frames, as the queue of a network card does.
pub const RING_BYTES_MIN: usize = 64 << 10;
/// What the rings of one direction of a link have together at most. A link holds what is sent in
/// its delay twice over, up to this; past it the sender is held back, and a flow through the
/// link is slower than the link (at 100 Gb/s from a delay of about 2.5 ms on).
pub const RING_BYTES_MAX: usize = 64 << 20;

/// A port in memory: its queues, for the threads that will own them. Those of a port without a peer
/// are [`SinkTx`].
#[derive(Debug)]
pub struct MemoryPort<Tx = RingTx> {
    /// One for each thread that sends.
    pub tx: Vec<Tx>,
    /// One, over all the peer's transmit queues; see [`MemoryRx::split`].
    pub rx: MemoryRx,
    line_rate_bps: f64,
}

impl<Tx: TxQueue> crate::Port for MemoryPort<Tx> {
    type Tx = Tx;
    type Rx = MemoryRx;

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            line_rate_bps: self.line_rate_bps,
            frame_bytes_max: FRAME_BYTES_MAX,
        }
    }

    fn into_queues(self) -> (Vec<Tx>, Vec<MemoryRx>) {
        (self.tx, vec![self.rx])
    }
}

/// Two ports joined by a link that is the same in both directions.
pub fn pair(queues_a: usize, queues_b: usize, settings: &LinkSettings) -> (MemoryPort, MemoryPort) {
    pair_with(queues_a, queues_b, settings, settings)
}

/// Two ports joined by a link; `leaving_a` are the settings of the direction from a to b,
/// `leaving_b` those from b to a.
pub fn pair_with(
    queues_a: usize,
    queues_b: usize,
    leaving_a: &LinkSettings,
    leaving_b: &LinkSettings,
) -> (MemoryPort, MemoryPort) {
    let (tx_a, rx_b) = direction(queues_a, leaving_a, 0);
    let (tx_b, rx_a) = direction(queues_b, leaving_b, 1);
    let port = |tx, rx, leaving: &LinkSettings| MemoryPort {
        tx,
        rx,
        line_rate_bps: leaving.rate_bps.map_or(NOMINAL_RATE_BPS, |rate| {
            rate.clamp(RATE_BPS_MIN, RATE_BPS_MAX)
        }),
    };
    (port(tx_a, rx_a, leaving_a), port(tx_b, rx_b, leaving_b))
}

/// A port without a peer: frames sent are counted and forgotten, none arrive.
pub fn sink(queues: usize) -> MemoryPort<SinkTx> {
    let (_, rx) = direction(0, &LinkSettings::default(), 0);
    MemoryPort {
        tx: (0..queues).map(|_| SinkTx::new()).collect(),
        rx,
        line_rate_bps: NOMINAL_RATE_BPS,
    }
}

fn direction(queues: usize, settings: &LinkSettings, number: u64) -> (Vec<RingTx>, MemoryRx) {
    let bytes = ring_bytes(settings, queues);
    let (producers, consumers): (Vec<_>, Vec<_>) = (0..queues).map(|_| ring::ring(bytes)).unzip();
    let tx = producers.into_iter().map(RingTx::new);
    (tx.collect(), MemoryRx::new(consumers, settings, number))
}

/// The size of each of `queues` rings.
fn ring_bytes(settings: &LinkSettings, queues: usize) -> usize {
    let rate_bps = settings.rate_bps.unwrap_or(NOMINAL_RATE_BPS);
    let carried_in = |ns: u64| (rate_bps * ns as f64 / 8e9).min(RING_BYTES_MAX as f64) as usize;
    let waiting = match settings.rate_bps {
        Some(_) => carried_in(QUEUE_NS).clamp(RING_BYTES_MIN, RING_BYTES),
        None => RING_BYTES,
    };
    let in_flight = carried_in(settings.delay_ns.min(DELAY_NS_MAX));
    // Twice, because short frames take up to 1.5 times their time on the wire in a ring.
    let bytes = (waiting + 2 * in_flight).min(RING_BYTES_MAX);
    (bytes / queues.max(1)).max(waiting)
}

#[cfg(test)]
mod tests;
