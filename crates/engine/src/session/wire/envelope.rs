//! What surrounds the segments and messages that a flow sends, and where the parts of a frame are.

use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::{ipv4, ipv6};
use allosaur_packet::transport::tcp as tcp_header;
use allosaur_packet::transport::udp as udp_header;

use super::{Addresses, CE};
use crate::encapsulation::LinkPrefix;
use crate::tcp::Segment;

pub(super) const IPV4_BYTES: usize = ipv4::HEADER_BYTES_MIN;
pub(super) const IPV6_BYTES: usize = ipv6::HEADER_BYTES;
/// Of a frame without FCS; what is shorter is padded with zeros.
pub(super) const FRAME_BYTES_MIN: usize = 60;
/// A packet that routers may mark (RFC 3168, section 5).
const ECT_0: u8 = 0b10;

/// What surrounds the segments that a flow sends.
#[derive(Clone, Copy, Debug)]
pub struct Envelope<'a> {
    /// What stands in front of its packets, which is that of the version of `addresses`.
    pub link: &'a LinkPrefix,
    /// Source, destination.
    pub addresses: Addresses,
    /// Source, destination.
    pub ports: (u16, u16),
    /// The type of service, or traffic class; its two low bits are 0 where the flow does ECN.
    pub type_of_service: u8,
    /// Time to live, or hop limit.
    pub time_to_live: u8,
    /// The identification of an IPv4 packet.
    pub identification: u16,
}

/// What is written: a segment, or a datagram with so many bytes.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// A TCP segment.
    Tcp(&'a Segment),
    /// A UDP datagram with so many bytes.
    Udp(u16),
}

impl Content<'_> {
    pub(super) fn data_bytes(&self) -> usize {
        match self {
            Content::Tcp(segment) => segment.len as usize,
            Content::Udp(bytes) => usize::from(*bytes),
        }
    }

    pub(super) fn header_bytes(&self) -> usize {
        match self {
            Content::Tcp(segment) => tcp_header::HEADER_BYTES_MIN + option_bytes(segment),
            Content::Udp(_) => udp_header::HEADER_BYTES,
        }
    }

    pub(super) fn protocol(&self) -> IpProtocol {
        match self {
            Content::Tcp(_) => IpProtocol::TCP,
            Content::Udp(_) => IpProtocol::UDP,
        }
    }
}

/// Bytes of a frame around the data of a segment without options.
pub fn header_bytes(is_v6: bool, link: &LinkPrefix) -> usize {
    let network = if is_v6 { IPV6_BYTES } else { IPV4_BYTES };
    link.bytes() + network + tcp_header::HEADER_BYTES_MIN
}

/// Where the parts of a frame are.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    pub(super) network: usize,
    pub(super) transport: usize,
    pub(super) payload: usize,
    pub(super) end: usize,
}

impl Places {
    /// The length of the frame, without FCS.
    #[inline]
    pub fn frame_bytes(self) -> usize {
        self.end.max(FRAME_BYTES_MIN)
    }

    /// How many bytes stand in front of the data.
    #[inline]
    pub fn head_bytes(self) -> usize {
        self.payload
    }
}

impl Envelope<'_> {
    pub(super) fn network_offset(&self) -> usize {
        self.link.bytes()
    }

    pub(super) fn network_bytes(&self) -> usize {
        match self.addresses {
            Addresses::V4(..) => IPV4_BYTES,
            Addresses::V6(..) => IPV6_BYTES,
        }
    }

    /// How many bytes stand in front of the data of `content`.
    pub fn header_bytes(&self, content: &Content<'_>) -> usize {
        self.places(content).payload
    }

    /// The length of the frame around `content`, without FCS.
    pub fn frame_bytes(&self, content: &Content<'_>) -> usize {
        self.places(content).frame_bytes()
    }

    /// Where the parts of the frame around `content` are.
    #[inline]
    pub fn places(&self, content: &Content<'_>) -> Places {
        self.places_around(content.header_bytes(), content.data_bytes())
    }

    /// The same for so many bytes of a TCP or UDP header, and of data.
    #[inline(always)]
    pub(super) fn places_around(&self, header_bytes: usize, data_bytes: usize) -> Places {
        let network = self.network_offset();
        let transport = network + self.network_bytes();
        let payload = transport + header_bytes;
        Places {
            network,
            transport,
            payload,
            end: payload + data_bytes,
        }
    }

    /// The type of service, or traffic class. Its two low bits are those of ECN where the segment has
    /// some, else what the user wants there.
    #[inline]
    pub(super) fn class(&self, content: &Content<'_>) -> u8 {
        match content {
            Content::Tcp(segment) if segment.ecn => self.type_of_service & !CE | ECT_0,
            _ => self.type_of_service,
        }
    }
}

/// Bytes of the options with their padding to whole words.
fn option_bytes(segment: &Segment) -> usize {
    let blocks = segment.sack.as_slice().len();
    segment.mss.map_or(0, |_| 4)
        + segment.window_scale.map_or(0, |_| 4)
        + if segment.sack_permitted { 4 } else { 0 }
        + segment.timestamps.map_or(0, |_| 12)
        + if blocks > 0 { 4 + 8 * blocks } else { 0 }
}
