//! Streams in the tunnel of their port: within it stand the frames that are sent without one.

use std::collections::HashSet;
use std::net::Ipv4Addr;

use allosaur_engine::encapsulation::{Encapsulation, Stripped, Tunnel, Vxlan};
use allosaur_engine::stream::{CompileError, CoreShare, StreamSpec};
use allosaur_engine::time::{FCS_BYTES, MILLISECOND};
use allosaur_engine::vm::{Instruction, Operation, Width};
use allosaur_packet::MacAddress;
use allosaur_packet::frame;
use allosaur_packet::network::checksum::Sum;
use allosaur_packet::shared_payload::SplitFrame;
use proptest::prelude::*;

use super::bench::{Bench, facts, stream};
use super::reuse::{Kind, kind, spec, variable};

/// IPv4, UDP and VXLAN.
const HEADERS_BYTES: usize = 14 + 20 + 8 + 8;

fn tunnel() -> Vxlan {
    Vxlan {
        own: MacAddress(facts(1).source_mac),
        peer: MacAddress(facts(1).destination_mac),
        ..Vxlan::new(Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2), 7)
    }
}

/// What is sent in 20 ms, frame by frame.
fn sent(streams: &[StreamSpec], tunnel: Option<Tunnel>) -> Result<Vec<Vec<u8>>, CompileError> {
    let mut bench = Bench::new();
    bench.tunnel = tunnel;
    bench.start(streams, CoreShare::ONLY, Some(20 * MILLISECOND))?;
    bench.run_until(u64::MAX);
    let frames = bench.tx_queues.sent().iter();
    let frames: Vec<Vec<u8>> = frames.map(|sent| sent.bytes.clone()).collect();
    let bytes = frames.iter().map(|frame| frame.len() as u64 + FCS_BYTES);
    let counted = bench.engine.counters()[0].sent;
    assert_eq!(counted.bytes, bytes.sum::<u64>());
    Ok(frames)
}

/// The frame that the other end takes out, whose outer headers must be right.
fn taken_out(frame: &[u8]) -> &[u8] {
    taken_out_of(tunnel(), frame)
}

fn taken_out_of(ours: Vxlan, frame: &[u8]) -> &[u8] {
    let theirs = Vxlan {
        local: ours.remote,
        remote: ours.local,
        ..ours
    };
    let Stripped::Packet {
        packet_offset,
        came_in: Encapsulation::Tunnel(Tunnel::Vxlan(answer)),
        ..
    } = Encapsulation::from(theirs).strip(&SplitFrame::whole(0, frame))
    else {
        panic!("the other end finds no packet in {frame:02x?}");
    };
    assert_eq!(answer.vlan, ours.vlan);
    let ip = if ours.vlan.is_some() { 18 } else { 14 };
    let half = |at: usize| usize::from(u16::from_be_bytes([frame[at], frame[at + 1]]));
    assert_eq!(half(ip + 2), frame.len() - ip, "length of the IP packet");
    assert_eq!(Sum::of(&frame[ip..ip + 20]).checksum(), 0);
    assert_eq!(
        half(ip + 24),
        frame.len() - ip - 20,
        "length of the datagram"
    );
    assert!(half(ip + 20) >= 49_152, "a dynamic port");
    &frame[packet_offset - 14..]
}

proptest! {
    #[test]
    fn within_the_tunnel_stand_the_same_frames(
        kinds in prop::collection::vec(kind(), 1..4),
        vlan in prop::option::of(1..4_095_u16),
    ) {
        let tunnel = Vxlan { vlan, ..tunnel() };
        let headers_bytes = if vlan.is_some() { HEADERS_BYTES + 4 } else { HEADERS_BYTES };
        let streams: Vec<StreamSpec> = (0..).zip(&kinds).map(|(id, kind)| spec(id, *kind)).collect();
        let plain = sent(&streams, None).expect("they are right");
        let in_tunnel = sent(&streams, Some(Tunnel::Vxlan(tunnel))).expect("they are right");
        prop_assert_eq!(plain.len(), in_tunnel.len());
        for (plain, in_tunnel) in plain.iter().zip(&in_tunnel) {
            prop_assert_eq!(in_tunnel.len(), plain.len() + headers_bytes);
            prop_assert_eq!(taken_out_of(tunnel, in_tunnel), &plain[..]);
        }
    }
}

