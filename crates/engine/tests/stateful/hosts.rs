//! Clients that are hosts: each with an address, a MAC address and a gateway of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use allosaur_engine::app::{ProgramCommand as Step, Transport};
use allosaur_engine::stateful::StatefulCommand;
use allosaur_engine::template::{
    CompiledProfile, HostNetwork, HostTable, Layout, PoolHost, PoolShare, PoolSpec, ProfileSpec,
    Side, Tunable,
};
use allosaur_engine::time::SECOND;
use allosaur_engine::transmit::PortIndex;
use allosaur_packet::frame::{self, Network};

use crate::world::{MS, RUN, World, http, mac, profile, receive, send};

const NETWORK: HostNetwork = HostNetwork {
    port: 0,
    tags: [allosaur_engine::template::HostTag { tpid: 0, vlan: 0 }; 2],
    hosts_min: 1,
};

/// Who sends a frame, in which VLAN and to which gateway.
type Sender = (IpAddr, [u8; 6], [u8; 6], Option<u16>);

fn compiled(spec: ProfileSpec, addresses: &[&str], tags: &[u16], at: PortIndex) -> CompiledProfile {
    with_hosts(spec, Layout::SMALLEST, addresses, tags, at)
}

/// A profile whose clients are hosts of these addresses.
pub(crate) fn with_hosts(
    mut spec: ProfileSpec,
    layout: Layout,
    addresses: &[&str],
    tags: &[u16],
    at: PortIndex,
) -> CompiledProfile {
    let is_ipv6 = addresses[0].contains(':');
    for side in [&mut spec.client, &mut spec.server] {
        side.set(Tunable::Ipv6Enable, is_ipv6.into());
    }
    spec.pools[0] = PoolSpec {
        hosts: Some(NETWORK),
        ..PoolSpec::new(Side::Client, 0, 0)
    };
    let compiled = CompiledProfile::compile(&spec, layout);
    let compiled = compiled.expect("the profile is right");
    assert_eq!(compiled.host_networks(), [(NETWORK, is_ipv6)]);
    let hosts = addresses.iter().zip(101..).map(|(address, number)| {
        let address = address.parse().expect("an address");
        PoolHost::new(address, mac(number), mac(number + 100))
    });
    let table = HostTable::new(at, tags.to_vec(), is_ipv6, hosts.collect());
    compiled.with_hosts(NETWORK, is_ipv6, &Arc::new(table))
}

/// Who sent from the clients' port, and how many frames.
fn senders(world: &World) -> BTreeMap<Sender, u32> {
    let mut senders = BTreeMap::new();
    for (port, frame) in world.heard.as_ref().expect("it listens") {
        if *port == 0 {
            *senders.entry(sender(frame)).or_default() += 1;
        }
    }
    senders
}

fn sender(frame: &[u8]) -> Sender {
    let six = |at: usize| <[u8; 6]>::try_from(&frame[at..at + 6]).expect("six bytes");
    let layout = frame::parse(frame);
    let network = &frame[usize::from(layout.network_offset)..];
    let address = if layout.network == Network::Ipv6 {
        IpAddr::from(<[u8; 16]>::try_from(&network[8..24]).expect("sixteen bytes"))
    } else {
        IpAddr::from(<[u8; 4]>::try_from(&network[12..16]).expect("four bytes"))
    };
    (address, six(6), six(0), layout.vlans().first().copied())
}

/// What the senders must be.
fn expected(addresses: &[&str], vlan: Option<u16>) -> BTreeSet<Sender> {
    let senders = addresses.iter().zip(101..).map(|(address, number)| {
        let address = address.parse().expect("an address");
        (
            address,
            mac(number).octets(),
            mac(number + 100).octets(),
            vlan,
        )
    });
    senders.collect()
}

fn run(profile: CompiledProfile) -> World {
    let mut world = World::new(1_000);
    world.heard = Some(Vec::new());
    world.start_compiled(profile);
    world.run_for(SECOND - MS);
    world.tell(StatefulCommand::Stop {
        run: RUN,
        abort: false,
    });
    world.run_for(3 * SECOND);
    assert_eq!(world.engine.flows(), 0);
    crate::assert_nothing_wrong(&world);
    world
}

