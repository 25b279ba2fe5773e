//! The sign of a group in a packet: the identification of IPv4, or the low 16 bits of the flow
//! label of IPv6.
//!
//! What lives here: where the sign goes, and keeping packets that are not counted free of it.
//! What does not: finding it in frames that arrived (`receive`).

use std::ops::Range;

use allosaur_packet::checksum;
use allosaur_packet::frame::{self, Layout, Network, Transport};
use thiserror::Error;

use super::Group;

/// What is counted of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The packets are counted in this group.
    pub group: Group,
    /// The sign goes into the packet within VXLAN, not into the one around it.
    pub vxlan: bool,
}

/// Which signs are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Marking {
    /// Those of TRex's server, which ours receives by.
    #[default]
    Server,
    /// Those that TRex's simulator writes into its captures. They differ, and a simulation should
    /// look the same as it always did.
    Simulator,
}

impl Marking {
    /// The sign of the first group; this one and all above it are reserved.
    pub(super) const fn first_id(self) -> u16 {
        match self {
            Marking::Server => 0xfc00,
            Marking::Simulator => 0xff00,
        }
    }

    /// The sign of a group. The simulator has fewer signs than the server has groups: it begins
    /// again.
    const fn id(self, wire_id: u16) -> u16 {
        match self {
            Marking::Server => self.first_id() + wire_id,
            Marking::Simulator => self.first_id() + wire_id % 0x7f,
        }
    }
}

/// Why the packets of a stream cannot be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MarkError {
    /// There is no place for the sign.
    #[error(
        "flow_stats needs a whole IPv4 or IPv6 header after Ethernet and at most two VLAN tags, \
         which the packet does not have: change the packet, or leave flow_stats out"
    )]
    NotIp,
    /// There is no packet within it.
    #[error(
        "flow_stats.vxlan is true, but there is no IPv4 or IPv6 packet in UDP to port {VXLAN_PORT}: \
         change the packet, or set it to false"
    )]
    NotVxlan,
}

/// Where VXLAN listens (RFC 7348).
pub(super) const VXLAN_PORT: u16 = 4789;
/// The header of VXLAN (RFC 7348, section 5).
pub(super) const VXLAN_BYTES: usize = 8;

/// Puts the sign of `rule` into a template. Checksums are updated and not made new: one that is
/// wrong on purpose stays wrong.
pub fn mark(packet: &mut [u8], rule: Rule, marking: Marking) -> Result<(), MarkError> {
    let place = place(packet, rule.vxlan)?;
    place.set_id(packet, marking.id(rule.group.wire_id()));
    if marking == Marking::Simulator && place.network == Network::Ipv6 {
        // The lowest bit of the traffic class.
        packet[place.header.start + 1] |= 0x10;
    }
    Ok(())
}

/// Takes the highest bit out of what looks like a sign in a template that is not counted.
pub fn clear(packet: &mut [u8], marking: Marking) {
    if let Ok(place) = place(packet, false) {
        let id = place.id(packet);
        if id >= marking.first_id() {
            place.set_id(packet, id & 0x7fff);
        }
    }
}

/// Where the sign goes in a packet.
struct Place {
    network: Network,
    /// The network header.
    header: Range<usize>,
}

impl Place {
    fn new(layout: &Layout, offset: usize) -> Option<Place> {
        let start = offset + usize::from(layout.network_offset);
        let header = start..offset + usize::from(layout.transport_offset);
        let network = layout.network;
        matches!(network, Network::Ipv4 | Network::Ipv6).then_some(Place { network, header })
    }

    /// The bytes of the sign.
    fn field(&self) -> Range<usize> {
        let offset = if self.network == Network::Ipv4 { 4 } else { 2 };
        let start = self.header.start + offset;
        start..start + 2
    }

    fn id(&self, packet: &[u8]) -> u16 {
        let field = &packet[self.field()];
        u16::from_be_bytes([field[0], field[1]])
    }

    fn set_id(&self, packet: &mut [u8], id: u16) {
        let old = self.id(packet);
        packet[self.field()].copy_from_slice(&id.to_be_bytes());
        if self.network == Network::Ipv4 {
            let sum = &mut packet[self.header.start + 10..][..2];
            let new = checksum::update_u16(u16::from_be_bytes([sum[0], sum[1]]), old, id);
            sum.copy_from_slice(&new.to_be_bytes());
        }
    }
}

fn place(packet: &[u8], vxlan: bool) -> Result<Place, MarkError> {
    let outer = frame::parse(packet);
    if !vxlan {
        return Place::new(&outer, 0).ok_or(MarkError::NotIp);
    }
    let inner = vxlan_offset(packet, &outer).ok_or(MarkError::NotVxlan)?;
    let layout = frame::parse(&packet[inner..]);
    Place::new(&layout, inner).ok_or(MarkError::NotVxlan)
}

/// Where the frame within VXLAN begins.
pub(super) fn vxlan_offset(packet: &[u8], outer: &Layout) -> Option<usize> {
    let to = usize::from(outer.transport_offset) + 2;
    let is_vxlan = outer.transport == Transport::Udp
        && packet.get(to..to + 2) == Some(&VXLAN_PORT.to_be_bytes()[..]);
    let inner = usize::from(outer.payload_offset) + VXLAN_BYTES;
    (is_vxlan && inner < packet.len()).then_some(inner)
}
