//! How many instructions a short TCP connection costs: 100 bytes of request, and 32 KiB of response
//! or as many bytes as the second argument says (at most 32 KiB).
//!
//! Both sides live here and hand segments to each other without frames, so what is counted is the
//! state machine alone. Instructions are the same on every run; count them with
//!
//!     cargo build --release -p allosaur-engine --example tcp_speed
//!     valgrind --tool=callgrind --toggle-collect='*run_connections*' \
//!         target/release/examples/tcp_speed 1000
//!
//! and divide by the connections (two sides each) or by the segments that are printed.

use std::time::Instant;

use allosaur_engine::tcp::{
    Connection, Outcome, RecoveryPool, Segment, Seq, TcpContext, TcpCounters, Tunables,
};

const REQUEST_BYTES: u32 = 100;
const RESPONSE_BYTES_MAX: u32 = 32 * 1024;

fn main() {
    let arguments = std::env::args().skip(1);
    let mut numbers = arguments.filter_map(|text| text.parse::<u32>().ok());
    let connections = numbers.next().unwrap_or(100_000);
    let response_bytes = numbers.next().unwrap_or(RESPONSE_BYTES_MAX);
    assert!((1..=RESPONSE_BYTES_MAX).contains(&response_bytes));
    let tunables = Tunables {
        initial_window_segments: 2,
        ..Tunables::default()
    };
    let mut world = World {
        tunables,
        counters: TcpCounters::default(),
        recovery: RecoveryPool::default(),
        now_ms: 1,
        wire: Vec::with_capacity(64),
        response_bytes,
    };
    let begin = Instant::now();
    let segments = run_connections(&mut world, connections);
    let each_ns = begin.elapsed().as_nanos() / u128::from(connections.max(1));
    println!(
        "{connections} connections, {segments} segments, {} bytes: {each_ns} ns each",
        world.counters.rcvbyte
    );
}

struct World {
    tunables: Tunables,
    counters: TcpCounters,
    recovery: RecoveryPool,
    now_ms: u32,
    wire: Vec<Segment>,
    response_bytes: u32,
}

impl World {
    fn context(&mut self) -> TcpContext<'_> {
        TcpContext {
            now_ms: self.now_ms,
            now_us: self.now_ms.wrapping_mul(1_000),
            tunables: &self.tunables,
            counters: &mut self.counters,
            unread_bytes: 0,
            recovery: &mut self.recovery,
        }
    }

    /// Lets one side send all that it may.
    fn transmit(&mut self, connection: &mut Connection) {
        let mut wire = std::mem::take(&mut self.wire);
        let mut outcome = Outcome::default();
        connection.poll_transmit(
            &mut self.context(),
            &mut outcome,
            &mut |segment: &Segment| {
                wire.push(*segment);
                true
            },
        );
        self.wire = wire;
    }

    /// Hands all that is on the wire to a side. Returns how many segments and bytes that was.
    fn deliver(&mut self, connection: &mut Connection) -> (u64, u32) {
        let wire = std::mem::take(&mut self.wire);
        let mut bytes = 0;
        for segment in &wire {
            let outcome = connection.handle_segment(&mut self.context(), segment);
            bytes += outcome.delivered_bytes;
        }
        let count = wire.len() as u64;
        self.wire = wire;
        self.wire.clear();
        (count, bytes)
    }
}

#[inline(never)]
fn run_connections(world: &mut World, connections: u32) -> u64 {
    (0..connections).map(|number| one(world, number)).sum()
}

/// One connection from its SYN to its last acknowledgment. Returns its segments.
fn one(world: &mut World, number: u32) -> u64 {
    world.now_ms += 1;
    let first = Seq(number.wrapping_mul(0x9e37_79b9));
    let mut client = Connection::connect(&mut world.context(), first);
    world.transmit(&mut client);
    let syn = world.wire.pop().expect("a client begins with a SYN");
    let mut server = Connection::accept(&mut world.context(), first, &syn);
    world.transmit(&mut server);
    let (mut segments, mut requested, mut responded) = (1, 0, 0);
    while responded < world.response_bytes || !world.wire.is_empty() {
        let (count, bytes) = world.deliver(&mut client);
        responded += bytes;
        if segments == 1 {
            client.write(REQUEST_BYTES, &mut world.counters);
        }
        if responded == world.response_bytes && bytes > 0 {
            client.close();
        }
        world.transmit(&mut client);
        segments += count;
        let (count, bytes) = world.deliver(&mut server);
        requested += bytes;
        if requested == REQUEST_BYTES && bytes > 0 {
            server.write(world.response_bytes, &mut world.counters);
            server.close();
        }
        world.transmit(&mut server);
        segments += count;
    }
    segments
}
