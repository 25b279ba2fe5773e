//! Connections that begin again between the same ends, while the old one is still remembered.

use allosaur_engine::session::wire::Arrival;
use allosaur_engine::tcp::Segment;
use allosaur_engine::template::Tunable;
use allosaur_packet::transport::tcp::TcpFlags;

use crate::outside::{Ends, read};
use crate::world::{MS, START, World, http};

/// The last SYN that left a port.
fn last_syn(world: &World, port: u8) -> Segment {
    let heard = world.heard.as_ref().expect("it listens");
    let from_port = heard.iter().rev().filter(|(from, _)| *from == port);
    let segments = from_port.filter_map(|(_, frame)| match read(frame)?.arrival {
        Arrival::Tcp(segment) => Some(segment),
        Arrival::Udp(_) => None,
    });
    let mut syns = segments.filter(|segment| segment.has(TcpFlags::SYN));
    syns.next().expect("there was one")
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
        let answered = last_syn(&world, 1).seq + 1;
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

#[test]
fn a_server_that_starts_again_is_no_stranger_to_who_remembers_it() {
    let mut before: Option<Segment> = None;
    // The clock of TCP goes on, that of the engine begins anew; at the end it goes round.
    for began_ms in [5_000_000, 5_010_000, u32::MAX - 5_000, 2_000] {
        let mut world = World::new(100);
        world.engine = world.engine.with_tcp_clock(began_ms);
        world.heard = Some(Vec::new());
        world.start(&http(100, 1_000.0), 1.0, Some(MS));
        world.run_for(5_000 * MS);
        assert_eq!(world.engine.flows(), 0, "all timers go by the same clock");
        assert_eq!(world.sides()[1].flows.tcp.closed, 1);
        let syn = last_syn(&world, 0);
        let timestamp = syn.timestamps.expect("it has one").0;
        let engine_ms = (START / MS) as u32;
        assert!((0..10).contains(&timestamp.wrapping_sub(began_ms.wrapping_add(engine_ms))));
        if let Some(before) = before.replace(syn).filter(|_| began_ms != u32::MAX - 5_000) {
            let (earlier, _) = before.timestamps.expect("it has one");
            assert!((timestamp.wrapping_sub(earlier) as i32) > 0);
            assert!(syn.seq.is_after(before.seq), "{before:?} {syn:?}");
        }
    }
}
