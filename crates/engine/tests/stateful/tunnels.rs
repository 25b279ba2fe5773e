//! Flows in QinQ, and in VXLAN (RFC 7348).

use std::net::Ipv4Addr;

use allosaur_engine::encapsulation::{Encapsulation, LinkPrefix, Stripped, Vxlan};
use allosaur_engine::stateful::{Disposition, StatefulCommand};
use allosaur_engine::template::Tunable;
use allosaur_engine::time::SECOND;
use allosaur_packet::frame;
use allosaur_packet::link::ethernet::{self, EtherType};
use allosaur_packet::network::checksum::{Sum, pseudo_header_v4};
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::shared_payload::SplitFrame;
use allosaur_packet::transport::udp::UdpView;

use crate::world::{World, http, mac, syn};

/// The ends of the tunnel, by port.
const ENDS: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];
/// What a tunnel over IPv4 puts in front of a frame.
const OUTER_BYTES: usize = 14 + 20 + 8 + 8;

/// The tunnel of a port.
fn vxlan(port: u8, vni: u32) -> Vxlan {
    let (local, remote) = (ENDS[usize::from(port)], ENDS[usize::from(1 - port)]);
    Vxlan {
        own: mac(11 + port),
        peer: mac(12 - port),
        ..Vxlan::new(local, remote, vni)
    }
}

fn set_link(port: u8, encapsulation: Encapsulation) -> StatefulCommand {
    StatefulCommand::SetLink {
        port,
        own_mac: mac(1 + port),
        peer_mac: mac(2 - port),
        encapsulation,
    }
}

/// A hundred flows with these on both ports; the frames that both sent.
fn run(links: [Encapsulation; 2], bytes: u64, lost_ppm: u64, is_v6: bool) -> Vec<(u8, Vec<u8>)> {
    let mut world = World::new(1_000);
    world.heard = Some(Vec::new());
    world.lost_ppm = lost_ppm;
    for (port, link) in (0..).zip(links) {
        world.tell(set_link(port, link));
    }
    let mut profile = http(bytes, 100.0);
    for tunables in [&mut profile.client, &mut profile.server] {
        tunables.set(Tunable::Ipv6Enable, u64::from(is_v6));
    }
    world.start(&profile, 1.0, Some(SECOND));
    world.run_for(60 * SECOND);
    assert_eq!(world.sides()[0].flows.tcp.rcvbyte, 100 * bytes);
    let holdings = world.engine.holdings();
    assert_eq!((holdings.flows, holdings.links, holdings.spaces), (0, 0, 0));
    world.heard.expect("it listened")
}

/// The network number and the frame in it.
fn inside(frame: &[u8]) -> (u32, &[u8]) {
    let vni = frame[OUTER_BYTES - 5..].first_chunk().expect("it is there");
    let [_, high, middle, low] = *vni;
    // The header of VXLAN ends with the number and a byte.
    (
        u32::from_be_bytes([0, high, middle, low]),
        &frame[OUTER_BYTES..],
    )
}

#[test]
fn flows_run_in_qinq() {
    let tags = Encapsulation::QinQ {
        outer: 0x6064,
        inner: 0x00c8,
    };
    for (_, frame) in run([tags; 2], 40_000, 0, false) {
        let layout = frame::parse(&frame);
        assert_eq!(layout.vlans(), [0x6064, 0x00c8]);
        assert_eq!(frame[12..14], [0x88, 0xa8]);
        assert_eq!(frame[16..18], [0x81, 0x00]);
        assert!(frame.len() <= 1514);
    }
}

#[test]
fn flows_run_in_vxlan_over_a_link_that_loses() {
    for is_v6 in [false, true] {
        let links = [0, 1].map(|port| vxlan(port, 100).into());
        let frames = run(links, 40_000, 20_000, is_v6);
        let longest = frames.iter().map(|(_, frame)| frame.len()).max();
        assert_eq!(longest, Some(1514), "segments leave room for the tunnel");
        let mut ports = std::collections::HashSet::new();
        for (port, frame) in &frames {
            let outer = frame::parse(frame);
            assert_eq!(Sum::of(&frame[14..34]).checksum(), 0);
            assert_eq!(frame[26..30], ENDS[usize::from(*port)].octets());
            assert_eq!(usize::from(outer.end_offset), frame.len(), "no padding");
            let (vni, inner) = inside(frame);
            assert_eq!(vni, 100);
            assert_eq!(inner[..6], mac(12 - port).0);
            let version = [EtherType::IPV4, EtherType::IPV6][usize::from(is_v6)];
            assert_eq!(frame::parse(inner).ether_type, version);
            ports.insert((port, u16::from_be_bytes([frame[34], frame[35]])));
        }
        assert!(ports.len() > 150, "a hundred flows have ports of their own");
    }
}

const SERVER: Ipv4Addr = Ipv4Addr::new(0x30, 0, 0, 1);

