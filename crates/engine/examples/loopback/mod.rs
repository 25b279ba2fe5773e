//! A client port and a server port of one core, rings between, virtual time.

use std::sync::Arc;

use allosaur_engine::encapsulation::Encapsulation;
use allosaur_engine::stateful::{
    Config, FlowPortInfo, RunIndex, RunLimits, StatefulCommand, StatefulEngine,
};
use allosaur_engine::template::{CompiledProfile, PoolShare, PoolSpec, ProfileSpec, Side, Tunable};
use allosaur_engine::time::{Due, Gap, Nanos, SECOND};
use allosaur_engine::transmit::{FrameHandle, PortIndex, QueueOp, Transmit, TxQueues};
use allosaur_packet::MacAddress;

/// The only run.
pub(crate) const RUN: RunIndex = RunIndex(0);
const SLOT_BYTES: usize = 2048;
const SLOTS: usize = 1024;
/// Enough for a second of TIME-WAIT at a high rate.
const FLOWS_MAX: usize = 1 << 20;

/// Starts a profile at the time of one second.
pub(crate) fn start(engine: &mut StatefulEngine, profile: CompiledProfile, rings: &mut Rings) {
    let command = StatefulCommand::Start {
        run: RUN,
        profile: Arc::new(profile),
        factor: 1.0,
        start_at: SECOND,
        duration: None,
        clients: u32::MAX,
        limits: RunLimits::default(),
    };
    engine.handle_command(SECOND, command, rings);
}

/// Frames that a port sent.
pub(crate) struct Ring {
    bytes: Vec<u8>,
    lens: Vec<usize>,
    /// How many.
    pub(crate) len: usize,
}

impl Ring {
    fn new() -> Ring {
        Ring {
            bytes: vec![0; SLOTS * SLOT_BYTES],
            lens: vec![0; SLOTS],
            len: 0,
        }
    }

    /// One of them.
    pub(crate) fn frame(&self, place: usize) -> &[u8] {
        &self.bytes[place * SLOT_BYTES..][..self.lens[place]]
    }
}

impl Transmit for Ring {
    const REUSES: bool = false;

    #[inline]
    fn slot(&mut self, _at: Nanos, len: usize) -> Option<&mut [u8]> {
        let place = self.len;
        *self.lens.get_mut(place)? = len;
        self.len += 1;
        Some(&mut self.bytes[place * SLOT_BYTES..][..len])
    }

    fn repeat(&mut self, _: FrameHandle, _: Due, _: Gap, _: u32) -> u32 {
        unreachable!("flows have no frame twice")
    }

    fn reuse(&mut self, _: Nanos, _: FrameHandle, _: usize) -> Option<&mut [u8]> {
        unreachable!("flows have no frame twice")
    }

    fn register(&mut self, _: &[u8]) -> Option<FrameHandle> {
        None
    }

    fn unregister(&mut self, _: FrameHandle) {}
}

/// What each port sent in this turn, and one that is being read.
pub(crate) struct Rings {
    /// How long a turn is.
    pub(crate) turn: Nanos,
    sent: [Ring; 2],
    /// One that is empty.
    pub(crate) spare: Ring,
}

impl Rings {
    /// Empty ones.
    pub(crate) fn new(turn: Nanos) -> Rings {
        Rings {
            turn,
            sent: [Ring::new(), Ring::new()],
            spare: Ring::new(),
        }
    }

    /// What a port sent; put it back as the spare one.
    pub(crate) fn take(&mut self, port: usize) -> Ring {
        let empty = Ring {
            bytes: Vec::new(),
            lens: Vec::new(),
            len: 0,
        };
        let spare = std::mem::replace(&mut self.spare, empty);
        std::mem::replace(&mut self.sent[port], spare)
    }
}

impl TxQueues for Rings {
    #[inline]
    fn with_queue<J: QueueOp>(&mut self, port: PortIndex, job: J) -> J::Output {
        job.run(&mut self.sent[usize::from(port)])
    }
}

/// An engine with a client port and a server port.
pub(crate) fn engine(encapsulation: Encapsulation) -> StatefulEngine {
    engine_of(encapsulation, [true, true])
}

/// The same with one of them, where the other has an engine of its own.
pub(crate) fn engine_of(encapsulation: Encapsulation, has: [bool; 2]) -> StatefulEngine {
    let facts = |side, own: u8| {
        has[usize::from(own)].then_some(FlowPortInfo {
            side,
            own_mac: MacAddress([2, 0, 0, 0, 0, own]),
            peer_mac: MacAddress([2, 0, 0, 0, 0, 1 - own]),
            encapsulation,
            frame_bytes_max: 1514,
            share: PoolShare::ONLY,
        })
    };
    let config = Config {
        ports: vec![facts(Side::Client, 0), facts(Side::Server, 1)],
        rss: Vec::new(),
        flows_max: FLOWS_MAX,
        seed: 1,
    };
    StatefulEngine::new(config, SECOND)
}

/// Connections that ask with 100 bytes.
pub(crate) fn profile(response_bytes: u64, rate_cps: f64) -> ProfileSpec {
    let pools = [
        PoolSpec::new(Side::Client, 0x1000_0000, 0x1000_ffff),
        PoolSpec::new(Side::Server, 0x3000_0000, 0x3000_ffff),
    ];
    let mut profile = ProfileSpec::request_response([100, response_bytes], pools, rate_cps);
    for tunables in [&mut profile.client, &mut profile.server] {
        tunables.set(Tunable::InitialWindow, 2);
    }
    profile
}
