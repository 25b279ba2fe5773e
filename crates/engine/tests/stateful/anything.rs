//! Any life of a core with a client port and a server port: frames of its own conversations,
//! changed in any way, floods and garbage between them, commands, full queues, losses. No panic,
//! all rules hold after each step; and after the stop all ends, and nothing is left.
//!
//! This reading of bytes is shared by the property test (`fuzz`) and the fuzz target `stateful`.

use allosaur_engine::app::{ProgramCommand as Step, Transport};
use allosaur_engine::stateful::{Event, GroupCounters, Holdings, RunIndex, StatefulCommand};
use allosaur_engine::template::{ProfileSpec, Tunable};
use allosaur_engine::time::{MILLISECOND, Nanos, SECOND};
use allosaur_packet::transport::tcp::TcpFlags;

use crate::outside::{Bytes, Ends, change, judge};
use crate::world::{RUN, World, profile, receive, send};

/// The longest frame of the ports of [`World`].
const FRAME_BYTES_MAX: usize = 1514;
/// By then all is over that lost its other side: 13 timeouts of a minute at most, or 8 questions.
const END_MAX: Nanos = 7_200 * SECOND;
/// How long a life takes before its end, in virtual time and in turns of the core: what runs on and
/// on without anything from outside takes most of the time and finds nothing.
const TIME_MAX: Nanos = 60 * SECOND;
const TURNS_MAX: u32 = 1_000;
/// Frames that are remembered, to be sent again.
const REMEMBERED_MAX: usize = 256;
/// A second profile beside the first.
const BESIDE: RunIndex = RunIndex(3);

/// Lives the life that the bytes tell.
pub(crate) fn live(bytes: &[u8]) {
    let mut life = Life::begin(Bytes::new(bytes));
    while !life.bytes.is_empty() {
        life.step();
        life.check();
    }
    life.end();
}

struct Life<'a> {
    bytes: Bytes<'a>,
    world: World,
    /// Frames that passed, with the port that they arrived at.
    passed: Vec<(u8, Vec<u8>)>,
    /// Queues take a few frames a turn.
    is_narrow: bool,
    /// Virtual time that may still pass before the end.
    time_left: Nanos,
    /// Flows may wait for ever: for what their programs never say, or for what somebody else said
    /// in the name of the peer. Only an abort ends them.
    may_wait: bool,
    /// All counters, as they were.
    counted: Vec<u64>,
    has_beside: bool,
}

