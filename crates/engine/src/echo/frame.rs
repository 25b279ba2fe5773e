//! Frames of echo messages, and the stamp in them.

use std::net::IpAddr;

use allosaur_packet::MacAddress;
use allosaur_packet::builder::{FrameBuilder, LinkHeader};
use allosaur_packet::frame::{self, Fragment, Health, Layout, Network, Transport};
use allosaur_packet::link::ethernet::{self, EthernetView};
use allosaur_packet::link::vlan;
use allosaur_packet::network::checksum::pseudo_header_v6;
use allosaur_packet::network::icmpv4::{Icmpv4Header, Icmpv4View};
use allosaur_packet::network::icmpv6::{Icmpv6Header, Icmpv6View};
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv4::{Ipv4Header, Ipv4View};
use allosaur_packet::network::ipv6::{Ipv6Header, Ipv6View};

use crate::time::Nanos;
use crate::transmit::PortIndex;

/// The upper 24 bits say that a message is of this kind, the lower 8 which port sent it.
const MAGIC: u32 = 0x1234_5600;
/// Bytes of a stamp.
pub(super) const STAMP_BYTES: usize = 20;

/// What a message carries to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// When it was sent.
    pub(super) sent_ns: Nanos,
    /// The port that sent it.
    pub(super) port: PortIndex,
    /// Its number, of those that the port sent.
    pub(super) sequence: u32,
    /// Which run of messages it belongs to.
    pub(super) run: u32,
}

impl Stamp {
    pub(super) fn parse(data: &[u8]) -> Option<Stamp> {
        let bytes: &[u8; STAMP_BYTES] = data.first_chunk()?;
        let word = |at: usize| u32::from_be_bytes(std::array::from_fn(|n| bytes[at + n]));
        let magic = word(8);
        (magic & 0xffff_ff00 == MAGIC).then(|| Stamp {
            sent_ns: Nanos::from(word(0)) << 32 | Nanos::from(word(4)),
            port: magic as u8,
            sequence: word(12),
            run: word(16),
        })
    }

    pub(super) fn to_bytes(self) -> [u8; STAMP_BYTES] {
        let mut bytes = [0; STAMP_BYTES];
        bytes[..8].copy_from_slice(&self.sent_ns.to_be_bytes());
        let magic = MAGIC | u32::from(self.port);
        bytes[8..12].copy_from_slice(&magic.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[16..20].copy_from_slice(&self.run.to_be_bytes());
        bytes
    }
}

/// An echo request or reply in its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Echo<'a> {
    /// MAC addresses: to, from.
    pub(super) macs: (MacAddress, MacAddress),
    /// VLAN tags as they are on the wire, with their types in front.
    pub(super) tags: &'a [u8],
    /// Source, destination; both of one version.
    pub(super) addresses: (IpAddr, IpAddr),
    pub(super) is_reply: bool,
    pub(super) identifier: u16,
    pub(super) sequence: u16,
    pub(super) data: &'a [u8],
}

/// How an echo message arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    Whole,
    /// It ends too early, or its lengths contradict each other.
    Length,
    NetworkChecksum,
    TransportChecksum,
}

impl<'a> Echo<'a> {
    /// Reads a frame; `None` when it is no echo message.
    pub(super) fn read(bytes: &'a [u8]) -> Option<(Echo<'a>, Condition)> {
        let layout = frame::parse(bytes);
        if layout.fragment != Fragment::No {
            return None;
        }
        let message = layout.segment(bytes);
        let (is_reply, identifier, sequence) = match layout.transport {
            Transport::Icmpv4 => match Icmpv4Header::parse(message).ok()? {
                Icmpv4Header::EchoRequest {
                    identifier,
                    sequence,
                } => (false, identifier, sequence),
                Icmpv4Header::EchoReply {
                    identifier,
                    sequence,
                } => (true, identifier, sequence),
                _ => return None,
            },
            Transport::Icmpv6 => match Icmpv6Header::parse(message).ok()? {
                Icmpv6Header::EchoRequest {
                    identifier,
                    sequence,
                } => (false, identifier, sequence),
                Icmpv6Header::EchoReply {
                    identifier,
                    sequence,
                } => (true, identifier, sequence),
                _ => return None,
            },
            _ => return None,
        };
        let ethernet = EthernetView::new_checked(bytes).ok()?;
        let tags_bytes = layout.vlans().len() * vlan::HEADER_BYTES;
        let (addresses, condition) = inspect(bytes, &layout, message)?;
        let echo = Echo {
            macs: (ethernet.destination(), ethernet.source()),
            tags: &bytes[ethernet::TYPE_OFFSET..ethernet::TYPE_OFFSET + tags_bytes],
            addresses,
            is_reply,
            identifier,
            sequence,
            data: layout.payload(bytes),
        };
        Some((echo, condition))
    }

