//! What a million routes cost: `bgp_speed [ROUTES] [ipv4|ipv6] [SESSIONS]`.
//!
//! Makes a table by a seed, encodes it, and replays it for so many sessions into memory.

use std::env;
use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Instant;

use allosaur_bgp::replay::{OwnValues, RouteReplay};
use allosaur_bgp::routes::generate::internet;
use allosaur_bgp::routes::table::RouteTable;
use allosaur_bgp::stream::{RouteStream, StreamEncoding};
use allosaur_bgp::wire::attributes::AttributeEncoding;
use allosaur_bgp::wire::framing::MESSAGE_LEN_MAX;
use allosaur_bgp::wire::prefix::AddressFamily;

/// What is sent at once.
const CHUNK: usize = 256 * 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let argument = |index: usize, default: &str| {
        let given = arguments.get(index).map(String::as_str);
        given.unwrap_or(default).to_owned()
    };
    let routes = argument(0, "1000000").parse()?;
    let family = match argument(1, "ipv4").as_str() {
        "ipv6" => AddressFamily::Ipv6,
        _ => AddressFamily::Ipv4,
    };
    let started = Instant::now();
    let table = internet(family, routes, 1, 1)?;
    println!(
        "table: {} groups, {:?}",
        table.groups().len(),
        started.elapsed()
    );
    replay(&table, argument(2, "1").parse()?)
}

fn replay(table: &RouteTable, sessions: u32) -> Result<(), Box<dyn Error>> {
    let encoding = StreamEncoding {
        attributes: AttributeEncoding {
            four_octet_as: true,
            external: true,
        },
        message_len_max: MESSAGE_LEN_MAX,
    };
    let started = Instant::now();
    let stream = Arc::new(RouteStream::announce(table, encoding)?);
    let encoded = started.elapsed();
    println!(
        "encoded: {} messages, {} octets, {} of memory, {encoded:?}",
        stream.message_count(),
        stream.bytes().len(),
        stream.memory()
    );
    let started = Instant::now();
    let mut out = Vec::with_capacity(2 * CHUNK);
    let mut sent = 0;
    for session in 0..sessions {
        let own = OwnValues {
            local_as: 65_001 + session,
            next_hop_ipv4: Ipv4Addr::from_bits(0x0b00_0001 + session),
            next_hop_ipv6: Ipv4Addr::from_bits(0x0b00_0001 + session).to_ipv6_mapped(),
        };
        let mut replay = RouteReplay::new(Arc::clone(&stream), None);
        while !replay.is_done() {
            out.clear();
            sent += replay.transmit(0, &own, CHUNK, &mut out);
        }
    }
    println!("replayed: {sent} routes, {:?}", started.elapsed());
    Ok(())
}
