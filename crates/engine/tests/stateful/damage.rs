//! What is counted of frames that are damaged, and of flows that there is no room for.

use allosaur_engine::app::Transport;
use allosaur_engine::session::wire::{Addresses, Content, Envelope};
use allosaur_engine::tcp::{Segment, Seq, TcpCounters};
use allosaur_engine::template::Tunable;
use allosaur_engine::time::SECOND;
use allosaur_packet::network::checksum::{Sum, checksum};
use allosaur_packet::transport::tcp::TcpFlags;

use crate::outside::Ends;
use crate::world::{MS, World, ethernet_link, http, mac, profile, receive, send};

const NETWORK: usize = 14;
const TRANSPORT: usize = NETWORK + 20;

/// The same frame with other bytes, and the checksum of its IPv4 header right again.
fn changed(frame: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut frame = frame.to_vec();
    change(&mut frame);
    frame[NETWORK + 10..NETWORK + 12].fill(0);
    let sum = checksum(&frame[NETWORK..TRANSPORT]);
    frame[NETWORK + 10..NETWORK + 12].copy_from_slice(&sum.to_be_bytes());
    frame
}

fn damages(counters: &TcpCounters) -> [u64; 3] {
    [counters.rcvbadsum, counters.rcvbadoff, counters.rcvshort]
}

#[test]
fn damaged_segments_are_counted_where_their_flow_is() {
    let client = vec![send(0), receive(1_000_000)];
    let server = vec![receive(1_000_000)];
    let mut world = World::new(10);
    world.heard = Some(Vec::new());
    let profile = profile(Transport::Stream, [client, server], 1_000, 1.0);
    world.start(&profile, 1.0, Some(SECOND / 2));
    world.run_for(SECOND);
    assert_eq!(world.sides()[1].established, 1);
    let (port, syn) = world.heard.as_ref().expect("it listens")[0].clone();
    assert_eq!(port, 0);
    let right = world.sides()[1].flows.tcp.clone();
    let frames = [
        changed(&syn, |frame| frame[TRANSPORT + 4] ^= 1),
        changed(&syn, |frame| frame[TRANSPORT + 12] = 0x10),
        changed(&syn, |frame| frame[TRANSPORT + 12] = 0xf0),
        changed(&syn, |frame| frame[NETWORK + 3] = 20 + 12),
        // Too short to say whose it is; and a packet that ends before it should.
        changed(&syn, |frame| frame[NETWORK + 3] = 20 + 3),
        changed(&syn, |frame| frame[NETWORK + 2] = 1),
        // Nobody's.
        changed(&syn, |frame| frame[TRANSPORT] ^= 1),
    ];
    for frame in frames {
        world.inject(1, frame);
    }
    world.run_for(100 * MS);
    assert_eq!(damages(&world.sides()[1].flows.tcp), [1, 2, 1]);
    let others = TcpCounters {
        rcvbadsum: 0,
        rcvbadoff: 0,
        rcvshort: 0,
        ..world.sides()[1].flows.tcp.clone()
    };
    assert_eq!(others, right, "it did nothing else");
    let counters = &world.engine.counters()[1];
    assert_eq!((counters.err_l4_cs, counters.err_len_err), (2, 5));
    assert_eq!(damages(&world.sides()[0].flows.tcp), [0; 3]);
}

#[test]
fn damaged_segments_over_ipv6_are_counted_too() {
    let mut profile = http(1_000, 1.0);
    profile.client.set(Tunable::Ipv6Enable, 1);
    profile.server.set(Tunable::Ipv6Enable, 1);
    let mut world = World::new(10);
    world.heard = Some(Vec::new());
    world.delay = 50 * MS;
    world.start(&profile, 1.0, Some(SECOND / 2));
    world.run_for(80 * MS);
    let (_, mut syn) = world.heard.as_ref().expect("it listens")[0].clone();
    syn[NETWORK + 40 + 4] ^= 1;
    world.inject(1, syn);
    world.run_for(SECOND);
    assert_eq!(damages(&world.sides()[1].flows.tcp), [1, 0, 0]);
    assert_eq!(world.sides()[0].flows.tcp.rcvbyte, 1_000);
}

/// Who opens and closes at once is a scanner: BSD and Linux drop such a segment, too.
#[test]
fn a_syn_that_closes_opens_no_flow() {
    let ends = Ends::to_server(0x0a00_0001, 4_000);
    let both = TcpFlags::SYN | TcpFlags::FIN;
    for flags in [both, both | TcpFlags::PSH | TcpFlags::URG] {
        let mut world = World::new(10);
        world.heard = Some(Vec::new());
        world.start(&http(1_000, 0.0), 1.0, None);
        world.inject(1, ends.flags(flags, 100, 0));
        world.run_for(100 * MS);
        let server = &world.sides()[1];
        assert_eq!((server.active, server.flows.tcp.accepts), (0, 0));
        assert_eq!(server.flows.tcp.badsyn, 1);
        let answers = world.heard.iter().flatten().filter(|(port, _)| *port == 1);
        assert_eq!(answers.count(), 0, "it is not answered");
        // A SYN that only opens does.
        world.inject(1, ends.flags(TcpFlags::SYN, 100, 0));
        world.run_for(100 * MS);
        assert_eq!(world.sides()[1].flows.tcp.accepts, 1);
    }
}

#[test]
fn who_has_no_room_counts_whom_it_turned_away() {
    let mut world = World::new(1);
    world.start(&http(1_000, 10.0), 1.0, Some(SECOND));
    world.run_for(60 * SECOND);
    let [client, server] = world.engine.counters();
    // The first client has the one place, and its server none.
    assert!(client.err_flow_overflow > 0 && server.err_flow_overflow > 0);
    assert_eq!(client.err_c_nf_throttled, client.err_flow_overflow);
    assert_eq!(server.err_s_nf_throttled, server.err_flow_overflow);
    assert_eq!(client.err_s_nf_throttled + server.err_c_nf_throttled, 0);
}

#[test]
fn a_reset_without_room_is_counted() {
    let mut world = World::new(10);
    world.delay = SECOND;
    world.start(&http(1_000, 1.0), 1.0, Some(SECOND / 2));
    world.run_for(10 * MS);
    assert_eq!(world.sides()[0].active, 1);
    // An answer to a SYN that was never sent.
    let segment = Segment {
        flags: TcpFlags::SYN | TcpFlags::ACK,
        ack: Seq(1),
        ..Segment::default()
    };
    let address = |text: &str| text.parse().expect("an address");
    let envelope = Envelope {
        link: &ethernet_link(mac(1), mac(2), false),
        addresses: Addresses::V4(address("48.0.0.0"), address("16.0.0.0")),
        ports: (80, 1024),
        type_of_service: 0,
        time_to_live: 64,
        identification: 0,
    };
    let content = Content::Tcp(&segment);
    let mut frame = vec![0; envelope.frame_bytes(&content)];
    envelope.write(&content, &mut frame, |_| Sum::default());
    for (room, nombuf) in [(9, 0), (0, 1)] {
        world.limit_room(room);
        world.inject(0, frame.clone());
        world.run_for(10 * MS);
        assert_eq!(world.sides()[0].flows.tcp.nombuf, nombuf, "room {room}");
    }
}
