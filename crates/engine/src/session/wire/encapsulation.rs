//! What stands in front of the IP packet of a frame: its type, behind VLAN tags or in a tunnel.
//!
//! An encapsulation is a value: how long its prefix is, how it is written, and how it is recognised
//! and taken off what arrives. Tags are known here; whatever else there is implements [`Tunnel`].

use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use allosaur_packet::frame::{self, Layout};
use allosaur_packet::link::ethernet::EtherType;

use crate::flow::AddressSpace;

const TYPE_BYTES: usize = 2;
const TAG_BYTES: usize = 4;

/// What stands between the MAC addresses of a frame and its IP packet.
#[derive(Clone, Debug, Default)]
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
    /// Something else. Those that share the `Arc` are the same.
    Tunnel(Arc<dyn Tunnel>),
}

/// That of most frames.
pub static ETHERNET: Encapsulation = Encapsulation::Ethernet;

/// A kind of encapsulation, with what one link or one client has of it: a label, an endpoint.
pub trait Tunnel: Debug + Send + Sync {
    /// How many bytes there are between the MAC addresses and the IP packet, at most 128.
    fn prefix_bytes(&self) -> usize;

    /// Writes them in front of a packet of `packet_bytes`, its header included; `prefix` is as long
    /// as [`prefix_bytes`](Tunnel::prefix_bytes) says.
    fn write(&self, packet: EtherType, packet_bytes: usize, prefix: &mut [u8]);

    /// Where the IP packet of a frame is that came to the port of this tunnel; `None` when the
    /// frame came through no tunnel of this kind, and is taken as it is.
    fn strip(&self, frame: &[u8]) -> Option<Stripped>;

    /// Which address space the addresses of the packets belong to.
    fn space(&self) -> AddressSpace {
        AddressSpace::default()
    }
}

/// What was found behind a tunnel's prefix.
#[derive(Clone, Debug)]
pub struct Stripped {
    /// Where the IP packet begins in the frame.
    pub packet_offset: usize,
    /// What it is: IPv4 or IPv6.
    pub packet: EtherType,
    /// What is put in front of answers; `None` is the tunnel that recognised it.
    pub reply: Option<Encapsulation>,
}

impl Encapsulation {
    /// The tags of a frame that arrived, for what is sent back.
    pub fn of(layout: &Layout) -> Encapsulation {
        Encapsulation::of_tags(layout.vlans())
    }

    /// What has these tags, by their tag control information, the outer first.
    pub fn of_tags(tags: &[u16]) -> Encapsulation {
        match *tags {
            [] => Encapsulation::Ethernet,
            [tag] => Encapsulation::Vlan(tag),
            [outer, inner, ..] => Encapsulation::QinQ { outer, inner },
        }
    }

    /// How many bytes it has, the type of the packet included.
    #[inline]
    pub fn prefix_bytes(&self) -> usize {
        match self {
            Encapsulation::Ethernet => TYPE_BYTES,
            Encapsulation::Vlan(_) => TAG_BYTES + TYPE_BYTES,
            Encapsulation::QinQ { .. } => 2 * TAG_BYTES + TYPE_BYTES,
            Encapsulation::Tunnel(tunnel) => tunnel.prefix_bytes(),
        }
    }

    /// Writes it in front of a packet of `packet_bytes`.
    pub(super) fn write(&self, packet: EtherType, packet_bytes: usize, prefix: &mut [u8]) {
        let types_and_tags = match *self {
            Encapsulation::Ethernet => [packet.0, 0, 0, 0, 0],
            Encapsulation::Vlan(tag) => [EtherType::VLAN.0, tag, packet.0, 0, 0],
            Encapsulation::QinQ { outer, inner } => {
                [EtherType::QINQ.0, outer, EtherType::VLAN.0, inner, packet.0]
            }
            Encapsulation::Tunnel(ref tunnel) => return tunnel.write(packet, packet_bytes, prefix),
        };
        for (place, field) in prefix.chunks_exact_mut(2).zip(types_and_tags) {
            place.copy_from_slice(&field.to_be_bytes());
        }
    }

    /// Finds the headers of a frame that came to a port with this encapsulation, and what is put in
    /// front of answers where that is a tunnel.
    #[inline]
    pub fn parse(&self, frame: &[u8]) -> (Layout, Option<Encapsulation>) {
        let stripped = match self {
            Encapsulation::Tunnel(tunnel) => tunnel.strip(frame),
            _ => None,
        };
        match stripped {
            Some(it) => {
                let layout = frame::parse_packet(frame, it.packet_offset, it.packet);
                (layout, it.reply.or_else(|| Some(self.clone())))
            }
            None => (frame::parse(frame), None),
        }
    }

    /// Which address space the addresses of its packets belong to.
    #[inline]
    pub fn space(&self) -> AddressSpace {
        match self {
            Encapsulation::Tunnel(tunnel) => tunnel.space(),
            _ => AddressSpace::default(),
        }
    }
}

impl From<Option<u16>> for Encapsulation {
    /// A VLAN tag, or none.
    fn from(tag: Option<u16>) -> Encapsulation {
        tag.map_or(Encapsulation::Ethernet, Encapsulation::Vlan)
    }
}

impl PartialEq for Encapsulation {
    fn eq(&self, other: &Encapsulation) -> bool {
        match (self, other) {
            (Encapsulation::Ethernet, Encapsulation::Ethernet) => true,
            (Encapsulation::Vlan(one), Encapsulation::Vlan(two)) => one == two,
            (Encapsulation::QinQ { outer, inner }, Encapsulation::QinQ { outer: o, inner: i }) => {
                (outer, inner) == (o, i)
            }
            (Encapsulation::Tunnel(one), Encapsulation::Tunnel(two)) => Arc::ptr_eq(one, two),
            _ => false,
        }
    }
}

impl Eq for Encapsulation {}

impl Hash for Encapsulation {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Encapsulation::Ethernet => 0u8.hash(state),
            Encapsulation::Vlan(tag) => (1u8, tag).hash(state),
            Encapsulation::QinQ { outer, inner } => (2u8, outer, inner).hash(state),
            Encapsulation::Tunnel(tunnel) => Arc::as_ptr(tunnel).cast::<()>().hash(state),
        }
    }
}
