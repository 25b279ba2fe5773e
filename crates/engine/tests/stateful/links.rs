//! MAC addresses and VLANs of frames, and whom nobody answers.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;

use allosaur_engine::encapsulation::Encapsulation;
use allosaur_engine::stateful::topology::{Interface, Route, Topology};
use allosaur_engine::stateful::{Blocklist, Disposition, StatefulCommand};
use allosaur_engine::template::{ProfileSpec, Tunable};
use allosaur_engine::time::SECOND;
use allosaur_packet::{MacAddress, frame};

use crate::world::{World, http, mac};

/// Destination, source and VLAN of the frames that left a port.
type Link = (MacAddress, MacAddress, Option<u16>);

fn link_of(frame: &[u8]) -> Link {
    let six = |at: usize| MacAddress(frame[at..at + 6].try_into().expect("six bytes"));
    let two = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    (six(0), six(6), (two(12) == 0x8100).then(|| two(14)))
}

fn links(world: &World, from: u8) -> BTreeSet<Link> {
    let heard = world.heard.as_ref().expect("it listens");
    let from = heard.iter().filter(|(port, _)| *port == from);
    from.map(|(_, frame)| link_of(frame)).collect()
}

/// The link of the frames to or from a client.
fn links_of_client(world: &World, from: u8, client: Ipv4Addr) -> BTreeSet<Link> {
    let heard = world.heard.as_ref().expect("it listens");
    let from = heard.iter().filter(|(port, _)| *port == from);
    // The client's address: where frames of port 0 come from, and others go to.
    let is_its = |(port, frame): &&(u8, Vec<u8>)| {
        let network = usize::from(frame::parse(frame).network_offset);
        frame[network + 12 + usize::from(4 * port)..].starts_with(&client.octets())
    };
    from.filter(is_its)
        .map(|(_, frame)| link_of(frame))
        .collect()
}

fn run(mut world: World, profile: &ProfileSpec) -> World {
    world.heard = Some(Vec::new());
    world.start(profile, 1.0, Some(SECOND));
    world.run_for(3 * SECOND);
    assert_eq!(world.sides()[0].flows.tcp.rcvbyte, 100 * 1_000);
    assert_eq!(world.engine.flows(), 0);
    world
}

fn one<T: Ord>(one: T) -> BTreeSet<T> {
    BTreeSet::from([one])
}

#[test]
fn clients_use_the_link_that_was_set_and_servers_answer_it() {
    let mut world = World::new(1_000);
    let set = |port| StatefulCommand::SetLink {
        port,
        own_mac: mac(11 + port),
        peer_mac: mac(21 + port),
        encapsulation: Encapsulation::Vlan(0x2007),
    };
    world.tell(set(0));
    world.tell(set(1));
    // A port that there is not is no matter.
    world.tell(set(9));
    let world = run(world, &http(1_000, 100.0));
    assert_eq!(links(&world, 0), one((mac(21), mac(11), Some(0x2007))));
    assert_eq!(links(&world, 1), one((mac(11), mac(12), Some(0x2007))));
}

#[test]
fn servers_answer_to_their_gateway_when_asked() {
    let mut profile = http(1_000, 100.0);
    profile.server.set(Tunable::DontUseInboundMac, 1);
    let mut world = World::new(1_000);
    world.tell(StatefulCommand::SetLink {
        port: 1,
        own_mac: mac(2),
        peer_mac: mac(99),
        encapsulation: Encapsulation::Ethernet,
    });
    let world = run(world, &profile);
    assert_eq!(links(&world, 1), one((mac(99), mac(2), None)));
}

#[test]
fn flows_that_there_are_keep_their_link() {
    let mut world = World::new(1_000);
    world.heard = Some(Vec::new());
    world.delay = 100_000_000;
    world.start(&http(1_000, 1.0), 1.0, Some(SECOND / 2));
    world.run_for(SECOND / 10);
    world.tell(StatefulCommand::SetLink {
        port: 0,
        own_mac: mac(11),
        peer_mac: mac(2),
        encapsulation: Encapsulation::Ethernet,
    });
    world.run_for(5 * SECOND);
    assert_eq!(world.sides()[0].flows.tcp.rcvbyte, 1_000);
    assert_eq!(links(&world, 0), one((mac(2), mac(1), None)));
}

#[test]
fn clients_of_a_topology_have_their_own_interfaces_and_gateways() {
    let first = 0x1000_0000_u32;
    let route = |from: u32, to: u32, number: u8| Route {
        port: 0,
        first: first + from,
        last: first + to,
        interface: Some(Interface {
            mac: mac(100 + number),
            encapsulation: Encapsulation::Vlan(number.into()),
        }),
        gateway: Some(mac(200 + number)),
    };
    let routes = [
        route(0, 9, 1),
        route(10, 19, 2),
        // Another port's.
        Route {
            port: 2,
            ..route(20, 29, 3)
        },
    ];
    let topology = Topology::new(&routes).expect("nothing overlaps");
    let mut world = World::new(1_000);
    world.tell(StatefulCommand::SetTopology(Arc::new(topology)));
    let world = run(world, &http(1_000, 100.0));
    let client = |number: u32| Ipv4Addr::from(first + number);
    for (number, way, back) in [
        (
            0,
            (mac(201), mac(101), Some(1)),
            (mac(101), mac(2), Some(1)),
        ),
        (
            9,
            (mac(201), mac(101), Some(1)),
            (mac(101), mac(2), Some(1)),
        ),
        (
            10,
            (mac(202), mac(102), Some(2)),
            (mac(102), mac(2), Some(2)),
        ),
        (20, (mac(2), mac(1), None), (mac(1), mac(2), None)),
    ] {
        assert_eq!(links_of_client(&world, 0, client(number)), one(way));
        assert_eq!(links_of_client(&world, 1, client(number)), one(back));
    }
}

