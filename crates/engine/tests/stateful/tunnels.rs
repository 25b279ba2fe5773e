//! Flows in QinQ, and in an encapsulation that the engine does not know: MPLS (RFC 3032) with one
//! label. `docs/how-to-add/encapsulation.md` tells of it.

use std::net::Ipv4Addr;
use std::sync::Arc;

use allosaur_engine::flow::AddressSpace;
use allosaur_engine::session::Encapsulation;
use allosaur_engine::session::wire::{Stripped, Tunnel};
use allosaur_engine::stateful::{Disposition, StatefulCommand};
use allosaur_engine::time::SECOND;
use allosaur_packet::frame;
use allosaur_packet::link::ethernet::EtherType;

use crate::world::{World, http, mac, syn};

const MPLS: u16 = 0x8847;
/// The type, and one label.
const PREFIX_BYTES: usize = 2 + 4;
const MACS_BYTES: usize = 12;

/// A label stack of one: all packets of a customer.
#[derive(Debug)]
struct Mpls {
    label: u32,
    space: u8,
}

impl Tunnel for Mpls {
    fn prefix_bytes(&self) -> usize {
        PREFIX_BYTES
    }

    fn write(&self, _: EtherType, _: usize, prefix: &mut [u8]) {
        let (bottom, hops) = (1 << 8, 64);
        prefix[..2].copy_from_slice(&MPLS.to_be_bytes());
        prefix[2..].copy_from_slice(&(self.label << 12 | bottom | hops).to_be_bytes());
    }

    fn strip(&self, frame: &[u8]) -> Option<Stripped> {
        let label = label_of(frame)?;
        // MPLS does not say what it carries: the version of the packet does.
        let packet = match frame.get(MACS_BYTES + PREFIX_BYTES)? >> 4 {
            4 => EtherType::IPV4,
            6 => EtherType::IPV6,
            _ => return None,
        };
        (label == self.label).then_some(Stripped {
            packet_offset: MACS_BYTES + PREFIX_BYTES,
            packet,
            reply: None,
        })
    }

    fn space(&self) -> AddressSpace {
        AddressSpace::new(self.space).expect("a small number")
    }
}

/// The label of a frame that has one, and no other.
fn label_of(frame: &[u8]) -> Option<u32> {
    let (kind, rest) = frame.get(MACS_BYTES..)?.split_first_chunk()?;
    let label = u32::from_be_bytes(*rest.first_chunk()?);
    let is_bottom = label & 1 << 8 != 0;
    (*kind == MPLS.to_be_bytes() && is_bottom).then_some(label >> 12)
}

/// A provider's edge: each of its customers has a label and addresses of its own.
#[derive(Debug)]
struct Edge(Vec<Arc<Mpls>>);

impl Tunnel for Edge {
    fn prefix_bytes(&self) -> usize {
        PREFIX_BYTES
    }

    fn write(&self, packet: EtherType, packet_bytes: usize, prefix: &mut [u8]) {
        self.0[0].write(packet, packet_bytes, prefix);
    }

    fn strip(&self, frame: &[u8]) -> Option<Stripped> {
        self.0.iter().find_map(|customer| {
            Some(Stripped {
                reply: Some(Encapsulation::Tunnel(customer.clone())),
                ..customer.strip(frame)?
            })
        })
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

/// A hundred flows with this on both ports; the frames that both sent.
fn run(encapsulation: &Encapsulation, bytes: u64, lost_ppm: u64) -> Vec<(u8, Vec<u8>)> {
    let mut world = World::new(1_000);
    world.heard = Some(Vec::new());
    world.lost_ppm = lost_ppm;
    for port in 0..2 {
        world.tell(set_link(port, encapsulation.clone()));
    }
    world.start(&http(bytes, 100.0), 1.0, Some(SECOND));
    world.run_for(60 * SECOND);
    assert_eq!(world.sides()[0].flows.tcp.rcvbyte, 100 * bytes);
    assert_eq!(
        (world.engine.flows(), world.engine.holdings().links),
        (0, 0)
    );
    world.heard.expect("it listened")
}

#[test]
fn flows_run_in_qinq() {
    let tags = Encapsulation::QinQ {
        outer: 0x6064,
        inner: 0x00c8,
    };
    for (_, frame) in run(&tags, 40_000, 0) {
        let layout = frame::parse(&frame);
        assert_eq!(layout.vlans(), [0x6064, 0x00c8]);
        assert_eq!(frame[12..14], [0x88, 0xa8]);
        assert_eq!(frame[16..18], [0x81, 0x00]);
        assert!(frame.len() <= 1514);
    }
}

#[test]
fn flows_run_in_an_encapsulation_from_outside_of_the_engine() {
    let labelled = Encapsulation::Tunnel(Arc::new(Mpls {
        label: 16,
        space: 0,
    }));
    let frames = run(&labelled, 40_000, 20_000);
    assert!(frames.iter().all(|(_, frame)| label_of(frame) == Some(16)));
    let longest = frames.iter().map(|(_, frame)| frame.len()).max();
    assert_eq!(longest, Some(1514), "segments leave room for the label");
}

#[test]
fn a_frame_of_another_label_belongs_to_no_flow() {
    let mut world = World::new(1_000);
    let labelled = Encapsulation::Tunnel(Arc::new(Mpls {
        label: 16,
        space: 0,
    }));
    world.tell(set_link(1, labelled));
    world.start(&http(1_000, 1.0), 1.0, Some(SECOND));
    let frame = labelled_syn(17);
    let whose = world
        .engine
        .handle_frame(world.now, 1, &frame, &mut world.queues);
    assert_eq!(whose, Disposition::Other);
    // One without a label is taken as it is.
    let frame = syn(Ipv4Addr::new(10, 0, 0, 1), SERVER, (4_000, 80));
    let whose = world
        .engine
        .handle_frame(world.now, 1, &frame, &mut world.queues);
    assert_eq!(whose, Disposition::Flow);
}

const SERVER: Ipv4Addr = Ipv4Addr::new(0x30, 0, 0, 1);

/// The SYN of one client, in a label.
fn labelled_syn(label: u32) -> Vec<u8> {
    let plain = syn(Ipv4Addr::new(10, 0, 0, 1), SERVER, (4_000, 80));
    let mut frame = plain[..MACS_BYTES].to_vec();
    let mut prefix = [0; PREFIX_BYTES];
    Mpls { label, space: 0 }.write(EtherType::IPV4, 0, &mut prefix);
    frame.extend(prefix);
    frame.extend(&plain[MACS_BYTES + 2..]);
    frame
}

#[test]
fn customers_with_the_same_addresses_have_flows_of_their_own() {
    let customers = [(100, 1), (200, 2)].map(|(label, space)| Arc::new(Mpls { label, space }));
    let mut world = World::new(1_000);
    world.heard = Some(Vec::new());
    world.tell(set_link(
        1,
        Encapsulation::Tunnel(Arc::new(Edge(customers.to_vec()))),
    ));
    world.clients = 0;
    world.start(&http(1_000, 1.0), 1.0, Some(SECOND));
    world.run_for(SECOND / 100);
    for label in [100, 200] {
        world.inject(1, labelled_syn(label));
    }
    world.run_for(SECOND / 100);
    assert_eq!(world.engine.flows(), 2);
    let heard = world.heard.as_ref().expect("it listens");
    let labels: Vec<_> = heard
        .iter()
        .filter_map(|(_, frame)| label_of(frame))
        .collect();
    assert_eq!(labels, [100, 200], "each is answered in its label");
}
