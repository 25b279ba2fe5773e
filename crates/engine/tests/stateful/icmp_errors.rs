//! A router between clients and servers whose next link takes less than ours, or that knows no way: it
//! drops packets, and says why (RFC 792, RFC 1191, RFC 4443).

use allosaur_engine::app::{ProgramCommand as Step, Transport};
use allosaur_engine::template::{ProfileSpec, Tunable};
use allosaur_engine::time::SECOND;
use allosaur_packet::link::ethernet;
use allosaur_packet::network::checksum::pseudo_header_v6;
use allosaur_packet::network::icmpv4::{Icmpv4Header, Icmpv4View};
use allosaur_packet::network::icmpv6::{Icmpv6Header, Icmpv6View};
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv4::Ipv4View;
use allosaur_packet::network::ipv6::Ipv6View;

use crate::world::{MS, World, http, profile};

const IP: usize = ethernet::HEADER_BYTES;

fn fragmentation_needed(frame: &[u8], mtu_bytes: u16) -> Vec<u8> {
    unreachable_v4(frame, 4, mtu_bytes)
}

/// What a router tells the sender of an IPv4 frame: with the header and eight bytes of its packet.
fn unreachable_v4(frame: &[u8], code: u8, mtu_bytes: u16) -> Vec<u8> {
    let quoted = &frame[IP..IP + 28];
    let mut message = vec![0; 8];
    Icmpv4Header::DestinationUnreachable {
        code,
        next_hop_mtu_bytes: mtu_bytes,
    }
    .emit(&mut message);
    message.extend_from_slice(quoted);
    Icmpv4View::new_unchecked(&mut message[..]).fill_checksum();
    let mut reply = back(frame);
    reply.extend_from_slice(&quoted[..20]);
    let mut header = Ipv4View::new_unchecked(&mut reply[IP..]);
    header.set_total_bytes(20 + message.len() as u16);
    header.set_protocol(IpProtocol::ICMPV4);
    let (source, destination) = (header.source(), header.destination());
    header.set_source(destination);
    header.set_destination(source);
    header.fill_checksum();
    reply.extend_from_slice(&message);
    reply
}

fn packet_too_big(frame: &[u8], mtu_bytes: u32) -> Vec<u8> {
    told_v6(frame, Icmpv6Header::PacketTooBig { mtu_bytes })
}

/// The same over IPv6.
fn told_v6(frame: &[u8], header: Icmpv6Header) -> Vec<u8> {
    let quoted = &frame[IP..frame.len().min(IP + 1200)];
    let mut message = vec![0; 8];
    header.emit(&mut message);
    message.extend_from_slice(quoted);
    let asked = Ipv6View::new_unchecked(quoted);
    let (from, to) = (asked.destination(), asked.source());
    let sum = pseudo_header_v6(from, to, IpProtocol::ICMPV6, message.len() as u32);
    Icmpv6View::new_unchecked(&mut message[..]).fill_checksum(sum);
    let mut reply = back(frame);
    reply.extend_from_slice(&quoted[..40]);
    reply[IP + 4..IP + 6].copy_from_slice(&(message.len() as u16).to_be_bytes());
    reply[IP + 6] = IpProtocol::ICMPV6.0;
    reply[IP + 8..IP + 24].copy_from_slice(&from.octets());
    reply[IP + 24..IP + 40].copy_from_slice(&to.octets());
    reply.extend_from_slice(&message);
    reply
}

/// The Ethernet header of an answer to a frame.
fn back(frame: &[u8]) -> Vec<u8> {
    [&frame[6..12], &frame[..6], &frame[12..IP]].concat()
}

/// A world whose link takes packets of `mtu_bytes`.
fn narrow(mtu_bytes: usize) -> World {
    let mut world = World::new(100);
    world.delay = 5 * MS;
    world.frame_bytes_max = IP + mtu_bytes;
    world
}

/// Runs for `seconds`, and answers each frame that was dropped by `tell`, a little later.
fn run(world: &mut World, seconds: u64, tell: impl Fn(&[u8]) -> Vec<u8>) {
    for _ in 0..seconds * 200 {
        world.run_for(5 * MS);
        for (port, frame) in std::mem::take(&mut world.too_long) {
            world.inject(port, tell(&frame));
        }
    }
}

#[test]
fn segments_become_as_short_as_a_router_says() {
    for timestamps in [0, 1] {
        for mtu_bytes in [1400, 576] {
            let mut world = narrow(mtu_bytes);
            let mut profile = http(100_000, 1.0);
            profile.client.set(Tunable::Rfc1323, timestamps);
            profile.server.set(Tunable::Rfc1323, timestamps);
            world.start(&profile, 1.0, Some(SECOND / 2));
            let tell = |frame: &[u8]| fragmentation_needed(frame, mtu_bytes as u16);
            run(&mut world, 3, tell);
            let [client, server] = world.sides();
            assert_eq!(client.flows.tcp.rcvbyte, 100_000, "{mtu_bytes}");
            assert_eq!(server.flows.tcp.rexmttimeo, 0, "nobody waited");
        }
    }
}

