//! Several cores behind a card that shares out by RSS: clients begin flows from ports by which the
//! answers come to their own core.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use allosaur_engine::app::{ProgramCommand as Step, Transport};
use allosaur_engine::encapsulation::Encapsulation;
use allosaur_engine::stateful::{
    CLIENT_PORT_MIN, Config, Event, FlowPortInfo, FlowTableCounters, RunLimits, StatefulCommand,
    StatefulEngine,
};
use allosaur_engine::template::{CompiledProfile, Layout, PoolShare, ProfileSpec, Side, Tunable};
use allosaur_engine::time::{MICROSECOND, Nanos, SECOND};
use allosaur_engine::transmit::PortIndex;
use allosaur_packet::frame::{self, Network};
use allosaur_packet::rss::{HashFunction, Rss, RssShare};
use allosaur_packet::shared_payload::SplitFrame;

use crate::executions::chain;
use crate::hosts::with_hosts;
use crate::world::{Queues, RUN, START, http, mac, profile, receive, send};

const DELAY: Nanos = 50 * MICROSECOND;

/// Cores that share two ports, and the cards of both.
struct Cores {
    now: Nanos,
    engines: Vec<(StatefulEngine, Queues)>,
    /// Which core reads what arrives at each port.
    cards: [Card; 2],
    under_way: BTreeMap<(Nanos, u64), (usize, PortIndex, Vec<u8>)>,
    sent: u64,
    ended: usize,
    /// Where frames of clients came from: the last byte of the address, and the port.
    heard: Option<BTreeSet<(u8, u16)>>,
}

/// Shares out by a key, bit by bit as the specification has it.
#[derive(Clone)]
struct Card {
    key: Vec<u8>,
    table: Vec<u16>,
    function: HashFunction,
}

impl Card {
    fn new(seed: u64, cores: u16, function: HashFunction) -> Card {
        let mut state = seed;
        let mut next = move || {
            // SplitMix64.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (mixed.wrapping_mul(0x94d0_49bb_1331_11eb) >> 56) as u8
        };
        Card {
            key: (0..52).map(|_| next()).collect(),
            table: (0..128).map(|entry| entry % cores).collect(),
            function,
        }
    }

    fn rss(&self) -> Arc<Rss> {
        let rss = Rss::new(&self.key, &self.table, self.function);
        Arc::new(rss.expect("a whole key"))
    }

    /// The queue of a frame; the first of one that is neither TCP nor UDP.
    fn queue(&self, bytes: &[u8]) -> usize {
        let layout = frame::parse(bytes);
        let network = usize::from(layout.network_offset);
        let addresses = match layout.network {
            Network::Ipv4 => network + 12..network + 20,
            Network::Ipv6 => network + 8..network + 40,
            _ => return 0,
        };
        let ports = usize::from(layout.transport_offset);
        let mut input = [&bytes[addresses], &bytes[ports..ports + 4]].concat();
        if self.function == HashFunction::SymmetricXor {
            let (addresses, ports) = input.split_at_mut(layout_half(layout.network) * 2);
            for half in [addresses, ports] {
                let (one, other) = half.split_at_mut(half.len() / 2);
                for (one, other) in one.iter_mut().zip(other) {
                    *one ^= *other;
                    *other = *one;
                }
            }
        }
        let bit = |bytes: &[u8], at: usize| bytes[at / 8] >> (7 - at % 8) & 1;
        let mut hash = 0u32;
        for at in (0..input.len() * 8).filter(|at| bit(&input, *at) == 1) {
            hash ^= (at..at + 32).fold(0, |sum, at| sum << 1 | u32::from(bit(&self.key, at)));
        }
        usize::from(self.table[hash as usize % self.table.len()])
    }
}

fn layout_half(network: Network) -> usize {
    if network == Network::Ipv4 { 4 } else { 16 }
}

