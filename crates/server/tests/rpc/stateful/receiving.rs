//! What ports take and answer in stateful mode: MAC filter, ping, VLAN tags.

use std::net::Ipv4Addr;

use allosaur_packet::network::icmpv4::{Icmpv4Header, Icmpv4View};
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv4::{Ipv4Header, Ipv4Options};
use allosaur_server::rx_taps::{MacFilter, ServiceMode};
use serde_json::{Value, json};

use super::world::Owned;
use crate::common::{User, World};

const MACS: [[u8; 6]; 2] = [[2, 0xa1, 5, 0, 0, 0], [2, 0xa1, 5, 0, 0, 1]];
const OWN: Ipv4Addr = Ipv4Addr::new(1, 1, 1, 2);
const PEER: Ipv4Addr = Ipv4Addr::new(1, 1, 1, 1);

fn filters(world: &World) -> Vec<MacFilter> {
    let observer = world.watchers.0.borrow();
    observer.receptions().map(|r| r.mac_filter).collect()
}

fn set(server: &mut Owned, port: u8, attributes: Value) {
    server.ok(
        "set_port_attr",
        json!({"port_id": port, "attr": attributes}),
    );
}

fn own(port: usize, multicast: bool) -> MacFilter {
    let mac = MACS[port];
    MacFilter::new(mac, false, multicast)
}

#[test]
fn a_port_takes_its_own_frames_until_it_is_promiscuous() {
    let mut server = Owned::new(1);
    server.world.begin_mac_filters(false);
    assert_eq!(filters(&server.world), [own(0, false), own(1, false)]);
    set(&mut server, 0, json!({"promiscuous": {"enabled": true}}));
    assert_eq!(filters(&server.world), [MacFilter::Any, own(1, false)]);
    set(&mut server, 1, json!({"multicast": {"enabled": true}}));
    assert_eq!(filters(&server.world), [MacFilter::Any, own(1, true)]);
    set(&mut server, 0, json!({"promiscuous": {"enabled": false}}));
    assert_eq!(filters(&server.world), [own(0, false), own(1, true)]);
}

#[test]
fn ports_that_begin_promiscuous_take_everything_until_a_client_says_otherwise() {
    let mut server = Owned::new(1);
    server.world.begin_mac_filters(true);
    assert_eq!(filters(&server.world), [MacFilter::Any; 2]);
    let status = server.ok("get_port_status", json!({"port_id": 0}));
    assert_eq!(status["attr"]["promiscuous"]["enabled"], true);
    set(&mut server, 0, json!({"promiscuous": {"enabled": false}}));
    assert_eq!(filters(&server.world), [own(0, false), MacFilter::Any]);
}

#[test]
fn ports_with_streams_alone_take_everything() {
    let mut world = World::new(1);
    world.begin_mac_filters(false);
    let user = User::with_port(&mut world, "ann", 1);
    let on = json!({"enabled": true});
    let attributes = json!({"port_id": 0, "attr": {"multicast": on}});
    world.ok("set_port_attr", user.params(attributes));
    assert_eq!(filters(&world), [MacFilter::Any; 2]);
}

/// An echo request of port 0 to port 1.
fn ping() -> Vec<u8> {
    let mut message = vec![0; 24];
    let request = Icmpv4Header::EchoRequest {
        identifier: 7,
        sequence: 1,
    };
    request.emit(&mut message);
    Icmpv4View::new_unchecked(&mut message).fill_checksum();
    let header = Ipv4Header {
        type_of_service: 0,
        total_bytes: 20 + message.len() as u16,
        identification: 1,
        dont_fragment: false,
        more_fragments: false,
        fragment_offset_bytes: 0,
        time_to_live: 64,
        protocol: IpProtocol::ICMPV4,
        source: PEER,
        destination: OWN,
        options: Ipv4Options::EMPTY,
    };
    let mut bytes = vec![0; 20];
    header.emit(&mut bytes);
    [&MACS[1], &MACS[0], &[8, 0][..], &bytes, &message].concat()
}

fn answers(world: &World) -> usize {
    let mut observer = world.watchers.0.borrow_mut();
    // What it announces by itself is not meant.
    observer.poll_transmit(world.now_ns, |_, _| true);
    observer.handle_received(world.now_ns, 1, &ping());
    observer.poll_transmit(world.now_ns, |_, _| true)
}

#[test]
fn ping_is_answered_without_service_mode() {
    let mut server = Owned::new(1);
    let handler = server.ports["1"].clone();
    let addresses = json!({"port_id": 1, "handler": handler, "src_addr": OWN.to_string(),
        "dst_addr": PEER.to_string(), "resolved_mac": "02:a1:05:00:00:00", "block": false});
    server.ok("set_l3", addresses);
    assert_eq!(answers(&server.world), 1);
    for enabled in [true, false] {
        server.ok("service", json!({"enabled": enabled}));
        assert_eq!(answers(&server.world), 1, "service mode {enabled}");
    }
    let modes = server.world.watchers.0.borrow();
    assert!(modes.receptions().all(|r| r.service == ServiceMode::Off));
}

#[test]
fn flows_carry_one_vlan_tag() {
    let mut server = Owned::new(1);
    let handler = server.ports["0"].clone();
    let tags =
        |tags: &[u16]| json!({"port_id": 0, "handler": handler, "vlan": tags, "block": false});
    let (_, told) = server.refused("set_vlan", tags(&[12, 13]));
    assert!(
        told.contains("'vlan' has 2 tags") && told.contains("one tag"),
        "{told}"
    );
    server.ok("set_vlan", tags(&[12]));
    server.ok("set_vlan", tags(&[]));
}