#[test]
fn so_they_do_over_ipv6() {
    let mut world = narrow(1300);
    let mut profile = http(100_000, 1.0);
    profile.client.set(Tunable::Ipv6Enable, 1);
    profile.server.set(Tunable::Ipv6Enable, 1);
    world.start(&profile, 1.0, Some(SECOND / 2));
    run(&mut world, 3, |frame| packet_too_big(frame, 1300));
    assert_eq!(world.sides()[0].flows.tcp.rcvbyte, 100_000);
    assert_eq!(world.sides()[1].flows.tcp.rexmttimeo, 0);
}

/// RFC 1191, section 5: an old router says 0.
#[test]
fn a_router_that_does_not_say_what_fits_is_asked_again() {
    let mut world = narrow(1200);
    world.start(&http(100_000, 1.0), 1.0, Some(SECOND / 2));
    run(&mut world, 3, |frame| fragmentation_needed(frame, 0));
    assert_eq!(world.sides()[0].flows.tcp.rcvbyte, 100_000);
    assert_eq!(world.sides()[1].flows.tcp.rexmttimeo, 0);
}

/// Without a word, or with one that anybody may have made up, segments stay as long as they are.
#[test]
fn words_of_others_change_nothing() {
    type Spoilt = fn(&mut Vec<u8>);
    let spoilt: [Spoilt; 5] = [
        // The number of another segment.
        |reply| reply[IP + 20 + 8 + 24] ^= 0x40,
        // A port that no flow has.
        |reply| reply[IP + 20 + 8 + 22] ^= 0x40,
        // A later fragment, and another protocol.
        |reply| reply[IP + 20 + 8 + 7] = 9,
        |reply| reply[IP + 20 + 8 + 9] = 17,
        // Not even eight bytes.
        |reply| {
            reply.truncate(reply.len() - 1);
            reply[IP + 3] -= 1;
        },
    ];
    for spoil in spoilt {
        let mut world = narrow(1400);
        world.start(&http(100_000, 1.0), 1.0, Some(SECOND / 2));
        run(&mut world, 2, |frame| {
            let mut reply = fragmentation_needed(frame, 1400);
            spoil(&mut reply);
            Ipv4View::new_unchecked(&mut reply[IP..]).fill_checksum();
            Icmpv4View::new_unchecked(&mut reply[IP + 20..]).fill_checksum();
            reply
        });
        assert_eq!(world.sides()[0].flows.tcp.rcvbyte, 0);
        assert!(world.sides()[1].flows.tcp.rexmttimeo > 0);
    }
    // And with a wrong checksum.
    let mut world = narrow(1400);
    world.start(&http(100_000, 1.0), 1.0, Some(SECOND / 2));
    run(&mut world, 2, |frame| {
        let mut reply = fragmentation_needed(frame, 1400);
        reply[IP + 20 + 2] ^= 1;
        reply
    });
    assert_eq!(world.sides()[0].flows.tcp.rcvbyte, 0);
}

/// Flows that nobody takes are refused at once: no SYN is sent again, no message is waited for.
#[test]
fn what_nobody_takes_is_refused() {
    for (transport, ipv6, code) in [
        (Transport::Stream, 0, 3),
        (Transport::Stream, 0, 1),
        (Transport::Stream, 0, 13),
        (Transport::Stream, 1, 4),
        (Transport::Datagram, 0, 3),
        (Transport::Datagram, 1, 4),
    ] {
        let mut profile = match transport {
            Transport::Stream => http(1_000, 1.0),
            Transport::Datagram => messages(),
        };
        profile.client.set(Tunable::Ipv6Enable, ipv6);
        profile.server.set(Tunable::Ipv6Enable, ipv6);
        let mut world = narrow(1);
        world.start(&profile, 1.0, Some(SECOND / 2));
        run(&mut world, 1, |frame| match ipv6 {
            0 => unreachable_v4(frame, code, 0),
            _ => told_v6(frame, Icmpv6Header::DestinationUnreachable { code }),
        });
        let client = &world.sides()[0].flows;
        assert_eq!(client.outcomes.refused, 1, "{transport:?}, code {code}");
        assert_eq!(client.outcomes.unanswered, 1);
        assert_eq!(client.tcp.rexmttimeo_syn + client.udp.keepdrops, 0);
        assert_eq!(world.engine.flows(), 0);
    }
}

/// RFC 5927, section 5.2: a connection that is there lives on, whatever a router says of it.
#[test]
fn a_connection_that_is_there_is_not_refused() {
    let mut world = narrow(1400);
    world.start(&http(100_000, 1.0), 1.0, Some(SECOND / 2));
    run(&mut world, 1, |frame| unreachable_v4(frame, 1, 0));
    // The way is there again.
    world.frame_bytes_max = usize::MAX;
    world.run_for(10 * SECOND);
    assert_eq!(world.sides()[0].flows.tcp.rcvbyte, 100_000);
    assert_eq!(world.sides()[0].flows.outcomes.completed, 1);
}

/// A message, and an answer to it.
fn messages() -> ProfileSpec {
    let message = |buffer| Step::SendMessage { buffer };
    let wait = Step::ReceiveMessages {
        messages: 1,
        clear: false,
    };
    let programs = [vec![message(0), wait], vec![wait, message(1)]];
    profile(Transport::Datagram, programs, 512, 1.0)
}
