//! Small profiles, made up from a seed, with what each side says.

use std::collections::HashMap;

use allosaur_engine::app::{BufferSpec, ProgramCommand, ProgramSpec, Transport};
use allosaur_engine::template::{
    AssociationSpec, ClientSpec, Distribution, PerCore, PoolSpec, ProfileSpec, ServerSpec, Side,
    TemplateSpec, Tunable, TunablesSpec,
};
use allosaur_engine::time::{MILLISECOND, Nanos};
use allosaur_server::sim::stateful::SimRng;

/// What both sides of the flows on a server's port say.
#[derive(Debug, Default)]
pub(crate) struct Talk {
    /// All that the client sends in a connection, and all that the server sends.
    pub(crate) streams: [Vec<u8>; 2],
    /// The messages that each may send.
    pub(crate) messages: [Vec<Vec<u8>>; 2],
    /// It ends by a reset.
    pub(crate) resets: bool,
}

/// A profile, and what its flows say, by the server's port.
pub(crate) struct Made {
    pub(crate) spec: ProfileSpec,
    pub(crate) talks: HashMap<u16, Talk>,
    /// Flows that begin by themselves, and those that programs may make beside them.
    pub(crate) flows: u64,
    pub(crate) executed: u64,
    /// Flows that end are replaced for so long.
    pub(crate) lasts: Option<Nanos>,
}

fn place(side: Side) -> usize {
    usize::from(side == Side::Server)
}

fn other(side: Side) -> Side {
    if side == Side::Client {
        Side::Server
    } else {
        Side::Client
    }
}

/// One of these.
fn one_of<T: Copy>(chance: &mut SimRng, values: &[T]) -> T {
    values[chance.below(values.len() as u64) as usize]
}

/// Makes a profile up.
pub(crate) fn make(chance: &mut SimRng) -> Made {
    let count = 1 + chance.below(3) as u16;
    let is_ipv6 = chance.happens(0.3);
    let segment_bytes = one_of(chance, &[10, 100, 536, 1200, 1460, 1460]);
    let mut made = Made {
        spec: ProfileSpec {
            pools: pools(chance),
            client: tunables(chance, is_ipv6),
            server: tunables(chance, is_ipv6),
            ..ProfileSpec::default()
        },
        talks: HashMap::new(),
        flows: 0,
        executed: 0,
        lasts: None,
    };
    // Clients and servers keep to one size, so that its choice bounds the work.
    made.spec.client.set(Tunable::Mss, segment_bytes);
    made.spec.server.set(Tunable::Mss, segment_bytes);
    for number in 0..count {
        let port = 80 + number;
        let mut author = Author {
            chance,
            buffers: &mut made.spec.buffers,
            programs: Default::default(),
            talk: Talk::default(),
            bytes_max: 12 * segment_bytes,
        };
        let transport = match author.chance.below(4) {
            0 => author.write_messages(),
            1 => author.write_loop(),
            _ => author.write_stream(),
        };
        let Author { programs, talk, .. } = author;
        let limit = 1 + chance.below(3) as u32;
        let rate_cps = one_of(chance, &[1.0, 20.0, 1000.0]);
        let first = made.spec.programs.len() as u32;
        let programs = programs.map(|commands| ProgramSpec {
            commands,
            transport,
            addon: None,
        });
        made.spec.programs.extend(programs);
        made.spec
            .templates
            .push(template(port, first, limit, rate_cps));
        made.talks.insert(port, talk);
        made.flows += u64::from(limit);
    }
    // A silence ends a flow of messages before the one that it waits for.
    let may_wait = made.spec.programs[0].transport == Transport::Stream;
    if count > 1 && may_wait && chance.happens(0.3) {
        execute(&mut made, count);
    } else if chance.happens(0.1) {
        made.lasts = Some((1 + chance.below(2000)) * MILLISECOND);
        for template in &mut made.spec.templates {
            template.client.continuous = true;
        }
    }
    made
}

