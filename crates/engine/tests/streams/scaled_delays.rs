//! Chains of single packets whose delays are all their rate, as those of a capture: what a factor makes
//! of them.

use allosaur_engine::stateless::Change;
use allosaur_engine::stream::{CoreShare, Profile, Rate, StreamSpec};
use allosaur_engine::time::{MICROSECOND, MILLISECOND, Nanos, SECOND};

use crate::bench::{Bench, burst, facts, stream};

/// A ring of packets with these delays before each, the last of which counts the rounds.
fn capture(delays_us: &[u64], rounds: u32) -> Vec<StreamSpec> {
    let count = delays_us.len() as u32;
    let streams = (1..).zip(delays_us).map(|(id, delay_us)| StreamSpec {
        self_start: id == 1,
        start_delay: delay_us * MICROSECOND,
        scales_delay: true,
        rate: Rate::Percent(100.0),
        next: Some(id % count + 1),
        action_count: if id == count { rounds } else { 0 },
        ..burst(id, 1)
    });
    streams.collect()
}

/// When packets left, in microseconds.
fn times(bench: &mut Bench) -> Vec<Nanos> {
    let sent = bench.tx_queues.take();
    sent.iter().map(|p| p.at / MICROSECOND).collect()
}

fn sent_at(streams: &[StreamSpec], factor: f64) -> Vec<Nanos> {
    let mut bench = Bench::new();
    bench
        .start(streams, CoreShare::ONLY, None)
        .expect("the streams are right");
    bench.change(0, 0, Change::Update(factor));
    bench.run_until(SECOND);
    times(&mut bench)
}

#[test]
fn a_factor_scales_the_speed_of_a_capture() {
    let streams = capture(&[0, 1000, 500, 2500], 2);
    let as_recorded = [0, 1000, 1500, 4000, 4000, 5000, 5500, 8000];
    assert_eq!(sent_at(&streams, 1.0), as_recorded);
    assert_eq!(sent_at(&streams, 2.0), as_recorded.map(|at| at / 2));
    assert_eq!(sent_at(&streams, 0.1), as_recorded.map(|at| at * 10));
    // Without the flag, delays are what they are.
    let fixed = streams.into_iter().map(|stream| StreamSpec {
        scales_delay: false,
        ..stream
    });
    let fixed: Vec<_> = fixed.collect();
    assert_eq!(sent_at(&fixed, 2.0), as_recorded);
}

#[test]
fn a_delay_that_is_running_is_scaled_from_then_on() {
    let mut bench = Bench::new();
    let streams = capture(&[0, 1000, 1000], 1);
    bench
        .start(&streams, CoreShare::ONLY, None)
        .expect("the streams are right");
    // Half of the first gap is over: the other half takes a fourth of the time.
    bench.change(0, 500 * MICROSECOND, Change::Update(4.0));
    bench.run_until(SECOND);
    assert_eq!(times(&mut bench), [0, 625, 875]);
}

#[test]
fn a_capture_has_its_average_rate() {
    let streams = capture(&[0, 1000, 500, 2500], 1);
    let profile = Profile::compile(&streams, &facts(1)).expect("right");
    // Four packets of 64 bytes in 4 ms.
    let rates = *profile.rates();
    assert!((rates.pps_max - 1000.0).abs() < 1e-6, "{rates:?}");
    assert!((rates.bps_l2_max - 512e3).abs() < 1e-3, "{rates:?}");
    assert!((rates.bps_l1_max - 672e3).abs() < 1e-3, "{rates:?}");
    // Whatever the factor, and beside other streams.
    let tenfold = profile.rates_at(|_| 10.0);
    assert!((tenfold.pps_max - 10_000.0).abs() < 0.1, "{tenfold:?}");
    let both = [&streams[..], &[stream(9)]].concat();
    let both = Profile::compile(&both, &facts(1)).expect("right");
    assert!((both.rates().pps_max - 2000.0).abs() < 1e-6);
}

#[test]
fn a_capture_without_a_gap_has_the_rate_of_its_streams() {
    let profile = Profile::compile(&capture(&[0], 1), &facts(1)).expect("right");
    assert!((profile.rates().bps_l1_max - 10e9).abs() < 1.0);
}

#[test]
fn a_loop_that_is_made_fast_beyond_measure_takes_time() {
    let streams = capture(&[0, 1], 0);
    let mut bench = Bench::new();
    bench
        .start(&streams, CoreShare::ONLY, Some(10 * MICROSECOND))
        .expect("the streams are right");
    bench.change(0, 0, Change::Update(1e18));
    bench.run_until(MILLISECOND);
    assert!(times(&mut bench).len() > 1000);
}
