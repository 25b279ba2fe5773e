//! LLDP (IEEE 802.1AB): a client announces itself; it keeps nothing of what neighbors announce.

use allosaur_api::Access;
use allosaur_packet::MacAddress;
use allosaur_packet::link::ethernet::EtherType;

use super::announcement::{self, Announcement, Announcers, PAYLOAD_BYTES_MAX, Protocol};
use crate::params::Params;
use crate::plugin::PluginError;
use crate::spec::{Keys, Scope, Spec, client_counters};

/// The description of the plugin.
pub static SPEC: Spec = Spec {
    name: "lldp",
    frames: &[],
    commands: &[client_counters::<Announcers<Lldp>>(
        "lldp_client_cnt",
        Access::Api,
    )],
    counters: &[("", LldpCounters::META)],
    keys: Keys::Only(&["timer", "options"]),
    scope: Scope::Client,
    create: |_, _| Ok(Box::<Announcers<Lldp>>::default()),
};

crate::counters! {
    /// Counters of LLDP of a client.
    pub(crate) struct LldpCounters: u32, "lldp" {
        tx: "pktTx", "broadcast lldp packet ", "pkts", Info;
    }
}

/// Bridges that are next, and no further (section 7.1).
const NEAREST_BRIDGE: MacAddress = MacAddress([0x01, 0x80, 0xc2, 0, 0, 0x0e]);
const LLDP: EtherType = EtherType(0x88cc);

/// Each TLV: seven bits of type, nine of length, the value (section 8.1).
const PORT_AND_TTL: [u8; 10] = [0x04, 4, 5, b'1', b'/', b'1', 0x06, 2, 0, 120];
const END: [u8; 2] = [0, 0];

struct Lldp;

impl Protocol for Lldp {
    type Counters = LldpCounters;

    const INIT_TYPE: &'static str = "lldp.LldpInit";

    fn announcement(init: Params<'_>, client: MacAddress) -> Result<Announcement, PluginError> {
        let options = init.options("lldp.LldpOptionsT", &["raw", "remove_default"])?;
        let mut payload = Vec::new();
        if !options.bool_or("remove_default", false)? {
            // The chassis, told by its MAC address (subtype 4); a port by its interface's name (5).
            payload.extend_from_slice(&[0x02, 7, 4]);
            payload.extend_from_slice(&client.octets());
            payload.extend_from_slice(&PORT_AND_TTL);
        }
        let room = PAYLOAD_BYTES_MAX - payload.len() - END.len();
        payload.extend_from_slice(&announcement::raw_option(options, room)?);
        payload.extend_from_slice(&END);
        Ok(Announcement {
            destination: NEAREST_BRIDGE,
            ether_type: LLDP,
            payload: payload.into(),
        })
    }

    fn count(counters: &mut LldpCounters) {
        counters.tx = counters.tx.wrapping_add(1);
    }
}
