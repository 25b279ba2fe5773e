//! QUIC of quinn between a client port and a server port of one core, in virtual time: the carrier for
//! protocols that tell their connections apart themselves.

#[path = "../../../engine/tests/stateful/world.rs"]
#[allow(dead_code)]
mod world;

mod endpoint;
mod link;

use std::sync::{Arc, Mutex};

use allosaur_engine::app::{ProgramCommand, Transport};
use allosaur_engine::stateful::Holdings;
use allosaur_engine::template::{
    CompiledProfile, Layout, PoolShare, ProfileSpec, ProgramIndex, Tunable,
};
use allosaur_engine::time::{MILLISECOND, SECOND};
use allosaur_testkit::applications::byte_at;
use endpoint::{NAME, Quic, Tally};
use quinn_proto::{ClientConfig, ServerConfig};
use rustls::RootCertStore;
use rustls::pki_types::PrivateKeyDer;
use world::World;

const CLIENT: ProgramIndex = ProgramIndex(0);
const SERVER: ProgramIndex = ProgramIndex(1);
const TEXT_BYTES: u64 = 1 << 20;

/// A profile in whose programs' place QUIC runs.
fn profile(connections: u32) -> ProfileSpec {
    let wait = ProgramCommand::ReceiveMessages {
        messages: 1,
        clear: false,
    };
    let programs = [vec![wait], vec![wait]];
    let mut profile = world::profile(Transport::Datagram, programs, 1, 100.0);
    profile.buffers.clear();
    profile.templates[0].client.limit = Some(connections);
    profile
}

/// Both sides, and what they see.
struct Pair {
    sides: [Quic; 2],
    tallies: [Arc<Mutex<Tally>>; 2],
}

/// Clients and servers that trust each other.
fn pair() -> Pair {
    let identity = rcgen::generate_simple_self_signed([NAME.to_owned()]).expect("a certificate");
    let certificate = identity.cert.der().clone();
    let key = PrivateKeyDer::Pkcs8(identity.signing_key.serialize_der().into());
    let server = ServerConfig::with_single_cert(vec![certificate.clone()], key);
    let mut roots = RootCertStore::empty();
    roots.add(certificate).expect("it is a certificate");
    let client = ClientConfig::with_root_certificates(Arc::new(roots));
    let tallies: [Arc<Mutex<Tally>>; 2] = Default::default();
    let text: Vec<u8> = (0..TEXT_BYTES).map(byte_at).collect();
    let side = |tally: &Arc<Mutex<Tally>>| Quic {
        client: None,
        server: None,
        text: Arc::new(text.clone()),
        retries: false,
        tally: Arc::clone(tally),
    };
    let clients = Quic {
        client: Some(client.expect("a configuration")),
        ..side(&tallies[0])
    };
    let servers = Quic {
        server: Some(Arc::new(server.expect("a configuration"))),
        ..side(&tallies[1])
    };
    Pair {
        sides: [clients, servers],
        tallies,
    }
}

/// Runs all connections of a profile to their end: each sent and received the same. Returns what both
/// sides saw.
fn run(world: &mut World, spec: &ProfileSpec, pair: Pair) -> [Tally; 2] {
    run_share(world, spec, pair, 1)
}

/// The same on one of so many cores.
fn run_share(world: &mut World, spec: &ProfileSpec, pair: Pair, cores: u32) -> [Tally; 2] {
    let compiled = CompiledProfile::compile(spec, Layout::SMALLEST).expect("it is right");
    let [clients, servers] = pair.sides;
    let compiled = compiled.with_application(CLIENT, Arc::new(clients));
    let compiled = compiled.with_application(SERVER, Arc::new(servers));
    world.start_compiled(compiled);
    let limit = spec.templates[0].client.limit.expect("it has one");
    let connections = u64::from(limit / cores);
    for _ in 0..3_000 {
        world.run_for(SECOND / 5);
        world.engine.audit().expect("all holds");
        let judged = world.sides()[0].flows.outcomes.judged();
        if judged >= connections && world.engine.flows() == 0 {
            break;
        }
    }
    let outcomes = world.sides().each_ref().map(|side| {
        let outcomes = &side.flows.outcomes;
        (outcomes.completed, outcomes.judged())
    });
    assert_eq!(outcomes, [(connections, connections); 2]);
    assert_eq!(world.engine.holdings(), Holdings::default());
    let tallies = pair
        .tallies
        .map(|tally| std::mem::take(&mut *tally.lock().expect("no panic")));
    let all = || {
        tallies
            .iter()
            .flat_map(|tally| tally.hashes.iter().flatten())
    };
    assert_eq!(all().count() as u64, 4 * connections);
    let first = all().next().expect("there are some");
    assert!(all().all(|hash| hash == first), "what was sent came");
    tallies
}

