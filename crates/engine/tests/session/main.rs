//! Two flows with programs, frames between them, and virtual time.

use std::collections::BTreeMap;

use allosaur_engine::app::{
    Addon, BufferSpec, Buffers, Program, ProgramCommand, ProgramSpec, Surroundings, Transport,
};
use allosaur_engine::encapsulation::Encapsulation;
use allosaur_engine::flow::{AddressSpace, AddressSpaces, FlowKey, FlowScope, Protocol};
use allosaur_engine::rng::Lcg;
use allosaur_engine::session::wire::{self, Addresses, Arrival};
use allosaur_engine::session::{
    FlowContext, FlowStatus, FlowTimes, FrameTx, HeaderDefaults, LinkAddresses, Pools, Session,
    SideCounters,
};
use allosaur_engine::tcp::{Seq, Tunables};
use allosaur_engine::time::{MICROSECOND, MILLISECOND, Nanos, SECOND};
use allosaur_packet::MacAddress;
use allosaur_packet::frame;

const DELAY: Nanos = 500 * MICROSECOND;

/// One end, and all that a core would have.
struct End {
    program: Program,
    buffers: Buffers,
    tunables: Tunables,
    counters: SideCounters,
    pools: Pools,
    times: FlowTimes,
    session: Option<Session>,
    standing: FlowStatus,
}

/// Frames on the way out; takes so many at a time.
struct Queue {
    frames: Vec<Vec<u8>>,
    room: usize,
}

impl FrameTx for Queue {
    fn send(&mut self, bytes: usize, write: impl FnOnce(&mut [u8])) -> bool {
        if self.frames.len() == self.room {
            return false;
        }
        let mut frame = vec![0xcc; bytes];
        write(&mut frame);
        self.frames.push(frame);
        true
    }
}

impl End {
    fn new(spec: &ProgramSpec, buffers: &[BufferSpec]) -> End {
        let buffers = Buffers::new(buffers).expect("the buffers are right");
        let surroundings = Surroundings {
            buffers: &buffers,
            groups: 0,
        };
        let program = Program::compile(spec, surroundings).expect("the program is right");
        End {
            program,
            buffers,
            tunables: Tunables::default(),
            counters: SideCounters::default(),
            pools: Pools {
                rng: Lcg::new(7),
                ..Pools::default()
            },
            times: FlowTimes::default(),
            session: None,
            standing: FlowStatus::Open(None),
        }
    }

    /// Calls `act` with what a core would give, and sees to the flow's end.
    fn with(
        &mut self,
        now: Nanos,
        act: impl FnOnce(&mut Option<Session>, &mut FlowContext<'_>) -> FlowStatus,
    ) {
        self.pools.set_clock(now);
        let mut cx = FlowContext {
            now,
            program: &self.program,
            buffers: &self.buffers,
            tunables: &self.tunables,
            headers: HeaderDefaults {
                type_of_service: 0,
                time_to_live: 64,
                frame_bytes_max: 1514,
            },
            counters: &mut self.counters,
            pools: &mut self.pools,
            times: &mut self.times,
            template: 0,
        };
        self.standing = act(&mut self.session, &mut cx);
        if self.standing == FlowStatus::Over {
            let session = self.session.as_mut().expect("who is over was there");
            session.release(&mut self.pools);
            self.session = None;
        }
    }
}

struct World {
    now: Nanos,
    ends: [End; 2],
    under_way: BTreeMap<(Nanos, u64), (usize, Vec<u8>)>,
    sent: u64,
    /// Frames that a queue takes at once.
    room: usize,
}

fn link(end: u8) -> LinkAddresses {
    LinkAddresses {
        own: MacAddress([2, 0, 0, 0, 0, end]),
        peer: MacAddress([2, 0, 0, 0, 0, 1 - end]),
        encapsulation: Encapsulation::Vlan(100),
    }
}

/// The key of a frame's flow, seen from its receiver.
fn key(received: &wire::Received, spaces: &mut AddressSpaces) -> FlowKey {
    let protocol = match received.arrival {
        Arrival::Tcp(_) => Protocol::Tcp,
        Arrival::Udp(_) => Protocol::Udp,
    };
    let (remote, local, space) = match received.addresses {
        Addresses::V4(from, to) => (from.to_bits(), to.to_bits(), None),
        Addresses::V6(from, to) => {
            let number = spaces.hold(&AddressSpace::v6(0, to, from));
            (from.to_bits() as u32, to.to_bits() as u32, number)
        }
    };
    FlowKey {
        local,
        remote,
        local_port: received.ports.1,
        remote_port: received.ports.0,
        space,
        scope: FlowScope::new(protocol, space.is_some()),
        port: 0,
    }
}

impl World {
    fn new(programs: [&ProgramSpec; 2], buffers: &[BufferSpec]) -> World {
        World {
            now: 3 * SECOND,
            ends: programs.map(|program| End::new(program, buffers)),
            under_way: BTreeMap::new(),
            sent: 0,
            room: usize::MAX,
        }
    }

