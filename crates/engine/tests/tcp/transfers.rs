//! Whole transfers: every byte arrives once and in order, whatever the link does, and nothing is
//! left behind.

use allosaur_engine::tcp::{CongestionAlgorithm, Ecn, End, TcpState, Tunables};
use proptest::prelude::*;

use crate::pair::{Link, Pair};

const SECOND: u64 = 1_000_000;

/// Runs a transfer to its end and checks all that must hold.
fn transfer(link: Link, tunables: [Tunables; 2], bytes: [u64; 2], seed: u64) -> Pair {
    let mut pair = Pair::new(link, tunables, bytes, seed);
    pair.run(3_600 * SECOND);
    for (name, side, sent) in [
        ("client", &pair.client, bytes[1]),
        ("server", &pair.server, bytes[0]),
    ] {
        assert_eq!(side.received, sent, "{name} received, seed {seed}");
        assert_eq!(side.counters.rcvbyte, sent, "{name} counted, seed {seed}");
        assert_eq!(side.ended, Some(End::Closed), "{name}, seed {seed}");
        assert_eq!(side.recovery.in_use(), 0, "{name}, seed {seed}");
        assert!(side.peer_closed, "{name}, seed {seed}");
        let connection = side.connection.as_ref().expect("there was one");
        assert_eq!(connection.state(), TcpState::Closed, "{name}, seed {seed}");
    }
    assert_eq!(pair.client.acknowledged, bytes[0], "seed {seed}");
    assert_eq!(pair.server.acknowledged, bytes[1], "seed {seed}");
    pair
}

const PLAIN: [Tunables; 2] = [tunables(), tunables()];

const fn tunables() -> Tunables {
    Tunables {
        mss_bytes: 1460,
        initial_window_segments: 10,
        receive_buffer_bytes: 32 << 10,
        transmit_buffer_bytes: 32 << 10,
        no_delay: false,
        always_push: false,
        acknowledge_bytes: 0,
        duplicates_max: 3,
        rfc1323: true,
        sack: true,
        congestion: CongestionAlgorithm::NewReno,
        ecn: Ecn::Off,
        reassembly_pieces_max: 100,
        patient: false,
        connect_timeout_ms: 5_000,
        keepalive_idle_ms: 5_000,
        keepalive_interval_ms: 7_000,
        keepalive_probes_max: 8,
        delayed_ack_ms: 100,
        time_wait_ms: 1_000,
    }
}

#[test]
fn a_good_link_needs_nothing_twice() {
    let pair = transfer(Link::good(50), PLAIN, [250, 32_768], 1);
    for side in [&pair.client, &pair.server] {
        let counters = &side.counters;
        assert_eq!(counters.sndrexmitpack, 0);
        assert_eq!((counters.rcvoopack, counters.rcvduppack), (0, 0));
        assert_eq!(
            counters.sndtotal,
            counters.sndpack + counters.sndacks + counters.sndctrl
        );
        assert_eq!((counters.connects, counters.closed), (1, 1));
    }
    assert!(
        pair.now < 1_200_000,
        "no timer was waited for but TIME-WAIT"
    );
}

#[test]
fn a_large_transfer_fills_a_slow_link() {
    let link = Link {
        rate: 1_250_000,
        ..Link::good(5_000)
    };
    let large = Tunables {
        receive_buffer_bytes: 1 << 20,
        transmit_buffer_bytes: 1 << 20,
        ..tunables()
    };
    for congestion in [CongestionAlgorithm::NewReno, CongestionAlgorithm::Cubic] {
        let large = Tunables {
            congestion,
            ..large
        };
        let pair = transfer(link, [large; 2], [0, 10_000_000], 3);
        // 8 s at line rate without headers.
        let took = (pair.now - SECOND) as f64 / SECOND as f64;
        assert!(took < 10.5, "{congestion:?}: {took} s");
    }
}

#[test]
fn marks_slow_a_sender_down_and_nothing_is_lost() {
    let link = Link {
        rate: 1_250_000,
        queue_bytes: 400 << 10,
        marks: true,
        ..Link::good(5_000)
    };
    let marked = Tunables {
        ecn: Ecn::Active,
        receive_buffer_bytes: 1 << 18,
        transmit_buffer_bytes: 1 << 18,
        ..tunables()
    };
    let pair = transfer(link, [marked; 2], [0, 4_000_000], 3);
    assert_eq!(pair.server.counters.sndrexmitpack, 0);
    assert!(pair.server.counters.ecn_rcwnd > 0);
    assert_eq!(pair.client.counters.ecn_shs, 1);
}

