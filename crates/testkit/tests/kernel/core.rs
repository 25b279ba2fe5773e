//! An end that is ours as a whole: the stateful engine of a core, with one port.

use std::sync::Arc;
use std::time::Instant;

use allosaur_engine::app::BufferSpec;
use allosaur_engine::encapsulation::Encapsulation;
use allosaur_engine::stateful::{
    Config, FlowPortInfo, GroupCounters, RunIndex, RunLimits, StatefulCommand, StatefulEngine,
};
use allosaur_engine::template::{
    CompiledProfile, Layout, PoolShare, PoolSpec, ProfileSpec, Side, Tunable, TunablesSpec,
};
use allosaur_engine::time::{Due, Gap, Nanos};
use allosaur_engine::transmit::{FrameHandle, PortIndex, QueueOp, Transmit, TxQueues};

use crate::host::Place;
use crate::script;

const RUN: RunIndex = RunIndex(0);
/// The engine's time when it began; it knows no time before.
const EPOCH_NS: Nanos = 1_000_000_000;
/// What addresses of IPv6 begin with, both of clients and of servers.
pub(crate) const PREFIX: [u8; 12] = [0xfd, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// A queue that keeps what is sent.
#[derive(Default)]
struct Queue(Vec<Vec<u8>>);

impl Transmit for Queue {
    const REUSES: bool = false;

    fn slot(&mut self, _at: Nanos, len: usize) -> Option<&mut [u8]> {
        self.0.push(vec![0xcc; len]);
        self.0.last_mut().map(Vec::as_mut_slice)
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

impl TxQueues for Queue {
    fn with_queue<J: QueueOp>(&mut self, _port: PortIndex, job: J) -> J::Output {
        job.run(self)
    }
}

/// A request and its response on TCP port 80, so many times, so often a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Talk {
    pub(crate) request_bytes: u64,
    pub(crate) response_bytes: u64,
    pub(crate) flows: u32,
    pub(crate) rate_cps: f64,
    pub(crate) ipv6: bool,
    /// The addresses of clients: the first, and how many.
    pub(crate) clients: (u32, u32),
    /// The server's address.
    pub(crate) server: u32,
}

impl Talk {
    fn profile(&self) -> ProfileSpec {
        let (first, count) = self.clients;
        let buffer = |bytes: u64| {
            let mut base = vec![0; bytes as usize];
            script::fill(0, &mut base);
            BufferSpec {
                base,
                ..BufferSpec::default()
            }
        };
        let mut tunables = TunablesSpec::default();
        tunables.set(Tunable::Ipv6Enable, u64::from(self.ipv6));
        let mut prefix = [0; 16];
        prefix[..12].copy_from_slice(&PREFIX);
        tunables.source_prefix = Some(prefix);
        tunables.destination_prefix = Some(prefix);
        let pools = [
            PoolSpec::new(Side::Client, first, first + count - 1),
            PoolSpec::new(Side::Server, self.server, self.server),
        ];
        let bytes = [self.request_bytes, self.response_bytes];
        let mut profile = ProfileSpec::request_response(bytes, pools, self.rate_cps);
        profile.buffers = bytes.map(buffer).to_vec();
        profile.templates[0].client.limit = Some(self.flows);
        profile.client = tunables.clone();
        profile.server = tunables;
        profile
    }
}

/// The engine of a core at one end.
pub(crate) struct Core {
    engine: StatefulEngine,
    queue: Queue,
    epoch: Instant,
}

impl Core {
    /// One that runs one side of a talk.
    pub(crate) fn new(place: Place, talk: &Talk) -> Core {
        let profile = CompiledProfile::compile(&talk.profile(), Layout::SMALLEST);
        Core::with_profile(place, profile.expect("the profile is right"))
    }

    /// One that runs one side of a profile.
    pub(crate) fn with_profile(place: Place, profile: CompiledProfile) -> Core {
        let side = match place {
            Place::Client => Side::Client,
            Place::Server => Side::Server,
        };
        let facts = FlowPortInfo {
            side,
            own_mac: place.mac(),
            peer_mac: place.other().mac(),
            encapsulation: Encapsulation::Ethernet,
            frame_bytes_max: 1514,
            share: PoolShare::ONLY,
        };
        let config = Config {
            ports: vec![Some(facts)],
            rss: Vec::new(),
            flows_max: 50_000,
            seed: 7,
        };
        let mut core = Core {
            engine: StatefulEngine::new(config, EPOCH_NS),
            queue: Queue::default(),
            epoch: Instant::now(),
        };
        let command = StatefulCommand::Start {
            run: RUN,
            profile: Arc::new(profile),
            factor: 1.0,
            start_at: core.now(),
            duration: None,
            clients: u32::MAX,
            limits: RunLimits::default(),
        };
        let now = core.now();
        core.engine.handle_command(now, command, &mut core.queue);
        core
    }

    fn now(&self) -> Nanos {
        EPOCH_NS + self.epoch.elapsed().as_nanos() as Nanos
    }

    pub(crate) fn handle_frame(&mut self, frame: &[u8]) {
        let now = self.now();
        self.engine.handle_frame(now, 0, frame, &mut self.queue);
    }

    /// A turn. Gives what was sent in it, and since the last.
    pub(crate) fn take_sent(&mut self) -> Vec<Vec<u8>> {
        let now = self.now();
        self.engine.poll_transmit(now, false, &mut self.queue);
        while self.engine.poll_event().is_some() {}
        std::mem::take(&mut self.queue.0)
    }

    /// Client and server.
    pub(crate) fn counters(&self) -> &[GroupCounters; 2] {
        &self.engine.groups(RUN).expect("it runs")[0]
    }

    /// Flows that there are, and frames for none of them.
    pub(crate) fn flows(&self) -> usize {
        self.engine.flows()
    }

    /// What the flow table counted, in words: of clients, of servers.
    pub(crate) fn table(&self) -> String {
        format!("{:?}", self.engine.counters())
    }
}
