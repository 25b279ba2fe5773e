//! One core with a client port and a server port, a link between them, and virtual time.

use std::collections::VecDeque;
use std::sync::Arc;

use allosaur_engine::stateful::{
    Command, Config, GroupCounters, PortFacts, RunIndex, RunLimits, Stateful,
};
use allosaur_engine::template::{CompiledProfile, PoolShare, Side};
use allosaur_engine::time::{Due, Gap, MICROSECOND, Nanos, SECOND};
use allosaur_engine::transmit::{FrameHandle, Job, Outlets, PortIndex, Transmit};
use allosaur_packet::MacAddress;

const RUN: RunIndex = RunIndex(0);
/// How long a frame is under way.
const DELAY: Nanos = 100 * MICROSECOND;

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

struct Queues([Queue; 2]);

impl Outlets for Queues {
    fn with_queue<J: Job>(&mut self, port: PortIndex, job: J) -> J::Output {
        job.run(&mut self.0[usize::from(port)])
    }
}

/// A core and its link.
pub(crate) struct World {
    now: Nanos,
    pub(crate) engine: Stateful,
    queues: Queues,
    under_way: VecDeque<(Nanos, PortIndex, Vec<u8>)>,
    groups: usize,
}

impl World {
    /// Starts a profile; flows begin for `duration`.
    pub(crate) fn start(profile: CompiledProfile, factor: f64, duration: Nanos) -> World {
        let mac = |last| MacAddress([2, 0, 0, 0, 0, last]);
        let facts = |side, own, peer| {
            Some(PortFacts {
                side,
                own_mac: mac(own),
                peer_mac: mac(peer),
                vlan: None,
                frame_bytes_max: 1514,
                share: PoolShare::ONLY,
            })
        };
        let config = Config {
            ports: vec![facts(Side::Client, 1, 2), facts(Side::Server, 2, 1)],
            flows_max: 100_000,
            seed: 42,
        };
        let now = 5 * SECOND;
        let mut world = World {
            now,
            engine: Stateful::new(config, now),
            queues: Queues([Queue(Vec::new()), Queue(Vec::new())]),
            under_way: VecDeque::new(),
            groups: profile.groups().len() + 1,
        };
        let start = Command::Start {
            run: RUN,
            profile: Arc::new(profile),
            factor,
            start_at: now,
            duration: Some(duration),
            clients: u32::MAX,
            limits: RunLimits::default(),
        };
        world.engine.handle_command(now, start, &mut world.queues);
        world
    }

    /// Lets `span` pass.
    pub(crate) fn run_for(&mut self, span: Nanos) {
        let until = self.now + span;
        loop {
            self.turn();
            let arrival = self.under_way.front().map(|frame| frame.0);
            let due = self.engine.poll_timeout().into_iter().chain(arrival);
            let Some(next) = due.min().filter(|next| *next <= until) else {
                break;
            };
            self.now = next.max(self.now + MICROSECOND);
        }
        self.now = until;
    }

    fn turn(&mut self) {
        while self
            .under_way
            .front()
            .is_some_and(|frame| frame.0 <= self.now)
        {
            let (_, port, frame) = self.under_way.pop_front().expect("there is one");
            let (now, queues) = (self.now, &mut self.queues);
            self.engine.handle_frame(now, port, &frame, queues);
        }
        self.engine.poll_transmit(self.now, false, &mut self.queues);
        while self.engine.poll_event().is_some() {}
        for (port, queue) in self.queues.0.iter_mut().enumerate() {
            let sent = queue.0.drain(..);
            let to = 1 - port as PortIndex;
            let arrivals = sent.map(|frame| (self.now + DELAY, to, frame));
            self.under_way.extend(arrivals);
        }
    }

    /// What clients and servers of all groups counted together.
    pub(crate) fn sides(&self) -> [GroupCounters; 2] {
        let groups = self.engine.groups(RUN).expect("it runs");
        assert_eq!(groups.len(), self.groups);
        let mut sides: [GroupCounters; 2] = Default::default();
        for group in groups {
            for (all, one) in sides.iter_mut().zip(group) {
                all.flows.tcp.add(&one.flows.tcp);
                all.flows.udp.add(&one.flows.udp);
                all.flows.application.add(&one.flows.application);
                all.active += one.active;
                all.missed += one.missed;
            }
        }
        sides
    }
}