impl Cores {
    fn new(cores: usize, cards: [Card; 2], encapsulation: &Encapsulation) -> Cores {
        let rss = cards[0].rss();
        let engine = |core: usize| {
            let share = RssShare::new(Arc::clone(&rss), |queue| usize::from(queue) == core);
            assert!(share.is_reached_by(CLIENT_PORT_MIN..=u16::MAX));
            let port = |side, own, peer| {
                Some(FlowPortInfo {
                    side,
                    own_mac: mac(own),
                    peer_mac: mac(peer),
                    encapsulation: *encapsulation,
                    frame_bytes_max: 1514,
                    share: PoolShare {
                        rank: core as u32,
                        cores: cores as u32,
                        ..PoolShare::ONLY
                    },
                })
            };
            let config = Config {
                ports: vec![port(Side::Client, 1, 2), port(Side::Server, 2, 1)],
                rss: vec![Some(Arc::new(share))],
                flows_max: 1 << 15,
                seed: 42 + core as u64,
            };
            (StatefulEngine::new(config, START), Queues::new())
        };
        Cores {
            now: START,
            engines: (0..cores).map(engine).collect(),
            cards,
            under_way: BTreeMap::new(),
            sent: 0,
            ended: 0,
            heard: None,
        }
    }

    fn start(&mut self, profile: &ProfileSpec) {
        let cores = self.engines.len() as u32;
        let profile = CompiledProfile::compile(profile, Layout { cores, pairs: 1 });
        self.start_compiled(profile.expect("the profile is right"));
    }

    fn start_compiled(&mut self, profile: CompiledProfile) {
        let profile = Arc::new(profile);
        for (engine, queues) in &mut self.engines {
            let command = StatefulCommand::Start {
                run: RUN,
                profile: Arc::clone(&profile),
                factor: 1.0,
                start_at: self.now,
                duration: None,
                clients: u32::MAX,
                limits: RunLimits::default(),
            };
            engine.handle_command(self.now, command, queues);
        }
    }

    /// Until all cores have told that the run is over.
    fn run(&mut self) {
        let give_up = self.now + 30 * SECOND;
        while self.ended < self.engines.len() {
            assert!(self.now < give_up, "all flows end");
            while let Some(first) = self.under_way.first_entry() {
                if first.key().0 > self.now {
                    break;
                }
                let (core, port, bytes) = first.remove();
                let frame = [SplitFrame::whole(self.now, &bytes)];
                let (engine, queues) = &mut self.engines[core];
                engine.handle_frames(self.now, port, &frame, queues, |_, _| {});
            }
            self.turn();
            let due = self
                .engines
                .iter()
                .filter_map(|(engine, _)| engine.poll_timeout());
            let due = due.chain(self.under_way.keys().map(|key| key.0)).min();
            self.now = due.unwrap_or(0).max(self.now + MICROSECOND);
        }
    }

    fn turn(&mut self) {
        for (engine, queues) in &mut self.engines {
            engine.poll_transmit(self.now, false, queues);
            while let Some(Event::Ended { .. }) = engine.poll_event() {
                self.ended += 1;
            }
            for port in 0..2 {
                for bytes in queues.take(port) {
                    let to = 1 - port;
                    let core = self.cards[to].queue(&bytes);
                    if let (0, Some(heard)) = (port, &mut self.heard) {
                        heard.insert((bytes[29], u16::from_be_bytes([bytes[34], bytes[35]])));
                    }
                    self.sent += 1;
                    let at = (self.now + DELAY, self.sent);
                    self.under_way.insert(at, (core, to as PortIndex, bytes));
                }
            }
        }
    }

    /// Checks that so many flows came and went, that each core had some on both sides, and that no
    /// frame came to the wrong one.
    fn check(&self, flows: u64) {
        let mut sums = [0; 2];
        for (core, (engine, _)) in self.engines.iter().enumerate() {
            let none = FlowTableCounters::default();
            assert_eq!(engine.counters(), &[none.clone(), none], "core {core}");
            let mut own = [0; 2];
            for group in engine.groups(RUN).expect("it ran") {
                for (sum, side) in own.iter_mut().zip(group) {
                    *sum += side.flows.tcp.closed + side.flows.udp.closed;
                    let lost = side.flows.tcp.rexmttimeo + side.flows.udp.keepdrops;
                    assert_eq!((side.active, lost), (0, 0), "core {core}");
                }
            }
            assert!(own.iter().all(|closed| *closed > 0), "core {core}: {own:?}");
            sums = [sums[0] + own[0], sums[1] + own[1]];
        }
        assert_eq!(sums, [flows, flows]);
    }
}

const FLOWS: u32 = 600;

