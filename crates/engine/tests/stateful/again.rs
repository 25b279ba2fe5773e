//! Connections that begin again between the same ends, while the old one is still remembered.

use allosaur_engine::session::wire::Arrival;
use allosaur_engine::tcp::Seq;
use allosaur_engine::template::Tunable;
use allosaur_packet::tcp::TcpFlags;

use crate::outside::{Ends, read};
use crate::world::{MS, World, http};

/// The number of the SYN of the last that the server sent.
fn last_syn(world: &World) -> u32 {
    let heard = world.heard.as_ref().expect("it listens");
    let from_server = heard.iter().rev().filter(|(port, _)| *port == 1);
    let segments = from_server.filter_map(|(_, frame)| match read(frame)?.arrival {
        Arrival::Tcp(segment) => Some(segment),
        Arrival::Udp(_) => None,
    });
    let mut syns = segments.filter(|segment| segment.has(TcpFlags::SYN));
    syns.next().expect("it answered").seq.0
}

#[test]
fn what_gives_way_to_a_new_connection_counts_as_closed() {
    let mut profile = http(100, 1.0);
    profile.templates[0].client.rate_cps = 0.0;
    // Nobody answers for the client that is made by hand; and the server says its all at once.
    profile.client.set(Tunable::Blackhole, 2);
    profile.programs[1].commands.remove(0);
    let mut world = World::new(100);
    world.heard = Some(Vec::new());
    world.start(&profile, 1.0, None);
    let ends = Ends::to_server(0x1000_0001, 5_000);
    for round in 1..=3u32 {
        let first = round << 20;
        world.inject(1, ends.flags(TcpFlags::SYN, first, 0));
        world.run_for(MS);
        let answered = Seq(last_syn(&world)) + 1;
        world.inject(1, ends.flags(TcpFlags::ACK, first + 1, answered.0));
        world.run_for(MS);
        let answered = answered + 100;
        world.inject(1, ends.flags(TcpFlags::ACK, first + 1, answered.0));
        world.run_for(MS);
        // It has said that it is done; now we do.
        let end = TcpFlags::ACK | TcpFlags::FIN;
        world.inject(1, ends.flags(end, first + 1, (answered + 1).0));
        world.run_for(MS);
        let tcp = &world.sides()[1].flows.tcp;
        let round = u64::from(round);
        assert_eq!(
            (tcp.connects, tcp.closed),
            (round, round - 1),
            "in TIME-WAIT"
        );
    }
    world.run_for(5_000 * MS);
    let [_, server] = world.sides();
    assert_eq!((server.flows.tcp.closed, server.flows.tcp.drops), (3, 0));
    assert_eq!((server.active, world.engine.flows()), (0, 0));
}