    fn call(
        &mut self,
        end: usize,
        act: impl FnOnce(&mut Option<Session>, &mut FlowContext<'_>, &mut Queue) -> FlowStatus,
    ) {
        let mut queue = Queue {
            frames: Vec::new(),
            room: self.room,
        };
        let now = self.now;
        self.ends[end].with(now, |session, cx| act(session, cx, &mut queue));
        for frame in queue.frames {
            self.sent += 1;
            self.under_way
                .insert((now + DELAY, self.sent), (1 - end, frame));
        }
    }

    /// The client begins, and all goes on until nothing is due or 100 s have passed.
    fn run(&mut self, is_long: bool) {
        let space = is_long.then(|| {
            let address = |text: &str| text.parse().expect("an address");
            let (local, remote) = (address("2001:db8::1000:1"), address("2001:db8:1::3000:1"));
            let known = &mut self.ends[0].pools.spaces;
            known
                .hold(&AddressSpace::v6(0, local, remote))
                .expect("it is the first")
        });
        let protocol = match self.ends[0].program.transport() {
            Transport::Stream => Protocol::Tcp,
            Transport::Datagram => Protocol::Udp,
        };
        let key = FlowKey {
            local: 0x1000_0001,
            remote: 0x3000_0001,
            local_port: 1025,
            remote_port: 80,
            space,
            scope: FlowScope::new(protocol, is_long),
            port: 0,
        };
        self.call(0, |session, cx, queue| {
            let flow = Session::connect(cx, key, link(0), Seq(0xffff_ff00));
            session.insert(flow).begin(cx, queue)
        });
        let until = self.now + 100 * SECOND;
        while let Some(at) = self.next_event().filter(|at| *at <= until) {
            self.now = at;
            while let Some(frame) = self.arrived() {
                self.deliver(frame.0, &frame.1);
            }
            for end in 0..2 {
                if self.ends[end].session.is_some() {
                    self.call(end, |session, cx, queue| {
                        let session = session.as_mut().expect("just seen");
                        session.handle_writable(cx, queue);
                        session.handle_timeout(cx, queue)
                    });
                }
            }
        }
    }

    fn next_event(&self) -> Option<Nanos> {
        let due = self.ends.iter().filter_map(|end| match end.standing {
            FlowStatus::Open(due) => due.filter(|_| end.session.is_some()),
            FlowStatus::Blocked(_) => Some(self.now + MICROSECOND),
            FlowStatus::Over => None,
        });
        let arrival = self.under_way.keys().next().map(|key| key.0);
        due.map(|due| due.max(self.now)).chain(arrival).min()
    }

    fn arrived(&mut self) -> Option<(usize, Vec<u8>)> {
        let first = self.under_way.first_entry()?;
        (first.key().0 <= self.now).then(|| first.remove())
    }

    fn deliver(&mut self, end: usize, bytes: &[u8]) {
        let layout = frame::parse(bytes);
        let received = wire::read(bytes, &layout).expect("frames of flows are right");
        assert_eq!(layout.vlans(), [100]);
        let message = layout.payload(bytes);
        self.call(end, |session, cx, queue| {
            let key = key(&received, &mut cx.pools.spaces);
            let known = session.as_mut().filter(|session| *session.key() == key);
            match (known, received.arrival) {
                (Some(session), Arrival::Tcp(segment)) => {
                    session.handle_segment(cx, queue, &segment, message)
                }
                (Some(session), Arrival::Udp(_)) => {
                    session.handle_datagram(cx, queue, message, || None)
                }
                (None, Arrival::Tcp(segment)) if end == 1 => {
                    let new = Session::accept(cx, key, link(1), Seq(77), &segment);
                    session.insert(new).begin(cx, queue)
                }
                (None, Arrival::Udp(_)) if end == 1 => {
                    let new = Session::accept_datagram(cx, key, link(1));
                    session
                        .insert(new)
                        .handle_datagram(cx, queue, message, || None)
                }
                // Who is gone would answer with a reset.
                (None, _) => FlowStatus::Open(None),
            }
        });
    }

    /// Both ends are gone, and nothing is left behind.
    fn assert_over(&self) {
        for end in &self.ends {
            assert!(end.session.is_none());
            assert_eq!(end.pools.recovery.in_use(), 0);
            assert_eq!(end.pools.outboxes.in_use(), 0);
            assert_eq!(end.pools.variables.used(), 0);
        }
    }
}

fn stream(commands: &[ProgramCommand]) -> ProgramSpec {
    ProgramSpec {
        commands: commands.to_vec(),
        transport: Transport::Stream,
        addon: None,
    }
}

fn datagrams(commands: &[ProgramCommand]) -> ProgramSpec {
    ProgramSpec {
        transport: Transport::Datagram,
        ..stream(commands)
    }
}

fn buffers() -> [BufferSpec; 2] {
    [
        BufferSpec {
            base: vec![b'r'; 100],
            ..BufferSpec::default()
        },
        BufferSpec {
            base: b"response ".to_vec(),
            bytes: Some(32_000),
            fill: b"abc".to_vec(),
        },
    ]
}

const REQUEST: u32 = 0;
const RESPONSE: u32 = 1;

fn http() -> [ProgramSpec; 2] {
    let receive = |bytes| ProgramCommand::Receive {
        bytes,
        clear: false,
    };
    let send = |buffer| ProgramCommand::Send { buffer };
    [
        stream(&[send(REQUEST), receive(32_000)]),
        stream(&[receive(100), send(RESPONSE)]),
    ]
}

#[test]
fn a_request_gets_its_response() {
    for is_long in [false, true] {
        let [client, server] = http();
        let mut world = World::new([&client, &server], &buffers());
        world.run(is_long);
        world.assert_over();
        let [client, server] = &world.ends;
        let (client, server) = (&client.counters.tcp, &server.counters.tcp);
        assert_eq!((client.rcvbyte, server.rcvbyte), (32_000, 100));
        assert_eq!((client.sndbyte, server.sndbyte), (100, 32_000));
        assert_eq!((client.connects, server.connects), (1, 1));
        assert_eq!((client.closed, server.closed), (1, 1));
        assert_eq!((client.sndrexmitpack, server.sndrexmitpack), (0, 0));
        assert_eq!((client.drops, server.drops), (0, 0));
    }
}

#[test]
fn a_full_way_holds_flows_up_and_loses_nothing() {
    let [client, server] = http();
    let mut world = World::new([&client, &server], &buffers());
    world.room = 1;
    world.run(false);
    world.assert_over();
    assert_eq!(world.ends[0].counters.tcp.rcvbyte, 32_000);
    assert_eq!(world.ends[1].counters.tcp.sndrexmitpack, 0);
}

#[test]
fn many_requests_in_one_connection_wait_for_each_other() {
    let repeat = |commands: &[ProgramCommand], times: i64| {
        let back = -(commands.len() as i64);
        let mut all = vec![ProgramCommand::SetVariable {
            variable: 0,
            value: times as u64,
        }];
        all.extend(commands);
        all.push(ProgramCommand::JumpNotZero {
            variable: 0,
            offset: back,
        });
        stream(&all)
    };
    let receive = |bytes| ProgramCommand::Receive { bytes, clear: true };
    let send = |buffer| ProgramCommand::Send { buffer };
    let client = repeat(&[send(REQUEST), receive(32_000)], 20);
    let server = repeat(&[receive(100), send(RESPONSE)], 20);
    let mut world = World::new([&client, &server], &buffers());
    world.run(false);
    world.assert_over();
    assert_eq!(world.ends[0].counters.tcp.rcvbyte, 20 * 32_000);
    assert_eq!(world.ends[1].counters.tcp.rcvbyte, 20 * 100);
    assert_eq!(world.ends[0].counters.tcp.connects, 1);
}

#[test]
fn a_reset_ends_both() {
    let [_, server] = http();
    let client = stream(&[
        ProgramCommand::Send { buffer: REQUEST },
        ProgramCommand::Reset,
    ]);
    let mut world = World::new([&client, &server], &buffers());
    world.run(false);
    world.assert_over();
    assert_eq!(world.ends[1].counters.tcp.drops, 1);
}

#[test]
fn messages_go_both_ways_and_a_silence_ends_the_flow() {
    let receive = |messages| ProgramCommand::ReceiveMessages {
        messages,
        clear: false,
    };
    let send = |buffer| ProgramCommand::SendMessage { buffer };
    let client = datagrams(&[send(REQUEST), receive(2)]);
    let server = datagrams(&[receive(1), send(REQUEST), send(REQUEST), receive(9)]);
    let mut world = World::new([&client, &server], &buffers());
    world.run(false);
    world.assert_over();
    let [client, server] = &world.ends;
    let (client, server) = (&client.counters.udp, &server.counters.udp);
    assert_eq!((client.rcvpkt, client.rcvbyte), (2, 200));
    assert_eq!((server.rcvpkt, server.sndpkt), (1, 2));
    assert_eq!((client.keepdrops, server.keepdrops), (0, 1));
    assert_eq!((client.connects, server.accepts), (1, 1));
}

#[test]
fn a_message_that_fits_no_packet_is_counted() {
    let client = datagrams(&[
        ProgramCommand::SendMessage { buffer: RESPONSE },
        ProgramCommand::SendMessage { buffer: REQUEST },
    ]);
    let server = datagrams(&[ProgramCommand::ReceiveMessages {
        messages: 1,
        clear: false,
    }]);
    let mut world = World::new([&client, &server], &buffers());
    world.run(false);
    world.assert_over();
    assert_eq!(world.ends[0].counters.udp.pkt_toobig, 1);
    assert_eq!(world.ends[1].counters.udp.rcvbyte, 100);
}

#[test]
fn delays_take_their_time() {
    let client = stream(&[
        ProgramCommand::Connect,
        ProgramCommand::Delay {
            duration: 250 * MILLISECOND,
        },
        ProgramCommand::Send { buffer: REQUEST },
    ]);
    let server = stream(&[ProgramCommand::Receive {
        bytes: 100,
        clear: false,
    }]);
    let mut world = World::new([&client, &server], &buffers());
    let start = world.now;
    world.run(false);
    world.assert_over();
    // The connection, the delay, and TIME-WAIT of a second.
    let took = world.now - start;
    assert!((1250..1300).contains(&(took / MILLISECOND)), "{took}");
}

/// A client that sends `count` messages and a server that answers each, both with the add-on.
fn measured(count: u64) -> [ProgramSpec; 2] {
    let left = 0;
    let wait = ProgramCommand::ReceiveMessages {
        messages: 1,
        clear: false,
    };
    let again = |offset| ProgramCommand::JumpNotZero {
        variable: left,
        offset,
    };
    let begin = ProgramCommand::SetVariable {
        variable: left,
        value: count,
    };
    let send = |buffer| ProgramCommand::SendMessage { buffer };
    let delay = ProgramCommand::Delay {
        duration: 10 * MILLISECOND,
    };
    let addon = |commands: &[ProgramCommand]| ProgramSpec {
        addon: Some(Addon::Latency),
        ..datagrams(commands)
    };
    [
        addon(&[begin, send(REQUEST), wait, delay, again(-3)]),
        addon(&[begin, wait, send(REQUEST), again(-2)]),
    ]
}

#[test]
fn the_time_there_and_back_is_measured_in_messages() {
    for is_long in [false, true] {
        let [client, server] = measured(20);
        let mut world = World::new([&client, &server], &buffers());
        world.run(is_long);
        world.assert_over();
        let latency = |end: usize| world.ends[end].counters.latency.values();
        let round_us = 2 * DELAY / MICROSECOND;
        assert_eq!(latency(0), [round_us, round_us, 20, 20 * round_us, 20]);
        assert_eq!(latency(1), [0, 0, 0, 0, 20]);
        // Twelve bytes more each.
        let udp = |end: usize| &world.ends[end].counters.udp;
        assert_eq!((udp(0).sndbyte, udp(1).rcvbyte), (20 * 112, 20 * 112));
    }
}

#[test]
fn answers_without_the_header_are_not_measured() {
    let [client, mut server] = measured(3);
    server.addon = None;
    let mut world = World::new([&client, &server], &buffers());
    world.run(false);
    world.assert_over();
    assert_eq!(world.ends[0].counters.udp.rcvpkt, 3);
    assert_eq!(world.ends[0].counters.latency.values(), [0; 5]);
}

#[test]
fn a_message_that_fits_only_without_its_header_is_counted_as_too_long() {
    let mut buffers = buffers();
    buffers[0].bytes = Some(1514 - 14 - 4 - 20 - 8 - 11);
    let [client, server] = measured(1);
    let mut world = World::new([&client, &server], &buffers);
    world.run(false);
    assert_eq!(world.ends[0].counters.udp.pkt_toobig, 1);
    assert_eq!(world.ends[1].counters.udp.rcvpkt, 0);
}