/// Lets the flows of the first template make one of the last, first of all.
fn execute(made: &mut Made, count: u16) {
    let last = &mut made.spec.templates[usize::from(count) - 1];
    made.flows -= u64::from(last.client.limit.take().unwrap_or(0));
    last.client.rate_cps = 0.0;
    last.group = 1;
    made.spec.groups.push("made".to_owned());
    let first = &made.spec.templates[0];
    made.executed = u64::from(first.client.limit.unwrap_or(0));
    let program = &mut made.spec.programs[first.client.program as usize];
    let set = ProgramCommand::SetTemplate { group: 1 };
    // To connect is always first.
    let at = usize::from(program.commands[0] == ProgramCommand::Connect);
    let steps = [set, ProgramCommand::ExecuteTemplate];
    program.commands.splice(at..at, steps);
}

fn template(port: u16, program: u32, limit: u32, rate_cps: f64) -> TemplateSpec {
    TemplateSpec {
        client: ClientSpec {
            program,
            client_pool: 0,
            server_pool: 1,
            port,
            rate_cps,
            limit: Some(limit),
            continuous: false,
            core_base: 0,
            tunables: TunablesSpec::default(),
        },
        server: ServerSpec {
            program: program + 1,
            associations: vec![AssociationSpec::port(port)],
            tunables: TunablesSpec::default(),
        },
        group: 0,
    }
}

fn pools(chance: &mut SimRng) -> Vec<PoolSpec> {
    let mut pool = |first: u32, count, side| PoolSpec {
        first,
        last: first + 1 + chance.below(count) as u32,
        distribution: one_of(chance, &[Distribution::Sequence, Distribution::Random]),
        side,
        offset: 0x0100_0000,
        per_core: PerCore::Default,
        hosts: None,
    };
    vec![
        pool(0x1000_0001, 4, Side::Client),
        pool(0x3000_0001, 4, Side::Server),
    ]
}

fn tunables(chance: &mut SimRng, is_ipv6: bool) -> TunablesSpec {
    let choices: [(Tunable, &[u64]); 14] = [
        (Tunable::InitialWindow, &[1, 2, 10, 20]),
        (Tunable::ReceiveBuffer, &[1 << 10, 2000, 1 << 15, 1 << 20]),
        (Tunable::TransmitBuffer, &[1 << 10, 3000, 1 << 15]),
        (Tunable::NoDelay, &[0, 1, 2, 3]),
        (Tunable::NoDelayCounter, &[0, 1, 1000]),
        (Tunable::RetransmitThreshold, &[1, 3, 10]),
        (Tunable::Rfc1323, &[0, 1]),
        (Tunable::Sack, &[0, 1]),
        (Tunable::CongestionControl, &[0, 1]),
        (Tunable::Ecn, &[0, 1, 2]),
        (Tunable::ReassemblyQueue, &[0, 1, 4, 100]),
        (Tunable::KeepIdle, &[2, 5, 60]),
        (Tunable::DelayedAck, &[20, 100, 500]),
        (Tunable::Tos, &[0, 32]),
    ];
    let mut spec = TunablesSpec::default();
    // Connections on bad links need time to come to be.
    spec.set(Tunable::KeepInit, 200);
    spec.set(Tunable::Ipv6Enable, u64::from(is_ipv6));
    for (tunable, values) in choices {
        if chance.happens(0.3) {
            spec.set(tunable, one_of(chance, values));
        }
    }
    spec
}

/// Writes two programs that go together.
struct Author<'a> {
    chance: &'a mut SimRng,
    buffers: &'a mut Vec<BufferSpec>,
    /// The client's, the server's.
    programs: [Vec<ProgramCommand>; 2],
    talk: Talk,
    /// Bytes that a side says in a turn at most.
    bytes_max: u64,
}