#[test]
fn hosts_send_from_their_own_addresses_to_their_own_gateways() {
    let addresses = ["10.9.0.7", "192.168.3.4", "10.200.0.1", "10.9.0.9"];
    for (tags, vlan) in [(&[][..], None), (&[7], Some(7)), (&[9, 8], Some(9))] {
        let world = run(compiled(http(1_000, 100.0), &addresses, tags, 0));
        assert_eq!(world.sides()[0].flows.tcp.rcvbyte, 100 * 1_000);
        let senders = senders(&world);
        let shares: BTreeSet<u32> = senders.values().copied().collect();
        assert_eq!(shares.len(), 1, "all take turns: {senders:?}");
        let senders: BTreeSet<Sender> = senders.into_keys().collect();
        assert_eq!(senders, expected(&addresses, vlan));
    }
}

#[test]
fn of_ipv6_all_bits_are_their_own() {
    // The first two differ only before their last 32 bits.
    let addresses = [
        "2001:db8:1::fe01:1",
        "2001:db8:2::fe01:1",
        "2001:db8:2:3:4:5:6:7",
    ];
    let world = run(compiled(http(1_000, 90.0), &addresses, &[], 0));
    assert_eq!(world.sides()[0].flows.tcp.rcvbyte, 90 * 1_000);
    let senders: BTreeSet<Sender> = senders(&world).into_keys().collect();
    assert_eq!(senders, expected(&addresses, None));
}

#[test]
fn flows_that_programs_make_are_of_the_same_host() {
    for addresses in [
        ["10.9.0.7", "10.9.0.8"],
        ["2001:db8:1::1:1", "2001:db8:2::1:1"],
    ] {
        let next = vec![
            Step::SetTemplate { group: 1 },
            send(0),
            receive(1_000),
            Step::ExecuteTemplate,
        ];
        let server = vec![receive(100), send(1)];
        let mut spec = profile(Transport::Stream, [next, server.clone()], 1_000, 10.0);
        let mut second = spec.templates[0].clone();
        let (client, server) = (vec![send(0), receive(1_000)], server);
        for commands in [client, server] {
            spec.programs.push(allosaur_engine::app::ProgramSpec {
                commands,
                ..spec.programs[0].clone()
            });
        }
        second.client = allosaur_engine::template::ClientSpec {
            program: 2,
            port: 81,
            rate_cps: 0.0,
            ..second.client
        };
        second.server.program = 3;
        second.server.associations[0].port = 81;
        second.group = 1;
        spec.templates.push(second);
        spec.groups.push("second".to_owned());
        let world = run(compiled(spec, &addresses, &[], 0));
        let groups = world.engine.groups(RUN).expect("it runs");
        let begun: Vec<u64> = groups
            .iter()
            .map(|[client, _]| client.flows.tcp.connects)
            .collect();
        assert_eq!(begun, [10, 10]);
        let senders: BTreeSet<Sender> = senders(&world).into_keys().collect();
        assert_eq!(senders, expected(&addresses, None));
    }
}

#[test]
fn hosts_of_one_port_have_the_whole_rate_and_those_of_others_begin_nothing() {
    let share = PoolShare {
        pair: 0,
        pairs: 4,
        ..PoolShare::ONLY
    };
    for (at, begun) in [(0, 100), (2, 0)] {
        let mut world = World::with_share(1_000, share);
        world.start_compiled(compiled(http(1_000, 100.0), &["10.0.0.1"], &[], at));
        world.run_for(SECOND - 1);
        let attempts = world.sides()[0].flows.tcp.connattempt;
        assert_eq!(attempts, begun, "hosts at port {at}");
    }
    let mut spec = http(1_000, 100.0);
    spec.pools[0].hosts = Some(NETWORK);
    let compiled = CompiledProfile::compile(&spec, Layout::SMALLEST);
    let mut world = World::new(1_000);
    world.start_compiled(compiled.expect("the profile is right"));
    world.run_for(SECOND);
    assert_eq!(world.sides()[0].flows.tcp.connattempt, 0, "nobody said who");
}

#[test]
fn hosts_rest_by_their_addresses() {
    let addresses = ["10.0.0.1", "10.0.5.1", "10.7.0.1"];
    let mut world = World::new(1_000);
    world.heard = Some(Vec::new());
    let first = u32::from_be_bytes([10, 0, 0, 0]);
    world.tell(StatefulCommand::EnableClients {
        first,
        last: first + 0xffff,
        enabled: false,
    });
    world.start_compiled(compiled(http(1_000, 100.0), &addresses, &[], 0));
    world.run_for(SECOND);
    let senders: Vec<IpAddr> = senders(&world).into_keys().map(|sender| sender.0).collect();
    assert_eq!(senders, ["10.7.0.1".parse::<IpAddr>().expect("an address")]);
}
