//! The sign of a group in a packet: the identification of IPv4, or the low 16 bits of the flow
//! label of IPv6.

use std::ops::Range;

use allosaur_packet::frame::{self, Layout, Network, Transport};
use allosaur_packet::link::ethernet::EtherType;
use allosaur_packet::network::{checksum, ipv4, ipv6};
use thiserror::Error;

use super::group::Group;
use super::vxlan::{VXLAN_PORT, VxlanPorts};
use crate::latency::{ChecksumFixup, TRAILER_BYTES, Trailer};

/// What is counted of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The packets are counted in this group.
    pub group: Group,
    /// The sign goes into the packet within VXLAN, not into the one around it.
    pub vxlan: bool,
    /// Of a group whose latency is measured, a number that changes with each run.
    pub run: u8,
}

/// Which signs are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tagging {
    /// Those of TRex's server, which ours receives by.
    #[default]
    Server,
    /// Those that TRex's simulator writes into its captures. They differ, and a simulation should
    /// look the same as it always did.
    Simulator,
}

impl Tagging {
    /// The sign of the first group; this one and all above it are reserved.
    pub(super) const fn first_id(self) -> u16 {
        match self {
            Tagging::Server => 0xfc00,
            Tagging::Simulator => 0xff00,
        }
    }

    /// The sign of all groups whose latency is measured: which one it is, the trailer says.
    pub(super) const fn latency_id(self) -> u16 {
        match self {
            Tagging::Server => 0xffff,
            Tagging::Simulator => 0xff7f,
        }
    }

    /// Whether packets get a trailer of their own as they are sent.
    pub(crate) fn stamps(self) -> bool {
        self == Tagging::Server
    }

    /// The sign of a group. The simulator has fewer signs than the server has groups: it begins
    /// again.
    fn id(self, group: Group) -> u16 {
        let wire_id = group.wire_id();
        match self {
            _ if group.is_latency() => self.latency_id(),
            Tagging::Server => self.first_id() + wire_id,
            Tagging::Simulator => self.first_id() + wire_id % 0x7f,
        }
    }
}

/// Why the packets of a stream cannot be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TagError {
    /// There is no place for the sign.
    #[error(
        "flow_stats needs a whole IPv4 or IPv6 header after Ethernet and at most two VLAN tags, \
         which the packet does not have: change the packet, or leave flow_stats out"
    )]
    NotIp,
    /// There is no packet within it.
    #[error(
        "flow_stats.vxlan is true, but there is no IPv4 or IPv6 packet in UDP to port {VXLAN_PORT} \
         or one of the port's vxlan_fs: change the packet, name its UDP port in vxlan_fs (with \
         set_port_attr), or set it to false"
    )]
    NotVxlan,
    /// The trailer would lie over the headers.
    #[error(
        "flow_stats.rule_type is 'latency', for which the packet needs {TRAILER_BYTES} bytes after \
         its headers: make it longer"
    )]
    NoRoom,
}

/// The header of VXLAN (RFC 7348, section 5).
pub(super) const VXLAN_BYTES: usize = 8;

/// Puts the sign of `rule` into a template. Checksums are updated and not made new: one that is
/// wrong on purpose stays wrong. `vxlan` are the UDP ports that carry VXLAN.
pub fn tag(
    packet: &mut [u8],
    rule: Rule,
    marking: Tagging,
    vxlan: &VxlanPorts,
) -> Result<(), TagError> {
    let place = place(packet, rule.vxlan.then_some(vxlan))?;
    place.set_id(packet, marking.id(rule.group));
    if rule.group.is_latency() {
        let fixup = checksum_fixup(packet, rule, vxlan);
        mark_latency(packet, &place, rule, marking, fixup)?;
    }
    if marking == Tagging::Simulator && place.network == Network::Ipv6 {
        place.set_lowest_class_bit(packet);
    }
    Ok(())
}

fn mark_latency(
    packet: &mut [u8],
    place: &Place,
    rule: Rule,
    marking: Tagging,
    fixup: Option<ChecksumFixup>,
) -> Result<(), TagError> {
    if packet.len() < place.headers_end + TRAILER_BYTES {
        return Err(TagError::NoRoom);
    }
    let group = rule.group.wire_id();
    if !marking.stamps() {
        Trailer::write_simulated(group, packet);
        return Ok(());
    }
    place.set_lowest_class_bit(packet);
    let trailer = Trailer {
        run: rule.run,
        group,
        ..Trailer::default()
    };
    match fixup {
        Some(fixup) => fixup.write(trailer, packet),
        None => trailer.write(packet),
    }
    Ok(())
}