    /// Writes the frame, in place of what was there.
    pub(super) fn write(&self, frame: &mut Vec<u8>) {
        let link = LinkHeader {
            destination: self.macs.0,
            source: self.macs.1,
            tags: self.tags,
        };
        let (identifier, sequence) = (self.identifier, self.sequence);
        let builder = FrameBuilder::new(frame, &link);
        match self.addresses {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let message = match self.is_reply {
                    true => Icmpv4Header::EchoReply {
                        identifier,
                        sequence,
                    },
                    false => Icmpv4Header::EchoRequest {
                        identifier,
                        sequence,
                    },
                };
                // Its number of zero is no sign of a packet group.
                let ip = Ipv4Header::new(source, destination, IpProtocol::ICMPV4);
                builder.icmpv4(&ip, &message, self.data);
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let message = match self.is_reply {
                    true => Icmpv6Header::EchoReply {
                        identifier,
                        sequence,
                    },
                    false => Icmpv6Header::EchoRequest {
                        identifier,
                        sequence,
                    },
                };
                let ip = Ipv6Header::new(source, destination, IpProtocol::ICMPV6);
                builder.icmpv6(&ip, &message, self.data);
            }
            _ => unreachable!("both addresses are of one version"),
        }
    }
}

/// The addresses of a message, and how it arrived.
fn inspect(bytes: &[u8], layout: &Layout, message: &[u8]) -> Option<((IpAddr, IpAddr), Condition)> {
    let network = &bytes[usize::from(layout.network_offset)..];
    let (addresses, is_network_right, is_message_right) = match layout.network {
        Network::Ipv4 => {
            let ip = Ipv4View::new_unchecked(network);
            let message = Icmpv4View::new_unchecked(message);
            (
                (ip.source().into(), ip.destination().into()),
                ip.has_right_checksum(),
                message.has_right_checksum(),
            )
        }
        Network::Ipv6 => {
            let ip = Ipv6View::new_unchecked(network);
            let (source, destination) = (ip.source(), ip.destination());
            let length = message.len() as u32;
            let sum = pseudo_header_v6(source, destination, IpProtocol::ICMPV6, length);
            let message = Icmpv6View::new_unchecked(message);
            (
                (source.into(), destination.into()),
                true,
                message.has_right_checksum(sum),
            )
        }
        Network::Arp | Network::None => return None,
    };
    let condition = if layout.health != Health::Whole {
        Condition::Length
    } else if !is_network_right {
        Condition::NetworkChecksum
    } else if !is_message_right {
        Condition::TransportChecksum
    } else {
        Condition::Whole
    };
    Some((addresses, condition))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn some_addresses() -> impl Strategy<Value = (IpAddr, IpAddr)> {
        prop_oneof![
            any::<([u8; 4], [u8; 4])>().prop_map(|(a, b)| (a.into(), b.into())),
            any::<([u8; 16], [u8; 16])>().prop_map(|(a, b)| (a.into(), b.into())),
        ]
    }

    proptest! {
        #[test]
        fn a_message_is_read_as_it_was_written(
            macs in any::<([u8; 6], [u8; 6])>(),
            vlans in prop::collection::vec(0..4096_u16, 0..=2),
            addresses in some_addresses(),
            is_reply in any::<bool>(),
            numbers in any::<(u16, u16)>(),
            stamp in any::<(u64, u8, u32, u32)>(),
        ) {
            let (sent_ns, port, sequence, run) = stamp;
            let stamp = Stamp { sent_ns, port, sequence, run };
            let (tags, data) = (vlan::tags_of(&vlans), stamp.to_bytes());
            let echo = Echo {
                macs: (MacAddress(macs.0), MacAddress(macs.1)),
                tags: &tags,
                addresses,
                is_reply,
                identifier: numbers.0,
                sequence: numbers.1,
                data: &data,
            };
            let mut frame = vec![7; 9];
            echo.write(&mut frame);
            prop_assert_eq!(Echo::read(&frame), Some((echo, Condition::Whole)));
            prop_assert_eq!(Stamp::parse(&data), Some(stamp));
        }

        #[test]
        fn any_bytes_are_read(frame in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = Echo::read(&frame);
        }
    }

    #[test]
    fn what_is_no_stamp_is_none() {
        let stamp = Stamp {
            sent_ns: 1,
            port: 2,
            sequence: 3,
            run: 4,
        }
        .to_bytes();
        assert_eq!(Stamp::parse(&stamp[..19]), None);
        assert_eq!(Stamp::parse(&[0x12; 20]), None);
    }
}