/// The SYN of one client, in a tunnel to the server's port.
fn tunnelled_syn(tunnel: Vxlan) -> Vec<u8> {
    let plain = syn(Ipv4Addr::new(10, 0, 0, 1), SERVER, (4_000, 80));
    let packet = &plain[ethernet::HEADER_BYTES..];
    let prefix = LinkPrefix::new(mac(2), mac(1), &tunnel.into(), EtherType::IPV4);
    let mut frame = vec![0; prefix.bytes()];
    prefix.write(packet.len(), || 7, &mut frame);
    frame.extend(packet);
    frame
}

/// A server at a port whose tunnel is that of network 100.
fn server_in_a_tunnel() -> World {
    let mut world = World::new(1_000);
    world.tell(set_link(1, vxlan(1, 100).into()));
    world.start(&http(1_000, 1.0), 1.0, Some(SECOND));
    world
}

/// Has the server handle a frame; gives the packets of other networks and the wrong headers that it has
/// counted, and how many flows there are.
fn counted_after(world: &mut World, frame: &[u8]) -> ((u64, u64), usize) {
    let whose = world
        .engine
        .handle_frame(world.now, 1, frame, &mut world.queues);
    assert_eq!(whose, Disposition::Flow);
    let counters = &world.engine.counters()[1];
    let counts = (counters.err_tunnel_network, counters.err_tunnel_header);
    (counts, world.engine.flows())
}

#[test]
fn a_frame_of_another_network_belongs_to_no_flow_and_is_counted() {
    let mut world = server_in_a_tunnel();
    let mut counted = |frame: &[u8]| counted_after(&mut world, frame);
    let frame = tunnelled_syn(vxlan(0, 101));
    assert_eq!(counted(&frame), ((1, 0), 0));
    let mut frame = tunnelled_syn(vxlan(0, 100));
    frame[42] = 0;
    assert_eq!(counted(&frame), ((1, 1), 0));
    // One without a tunnel is taken as it is.
    let frame = syn(Ipv4Addr::new(10, 0, 0, 1), SERVER, (4_000, 80));
    assert_eq!(counted(&frame), ((1, 1), 1));
    assert_eq!(counted(&tunnelled_syn(vxlan(0, 100))).1, 2);
}

#[test]
fn a_wrong_checksum_of_the_outer_datagram_is_counted_and_a_right_one_is_not() {
    let mut world = server_in_a_tunnel();
    let mut counted = |frame: &[u8]| counted_after(&mut world, frame);
    let mut frame = tunnelled_syn(vxlan(0, 100));
    let mut datagram = UdpView::new_unchecked(&mut frame[34..]);
    let bytes = datagram.length_bytes();
    datagram.fill_checksum(pseudo_header_v4(ENDS[0], ENDS[1], IpProtocol::UDP, bytes));
    // The last byte of the packet's options: the packet inside is wrong by that, too, and is not asked.
    let mut damaged = frame.clone();
    *damaged.last_mut().expect("it has bytes") ^= 1;
    assert_eq!(counted(&damaged), ((0, 1), 0));
    let mut of_another = frame.clone();
    of_another[40] ^= 1;
    assert_eq!(counted(&of_another), ((0, 2), 0));
    // What a short frame is padded with is no part of it.
    frame.extend([0xee; 4]);
    assert_eq!(counted(&frame), ((0, 2), 1));
}

#[test]
fn customers_with_the_same_addresses_have_flows_of_their_own() {
    let mut world = World::new(1_000);
    world.heard = Some(Vec::new());
    let any = Vxlan {
        takes_any_vni: true,
        ..vxlan(1, 0)
    };
    world.tell(set_link(1, any.into()));
    world.clients = 0;
    world.start(&http(1_000, 1.0), 1.0, Some(SECOND));
    world.run_for(SECOND / 100);
    for vni in [100, 200] {
        let from = Vxlan {
            local: Ipv4Addr::new(198, 51, 100, vni as u8),
            own: mac(vni as u8),
            ..vxlan(0, vni)
        };
        world.inject(1, tunnelled_syn(from));
    }
    world.run_for(SECOND / 100);
    assert_eq!(world.engine.flows(), 2);
    let heard = world.heard.as_ref().expect("it listens");
    let answers = heard.iter().map(|(_, frame)| {
        let (vni, inner) = inside(frame);
        (vni, frame[33], inner[5])
    });
    let answers: Vec<_> = answers.collect();
    let expected = [(100, 100, 100), (200, 200, 200)];
    assert_eq!(
        answers, expected,
        "each in its network, to its end and host"
    );
}

#[test]
fn a_tunnel_is_read_whatever_its_bytes_are() {
    let frame = tunnelled_syn(vxlan(0, 100));
    let link = Encapsulation::from(vxlan(1, 100));
    for bytes in 0..frame.len() {
        let stripped = link.strip(&SplitFrame::whole(0, &frame[..bytes]));
        let is_whole = bytes >= OUTER_BYTES + ethernet::HEADER_BYTES;
        let is_tunnel = matches!(
            stripped,
            Stripped::Packet { came_in, .. } if came_in.is_tunnel()
        );
        assert_eq!(is_tunnel, is_whole, "{bytes} bytes");
    }
}
