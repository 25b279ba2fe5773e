//! What two OPEN messages come to.

use std::net::Ipv4Addr;

use crate::session::config::BgpSessionConfig;
use crate::stream::StreamEncoding;
use crate::wire::attributes::AttributeEncoding;
use crate::wire::framing::{EXTENDED_MESSAGE_LEN_MAX, MESSAGE_LEN_MAX};
use crate::wire::notification::{Notification, code};
use crate::wire::open::{Capability, Open};
use crate::wire::prefix::AddressFamily;

const BAD_PEER_AS: u8 = 2;
const BAD_IDENTIFIER: u8 = 3;
const UNSUPPORTED_CAPABILITY: u8 = 7;

/// What holds between both ends of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Negotiated {
    /// The peer's AS number.
    pub peer_as: u32,
    /// The peer's BGP Identifier.
    pub peer_identifier: Ipv4Addr,
    /// The smaller of both hold times; 0 for none.
    pub hold_time_s: u16,
    /// Families that both have.
    pub families: Vec<AddressFamily>,
    /// How routes are written for the peer.
    pub encoding: StreamEncoding,
    /// Whether the peer can do graceful restart, and for how long it asks to keep its routes.
    pub peer_restart_time_s: Option<u16>,
}

impl Negotiated {
    /// What our configuration and the peer's OPEN come to.
    ///
    /// # Errors
    /// The notification that RFC 4271 §6.2 or RFC 5492 §3 wants.
    pub fn new(config: &BgpSessionConfig, peer: &Open) -> Result<Self, Notification> {
        let peer_as = peer.as_number();
        let error = |subcode| Notification::new(code::OPEN_MESSAGE, subcode);
        if config.peer_as.is_some_and(|expected| expected != peer_as) {
            return Err(error(BAD_PEER_AS));
        }
        let external = peer_as != config.local_as;
        // Unique within an autonomous system (RFC 6286 §2.1).
        if !external && peer.identifier == config.identifier {
            return Err(error(BAD_IDENTIFIER));
        }
        let families = common_families(config, peer);
        if families.is_empty() {
            let data = config.families.iter().flat_map(|family| {
                let [high, low] = family.afi().to_be_bytes();
                [1, 4, high, low, 0, 1]
            });
            let data = data.collect();
            return Err(Notification::with_data(
                code::OPEN_MESSAGE,
                UNSUPPORTED_CAPABILITY,
                data,
            ));
        }
        let extended = config.extended_messages && peer.can(&Capability::ExtendedMessage);
        let is_four_octet = |c: &Capability| matches!(c, Capability::FourOctetAs(_));
        Ok(Self {
            peer_as,
            peer_identifier: peer.identifier,
            hold_time_s: config.hold_time_s.min(peer.hold_time_s),
            families,
            encoding: StreamEncoding {
                attributes: AttributeEncoding {
                    four_octet_as: peer.capabilities.iter().any(is_four_octet),
                    external,
                },
                message_len_max: if extended {
                    EXTENDED_MESSAGE_LEN_MAX
                } else {
                    MESSAGE_LEN_MAX
                },
            },
            peer_restart_time_s: peer.capabilities.iter().find_map(|c| match c {
                Capability::GracefulRestart { restart_time_s, .. } => Some(*restart_time_s),
                _ => None,
            }),
        })
    }
}

/// Families that both offer. A peer that names none has IPv4 alone (RFC 4760 §8).
fn common_families(config: &BgpSessionConfig, peer: &Open) -> Vec<AddressFamily> {
    let is_multiprotocol = |c: &Capability| matches!(c, Capability::Multiprotocol { .. });
    let names_families = peer.capabilities.iter().any(is_multiprotocol);
    let has = |family: &AddressFamily| {
        let is_default = !names_families && *family == AddressFamily::Ipv4;
        is_default || peer.can(&Capability::unicast(*family))
    };
    config.families.iter().copied().filter(has).collect()
}