#[test]
fn a_megabyte_goes_both_ways() {
    let mut world = World::new(100);
    let [clients, servers] = run(&mut world, &profile(5), pair());
    assert!(clients.batch_max > 1 && servers.batch_max > 1);
    assert_eq!((clients.lost, servers.lost), (0, 0));
    let [client, server] = world.sides();
    assert!(client.flows.udp.rcvbyte > 5 * TEXT_BYTES);
    assert_eq!(client.flows.udp.sndpkt, server.flows.udp.rcvpkt);
    assert_eq!(client.flows.udp.pkt_toobig, 0);
}

#[test]
fn it_does_so_over_ipv6() {
    let mut spec = profile(2);
    for side in [&mut spec.client, &mut spec.server] {
        side.set(Tunable::Ipv6Enable, 1);
    }
    let [clients, servers] = run(&mut World::new(100), &spec, pair());
    assert!(clients.ecn[0b10] > 100 && servers.ecn[0b10] > 100);
}

#[test]
fn bad_links_and_full_queues_only_take_longer() {
    // Lost, doubled, late: of a million frames.
    let links = [
        (20_000, 0, 0),
        (0, 50_000, 200_000),
        (10_000, 10_000, 50_000),
    ];
    for (seed, (lost, doubled, late)) in (1..).zip(links) {
        let mut world = World::new(100);
        world.delay = 2 * MILLISECOND;
        (world.lost_ppm, world.doubled_ppm, world.late_ppm) = (lost, doubled, late);
        world.seed_link(seed);
        run(&mut world, &profile(3), pair());
    }
    let mut world = World::new(100);
    world.limit_room(3);
    let [clients, _] = run(&mut world, &profile(3), pair());
    assert!(clients.batch_max > 3, "a batch goes out in parts");
}

#[test]
fn marks_of_routers_reach_the_peer_and_come_back() {
    let mut world = World::new(100);
    world.rewrites = Some(link::marks_each(200));
    let [clients, servers] = run(&mut world, &profile(2), pair());
    for seen in [&clients.ecn, &servers.ecn] {
        assert!(seen[0b10] > 100 && seen[0b11] > 0, "{seen:?}");
    }
    // Nothing was lost: what the senders slowed down for is the marks.
    assert_eq!((clients.lost, servers.lost), (0, 0));
    assert!(clients.congestion_events > 0 && servers.congestion_events > 0);
}

#[test]
fn a_connection_goes_on_from_another_port() {
    let mut world = World::new(100);
    world.rewrites = Some(link::moves_ports(300));
    let [_, servers] = run(&mut world, &profile(1), pair());
    let [first, last] = servers.ports[0];
    assert_eq!(last, link::moved(first));
    // No flow was made for the other port.
    assert_eq!(world.sides()[1].flows.udp.accepts, 1);
}

#[test]
fn without_room_for_a_flow_a_connection_waits() {
    // Two clients and one server.
    let mut world = World::new(3);
    let [_, servers] = run(&mut world, &profile(2), pair());
    assert!(servers.discarded > 0);
}

#[test]
fn ids_tell_the_core_that_gave_them() {
    let share = PoolShare {
        rank: 1,
        cores: 2,
        ..PoolShare::ONLY
    };
    let mut world = World::with_share(100, share);
    world.heard = Some(Vec::new());
    run_share(&mut world, &profile(2), pair(), 2);
    let heard = world.heard.take().expect("it listens");
    // The first of each side has a long header: version, the peer's id, its own (RFC 8999, section 5.1).
    for side in 0..2 {
        let mut frames = heard.iter().filter(|(port, _)| *port == side);
        let (_, frame) = frames.next().expect("it said something");
        let ids = &frame[42 + 5..];
        let own = &ids[1 + usize::from(ids[0])..];
        assert_eq!(own[..2], [endpoint::ID_BYTES as u8, 1]);
    }
}

#[test]
fn who_asks_is_told_to_show_where_it_is() {
    let mut pair = pair();
    pair.sides[1].retries = true;
    let mut world = World::new(100);
    run(&mut world, &profile(2), pair);
    let [client, server] = world.sides();
    // What is told is of no flow.
    assert!(client.flows.udp.rcvpkt > server.flows.udp.sndpkt);
    assert_eq!(server.flows.udp.accepts, 2);
}