impl Life<'_> {
    fn begin(mut bytes: Bytes<'_>) -> Life<'_> {
        let mut world = World::new(bytes.pick(&[1_000, 1_000, 40, 5]));
        world.delay = bytes.pick(&[1, 1, 20, 200]) * MILLISECOND / 10;
        world.lost_ppm = bytes.pick(&[0, 0, 0, 20_000, 200_000]);
        world.heard = Some(Vec::new());
        world.turns_left = TURNS_MAX;
        let (profile, may_wait) = any_profile(&mut bytes);
        world.start(&profile, 1.0, None);
        Life {
            bytes,
            world,
            passed: Vec::new(),
            is_narrow: false,
            time_left: TIME_MAX,
            may_wait,
            counted: Vec::new(),
            has_beside: false,
        }
    }

    fn step(&mut self) {
        match self.bytes.byte() % 16 {
            0..=3 => {
                let tenths = Nanos::from(self.bytes.byte());
                self.pass(tenths * MILLISECOND / 10);
            }
            4..=9 => self.send_again(),
            10 => {
                let count = self.bytes.short() as usize % 300;
                let frame = self.bytes.garbage(count);
                self.inject(frame);
            }
            11 | 12 => self.flood(),
            13 => {
                let room = self.bytes.pick(&[usize::MAX, usize::MAX, 10, 1, 0]);
                self.is_narrow = room < usize::MAX;
                self.world.limit_room(room);
            }
            14 => self.command(),
            _ => {
                let span = self.bytes.pick(&[MILLISECOND, SECOND, 20 * SECOND]);
                self.pass(span);
            }
        }
    }

    fn pass(&mut self, span: Nanos) {
        // Who waits for room asks again every 10 µs: that takes long to simulate.
        let span = if self.is_narrow {
            span.min(MILLISECOND)
        } else {
            span
        };
        let span = span.min(self.time_left);
        self.time_left -= span;
        self.world.run_for(span);
    }

    /// A frame at one of the ports, or at one that there is not.
    fn inject(&mut self, frame: Vec<u8>) {
        let port = self.bytes.pick(&[0, 1, 1, 1, 0, 0, 1, 9]);
        self.world.inject(port, frame);
        self.pass(0);
    }

    /// A frame that passed, nearly.
    fn send_again(&mut self) {
        if self.passed.is_empty() {
            return self.pass(10 * MILLISECOND);
        }
        let back = self.bytes.byte() as usize % self.passed.len();
        let (port, frame) = &self.passed[self.passed.len() - 1 - back];
        let port = if self.bytes.byte() < 230 {
            *port
        } else {
            1 - *port
        };
        let frame = change(&mut self.bytes, frame);
        self.may_wait = true;
        for _ in 0..=self.bytes.pick(&[0, 0, 0, 5]) {
            self.world.inject(port, frame.clone());
        }
        self.pass(0);
    }

    /// Who has no address of ours asks, answers, ends and resets.
    fn flood(&mut self) {
        const ACK: TcpFlags = TcpFlags::ACK;
        for _ in 0..=self.bytes.byte() % 32 {
            let (from, port) = (self.bytes.word(), self.bytes.short() as u16);
            let ends = match self.bytes.byte() % 4 {
                0 => Ends::to_server_v6(from, from, port),
                _ => Ends::to_server(from, port),
            };
            let numbers = (self.bytes.word(), self.bytes.word());
            let flags = [
                TcpFlags::SYN,
                TcpFlags::SYN,
                ACK,
                TcpFlags::RST,
                ACK | TcpFlags::FIN,
            ];
            let frame = match self.bytes.byte() % 8 {
                0 => ends.datagram(10),
                _ => ends.flags(self.bytes.pick(&flags), numbers.0, numbers.1),
            };
            self.world.inject(1, frame);
        }
        self.pass(0);
    }

    fn command(&mut self) {
        match self.bytes.byte() % 4 {
            0 => self.world.tell(StatefulCommand::Update {
                run: RUN,
                factor: self.bytes.pick(&[0.1, 1.0, 3.0]),
            }),
            1 if !self.has_beside => {
                let (mut profile, may_wait) = any_profile(&mut self.bytes);
                self.may_wait |= may_wait;
                profile.templates[0].server.associations[0].port = 81;
                profile.templates[0].client.port = 81;
                self.world.start_as(BESIDE, &profile);
                self.has_beside = true;
            }
            2 if self.has_beside => {
                self.world.tell(StatefulCommand::Remove { run: BESIDE });
                self.has_beside = false;
                // What it had counted is gone with it.
                self.counted.clear();
            }
            _ => self.world.tell(StatefulCommand::Stop {
                run: RUN,
                abort: self.bytes.byte() < 64,
            }),
        }
    }

    fn check(&mut self) {
        if let Err(broken) = self.world.engine.audit() {
            panic!("{broken}");
        }
        let heard = self.world.heard.replace(Vec::new()).unwrap_or_default();
        for (port, frame) in heard {
            if let Err(wrong) = judge(&frame, FRAME_BYTES_MAX) {
                panic!("{wrong}: {frame:02x?}");
            }
            self.passed.push((1 - port, frame));
        }
        let old = self.passed.len().saturating_sub(REMEMBERED_MAX);
        self.passed.drain(..old);
        self.check_counters();
    }

    /// Counters only grow.
    fn check_counters(&mut self) {
        let engine = &self.world.engine;
        let table = engine.counters().iter().flat_map(|side| side.values());
        let runs = [RUN, BESIDE].into_iter();
        let groups = runs
            .filter_map(|run| engine.groups(run))
            .flatten()
            .flatten();
        let now: Vec<u64> = table.chain(groups.flat_map(values)).collect();
        for (before, after) in self.counted.iter().zip(&now) {
            assert!(before <= after, "a counter went back");
        }
        self.counted = now;
    }

    /// However it stands: after the stop all ends, and nothing is left.
    fn end(mut self) {
        self.world.limit_room(usize::MAX);
        self.world.turns_left = u32::MAX;
        for run in [RUN, BESIDE] {
            self.world.tell(StatefulCommand::Stop { run, abort: false });
        }
        self.world.run_for(END_MAX);
        self.check();
        if self.may_wait {
            for run in [RUN, BESIDE] {
                self.world.tell(StatefulCommand::Stop { run, abort: true });
            }
            self.world.run_for(SECOND);
        }
        assert_eq!(self.world.engine.holdings(), Holdings::default());
        let ended = |run| {
            let events = self.world.events.iter();
            events
                .filter(|event| matches!(event, Event::Ended { run: it, .. } if *it == run))
                .count()
        };
        assert_eq!(ended(RUN), 1, "its end is told, once");
        assert!(!self.has_beside || ended(BESIDE) >= 1);
        assert_eq!(
            self.world.engine.poll_timeout(),
            None,
            "nothing is left to do"
        );
        self.world.tell(StatefulCommand::Remove { run: RUN });
        assert!(self.world.engine.groups(RUN).is_none());
    }
}

