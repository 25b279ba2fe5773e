//! What each step of a short connection costs, at both ends: a function of its own for each, whose
//! instructions a profiler adds up. The first argument is how many connections, the second how many
//! bytes are answered, 1.
//!
//! One connection at a time, so that no step is mixed with another's.
//!
//!     cargo build --release -p allosaur-engine --example flow_steps
//!     valgrind --tool=callgrind --callgrind-out-file=steps.out target/release/examples/flow_steps
//!     callgrind_annotate --inclusive=yes steps.out | grep step_
//!
//! Turns in which nothing is due are a step, too. Divide by the connections.

mod loopback;

use allosaur_engine::encapsulation::Encapsulation;
use allosaur_engine::stateful::StatefulEngine;
use allosaur_engine::template::{CompiledProfile, Layout};
use allosaur_engine::time::{MICROSECOND, Nanos, SECOND};
use allosaur_engine::transmit::PortIndex;
use allosaur_packet::frame;
use allosaur_packet::transport::tcp::{TcpFlags, TcpView};
use loopback::{RUN, Rings, engine, profile, start};

/// A connection takes eight turns of this length, and another second of TIME-WAIT.
const TURN: Nanos = 10 * MICROSECOND;
const RATE_CPS: f64 = 9_000.0;
/// Until memory is there, and as many connections end as begin.
const WARM: u64 = 12_000;

fn main() {
    let numbers = std::env::args().skip(1);
    let mut numbers = numbers.filter_map(|text| text.parse::<u64>().ok());
    let connections = numbers.next().unwrap_or(1_000);
    let response_bytes = numbers.next().unwrap_or(1);
    let (mut engine, mut rings) = (engine(Encapsulation::Ethernet), Rings::new(TURN));
    let profile = CompiledProfile::compile(&profile(response_bytes, RATE_CPS), Layout::SMALLEST);
    start(
        &mut engine,
        profile.expect("the profile is right"),
        &mut rings,
    );
    let mut bench = Bench {
        engine,
        rings,
        now: SECOND,
        frames: 0,
    };
    while bench.connections() < WARM {
        bench.turn::<false>();
    }
    let warm = bench.connections();
    bench.frames = 0;
    while bench.connections() < warm + connections {
        bench.turn::<true>();
    }
    println!("{connections} connections, {} frames", bench.frames);
}

/// An engine, and what it was given.
struct Bench {
    engine: StatefulEngine,
    rings: Rings,
    now: Nanos,
    frames: u64,
}

impl Bench {
    /// Connections that servers have closed.
    fn connections(&self) -> u64 {
        let groups = self.engine.groups(RUN).expect("it runs");
        groups[0][1].flows.tcp.closed
    }

    fn turn<const MEASURED: bool>(&mut self) {
        self.now += self.rings.turn;
        for port in 0..2 {
            let mut arrived = self.rings.take(1 - port);
            for place in 0..arrived.len {
                let bytes = arrived.frame(place);
                if MEASURED {
                    self.step(port, bytes);
                } else {
                    let rings = &mut self.rings;
                    self.engine
                        .handle_frame(self.now, port as PortIndex, bytes, rings);
                }
            }
            self.frames += arrived.len as u64;
            arrived.len = 0;
            self.rings.spare = arrived;
        }
        let due = self.engine.poll_timeout();
        let turn: fn(&mut StatefulEngine, Nanos, bool, &mut Rings) -> u64 = match due {
            _ if !MEASURED => StatefulEngine::poll_transmit,
            Some(due) if due <= self.now => step_turn_with_work,
            _ => step_turn_idle,
        };
        turn(&mut self.engine, self.now, false, &mut self.rings);
    }

    /// A frame arrives, which is a step of its own by what it says.
    fn step(&mut self, port: usize, bytes: &[u8]) {
        let layout = frame::parse(bytes);
        let segment = TcpView::new_unchecked(layout.segment(bytes));
        let flags = segment.flags();
        let has_data = !layout.payload(bytes).is_empty();
        let is_server = port == 1;
        let step = match (is_server, has_data, flags) {
            (true, _, flags) if flags.contains(TcpFlags::SYN) => step_syn,
            (false, _, flags) if flags.contains(TcpFlags::SYN) => step_syn_answered,
            (true, _, flags) if flags.contains(TcpFlags::FIN) => step_fin_of_client,
            (false, _, flags) if flags.contains(TcpFlags::FIN) => step_fin_of_server,
            (true, true, _) => step_request,
            (false, true, _) => step_response,
            _ => step_acknowledgment,
        };
        step(
            &mut self.engine,
            self.now,
            port as PortIndex,
            bytes,
            &mut self.rings,
        );
    }
}

/// Steps in which a frame arrives.
macro_rules! steps {
    ($($name:ident),*) => {
        $(
            #[inline(never)]
            fn $name(
                engine: &mut StatefulEngine,
                now: Nanos,
                port: PortIndex,
                bytes: &[u8],
                rings: &mut Rings,
            ) {
                // Functions that are the same would become one.
                std::hint::black_box(stringify!($name));
                engine.handle_frame(now, port, bytes, rings);
            }
        )*
    };
}

steps!(
    step_syn,
    step_syn_answered,
    step_request,
    step_response,
    step_fin_of_client,
    step_fin_of_server,
    step_acknowledgment
);

/// A connection begins, or some end that were in TIME-WAIT.
#[inline(never)]
fn step_turn_with_work(
    engine: &mut StatefulEngine,
    now: Nanos,
    is_busy: bool,
    rings: &mut Rings,
) -> u64 {
    std::hint::black_box("work");
    engine.poll_transmit(now, is_busy, rings)
}

/// Nothing is due.
#[inline(never)]
fn step_turn_idle(
    engine: &mut StatefulEngine,
    now: Nanos,
    is_busy: bool,
    rings: &mut Rings,
) -> u64 {
    std::hint::black_box("idle");
    engine.poll_transmit(now, is_busy, rings)
}