impl Author<'_> {
    /// Adds a buffer. Returns its number and its bytes.
    fn buffer(&mut self, bytes_max: u64) -> (u32, Vec<u8>) {
        let bytes = 1 + self.chance.below(bytes_max);
        let base = 0..bytes.min(1 + self.chance.below(64));
        let base: Vec<u8> = base.map(|_| self.chance.bits() as u8).collect();
        let fill = 1 + self.chance.below(200);
        let fill: Vec<u8> = (0..fill).map(|_| self.chance.bits() as u8).collect();
        let rest = fill.iter().copied().cycle();
        let rest = rest.take((bytes as usize).saturating_sub(base.len()));
        let all = base.iter().copied().chain(rest).collect();
        self.buffers.push(BufferSpec {
            base,
            bytes: Some(bytes),
            fill,
        });
        (self.buffers.len() as u32 - 1, all)
    }

    fn add(&mut self, side: Side, command: ProgramCommand) {
        self.programs[place(side)].push(command);
    }

    fn maybe_wait(&mut self, side: Side) {
        if !self.chance.happens(0.2) {
            return;
        }
        let duration = self.chance.below(60) * MILLISECOND;
        let command = match self.chance.below(2) {
            0 => ProgramCommand::Delay { duration },
            _ => ProgramCommand::DelayRandom {
                min: duration,
                max: duration + 5 * MILLISECOND,
            },
        };
        self.add(side, command);
    }

    /// A stream: turns of either side, each of one or several sends.
    fn write_stream(&mut self) -> Transport {
        self.begin_stream();
        let mut arrived = [0_u64; 2];
        for _ in 0..1 + self.chance.below(4) {
            let from = one_of(self.chance, &[Side::Client, Side::Server]);
            self.maybe_wait(from);
            for _ in 0..1 + self.chance.below(2) {
                let (buffer, bytes) = self.buffer(self.bytes_max);
                self.add(from, ProgramCommand::Send { buffer });
                self.talk.streams[place(from)].extend(bytes);
            }
            let to = place(other(from));
            arrived[to] = self.talk.streams[place(from)].len() as u64;
            self.maybe_wait(other(from));
            let bytes = arrived[to];
            let clear = false;
            self.add(other(from), ProgramCommand::Receive { bytes, clear });
        }
        self.end_stream();
        Transport::Stream
    }

    fn begin_stream(&mut self) {
        for side in [Side::Client, Side::Server] {
            if self.chance.happens(0.3) {
                self.add(side, ProgramCommand::Connect);
            }
            if self.chance.happens(0.3) {
                self.add(side, ProgramCommand::SendMode { blocking: false });
            }
        }
    }

    fn end_stream(&mut self) {
        let side = one_of(self.chance, &[Side::Client, Side::Server]);
        match self.chance.below(8) {
            0 | 1 => self.add(side, ProgramCommand::WaitForPeerClose),
            2 => {
                self.talk.resets = true;
                self.add(side, ProgramCommand::Reset);
            }
            _ => {}
        }
    }

    /// A stream that asks and answers several times, by a variable.
    fn write_loop(&mut self) -> Transport {
        self.begin_stream();
        let rounds = 1 + self.chance.below(4);
        let (asked, question) = self.buffer(self.bytes_max / 4 + 1);
        let (told, answer) = self.buffer(self.bytes_max / 2 + 1);
        let receive = |bytes: &[u8]| ProgramCommand::Receive {
            bytes: bytes.len() as u64,
            clear: true,
        };
        let ask = [ProgramCommand::Send { buffer: asked }, receive(&answer)];
        let tell = [receive(&question), ProgramCommand::Send { buffer: told }];
        let variable = self.chance.below(5) as u32;
        for (side, body) in [(Side::Client, ask), (Side::Server, tell)] {
            let value = rounds;
            self.add(side, ProgramCommand::SetVariable { variable, value });
            for command in body {
                self.add(side, command);
            }
            let offset = -(body.len() as i64);
            self.add(side, ProgramCommand::JumpNotZero { variable, offset });
        }
        for _ in 0..rounds {
            self.talk.streams[0].extend(&question);
            self.talk.streams[1].extend(&answer);
        }
        self.end_stream();
        Transport::Stream
    }

    /// Messages, one asked, one answered, several times.
    fn write_messages(&mut self) -> Transport {
        for side in [Side::Client, Side::Server] {
            let keepalive = ProgramCommand::Keepalive {
                timeout_ms: 5000,
                received_only: self.chance.happens(0.5),
            };
            self.add(side, keepalive);
        }
        for messages in 1..=1 + self.chance.below(4) {
            for from in [Side::Client, Side::Server] {
                let (buffer, bytes) = self.buffer(1400);
                self.maybe_wait(from);
                self.add(from, ProgramCommand::SendMessage { buffer });
                let clear = false;
                self.add(
                    other(from),
                    ProgramCommand::ReceiveMessages { messages, clear },
                );
                self.talk.messages[place(from)].push(bytes);
            }
        }
        Transport::Datagram
    }
}
