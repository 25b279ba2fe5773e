//! The Cisco Discovery Protocol, versions 1 and 2: a client announces what its user gives, in the
//! bytes of the wire; it keeps nothing of what neighbors announce.

use allosaur_api::Access;
use allosaur_packet::MacAddress;
use allosaur_packet::link::ethernet::EtherType;
use allosaur_packet::network::checksum::Sum;

use super::announcement::{self, Announcement, Announcers, PAYLOAD_BYTES_MAX, Protocol};
use crate::params::Params;
use crate::plugin::PluginError;
use crate::spec::{Keys, Scope, Spec, client_counters};

/// The description of the plugin.
pub static SPEC: Spec = Spec {
    name: "cdp",
    frames: &[],
    commands: &[client_counters::<Announcers<Cdp>>(
        "cdp_client_cnt",
        Access::Api,
    )],
    counters: &[("", CdpCounters::META)],
    keys: Keys::Only(&["timer", "ver", "cs", "options"]),
    scope: Scope::Client,
    create: |_, _| Ok(Box::<Announcers<Cdp>>::default()),
};

crate::counters! {
    /// Counters of CDP of a client.
    pub(crate) struct CdpCounters: u32, "cdp" {
        tx: "pktTx", "broadcast packet ", "pkts", Info;
    }
}

/// Switches of this vendor that are next, and no further.
const GROUP: MacAddress = MacAddress([0x01, 0x00, 0x0c, 0xcc, 0xcc, 0xcc]);
/// LLC for SNAP, and in it the vendor and its protocol.
const LLC_SNAP: [u8; 8] = [0xaa, 0xaa, 0x03, 0x00, 0x00, 0x0c, 0x20, 0x00];
/// Seconds for which neighbors keep it.
const TTL_S: u8 = 180;
/// Bytes of the header: version, time to live, checksum.
const HEADER_BYTES: usize = 4;
const VERSION: u8 = 2;

struct Cdp;

impl Protocol for Cdp {
    type Counters = CdpCounters;

    const INIT_TYPE: &'static str = "cdp.CdpInit";

    fn announcement(init: Params<'_>, _client: MacAddress) -> Result<Announcement, PluginError> {
        let options = init.options("cdp.CdpOptionsT", &["raw"])?;
        let version = init.nonzero_or("ver", VERSION)?;
        let wrong_checksum: u16 = init.number_or("cs", 0)?;
        let room = PAYLOAD_BYTES_MAX - LLC_SNAP.len() - HEADER_BYTES;
        let raw = announcement::raw_option(options, room)?;
        let mut packet = [&[version, TTL_S, 0, 0], &raw[..]].concat();
        let checksum = match wrong_checksum {
            0 => checksum(&packet),
            wrong => wrong,
        };
        packet[2..HEADER_BYTES].copy_from_slice(&checksum.to_be_bytes());
        let payload = [&LLC_SNAP[..], &packet].concat();
        Ok(Announcement {
            destination: GROUP,
            ether_type: EtherType(payload.len() as u16),
            payload: payload.into(),
        })
    }

    fn count(counters: &mut CdpCounters) {
        counters.tx = counters.tx.wrapping_add(1);
    }
}

/// The internet checksum, but that an odd last byte is the low one of its word, and with its sign,
/// less one when it is negative: so the first implementation did, and all others since.
fn checksum(packet: &[u8]) -> u16 {
    let (even, odd) = packet.split_at(packet.len() & !1);
    let last = match *odd {
        [byte @ 0x80..=0xff] => [0xff, byte - 1],
        [byte] => [0, byte],
        _ => [0, 0],
    };
    Sum::of(even).and(&last).checksum()
}

#[cfg(test)]
mod tests {
    use super::checksum;

    /// Observed of the reference, whose neighbors accepted it.
    #[test]
    fn the_odd_byte_is_summed_as_everybody_does() {
        assert_eq!(checksum(&[2, 180, 0, 0]), 0xfd4b);
        assert_eq!(checksum(b"\x01\xb4\0\0\x08\x03abc\n\x04syn1"), 0xb3c9);
        // A last byte with its highest bit set: 0x02b4 + 0xff7f, with the carry.
        assert_eq!(checksum(&[2, 180, 0, 0, 0x80]), !0x0234);
    }
}