fn values(group: &GroupCounters) -> Vec<u64> {
    let (tcp, udp) = (group.flows.tcp.values(), group.flows.udp.values());
    tcp.into_iter().chain(udp).chain([group.missed]).collect()
}

/// One of the shapes that programs have, with tunables as they come.
fn any_profile(bytes: &mut Bytes<'_>) -> (ProfileSpec, bool) {
    let response = bytes.pick(&[10, 10, 1_000, 1_000, 5_000, 40_000]);
    let rate_cps = bytes.pick(&[10.0, 50.0, 300.0]);
    let mut may_wait = false;
    let mut profile = match bytes.byte() % 4 {
        0 => {
            let programs = messages(bytes);
            profile(Transport::Datagram, programs, response.min(1_400), rate_cps)
        }
        1 if bytes.byte() < 64 => {
            may_wait = true;
            let programs = [vec![send(0), receive(response + 1)], vec![receive(1_000)]];
            profile(Transport::Stream, programs, response, rate_cps)
        }
        _ => profile(
            Transport::Stream,
            streams(bytes, response),
            response,
            rate_cps,
        ),
    };
    profile.templates[0].client.limit = Some(bytes.pick(&[40, 15, 4]));
    profile.templates[0].client.continuous = response < 20_000 && bytes.byte() < 30;
    let ipv6 = bytes.pick(&[0, 0, 1]);
    let ecn = bytes.pick(&[0, 1, 2]);
    let small = bytes.pick(&[32 << 10, 32 << 10, 1 << 10, 1 << 20]);
    let mss = bytes.pick(&[1_460, 1_460, 536, 300]);
    for side in [&mut profile.client, &mut profile.server] {
        side.set(Tunable::Ipv6Enable, ipv6);
        side.set(Tunable::Ecn, ecn);
        side.set(Tunable::ReceiveBuffer, small);
        side.set(Tunable::Mss, mss);
    }
    profile.client.set(Tunable::Sack, bytes.pick(&[1, 1, 0]));
    profile.client.set(Tunable::Rfc1323, bytes.pick(&[1, 1, 0]));
    profile
        .server
        .set(Tunable::Blackhole, bytes.pick(&[0, 0, 1, 2]));
    (profile, may_wait)
}

fn streams(bytes: &mut Bytes<'_>, response: u64) -> [Vec<Step>; 2] {
    let (ask, answer) = (send(0), send(1));
    let (heard, got) = (receive(100), receive(response));
    let wait = Step::Delay {
        duration: 30 * MILLISECOND,
    };
    match bytes.byte() % 6 {
        0 | 1 => [vec![ask, got], vec![heard, answer]],
        2 => [vec![ask, got, Step::Reset], vec![heard, answer]],
        3 => [vec![ask, got], vec![heard, answer, Step::WaitForPeerClose]],
        4 => {
            let mode = Step::SendMode { blocking: false };
            let twice = vec![mode, ask, ask, ask, receive(3 * response)];
            [twice, vec![mode, receive(300), answer, answer, answer]]
        }
        5 => {
            let loops = [
                Step::SetVariable {
                    variable: 0,
                    value: 4,
                },
                ask,
                wait,
                Step::JumpNotZero {
                    variable: 0,
                    offset: -2,
                },
            ];
            [loops.to_vec(), vec![heard, Step::WaitForPeerClose]]
        }
        _ => [
            vec![wait, ask, wait, got, wait],
            vec![Step::Connect, heard, wait, answer, Step::Reset],
        ],
    }
}

fn messages(bytes: &mut Bytes<'_>) -> [Vec<Step>; 2] {
    let message = |buffer| Step::SendMessage { buffer };
    let wait = |messages| Step::ReceiveMessages {
        messages,
        clear: false,
    };
    match bytes.byte() % 3 {
        0 => [vec![message(0), wait(1)], vec![wait(1), message(1)]],
        1 => {
            let alive = Step::Keepalive {
                timeout_ms: 3_000,
                received_only: true,
            };
            [
                vec![alive, message(0), message(0), wait(2)],
                vec![alive, wait(2), message(1), message(1), Step::CloseMessage],
            ]
        }
        _ => [vec![message(0), wait(9)], vec![wait(3), message(1)]],
    }
}