#[test]
fn mac_addresses_of_the_port_are_outside_and_those_of_the_tunnel_inside() {
    let inside = Vxlan {
        own: MacAddress([2, 0, 0, 0, 1, 1]),
        peer: MacAddress([2, 0, 0, 0, 1, 2]),
        ..tunnel()
    };
    let frames = sent(&[stream(0)], Some(Tunnel::Vxlan(inside))).expect("it is right");
    let (outer, inner) = (&frames[0][..12], &taken_out(&frames[0])[..12]);
    assert_eq!(outer, [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
    assert_eq!(inner, [2, 0, 0, 0, 1, 2, 2, 0, 0, 0, 1, 1]);
}

#[test]
fn the_outer_source_port_depends_on_the_flow_and_on_nothing_else() {
    let kind = Kind {
        bytes: 100,
        offset: 26,
        trims: false,
        is_measured: false,
        is_fixed: false,
    };
    let tunnel = Some(Tunnel::Vxlan(tunnel()));
    let ports = |streams: &[StreamSpec]| -> Vec<[u8; 2]> {
        let frames = sent(streams, tunnel).expect("they are right");
        frames.iter().map(|frame| [frame[34], frame[35]]).collect()
    };
    // The random field is the source address, then a byte of the payload.
    let addresses = ports(&[spec(0, kind)]);
    let distinct: HashSet<_> = addresses.iter().collect();
    assert!(distinct.len() > addresses.len() * 3 / 4, "{distinct:?}");
    let kind = Kind { offset: 60, ..kind };
    let payloads: HashSet<_> = ports(&[spec(0, kind)]).into_iter().collect();
    assert_eq!(payloads.len(), 1);
    // Two variables of a flow have a part of the bits each.
    let mut both = spec(0, Kind { offset: 26, ..kind });
    both.program.push(variable(
        "port",
        Width::Two,
        Operation::Increment,
        1_024,
        1_055,
    ));
    both.program.push(Instruction::Write {
        variable: "port".to_owned(),
        offset: 34,
        add: 0,
        big_endian: true,
    });
    let both = sent(&[both], tunnel).expect("it is right");
    for frame in &both {
        let inner = taken_out(frame);
        let outer_port = u16::from_be_bytes([frame[34], frame[35]]);
        let (address, port) = (u16::from(inner[29] & 0x7f), u16::from(inner[35] & 0x7f));
        assert_eq!(outer_port, 0xc000 | port << 7 | address);
    }
}

#[test]
fn a_tunnel_in_a_tunnel_and_a_frame_that_gets_too_long_are_refused() {
    let tunnel = Some(Tunnel::Vxlan(tunnel()));
    let packet = sent(&[stream(0)], tunnel).expect("it is right").remove(0);
    assert_eq!(frame::parse(&packet).end_offset as usize, packet.len());
    let nested = StreamSpec {
        packet,
        ..stream(3)
    };
    let error = sent(&[nested], tunnel).expect_err("it has a tunnel");
    assert_eq!(error, CompileError::TunnelInTunnel(3));
    let text = error.to_string();
    assert!(
        text.contains("stream 3") && text.contains("set_vxlan"),
        "{text}"
    );
    let long = StreamSpec {
        packet: vec![0; 9_200],
        ..stream(4)
    };
    let error = sent(&[long], tunnel).expect_err("it is too long");
    assert_eq!(
        error,
        CompileError::PacketSize {
            stream: 4,
            bytes: 9_250
        }
    );
}
