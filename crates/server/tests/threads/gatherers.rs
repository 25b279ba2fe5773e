//! Several receive threads, driven by hand: together they count and measure what one would.

use std::sync::Arc;

use allosaur_engine::flow_stats::Group;
use allosaur_engine::latency::{TRAILER_BYTES, Trailer};
use allosaur_port::TxQueue;
use allosaur_port::kind::PortRx;
use allosaur_port::memory::{self, LinkSettings, RingTx};
use allosaur_server::counters::{Counters, GroupReadout, LatencyTerms, Snapshot};
use allosaur_server::threads::clock::Clock;
use allosaur_server::threads::forward::{Watched, forward_channel};
use allosaur_server::threads::receive::Receiver;
use allosaur_server::threads::receive::secondary::SecondaryReceiver;
use allosaur_server::threads::waker::Waker;

/// The first sign of a packet group, and the sign of all whose latency is measured.
const FLOW_SIGN: u16 = 0xfc00;
const LATENCY_SIGN: u16 = 0xffff;
const TERMS: LatencyTerms = LatencyTerms { version: 1, run: 7 };

/// An IPv4 packet with a sign.
fn signed(sign: u16, bytes: usize) -> Vec<u8> {
    let mut frame = vec![0; bytes];
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14] = 0x45;
    frame[18..20].copy_from_slice(&sign.to_be_bytes());
    frame
}

/// A packet of latency group 2.
fn measured(sequence: u32) -> Vec<u8> {
    let mut frame = signed(LATENCY_SIGN, 60 + TRAILER_BYTES);
    let trailer = Trailer {
        run: TERMS.run,
        group: 2,
        sequence,
        sent_ns: 0,
    };
    trailer.write(&mut frame);
    frame
}

fn send(tx: &mut RingTx, frames: impl IntoIterator<Item = Vec<u8>>) {
    for frame in frames {
        let slot = tx.slot(0, frame.len());
        slot.expect("the ring has room").copy_from_slice(&frame);
    }
    tx.flush();
}

fn waker() -> Waker {
    Waker::new().expect("a file descriptor")
}

/// Port 1 of a pair, read by so many threads; port 0's two queues send to it.
struct World {
    senders: Vec<RingTx>,
    counters: Counters,
    first: Receiver,
    others: Vec<SecondaryReceiver>,
}

impl World {
    fn new(threads: usize) -> World {
        let clock = Clock::start();
        let counters = Counters::new(2, 1).with_receive_threads(threads);
        counters.receive.expect_latency(2, TERMS);
        let (a, b) = memory::pair(2, 1, &LinkSettings::default());
        let mut queues: Vec<PortRx> = b.rx.split(threads).into_iter().map(Into::into).collect();
        let others = queues.split_off(1);
        let watched = Watched::default();
        let (mut forward_rx, mut secondaries) = (Vec::new(), Vec::new());
        for (queue, block) in others.into_iter().zip(&counters.secondaries) {
            let (rx, tx) = forward_channel(waker(), waker(), watched.clone());
            forward_rx.push(rx);
            secondaries.push(SecondaryReceiver::new(
                [None, Some(queue)],
                tx,
                Arc::clone(block),
                Arc::clone(&counters.receive),
                clock.clone(),
            ));
        }
        let queues = [Some(a.rx.into()), queues.pop()];
        let first = Receiver::new(queues, Arc::clone(&counters.receive), clock);
        World {
            senders: a.tx,
            counters,
            first: first.joined_by(forward_rx, watched),
            others: secondaries,
        }
    }

    /// All threads work until nothing arrives any more.
    fn settle(&mut self) {
        while self.turn_others() + self.first.turn() > 0 {}
    }

    fn turn_others(&mut self) -> usize {
        self.others.iter_mut().map(SecondaryReceiver::turn).sum()
    }

    fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        self.counters.read(&mut snapshot);
        snapshot
    }
}

/// What was counted of packet groups, and measured.
fn groups(world: &World) -> String {
    let flow = Group::flow(5).expect("a group");
    let latency = Group::latency(2).expect("a group");
    let stats = world.counters.latency(2, TERMS.version).expect("measured");
    let times = world.counters.latency_times(2, TERMS.version, &stats);
    format!(
        "{:?} {:?} {} {:?} {:?} {}",
        world.counters.group(1, flow),
        world.counters.group(1, latency),
        stats.packets,
        world.counters.latency_errors(),
        (stats.dropped, stats.out_of_order, stats.duplicates),
        times.expect("they are there").packets()
    )
}

#[test]
fn two_threads_count_and_measure_what_one_does() {
    let results = [1, 2].map(|threads| {
        let mut world = World::new(threads);
        for round in 0..20 {
            for (n, sender) in (0..).zip(&mut world.senders) {
                send(sender, vec![signed(FLOW_SIGN + 5, 60 + 40 * n); 30]);
                send(sender, vec![vec![0xff; 1514]; 5]);
            }
            // One thread sends all that is measured; here the one that the second reads.
            send(
                &mut world.senders[1],
                (10 * round..10 * (round + 1)).map(measured),
            );
            // Packets of a run that is over.
            send(&mut world.senders[0], [signed(LATENCY_SIGN, 80)]);
            world.settle();
        }
        (world.snapshot().ports, groups(&world))
    });
    assert_eq!(results[0], results[1]);
    let port = &results[0].0[1];
    assert_eq!(port.receive.packets, 20 * (2 * 35 + 10 + 1));
    assert_eq!(port.receive_lost_packets, 0);
}

#[test]
fn what_finds_no_room_on_its_way_to_be_measured_is_lost_on_the_port() {
    let mut world = World::new(2);
    let (rounds, each) = (100, 500);
    for round in 0..rounds {
        send(
            &mut world.senders[1],
            (each * round..each * (round + 1)).map(measured),
        );
        // The first thread stands still meanwhile.
        while world.turn_others() > 0 {}
    }
    let port = world.snapshot().ports[1];
    assert!(port.receive_lost_packets > 0);
    assert!(port.receive.packets > 1000);
    let sent = u64::from(rounds * each);
    assert_eq!(port.receive.packets + port.receive_lost_packets, sent);
    world.settle();
    let latency = Group::latency(2).expect("a group");
    let counted = world.counters.group(1, latency).received.packets;
    assert_eq!(counted, port.receive.packets);
}
