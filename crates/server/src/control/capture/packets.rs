//! Packets in replies.

use allosaur_api::commands::captures::FetchedPacket;
use allosaur_engine::capture::{Captured, Origin};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The packets of a reply.
pub(super) fn fetched(packets: &[Captured], snap_bytes: usize) -> Vec<FetchedPacket> {
    let packet = |packet: &Captured| {
        let bytes = match snap_bytes {
            0 => packet.bytes.len(),
            snap => snap.min(packet.bytes.len()),
        };
        FetchedPacket {
            ts: seconds(packet.at),
            binary: STANDARD.encode(&packet.bytes[..bytes]),
            port: packet.port,
            index: packet.index,
            wirelen: packet.wire_bytes,
            origin: match packet.origin {
                Origin::Transmitted => "TX",
                Origin::Received => "RX",
            },
        }
    };
    packets.iter().map(packet).collect()
}

/// A time as replies have it.
pub(super) fn seconds(at_ns: u64) -> f64 {
    at_ns as f64 / 1e9
}