/// The checksum that covers the trailer of a packet: that of the packet which has the sign, and
/// where it has none, that of the packet around it.
pub fn checksum_fixup(packet: &[u8], rule: Rule, vxlan: &VxlanPorts) -> Option<ChecksumFixup> {
    let outer = frame::parse(packet);
    let inner = vxlan_offset(packet, &outer, vxlan).filter(|_| rule.vxlan);
    let inner = inner.and_then(|at| ChecksumFixup::of(&frame::parse(&packet[at..]), at));
    // A right checksum makes its packet neutral in the one around it.
    let used = inner.filter(|fixup| fixup.is_used_in(packet));
    used.or_else(|| ChecksumFixup::of(&outer, 0))
}

/// Takes the highest bit out of what looks like a sign in a template that is not counted.
pub fn clear(packet: &mut [u8], marking: Tagging) {
    if let Ok(place) = place(packet, None) {
        let id = place.id(packet);
        if id >= marking.first_id() {
            place.set_id(packet, id & 0x7fff);
        }
    }
}

/// Where the sign goes in a packet.
struct Place {
    network: Network,
    /// Where the network header starts.
    start: usize,
    /// Where the payload starts.
    headers_end: usize,
}

impl Place {
    /// The place in the frame that begins at `offset`. A header counts as one by its type, and
    /// needs its least bytes only: what it says of itself, its version and lengths, may be
    /// anything. TRex takes such packets, and who receives looks at no more than that either.
    fn find(packet: &[u8], offset: usize) -> Option<Place> {
        let layout = frame::parse(&packet[offset..]);
        let start = offset + usize::from(layout.network_offset);
        let (network, bytes_min) = match layout.ether_type {
            EtherType::IPV4 => (Network::Ipv4, ipv4::HEADER_BYTES_MIN),
            EtherType::IPV6 => (Network::Ipv6, ipv6::HEADER_BYTES),
            _ => return None,
        };
        let end_min = start + bytes_min;
        (end_min <= packet.len()).then(|| Place {
            network,
            start,
            headers_end: end_min.max(offset + usize::from(layout.payload_offset)),
        })
    }

    /// The bytes of the sign.
    fn field(&self) -> Range<usize> {
        let offset = if self.network == Network::Ipv4 { 4 } else { 2 };
        let start = self.start + offset;
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
            self.update_checksum(packet, old, id);
        }
    }

    /// Sets the lowest bit of TOS, or of the traffic class.
    fn set_lowest_class_bit(&self, packet: &mut [u8]) {
        let start = self.start;
        if self.network == Network::Ipv6 {
            packet[start + 1] |= 0x10;
            return;
        }
        let old = u16::from_be_bytes([packet[start], packet[start + 1]]);
        packet[start + 1] |= 1;
        self.update_checksum(packet, old, old | 1);
    }

    fn update_checksum(&self, packet: &mut [u8], old: u16, new: u16) {
        let sum = &mut packet[self.start + 10..][..2];
        let updated = checksum::update_u16(u16::from_be_bytes([sum[0], sum[1]]), old, new);
        sum.copy_from_slice(&updated.to_be_bytes());
    }
}

/// The place in the packet, or in the one within VXLAN when its ports are given.
fn place(packet: &[u8], vxlan: Option<&VxlanPorts>) -> Result<Place, TagError> {
    let Some(vxlan) = vxlan else {
        return Place::find(packet, 0).ok_or(TagError::NotIp);
    };
    let outer = frame::parse(packet);
    let inner = vxlan_offset(packet, &outer, vxlan).ok_or(TagError::NotVxlan)?;
    Place::find(packet, inner).ok_or(TagError::NotVxlan)
}

/// Where the frame within VXLAN begins.
pub(super) fn vxlan_offset(packet: &[u8], outer: &Layout, ports: &VxlanPorts) -> Option<usize> {
    let to = usize::from(outer.transport_offset) + 2;
    let port = packet.get(to..to + 2)?;
    let is_vxlan =
        outer.transport == Transport::Udp && ports.contains(u16::from_be_bytes([port[0], port[1]]));
    let inner = usize::from(outer.payload_offset) + VXLAN_BYTES;
    (is_vxlan && inner < packet.len()).then_some(inner)
}
