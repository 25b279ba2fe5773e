//! One core with a client port and a server port, a link between them, and virtual time.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use allosaur_engine::app::{BufferSpec, ProgramCommand as Step, Transport};
use allosaur_engine::encapsulation::{Encapsulation, LinkPrefix};
use allosaur_engine::session::LinkAddresses;
use allosaur_engine::session::wire::{Addresses, Content, Envelope};
use allosaur_engine::stateful::{
    Config, Event, FlowPortInfo, GroupCounters, RunIndex, RunLimits, StatefulCommand,
    StatefulEngine,
};
use allosaur_engine::tcp::Segment;
use allosaur_engine::template::{CompiledProfile, Layout, PoolShare, PoolSpec, ProfileSpec, Side};
use allosaur_engine::time::{Due, Gap, MICROSECOND, MILLISECOND, Nanos, SECOND};
use allosaur_engine::transmit::{FrameHandle, PortIndex, QueueOp, Transmit, TxQueues};
use allosaur_packet::MacAddress;
use allosaur_packet::frame;
use allosaur_packet::network::checksum::Sum;
use allosaur_packet::shared_payload::{SharedPayload, SplitFrame};
use allosaur_packet::transport::tcp::{TcpFlags, TcpView};

pub(crate) const RUN: RunIndex = RunIndex(0);
pub(crate) const START: Nanos = 5 * SECOND;

/// A frame, in one part or two.
#[derive(Clone)]
struct Frame {
    head: Vec<u8>,
    payload: Vec<u8>,
    payload_sum: u16,
}

impl Frame {
    fn whole(bytes: Vec<u8>) -> Frame {
        Frame {
            head: bytes,
            payload: Vec::new(),
            payload_sum: 0,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        [self.head.as_slice(), &self.payload].concat()
    }

    fn arrived(&self, at_ns: Nanos) -> SplitFrame<'_> {
        SplitFrame {
            at_ns,
            head: &self.head,
            payload: &self.payload,
            payload_sum: self.payload_sum,
        }
    }
}

/// A queue that takes so many frames a turn.
pub(crate) struct Queue {
    frames: Vec<Frame>,
    room: usize,
    /// Whether it leaves shared payloads apart.
    splits: bool,
}

impl Transmit for Queue {
    const REUSES: bool = false;

    fn slot(&mut self, _at: Nanos, len: usize) -> Option<&mut [u8]> {
        if self.frames.len() == self.room {
            return None;
        }
        self.frames.push(Frame::whole(vec![0xcc; len]));
        let frame = self.frames.last_mut();
        frame.map(|frame| frame.head.as_mut_slice())
    }