#[test]
fn each_of_the_first_segments_may_be_lost() {
    // The connection is there again after a retransmission, whichever segment is missing.
    const FILTERS: [fn(u64, bool, &allosaur_engine::tcp::Segment) -> bool; 8] = [
        |number, _, _| number == 0,
        |number, _, _| number == 2,
        |number, _, _| number == 4,
        |number, _, _| number == 6,
        |number, _, _| number == 8,
        |number, _, _| number == 10,
        |number, _, _| number == 12,
        |number, _, _| number == 14,
    ];
    for filter in FILTERS {
        let mut pair = Pair::new(Link::good(1_000), PLAIN, [3_000, 6_000], 9);
        pair.filter = Some(filter);
        pair.run(60 * SECOND);
        assert_eq!((pair.server.received, pair.client.received), (3_000, 6_000));
        assert_eq!(pair.client.ended, Some(End::Closed));
        assert_eq!(pair.server.ended, Some(End::Closed));
    }
}

#[test]
fn nobody_there_ends_it() {
    let mut pair = Pair::new(Link::good(1_000), PLAIN, [10, 10], 9);
    pair.filter = Some(|_, to_server, _| to_server);
    pair.run(100 * SECOND);
    assert_eq!(pair.client.ended, Some(End::TimedOut));
    assert_eq!(pair.client.counters.conndrops, 1);
    assert_eq!(pair.client.counters.rexmttimeo_syn, 2, "after 1 and 3 s");
}

#[test]
fn a_dead_peer_is_given_up() {
    let mut pair = Pair::new(Link::good(1_000), PLAIN, [10, 1 << 30], 9);
    // Everything from the 100th segment on is lost.
    pair.filter = Some(|number, _, _| number > 200);
    pair.run(4_000 * SECOND);
    assert_eq!(pair.server.ended, Some(End::TimedOut));
    assert_eq!(pair.server.counters.timeoutdrop, 1);
    assert_eq!(pair.client.ended, Some(End::TimedOut));
    assert_eq!(pair.client.counters.keepdrops, 1);
    assert_eq!(pair.client.counters.keepprobe, 8);
}

#[test]
fn numbers_may_go_round_more_than_once() {
    const BYTES: u64 = 9_000_000_000;
    for sack in [false, true] {
        let large = Tunables {
            // As few segments as can be, or this takes long.
            mss_bytes: 60_000,
            receive_buffer_bytes: 4 << 20,
            transmit_buffer_bytes: 4 << 20,
            sack,
            ..tunables()
        };
        let mut pair = Pair::new(Link::good(10), [large; 2], [0, BYTES], 9);
        // Losses that are far apart: each is found by duplicates, also where what was repaired
        // last is half of all numbers ago.
        pair.filter = Some(|number, to_server, _| !to_server && number % 30_000 < 4);
        pair.run(3_600 * SECOND);
        assert_eq!(pair.client.received, BYTES);
        assert_eq!(pair.server.acknowledged, BYTES);
        let counters = &pair.server.counters;
        assert!(counters.sndrexmitpack >= 3, "there were losses");
        assert_eq!(counters.rexmttimeo, 0, "SACK {sack}");
        assert_eq!(pair.server.ended, Some(End::Closed));
    }
}

fn some_tunables() -> impl Strategy<Value = Tunables> {
    (
        prop_oneof![Just(1460u16), 40..9000u16],
        1..20u8,
        prop_oneof![Just(32u32 << 10), (1u32 << 10)..(1 << 20)],
        any::<[bool; 5]>(),
        0..3u8,
        prop_oneof![Just(100u16), 0..20u16],
        prop_oneof![Just(0u16), 1..5000u16],
    )
        .prop_map(
            |(mss_bytes, window, buffer, flags, ecn, pieces, acknowledge_bytes)| Tunables {
                mss_bytes,
                initial_window_segments: window,
                receive_buffer_bytes: buffer,
                transmit_buffer_bytes: buffer,
                no_delay: flags[0],
                always_push: flags[1],
                rfc1323: flags[2],
                sack: flags[3],
                congestion: if flags[4] {
                    CongestionAlgorithm::Cubic
                } else {
                    CongestionAlgorithm::NewReno
                },
                ecn: [Ecn::Off, Ecn::Active, Ecn::Passive][usize::from(ecn)],
                reassembly_pieces_max: pieces,
                acknowledge_bytes,
                // Bad links need patience.
                connect_timeout_ms: 60_000,
                time_wait_ms: 60_000,
                ..tunables()
            },
        )
}

fn some_link() -> impl Strategy<Value = Link> {
    (
        1..100_000u64,
        0..60_000u32,
        0..50_000u32,
        0..100_000u32,
        0..50_000u64,
        prop_oneof![Just(0u64), 100_000..20_000_000u64],
        any::<bool>(),
    )
        .prop_map(
            |(delay_us, lost_ppm, doubled_ppm, late_ppm, jitter_us, rate, marks)| Link {
                delay_us,
                lost_ppm,
                doubled_ppm,
                late_ppm,
                jitter_us,
                rate,
                queue_bytes: 64 << 10,
                marks,
            },
        )
}

proptest! {
    #![proptest_config(crate::cases(300))]

    #[test]
    fn every_byte_arrives_over_bad_links(
        link in some_link(),
        client in some_tunables(),
        server in some_tunables(),
        up in 0u64..60_000,
        down in 0u64..200_000,
        seed in any::<u64>(),
    ) {
        transfer(link, [client, server], [up, down], seed);
    }
}
