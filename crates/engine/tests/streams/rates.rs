//! The highest rate of a profile, and what the packets become on a port.

use allosaur_engine::stream::{CoreShare, DestinationMac, Mode, Profile, Rate, StreamSpec};
use allosaur_engine::time::{MILLISECOND, SECOND};

use crate::bench::{Bench, burst, facts, stream};

fn pps_max(streams: &[StreamSpec]) -> f64 {
    Profile::compile(streams, &facts(1))
        .expect("the streams are right")
        .rates()
        .pps_max
}

#[test]
fn streams_that_run_together_add_up() {
    assert_eq!(pps_max(&[stream(1), stream(2), burst(3, 5000)]), 3000.0);
}

#[test]
fn streams_of_a_chain_do_not() {
    let first = StreamSpec {
        next: Some(2),
        ..burst(1, 2000)
    };
    let rate = Rate::PacketsPerSecond(1500.0);
    let second = StreamSpec {
        self_start: false,
        rate,
        ..burst(2, 2000)
    };
    assert_eq!(pps_max(&[first, second]), 1500.0);
}

#[test]
fn streams_that_start_after_each_other_do_not_either() {
    let later = StreamSpec {
        start_delay: 100 * SECOND,
        ..burst(2, 2000)
    };
    assert_eq!(pps_max(&[burst(1, 2000), later]), 1000.0);
}

#[test]
fn short_bursts_count_only_where_there_is_nothing_else() {
    assert_eq!(pps_max(&[stream(1), burst(2, 999)]), 1000.0);
    assert_eq!(pps_max(&[burst(1, 999), burst(2, 10)]), 2000.0);
}

#[test]
fn a_dummy_stream_is_no_load() {
    let dummy = StreamSpec {
        dummy: true,
        rate: Rate::PacketsPerSecond(1e6),
        ..stream(2)
    };
    assert_eq!(pps_max(&[stream(1), dummy]), 1000.0);
}

#[test]
fn every_unit_of_rate_comes_to_the_same() {
    // 60 bytes are 64 with FCS: 512 bits at layer 2 and 672 at layer 1.
    for rate in [
        Rate::PacketsPerSecond(1e6),
        Rate::BitsPerSecondL2(512e6),
        Rate::BitsPerSecondL1(672e6),
        Rate::Percent(6.72),
    ] {
        let streams = [StreamSpec { rate, ..stream(1) }];
        let profile = Profile::compile(&streams, &facts(1)).expect("right");
        let rates = profile.rates();
        assert!((rates.pps_max - 1e6).abs() < 1e-3, "{rate:?} is {rates:?}");
        assert!(
            (rates.bps_l2_max - 512e6).abs() < 1.0,
            "{rate:?} is {rates:?}"
        );
        assert!(
            (rates.bps_l1_max - 672e6).abs() < 1.0,
            "{rate:?} is {rates:?}"
        );
    }
}

#[test]
fn the_factor_scales_rates_and_not_delays() {
    let mode = Mode::MultiBurst {
        packets_per_burst: 3,
        gap: 7 * MILLISECOND,
        bursts: 2,
    };
    let streams = [StreamSpec {
        mode,
        start_delay: MILLISECOND,
        ..stream(1)
    }];
    let profile = Profile::compile(&streams, &facts(1)).expect("right");
    let mut bench = Bench::new();
    let start = allosaur_engine::StatelessCommand::StartProfile {
        port: 0,
        profile: crate::bench::KEY,
        program: Box::new(profile.core_program(2.0, CoreShare::ONLY)),
        start_at: 0,
        duration: None,
    };
    bench.engine.handle_command(0, start, &mut bench.tx_queues);
    bench.run_until(SECOND);
    let times: Vec<u64> = bench
        .tx_queues
        .sent()
        .iter()
        .map(|sent| sent.at / 1000)
        .collect();
    assert_eq!(times, [1000, 1500, 2000, 9000, 9500, 10_000]);
}

#[test]
fn macs_come_from_the_port_unless_the_stream_keeps_its_own_and_short_packets_are_padded() {
    let mut packet = vec![0xee; 14];
    packet.extend([1, 2, 3]);
    let send = |keep_source_mac, destination_mac| {
        let spec = StreamSpec {
            packet: packet.clone(),
            keep_source_mac,
            destination_mac,
            ..burst(1, 1)
        };
        let mut bench = Bench::new();
        bench.start(&[spec], CoreShare::ONLY, None).expect("right");
        bench.run_until(SECOND);
        bench.tx_queues.take().remove(0).bytes
    };
    let of_port = send(false, DestinationMac::Port);
    assert_eq!(of_port[..12], [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
    assert_eq!(of_port[14..17], [1, 2, 3]);
    assert_eq!(of_port[17..], [0; 43]);
    assert_eq!(send(true, DestinationMac::Packet)[..12], [0xee; 12]);
    assert_eq!(
        send(false, DestinationMac::Resolved)[..6],
        facts(1).destination_mac
    );
}