    fn slot_sharing(
        &mut self,
        at: Nanos,
        head_bytes: usize,
        payload: SharedPayload<'_>,
    ) -> Option<&mut [u8]> {
        let (bytes, sum) = (payload.slice(), Sum::of(payload.slice()));
        assert_eq!(payload.sum % 0xffff, sum.folded() % 0xffff);
        self.slot(at, head_bytes + bytes.len())?;
        let frame = self.frames.last_mut()?;
        frame.head[head_bytes..].copy_from_slice(bytes);
        if self.splits {
            frame.payload = frame.head.split_off(head_bytes);
            frame.payload_sum = payload.sum;
        }
        Some(&mut frame.head[..head_bytes])
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

pub(crate) struct Queues([Queue; 2]);

impl Queues {
    /// Of two ports, with room for all.
    pub(crate) fn new() -> Queues {
        let queue = || Queue {
            frames: Vec::new(),
            room: usize::MAX,
            splits: false,
        };
        Queues([queue(), queue()])
    }

    /// What was sent on a port since the last time.
    pub(crate) fn take(&mut self, port: usize) -> Vec<Vec<u8>> {
        let frames = std::mem::take(&mut self.0[port].frames);
        frames.iter().map(Frame::bytes).collect()
    }
}

impl TxQueues for Queues {
    fn with_queue<J: QueueOp>(&mut self, port: PortIndex, job: J) -> J::Output {
        job.run(&mut self.0[usize::from(port)])
    }
}

/// Changes a frame that left a port, as a router does.
pub(crate) type Rewriter = Box<dyn FnMut(PortIndex, &mut [u8])>;

/// A core and its link.
pub(crate) struct World {
    pub(crate) now: Nanos,
    pub(crate) engine: StatefulEngine,
    pub(crate) queues: Queues,
    under_way: BTreeMap<(Nanos, u64), (PortIndex, Frame)>,
    /// Frames that arrive together are handed over together.
    pub(crate) in_bursts: bool,
    pub(crate) delay: Nanos,
    /// Of a million frames: lost, sent twice, and overtaken by others.
    pub(crate) lost_ppm: u64,
    pub(crate) doubled_ppm: u64,
    pub(crate) late_ppm: u64,
    /// Frames that get nowhere.
    pub(crate) loses: fn(&[u8]) -> bool,
    /// What a router on the way does to frames.
    pub(crate) rewrites: Option<Rewriter>,
    /// The longest frame that gets anywhere.
    pub(crate) frame_bytes_max: usize,
    /// Longer ones, with the port that they left.
    pub(crate) too_long: Vec<(PortIndex, Vec<u8>)>,
    random: u64,
    sent: u64,
    /// Frames that were sent, lost ones among them, with the port that they left; see
    /// [`World::listen`].
    pub(crate) heard: Option<Vec<(PortIndex, Vec<u8>)>>,
    pub(crate) events: Vec<Event>,
    /// The ports whose clients begin flows, as bits.
    pub(crate) clients: u32,
    /// No time passes after so many turns: see [`World::run_for`].
    pub(crate) turns_left: u32,
}

impl World {
    pub(crate) fn new(flows_max: usize) -> World {
        World::with_share(flows_max, PoolShare::ONLY)
    }

    /// One of several cores.
    pub(crate) fn with_share(flows_max: usize, share: PoolShare) -> World {
        let facts = |side, own, peer| {
            Some(FlowPortInfo {
                side,
                own_mac: mac(own),
                peer_mac: mac(peer),
                encapsulation: Encapsulation::Ethernet,
                frame_bytes_max: 1514,
                share,
            })
        };
        let config = Config {
            ports: vec![facts(Side::Client, 1, 2), facts(Side::Server, 2, 1)],
            rss: Vec::new(),
            flows_max,
            seed: 42,
        };
        World {
            now: START,
            engine: StatefulEngine::new(config, START),
            queues: Queues::new(),
            under_way: BTreeMap::new(),
            in_bursts: false,
            delay: 100 * MICROSECOND,
            lost_ppm: 0,
            doubled_ppm: 0,
            late_ppm: 0,
            loses: |_| false,
            rewrites: None,
            frame_bytes_max: usize::MAX,
            too_long: Vec::new(),
            random: 1,
            sent: 0,
            heard: None,
            events: Vec::new(),
            clients: u32::MAX,
            turns_left: u32::MAX,
        }
    }

    pub(crate) fn limit_room(&mut self, frames: usize) {
        self.queues
            .0
            .iter_mut()
            .for_each(|queue| queue.room = frames);
    }

    /// Payloads that frames share are apart from now on.
    pub(crate) fn split_frames(&mut self) {
        self.queues
            .0
            .iter_mut()
            .for_each(|queue| queue.splits = true);
    }

    pub(crate) fn start(&mut self, profile: &ProfileSpec, factor: f64, duration: Option<Nanos>) {
        self.start_within(profile, factor, duration, RunLimits::default());
    }

    pub(crate) fn start_within(
        &mut self,
        profile: &ProfileSpec,
        factor: f64,
        duration: Option<Nanos>,
        limits: RunLimits,
    ) {
        let profile = CompiledProfile::compile(profile, Layout::SMALLEST);
        let profile = profile.expect("the profile is right");
        self.start_compiled_within(profile, factor, duration, limits);
    }

    /// Starts a profile without end that may have applications over bytes.
    pub(crate) fn start_compiled(&mut self, profile: CompiledProfile) {
        self.start_compiled_within(profile, 1.0, None, RunLimits::default());
    }

    pub(crate) fn start_compiled_within(
        &mut self,
        profile: CompiledProfile,
        factor: f64,
        duration: Option<Nanos>,
        limits: RunLimits,
    ) {
        let command = StatefulCommand::Start {
            run: RUN,
            profile: Arc::new(profile),
            factor,
            start_at: self.now,
            duration,
            clients: self.clients,
            limits,
        };
        self.tell(command);
    }

    /// Starts a profile by another number, without end.
    pub(crate) fn start_as(&mut self, run: RunIndex, profile: &ProfileSpec) {
        let profile = CompiledProfile::compile(profile, Layout::SMALLEST);
        self.tell(StatefulCommand::Start {
            run,
            profile: Arc::new(profile.expect("the profile is right")),
            factor: 1.0,
            start_at: self.now,
            duration: None,
            clients: u32::MAX,
            limits: RunLimits::default(),
        });
    }

    pub(crate) fn tell(&mut self, command: StatefulCommand) {
        self.engine
            .handle_command(self.now, command, &mut self.queues);
        self.carry();
    }

    /// Lets `span` pass, or less when no turns are left for it: then time stands still.
    pub(crate) fn run_for(&mut self, span: Nanos) {
        let until = self.now + span;
        loop {
            self.turn();
            let arrival = self.under_way.keys().next().map(|key| key.0);
            let blocked = self
                .engine
                .is_blocked()
                .then_some(self.now + 10 * MICROSECOND);
            let due = self
                .engine
                .poll_timeout()
                .into_iter()
                .chain(arrival)
                .chain(blocked);
            let Some(next) = due.min().filter(|next| *next <= until) else {
                break;
            };
            if self.turns_left == 0 {
                return;
            }
            self.turns_left -= 1;
            self.now = next.max(self.now + MICROSECOND);
        }
        self.now = self.now.max(until);
    }

    fn turn(&mut self) {
        while let Some(first) = self.under_way.first_entry() {
            if first.key().0 > self.now {
                break;
            }
            let (port, frame) = first.remove();
            let mut burst = vec![frame];
            while let (true, Some(next)) = (self.in_bursts, self.under_way.first_entry()) {
                if next.key().0 > self.now || next.get().0 != port {
                    break;
                }
                burst.push(next.remove().1);
            }
            let arrived: Vec<_> = burst.iter().map(|frame| frame.arrived(self.now)).collect();
            let mut told = Vec::new();
            self.engine
                .handle_frames(self.now, port, &arrived, &mut self.queues, |frame, _| {
                    told.push(*frame);
                });
            assert_eq!(told, arrived);
        }
        self.engine.poll_transmit(self.now, false, &mut self.queues);
        while let Some(event) = self.engine.poll_event() {
            self.events.push(event);
        }
        self.carry();
    }

    /// Puts what was sent on the link.
    fn carry(&mut self) {
        for port in 0..2 {
            for frame in std::mem::take(&mut self.queues.0[port].frames) {
                if let Some(heard) = &mut self.heard {
                    heard.push((port as PortIndex, frame.bytes()));
                }
                let mut frame = frame;
                if let Some(rewrite) = &mut self.rewrites {
                    frame = Frame::whole(frame.bytes());
                    rewrite(port as PortIndex, &mut frame.head);
                }
                let bytes = frame.bytes();
                if bytes.len() > self.frame_bytes_max {
                    self.too_long.push((port as PortIndex, bytes));
                    continue;
                }
                if self.happens(self.lost_ppm) || (self.loses)(&bytes) {
                    continue;
                }
                let to = 1 - port as PortIndex;
                let copies = 1 + u8::from(self.doubled_ppm > 0 && self.happens(self.doubled_ppm));
                for _ in 0..copies {
                    let is_late = self.late_ppm > 0 && self.happens(self.late_ppm);
                    let held_up = if is_late {
                        self.random % (3 * MILLISECOND)
                    } else {
                        0
                    };
                    self.sent += 1;
                    self.under_way.insert(
                        (self.now + self.delay + held_up, self.sent),
                        (to, frame.clone()),
                    );
                }
            }
        }
    }

    /// Whether what happens to so many of a million frames happens to this one.
    fn happens(&mut self, ppm: u64) -> bool {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.random >> 33) % 1_000_000 < ppm
    }

    /// Other frames are lost, doubled and late.
    pub(crate) fn seed_link(&mut self, seed: u64) {
        self.random = seed;
    }

    /// Client and server of the templates without a group.
    pub(crate) fn sides(&self) -> &[GroupCounters; 2] {
        &self.engine.groups(RUN).expect("it runs")[0]
    }

    /// A frame from outside.
    pub(crate) fn inject(&mut self, port: PortIndex, frame: Vec<u8>) {
        self.sent += 1;
        let frame = Frame::whole(frame);
        self.under_way.insert((self.now, self.sent), (port, frame));
    }
}

/// A MAC address.
pub(crate) fn mac(last: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, last])
}