#[test]
fn clients_that_rest_leave_the_rate_to_the_others() {
    let first = 0x1000_0000_u32;
    let mut world = World::new(10_000);
    world.heard = Some(Vec::new());
    let enable = |from: u32, to: u32, enabled| StatefulCommand::EnableClients {
        first: first + from,
        last: first + to,
        enabled,
    };
    // Of 256 clients, 4 to 7 and 253 are left.
    world.tell(enable(0, 252, false));
    world.tell(enable(254, 1 << 20, false));
    world.tell(enable(4, 7, true));
    world.start(&http(1_000, 1_000.0), 1.0, Some(SECOND));
    world.run_for(3 * SECOND);
    assert_eq!(world.sides()[0].flows.tcp.closed, 1_000);
    let mut flows = [0; 256];
    for (port, frame) in world.heard.as_ref().expect("it listens") {
        let is_syn = *port == 0 && frame[47] == 0x02;
        flows[usize::from(frame[29])] += u32::from(is_syn);
    }
    for (client, flows) in flows.iter().enumerate() {
        let is_awake = matches!(client, 4..=7 | 253);
        assert_eq!(*flows, if is_awake { 200 } else { 0 }, "client {client}");
    }
}

#[test]
fn when_all_rest_nothing_begins_until_one_is_woken() {
    let mut world = World::new(10_000);
    let enable = |first, last, enabled| StatefulCommand::EnableClients {
        first,
        last,
        enabled,
    };
    world.start(&http(1_000, 100.0), 1.0, Some(3 * SECOND));
    world.run_for(SECOND);
    world.tell(enable(0, u32::MAX, false));
    let before = world.sides()[0].flows.tcp.connattempt;
    world.run_for(SECOND);
    assert_eq!(world.sides()[0].flows.tcp.connattempt, before);
    assert_eq!(world.sides()[0].active, 0, "flows that there are go on");
    world.tell(enable(0x1000_0080, 0x1000_0080, true));
    world.run_for(3 * SECOND);
    let after = world.sides()[0].flows.tcp.connattempt;
    assert!((99..=101).contains(&(after - before)));
    assert_eq!(world.engine.counters()[0].err_c_tuple_err, 0);
}

#[test]
fn who_is_ignored_gets_no_answer() {
    let mut profile = http(1_000, 100.0);
    profile.pools[0].last = profile.pools[0].first + 9;
    let client = |number: u32| Ipv4Addr::from(0x1000_0000 + number);
    for (macs, addresses, served) in [
        (vec![], vec![client(3), client(4)], 80),
        (vec![mac(1)], vec![], 0),
    ] {
        let mut world = World::new(1_000);
        world.heard = Some(Vec::new());
        let ignored = Blocklist::new(macs, addresses);
        world.tell(StatefulCommand::SetIgnored(Arc::new(ignored)));
        world.start(&profile, 1.0, Some(SECOND));
        world.run_for(20 * SECOND);
        let [_, server] = world.sides();
        assert_eq!(server.flows.tcp.accepts, served);
        let counters = &world.engine.counters()[1];
        assert_eq!(
            (counters.ignored_macs > 0, counters.ignored_ips > 0),
            (served == 0, served == 80)
        );
        assert_eq!(counters.err_no_syn + counters.err_no_template, 0);
        assert!(links_of_client(&world, 1, client(3)).is_empty());
    }
}

#[test]
fn frames_are_told_apart() {
    let mut world = World::new(1_000);
    world.start(&http(1_000, 1.0), 1.0, Some(SECOND));
    let mut take = |port, frame: &[u8]| {
        world
            .engine
            .handle_frame(world.now, port, frame, &mut world.queues)
    };
    let mut arp = vec![0xff; 42];
    arp[12..14].copy_from_slice(&[8, 6]);
    assert_eq!(take(0, &arp), Disposition::Other);
    assert_eq!(take(7, &arp), Disposition::Other);
    let client = "16.0.0.1".parse().expect("an address");
    let server = "48.0.0.1".parse().expect("an address");
    let syn = |port| crate::world::syn(client, server, (1025, port));
    assert_eq!(take(1, &syn(80)), Disposition::Flow);
    assert_eq!(take(1, &syn(81)), Disposition::Unmatched);
    assert_eq!(take(0, &syn(80)), Disposition::Unmatched);
    let mut bent = syn(80);
    bent[40] ^= 1;
    assert_eq!(
        take(1, &bent),
        Disposition::Flow,
        "it was counted as broken"
    );
}
