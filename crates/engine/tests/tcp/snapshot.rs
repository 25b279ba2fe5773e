//! How fast a transfer is over loss and round trip, kept as a table: a change in behaviour shows
//! as a change in `throughput.txt`. Rewritten with `ALLOSAUR_WRITE_DOCS=1`.

use std::fmt::Write;
use std::path::Path;

use allosaur_engine::tcp::{CongestionAlgorithm, Tunables};

use crate::pair::{Link, Pair};

const BYTES: u64 = 1_000_000;
/// Transfers that a number is the mean of; each has its own seed.
const SEEDS: u64 = 3;
const LOSSES_PPM: [u32; 4] = [0, 1_000, 10_000, 30_000];
const ROUND_TRIPS_MS: [u64; 3] = [1, 20, 100];
const BUFFERS: [u32; 2] = [32 << 10, 1 << 20];

const KINDS: [(&str, CongestionAlgorithm, bool); 4] = [
    ("NewReno", CongestionAlgorithm::NewReno, false),
    ("NewReno, SACK", CongestionAlgorithm::NewReno, true),
    ("CUBIC", CongestionAlgorithm::Cubic, false),
    ("CUBIC, SACK", CongestionAlgorithm::Cubic, true),
];

const TITLE: &str = "\
Throughput of one connection in kilobytes per second: 1 MB over a link of 10,000 kB/s with room
for 256 KiB, the mean of three transfers. Written by tests/tcp/snapshot.rs: do not edit.
";

#[test]
fn the_table_of_throughput_is_as_it_was() {
    let table = table();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tcp/throughput.txt");
    if std::env::var_os("ALLOSAUR_WRITE_DOCS").is_some() {
        std::fs::write(&path, &table).expect("the table is written into the source");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == table,
        "throughput changed: look whether it is meant, then run with ALLOSAUR_WRITE_DOCS=1 and \
         commit the difference. It is now\n{table}"
    );
}

fn table() -> String {
    let mut text = TITLE.to_owned();
    for buffer in BUFFERS {
        for (name, congestion, sack) in KINDS {
            let tunables = Tunables {
                congestion,
                sack,
                receive_buffer_bytes: buffer,
                transmit_buffer_bytes: buffer,
                reassembly_pieces_max: 1_000,
                ..Tunables::default()
            };
            write!(text, "\n{:<28}", format!("{name}, {} KiB", buffer >> 10)).expect("to memory");
            for round_trip_ms in ROUND_TRIPS_MS {
                write!(text, "{:>9}", format!("{round_trip_ms} ms")).expect("to memory");
            }
            for lost_ppm in LOSSES_PPM {
                let loss = f64::from(lost_ppm) / 10_000.0;
                write!(text, "\n  {:<26}", format!("{loss} % lost")).expect("to memory");
                for round_trip_ms in ROUND_TRIPS_MS {
                    let rate = rate_kbps(tunables, lost_ppm, round_trip_ms);
                    write!(text, "{rate:>9}").expect("to memory");
                }
            }
            text.push('\n');
        }
    }
    text
}

/// Kilobytes per second, in integers, so that all machines agree.
fn rate_kbps(tunables: Tunables, lost_ppm: u32, round_trip_ms: u64) -> u64 {
    let link = Link {
        lost_ppm,
        rate: 10_000_000,
        queue_bytes: 256 << 10,
        ..Link::good(round_trip_ms * 500)
    };
    let took_us: u64 = (1..=SEEDS)
        .map(|seed| {
            let mut pair = Pair::new(link, [tunables; 2], [0, BYTES], seed);
            pair.run(3_600_000_000);
            assert_eq!(pair.client.received, BYTES);
            pair.now - u64::from(tunables.time_wait_ms) * 1_000
        })
        .sum();
    BYTES * SEEDS * 1_000 / took_us
}
