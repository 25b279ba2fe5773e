//! What stands between the MAC addresses of a frame and its IP packet, as a value: tags, or a tunnel.
//!
//! | what | where |
//! |---|---|
//! | the value: compared and hashed by what is in it | here |
//! | the list of tunnels, and what each of them says | `tunnel`, a file for each beside it |
//! | the bytes of a value, and what of them depends on the packet | `prefix` |
//!
//! A value is small and copied; nothing is allocated or shared between cores for one that a frame brings.

mod prefix;
mod tunnel;
mod vxlan;

use allosaur_packet::link::ethernet::{self, EtherType};
use allosaur_packet::link::vlan;
use allosaur_packet::shared_payload::SplitFrame;

pub(crate) use prefix::flow_hash;
pub use prefix::{LinkPrefix, PREFIX_BYTES_MAX, PrefixBuilder};
pub use tunnel::{Stripped, Tunnel, TunnelKind};
pub use vxlan::Vxlan;

const TYPE: usize = ethernet::TYPE_OFFSET;
const TAG_BYTES: usize = vlan::HEADER_BYTES;

/// What stands between the MAC addresses of a frame and its IP packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Encapsulation {
    /// The type of the packet.
    #[default]
    Ethernet,
    /// A VLAN tag, by its tag control information (IEEE 802.1Q).
    Vlan(u16),
    /// A service tag and a VLAN tag in it (IEEE 802.1ad).
    QinQ {
        /// The tag control information of the service tag.
        outer: u16,
        /// That of the tag in it.
        inner: u16,
    },
    /// A tunnel.
    Tunnel(Tunnel),
}

impl Encapsulation {
    /// What has these tags, by their tag control information, the outer first.
    pub fn of_tags(tags: &[u16]) -> Encapsulation {
        match *tags {
            [] => Encapsulation::Ethernet,
            [tag] => Encapsulation::Vlan(tag),
            [outer, inner, ..] => Encapsulation::QinQ { outer, inner },
        }
    }

    /// The network that the addresses of its packets belong to; 0 where there is no tunnel.
    #[inline]
    pub fn network(&self) -> u32 {
        match self {
            Encapsulation::Tunnel(tunnel) => tunnel.network(),
            _ => 0,
        }
    }

    /// Whether it is a tunnel: frames of its port are recognised by it.
    #[inline]
    pub fn is_tunnel(&self) -> bool {
        matches!(self, Encapsulation::Tunnel(_))
    }

    /// Writes it, and last the type of the packet.
    pub(crate) fn push(&self, packet: EtherType, prefix: &mut PrefixBuilder) {
        match *self {
            Encapsulation::Ethernet => prefix.push(&packet.0.to_be_bytes()),
            Encapsulation::Vlan(tag) => {
                prefix.push_tag(EtherType::VLAN, tag);
                prefix.push(&packet.0.to_be_bytes());
            }
            Encapsulation::QinQ { outer, inner } => {
                prefix.push_tag(EtherType::QINQ, outer);
                prefix.push_tag(EtherType::VLAN, inner);
                prefix.push(&packet.0.to_be_bytes());
            }
            Encapsulation::Tunnel(tunnel) => tunnel.push(packet, prefix),
        }
    }

    /// Where the packet of a frame begins that came to a port with this encapsulation, and in what it
    /// came. A frame that came in no tunnel is taken by its tags.
    #[inline]
    pub fn strip(&self, frame: &SplitFrame<'_>) -> Stripped {
        match self {
            Encapsulation::Tunnel(tunnel) => tunnel.strip(frame),
            _ => Encapsulation::strip_tags(frame.head),
        }
    }

    /// The same for a frame without a tunnel.
    #[inline]
    pub(crate) fn strip_tags(frame: &[u8]) -> Stripped {
        match Encapsulation::packet_behind_tags(frame) {
            Some((packet_offset, packet)) => Stripped::Packet {
                packet_offset,
                packet,
                came_in: Encapsulation::tags_of(frame),
            },
            None => Stripped::Other,
        }
    }

    /// Where the packet of a frame without a tunnel begins, and what it is.
    #[inline(always)]
    pub(crate) fn packet_behind_tags(frame: &[u8]) -> Option<(usize, EtherType)> {
        let fields = TagFields::read(frame)?;
        let mut at = TYPE;
        if fields.at(at).is_vlan() {
            at += TAG_BYTES;
            if fields.at(at).is_vlan() {
                at += TAG_BYTES;
            }
        }
        Some((at + 2, fields.at(at)))
    }

    /// The tags of a frame, for what is sent back.
    pub(crate) fn tags_of(frame: &[u8]) -> Encapsulation {
        let Some(fields) = TagFields::read(frame) else {
            return Encapsulation::Ethernet;
        };
        let (outer, inner) = (fields.half(TYPE + 2), fields.half(TYPE + TAG_BYTES + 2));
        if !fields.at(TYPE).is_vlan() {
            Encapsulation::Ethernet
        } else if !fields.at(TYPE + TAG_BYTES).is_vlan() {
            Encapsulation::Vlan(outer)
        } else {
            Encapsulation::QinQ { outer, inner }
        }
    }
}

/// The beginning of a frame, with room for two tags and the type of the packet; no packet is so short that
/// a frame has less.
#[derive(Clone, Copy)]
struct TagFields<'f>(&'f [u8; TYPE + 2 * TAG_BYTES + 2]);

impl TagFields<'_> {
    #[inline(always)]
    fn read(frame: &[u8]) -> Option<TagFields<'_>> {
        frame.first_chunk().map(TagFields)
    }

    /// The number at `at`.
    #[inline(always)]
    fn half(self, at: usize) -> u16 {
        u16::from_be_bytes([self.0[at], self.0[at + 1]])
    }

    /// The type at `at`.
    #[inline(always)]
    fn at(self, at: usize) -> EtherType {
        EtherType(self.half(at))
    }
}

impl From<Option<u16>> for Encapsulation {
    /// A VLAN tag, or none.
    fn from(tag: Option<u16>) -> Encapsulation {
        tag.map_or(Encapsulation::Ethernet, Encapsulation::Vlan)
    }
}

impl From<Vxlan> for Encapsulation {
    fn from(vxlan: Vxlan) -> Encapsulation {
        Encapsulation::Tunnel(Tunnel::Vxlan(vxlan))
    }
}
