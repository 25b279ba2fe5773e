//! The sign of a frame that arrived.

use allosaur_packet::frame::{self, VLAN_TAGS_MAX};
use allosaur_packet::link::ethernet::EtherType;

use super::group::Group;
use super::tag::{Tagging, vxlan_offset};
use super::vxlan::VxlanPorts;

/// What a sign says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowTag {
    /// A group that is only counted.
    Flow(Group),
    /// A group whose latency is measured: the frame's trailer tells which.
    Latency,
}

/// The sign of a frame, if it has one. Frames within VXLAN are looked at when the frame around
/// them has none; `vxlan` are the UDP ports that carry it.
#[inline(always)]
pub fn flow_tag_of(frame: &[u8], vxlan: &VxlanPorts) -> Option<FlowTag> {
    let (ether_type, at) = network(frame)?;
    let id = match ether_type {
        EtherType::IPV4 => u16_at(frame, at + 4)?,
        _ => u16_at(frame, at + 2)?,
    };
    match id.checked_sub(Tagging::Server.first_id()) {
        Some(n) => Some(sign(n)),
        None => sign_in_vxlan(frame, ether_type, at, vxlan),
    }
}

/// The groups that are counted take all signs but the highest.
#[inline]
fn sign(n: u16) -> FlowTag {
    Group::flow(n).map_or(FlowTag::Latency, FlowTag::Flow)
}

/// The type and the place of an IP header, behind any VLAN tags.
#[inline(always)]
fn network(frame: &[u8]) -> Option<(EtherType, usize)> {
    let mut at = 12;
    for _ in 0..=VLAN_TAGS_MAX {
        let ether_type = EtherType(u16_at(frame, at)?);
        if matches!(ether_type, EtherType::IPV4 | EtherType::IPV6) {
            return Some((ether_type, at + 2));
        }
        if !ether_type.is_vlan() {
            return None;
        }
        at += 4;
    }
    None
}

#[inline]
fn sign_in_vxlan(
    frame: &[u8],
    ether_type: EtherType,
    at: usize,
    vxlan: &VxlanPorts,
) -> Option<FlowTag> {
    // UDP to a port of VXLAN, if there are no options. With options a frame is not looked into.
    let header_bytes = if ether_type == EtherType::IPV4 {
        20
    } else {
        40
    };
    if !vxlan.contains(u16_at(frame, at + header_bytes + 2)?) {
        return None;
    }
    let inner = &frame[vxlan_offset(frame, &frame::parse(frame), vxlan)?..];
    let (ether_type, at) = network(inner)?;
    let id = match ether_type {
        EtherType::IPV4 => u16_at(inner, at + 4)?,
        _ => u16_at(inner, at + 2)?,
    };
    id.checked_sub(Tagging::Server.first_id()).map(sign)
}

#[inline]
fn u16_at(frame: &[u8], at: usize) -> Option<u16> {
    let bytes = frame.get(at..at + 2)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}