/// What the TCP header of an IPv4 frame says.
pub(crate) fn flags_of(frame: &[u8]) -> TcpFlags {
    let layout = frame::parse(frame);
    TcpView::new_unchecked(layout.segment(frame)).flags()
}

/// What stands in front of packets without tags.
pub(crate) fn ethernet_link(peer: MacAddress, own: MacAddress, is_v6: bool) -> LinkPrefix {
    let encapsulation = Encapsulation::Ethernet;
    let link = LinkAddresses {
        own,
        peer,
        encapsulation,
    };
    link.prefix(is_v6)
}

/// The frame that asks for a connection.
pub(crate) fn syn(from: Ipv4Addr, to: Ipv4Addr, ports: (u16, u16)) -> Vec<u8> {
    let segment = Segment {
        flags: TcpFlags::SYN,
        window: 1000,
        ..Segment::default()
    };
    let envelope = Envelope {
        link: &ethernet_link(mac(2), mac(1), false),
        addresses: Addresses::V4(from, to),
        ports,
        type_of_service: 0,
        time_to_live: 64,
        identification: 1,
    };
    let content = Content::Tcp(&segment);
    let mut frame = vec![0; envelope.frame_bytes(&content)];
    envelope.write(&content, &mut frame, |_| Sum::default());
    frame
}