/// Runs a profile on so many cores behind two cards with keys of their own.
fn check_profile(profile: &ProfileSpec, cores: usize, function: HashFunction) {
    let card = |seed| Card::new(seed, cores as u16, function);
    let mut cores = Cores::new(cores, [card(7), card(8)], &Encapsulation::Ethernet);
    cores.start(profile);
    cores.run();
    cores.check(FLOWS.into());
}

fn limited(mut profile: ProfileSpec) -> ProfileSpec {
    profile.templates[0].client.limit = Some(FLOWS);
    profile
}

/// A message and its answer.
fn messages() -> ProfileSpec {
    let message = |buffer| Step::SendMessage { buffer };
    let wait = Step::ReceiveMessages {
        messages: 1,
        clear: false,
    };
    let programs = [vec![message(0), wait], vec![wait, message(1)]];
    limited(profile(Transport::Datagram, programs, 512, 10_000.0))
}

fn over_ipv6(mut profile: ProfileSpec) -> ProfileSpec {
    profile.client.set(Tunable::Ipv6Enable, 1);
    profile.server.set(Tunable::Ipv6Enable, 1);
    profile
}

#[test]
fn answers_come_to_the_core_that_asked() {
    for function in [HashFunction::Toeplitz, HashFunction::SymmetricXor] {
        for cores in [2, 3, 8] {
            check_profile(&limited(http(3000, 10_000.0)), cores, function);
            check_profile(&messages(), cores, function);
        }
    }
}

#[test]
fn so_they_do_over_ipv6() {
    for function in [HashFunction::Toeplitz, HashFunction::SymmetricXor] {
        check_profile(&over_ipv6(limited(http(3000, 10_000.0))), 4, function);
        check_profile(&over_ipv6(messages()), 4, function);
    }
}

#[test]
fn so_they_do_in_a_vlan_and_from_a_table_that_is_not_even() {
    let mut cards = [7, 8].map(|seed| Card::new(seed, 3, HashFunction::Toeplitz));
    // The last core gets one frame of 64.
    cards[0].table = (0..128)
        .map(|entry| if entry % 64 == 9 { 2 } else { entry % 2 })
        .collect();
    let mut cores = Cores::new(3, cards, &Encapsulation::Vlan(7));
    cores.start(&limited(http(3000, 10_000.0)));
    cores.run();
    cores.check(FLOWS.into());
}

#[test]
fn so_do_those_of_connections_that_programs_open() {
    let get = || [vec![send(0), receive(1_000)], vec![receive(100), send(1)]];
    let opening = vec![
        Step::SetTemplate { group: 2 },
        send(0),
        receive(1_000),
        Step::ExecuteTemplate,
    ];
    let [_, server] = get();
    // The second template has another port of the server.
    let profile = limited(chain(10_000.0, vec![[opening, server], get()]));
    let card = |seed| Card::new(seed, 4, HashFunction::Toeplitz);
    let mut cores = Cores::new(4, [card(7), card(8)], &Encapsulation::Ethernet);
    cores.start(&profile);
    cores.run();
    cores.check(2 * u64::from(FLOWS));
}

#[test]
fn so_they_do_for_hosts_with_prefixes_of_their_own() {
    let addresses: Vec<String> = (0..40)
        .map(|n| format!("2001:db8:{n}::{}", n % 7))
        .collect();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let layout = Layout { cores: 4, pairs: 1 };
    let compiled = with_hosts(limited(http(3000, 10_000.0)), layout, &addresses, &[], 0);
    let card = |seed| Card::new(seed, 4, HashFunction::Toeplitz);
    let mut cores = Cores::new(4, [card(7), card(8)], &Encapsulation::Ethernet);
    cores.start_compiled(compiled);
    cores.run();
    cores.check(FLOWS.into());
}

#[test]
fn a_client_uses_each_port_once_before_it_begins_again() {
    let mut spec = limited(http(100, 100_000.0));
    spec.pools[0].last = spec.pools[0].first + 3;
    spec.pools[1].last = spec.pools[1].first + 3;
    spec.templates[0].client.limit = Some(20_000);
    let mut cores = {
        let card = |seed| Card::new(seed, 4, HashFunction::Toeplitz);
        Cores::new(4, [card(7), card(8)], &Encapsulation::Ethernet)
    };
    cores.heard = Some(BTreeSet::new());
    cores.start(&spec);
    cores.run();
    cores.check(20_000);
    assert_eq!(cores.heard.map(|ends| ends.len()), Some(20_000));
}
