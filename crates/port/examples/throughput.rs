//! How fast memory ports are on this machine: packets per second of each way to send.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use allosaur_port::memory::{self, LinkSettings, RingTx};
use allosaur_port::{RxQueue, TxQueue};

/// Frames between two flushes.
const BURST: u32 = 64;
/// How long each way is measured.
const SPAN: Duration = Duration::from_millis(500);

fn main() {
    for len in [60, 508, 1514] {
        let frame = vec![0x5a; len];
        let mut sink = memory::sink(1).tx.remove(0);
        report("repeat into a sink", len, repeat(&mut sink, &frame));
        report("slot into a sink", len, slot(&mut sink, &frame));
        report("repeat, one thread", len, one_thread(&frame));
        report("repeat, two threads", len, two_threads(&frame, repeat));
        report("slot, two threads", len, two_threads(&frame, slot));
    }
}

fn report(name: &str, len: usize, packets: u64) {
    let rate_mpps = packets as f64 / SPAN.as_secs_f64() / 1e6;
    println!("{len:>5} bytes  {name:<22}{rate_mpps:>8.1} Mpps");
}

fn repeat(tx: &mut impl TxQueue, frame: &[u8]) -> u64 {
    let frame = tx.register(frame).expect("a new queue has room");
    let start = Instant::now();
    let mut packets = 0;
    let mut turn = 0;
    while start.elapsed() < SPAN {
        for _ in 0..16 {
            turn += 1;
            let sent = tx.repeat(turn, frame, BURST);
            tx.flush();
            packets += u64::from(sent);
            if sent < BURST {
                thread::yield_now();
            }
        }
    }
    packets
}

fn slot(tx: &mut impl TxQueue, frame: &[u8]) -> u64 {
    let start = Instant::now();
    let mut packets = 0;
    let mut turn = 0;
    while start.elapsed() < SPAN {
        for _ in 0..16 {
            turn += 1;
            for _ in 0..BURST {
                let Some(slot) = tx.slot(turn, frame.len()) else {
                    thread::yield_now();
                    break;
                };
                slot.copy_from_slice(frame);
                packets += 1;
            }
            tx.flush();
        }
    }
    packets
}

/// Sends a burst and receives it, by turns.
fn one_thread(frame: &[u8]) -> u64 {
    let (mut a, mut b) = memory::pair(1, 1, &LinkSettings::default());
    let tx = &mut a.tx[0];
    let frame = tx.register(frame).expect("a new queue has room");
    let start = Instant::now();
    let mut packets = 0;
    let mut bytes_received = 0;
    while start.elapsed() < SPAN {
        for turn in 0..16 {
            tx.repeat(turn, frame, BURST);
            tx.flush();
            let each = |_: u64, bytes: &[u8]| bytes_received += bytes.len();
            packets += b.rx.receive(turn, BURST as usize, each) as u64;
        }
    }
    std::hint::black_box(bytes_received);
    packets
}

/// Sends while another thread receives and looks at the first bytes of each frame.
fn two_threads(frame: &[u8], send: fn(&mut RingTx, &[u8]) -> u64) -> u64 {
    let (mut a, b) = memory::pair(1, 1, &LinkSettings::default());
    let mut rx = b.rx;
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let mut sum = 0u64;
            let mut packets = 0;
            while !done.load(Ordering::Relaxed) {
                let each = |_: u64, bytes: &[u8]| sum += u64::from(bytes[12]);
                let received = rx.receive(0, 256, each);
                packets += received as u64;
                if received == 0 {
                    thread::yield_now();
                }
            }
            std::hint::black_box(sum);
            packets
        });
        send(&mut a.tx[0], frame);
        done.store(true, Ordering::Relaxed);
        receiver.join().expect("the receiver does not panic")
    })
}