pub(crate) const fn send(buffer: u32) -> Step {
    Step::Send { buffer }
}

pub(crate) const fn receive(bytes: u64) -> Step {
    Step::Receive {
        bytes,
        clear: false,
    }
}

/// A profile with one template: 100 bytes asked, `response` bytes answered, on port 80.
pub(crate) fn http(response: u64, rate_cps: f64) -> ProfileSpec {
    let client = vec![send(0), receive(response)];
    let server = vec![receive(100), send(1)];
    profile(Transport::Stream, [client, server], response, rate_cps)
}

pub(crate) fn profile(
    transport: Transport,
    programs: [Vec<Step>; 2],
    response: u64,
    rate_cps: f64,
) -> ProfileSpec {
    let buffers = vec![
        BufferSpec {
            base: vec![b'q'; 100],
            ..BufferSpec::default()
        },
        BufferSpec {
            base: b"answer ".to_vec(),
            bytes: Some(response),
            fill: b"0123456789".to_vec(),
        },
    ];
    let mut pools = [
        PoolSpec::new(Side::Client, 0x1000_0000, 0x1000_00ff),
        PoolSpec::new(Side::Server, 0x3000_0000, 0x3000_ffff),
    ];
    for pool in &mut pools {
        pool.offset = 0x0100_0000;
    }
    ProfileSpec::single(transport, programs, buffers, pools, rate_cps)
}

pub(crate) const MS: Nanos = MILLISECOND;
