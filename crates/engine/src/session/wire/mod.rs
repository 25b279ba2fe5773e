//! Between frames and what they mean to a flow: `parse` reads one of TCP or UDP, and `emit` writes one
//! around data that somebody else writes; those of the fast path `fast_path` reads and writes sooner.
//! `envelope` is what surrounds the data, `coalesce` finds segments that can be handled as one, and
//! `icmp_error` reads what routers say. What stands in front of packets is `crate::encapsulation`.

mod coalesce;
mod emit;
mod envelope;
mod fast_path;
mod icmp_error;
mod parse;

use std::net::{Ipv4Addr, Ipv6Addr};

use allosaur_packet::network::checksum::{self, Sum};
use allosaur_packet::network::ip_protocol::IpProtocol;

pub use coalesce::coalesce;
pub use emit::HeaderTemplate;
pub use envelope::{Content, Envelope, Places, header_bytes};
pub use fast_path::{
    SYN_BYTES, TIMED_BYTES, is_full_syn, is_plain, is_timed, read_packet, read_plain,
};
pub use icmp_error::{IcmpError, PacketFate, read_icmp_error};
pub use parse::{Arrival, Damage, Received, Refusal, read, read_damaged, read_split};

/// The ECN field of the IP header (RFC 3168, section 5) of a packet that a router marked.
const CE: u8 = 0b11;

/// Two bytes of padding, and the head of the timestamps option.
const TIMESTAMPS_ONLY: u32 = 0x0101_080a;
/// The bytes of these options, both times included.
const TIMESTAMPS_ONLY_BYTES: usize = 12;
/// The head of the option that tells the largest segment.
const MSS: u32 = 0x0204;
/// Two bytes of padding, and the option that allows SACK.
const SACK_PERMITTED: u32 = 0x0101_0402;
/// A byte of padding, and the head of the option that scales windows.
const WINDOW_SCALE: u32 = 0x01_0303;

/// The addresses of a frame on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// IPv4: source, destination.
    V4(Ipv4Addr, Ipv4Addr),
    /// IPv6: source, destination.
    V6(Ipv6Addr, Ipv6Addr),
}

#[inline]
fn pseudo_header(addresses: Addresses, protocol: IpProtocol, bytes: usize) -> Sum {
    match addresses {
        Addresses::V4(from, to) => checksum::pseudo_header_v4(from, to, protocol, bytes as u16),
        Addresses::V6(from, to) => checksum::pseudo_header_v6(from, to, protocol, bytes as u32),
    }
}

#[cfg(test)]
mod tests {
    use allosaur_packet::MacAddress;
    use allosaur_packet::frame;
    use allosaur_packet::link::ethernet::EtherType;
    use allosaur_packet::shared_payload::SplitFrame;
    use allosaur_packet::transport::tcp::TcpFlags;
    use allosaur_packet::transport::tcp_options::{SackBlock, SackBlocks};
    use proptest::prelude::*;

    use super::*;
    use crate::encapsulation::{Encapsulation, LinkPrefix, Stripped};
    use crate::tcp::{Segment, Seq};

    fn some_addresses() -> impl Strategy<Value = Addresses> {
        prop_oneof![
            any::<(u32, u32)>().prop_map(|(a, b)| Addresses::V4(a.into(), b.into())),
            any::<(u128, u128)>().prop_map(|(a, b)| Addresses::V6(a.into(), b.into())),
        ]
    }

    /// What stands in front of packets; it lives as long as the tests.
    fn link(
        macs: (MacAddress, MacAddress),
        encapsulation: &Encapsulation,
        addresses: Addresses,
    ) -> &'static LinkPrefix {
        let packet = match addresses {
            Addresses::V4(..) => EtherType::IPV4,
            Addresses::V6(..) => EtherType::IPV6,
        };
        let prefix = LinkPrefix::new(macs.0, macs.1, encapsulation, packet);
        Box::leak(Box::new(prefix))
    }

    static TAGS: [Encapsulation; 3] = [
        Encapsulation::Ethernet,
        Encapsulation::Vlan(0x2007),
        Encapsulation::QinQ {
            outer: 0xe064,
            inner: 200,
        },
    ];

    prop_compose! {
        fn some_envelope()(
            macs in any::<([u8; 6], [u8; 6])>(),
            tags in 0..TAGS.len(),
            addresses in some_addresses(),
            ports in any::<(u16, u16)>(),
            type_of_service in any::<u8>(),
            time_to_live in any::<u8>(),
            identification in any::<u16>(),
        ) -> Envelope<'static> {
            let macs = (MacAddress(macs.0), MacAddress(macs.1));
            Envelope {
                link: link(macs, &TAGS[tags], addresses),
                addresses,
                ports,
                type_of_service,
                time_to_live,
                identification,
            }
        }
    }

    prop_compose! {
        fn some_segment()(
            numbers in any::<(u32, u32, u8, u16)>(),
            len in 0..2000u32,
            syn in any::<(Option<u16>, Option<u8>, bool)>(),
            is_syn in any::<bool>(),
            timestamps in any::<Option<(u32, u32)>>(),
            blocks in prop::collection::vec(any::<(u32, u32)>(), 0..=3),
            ecn in any::<bool>(),
        ) -> Segment {
            let blocks = blocks.iter().map(|&(left, right)| SackBlock { left, right });
            let blocks: Vec<SackBlock> = blocks.collect();
            Segment {
                seq: Seq(numbers.0),
                ack: Seq(numbers.1),
                flags: TcpFlags(numbers.2),
                window: numbers.3,
                len,
                // The options of a SYN, or SACK: both do not fit.
                mss: syn.0.filter(|_| is_syn),
                window_scale: syn.1.filter(|_| is_syn),
                sack_permitted: syn.2 && is_syn,
                timestamps,
                sack: if is_syn { SackBlocks::default() } else { SackBlocks::new(&blocks) },
                ecn,
                ..Segment::default()
            }
        }
    }

    /// Reads a frame on the fast path, whatever stands in front of its packet.
    fn read_behind(frame: &SplitFrame<'_>) -> Option<(Received, usize)> {
        match Encapsulation::Ethernet.strip(frame) {
            Stripped::Packet {
                packet_offset,
                packet,
                ..
            } => read_packet(frame, packet_offset, packet),
            _ => None,
        }
    }

    fn written(envelope: &Envelope<'_>, content: &Content<'_>) -> Vec<u8> {
        let mut frame = vec![0xaa; envelope.frame_bytes(content)];
        envelope.write(content, &mut frame, |data| {
            data.iter_mut()
                .zip(0u8..=255)
                .for_each(|(byte, n)| *byte = n);
            Sum::of(data)
        });
        frame
    }

    proptest! {
        #[test]
        fn a_segment_is_read_as_it_was_written(envelope in some_envelope(), segment in some_segment()) {
            let frame = written(&envelope, &Content::Tcp(&segment));
            let layout = frame::parse(&frame);
            let came_in = Encapsulation::tags_of(&frame);
            let (tags, addresses) = (&frame[..envelope.link.bytes()], envelope.addresses);
            let (to, from) = (&frame[..6], &frame[6..12]);
            let mac = |bytes: &[u8]| MacAddress(*bytes.first_chunk().expect("it is there"));
            let again = link((mac(to), mac(from)), &came_in, addresses);
            let mut prefix = vec![0; again.bytes()];
            again.write(0, || 0, &mut prefix);
            prop_assert_eq!(&prefix[..], tags);
            let received = read(&frame, &layout).expect("it is right");
            prop_assert_eq!(received.addresses, envelope.addresses);
            prop_assert_eq!(received.ports, envelope.ports);
            let Arrival::Tcp(read) = received.arrival else {
                return Err(TestCaseError::fail("it is TCP"));
            };
            // A packet that may be marked was not marked yet, unless the user marks it.
            let marked = !segment.ecn && envelope.type_of_service & CE == CE;
            let expected = Segment { ecn: marked, ..segment };
            prop_assert_eq!(format!("{read:?}"), format!("{expected:?}"));
        }

        #[test]
        fn what_is_read_sooner_is_read_the_same(
            envelope in some_envelope(),
            segment in some_segment(),
            offers_all in any::<bool>(),
            datagram in prop::option::of(0..3000u16),
            damage in prop::option::of((any::<prop::sample::Index>(), 1..=255u8)),
        ) {
            let segment = if offers_all {
                Segment {
                    mss: Some(1460),
                    window_scale: Some(7),
                    sack_permitted: true,
                    timestamps: Some((1, 2)),
                    sack: SackBlocks::default(),
                    ..segment
                }
            } else {
                segment
            };
            let content = datagram.map_or(Content::Tcp(&segment), Content::Udp);
            let mut frame = written(&envelope, &content);
            if let Some((place, bits)) = damage {
                let at = place.index(frame.len());
                frame[at] ^= bits;
            }
            let is_fast = datagram.is_some()
                || offers_all
                || segment.mss.is_none()
                    && segment.window_scale.is_none()
                    && !segment.sack_permitted
                    && segment.sack.as_slice().is_empty();
            let is_fast = is_fast && damage.is_none();

            let layout = frame::parse(&frame);
            let whole = SplitFrame::whole(0, &frame);
            let fast = read_behind(&whole);
            if let Some((received, start)) = fast {
                prop_assert_eq!(received.data(&whole, start), layout.payload(&frame));
                let read = read(&frame, &layout).expect("it is right");
                prop_assert_eq!(format!("{received:?}"), format!("{read:?}"));
            }
            prop_assert!(fast.is_some() || !is_fast);

            // A frame that is longer than the shortest has no padding.
            let is_apart = datagram.is_none() && segment.len > 46;
            let (head, payload) = frame.split_at(envelope.header_bytes(&content));
            let split = SplitFrame {
                at_ns: 0,
                head,
                payload: if is_apart { payload } else { &[] },
                payload_sum: Sum::of(payload).folded(),
            };
            let fast = read_behind(&split);
            if let Some((received, start)) = fast {
                prop_assert_eq!(received.data(&split, start), payload);
                let (_, read) = read_split(&split).expect("it is right");
                prop_assert_eq!(format!("{received:?}"), format!("{read:?}"));
            }
            prop_assert!(fast.is_some() || !is_fast || !is_apart);
        }

        #[test]
        fn a_template_writes_what_is_written_from_nothing(
            envelope in some_envelope(),
            segment in some_segment(),
            timestamps in any::<(u32, u32)>(),
            moved in any::<(u16, u32)>(),
        ) {
            let first = Segment {
                mss: None,
                window_scale: None,
                sack_permitted: false,
                sack: SackBlocks::default(),
                timestamps: Some(timestamps),
                ..segment
            };
            let template = HeaderTemplate::new(&envelope, &first);
            let other = Segment { seq: Seq(moved.1), ..first };
            let envelope = Envelope { identification: moved.0, ..envelope };
            let whole = written(&envelope, &Content::Tcp(&other));
            let start = template.bytes();
            let data = &whole[start..start + first.len as usize];
            let mut head = vec![0xaa; start];
            template.write(moved.0, other.seq, Sum::of(data).folded(), &mut head);
            prop_assert_eq!(&head[..], &whole[..start]);
            let mut head = vec![0xaa; start];
            envelope.write_timed_behind(&other, Sum::of(data), &mut head);
            prop_assert_eq!(&head[..], &whole[..start]);
            let mut head = vec![0xaa; start];
            match envelope.link.bytes() {
                14 => envelope.write_timed_at::<14>(&other, Sum::of(data), &mut head),
                18 => envelope.write_timed_at::<18>(&other, Sum::of(data), &mut head),
                bytes => {
                    prop_assert_eq!(bytes, 22);
                    envelope.write_timed_at::<22>(&other, Sum::of(data), &mut head);
                }
            }
            prop_assert_eq!(&head[..], &whole[..start]);
        }

        #[test]
        fn a_syn_is_written_at_once_as_it_is_step_by_step(
            envelope in some_envelope(),
            segment in some_segment(),
            offered in any::<(u16, u8, (u32, u32))>(),
        ) {
            let syn = Segment {
                mss: Some(offered.0),
                window_scale: Some(offered.1),
                sack_permitted: true,
                timestamps: Some(offered.2),
                sack: SackBlocks::default(),
                len: 0,
                ..segment
            };
            let whole = written(&envelope, &Content::Tcp(&syn));
            let mut head = vec![0xaa; envelope.syn_places().head_bytes()];
            envelope.write_syn_behind(&syn, &mut head);
            prop_assert_eq!(head, whole);
        }

        #[test]
        fn segments_are_coalesced_as_long_as_they_differ_in_nothing_but_numbers(
            envelope in some_envelope(),
            ends in any::<(u32, u32)>(),
            numbers in any::<(u32, u32, u16)>(),
            timestamps in any::<Option<(u32, u32)>>(),
            lens in prop::collection::vec(47..1500u32, 2..7),
            other in (1..7usize, 0..9u8),
            splits in any::<bool>(),
        ) {
            let addresses = Addresses::V4(ends.0.into(), ends.1.into());
            let macs = (MacAddress([2; 6]), MacAddress([4; 6]));
            let envelope = Envelope {
                link: link(macs, &Encapsulation::Ethernet, addresses),
                addresses,
                ..envelope
            };
            let first = Segment {
                seq: Seq(numbers.0),
                ack: Seq(numbers.1),
                window: numbers.2,
                flags: TcpFlags::ACK,
                len: lens[0],
                timestamps,
                ..Segment::default()
            };
            let (mut seq, mut frames) = (first.seq, Vec::new());
            for (place, &len) in lens.iter().enumerate() {
                let mut envelope = Envelope { identification: place as u16, ..envelope };
                let mut segment = Segment { seq, len, ..first };
                let mut damage = 0;
                match other.1 {
                    _ if place != other.0 => {}
                    0 => segment.seq += 1,
                    1 => segment.ack += 1,
                    2 => segment.window ^= 1,
                    3 => segment.flags |= TcpFlags::PSH,
                    4 => segment.flags |= TcpFlags::FIN,
                    5 => segment.timestamps = timestamps.map_or(Some((1, 2)), |(one, two)| Some((one, two ^ 1))),
                    6 => envelope.time_to_live ^= 1,
                    7 => envelope.ports.0 ^= 1,
                    _ => damage = 0x10,
                }
                let content = Content::Tcp(&segment);
                let mut frame = written(&envelope, &content);
                let at = envelope.header_bytes(&content);
                frame[at + 5] ^= damage;
                seq += len;
                frames.push((frame, at));
            }
            let frames: Vec<_> = frames.iter().map(|(frame, at)| {
                let (head, payload) = frame.split_at(*at);
                let payload_sum = Sum::of(payload).folded();
                let split = SplitFrame { at_ns: 0, head, payload, payload_sum };
                if splits { split } else { SplitFrame::whole(0, frame) }
            }).collect();
            let taken = match other {
                (place, _) if place >= lens.len() => lens.len(),
                (place, 3) => place + 1,
                (place, _) => place,
            };
            let behind = || frames[1..].iter().map(|frame| Some(*frame));
            let all = coalesce(&frames[0], &first, behind(), u32::MAX);
            let bytes: u32 = lens[..taken].iter().sum();
            let expected = (taken > 1).then(|| Segment {
                len: bytes,
                coalesced: taken as u32 - 1,
                last_offset: bytes - lens[taken - 1],
                ..first
            });
            prop_assert_eq!(all, expected);
            let fewer = coalesce(&frames[0], &first, behind(), bytes - 1);
            let coalesced = |segment: Option<Segment>| segment.map_or(0, |it| it.coalesced);
            prop_assert_eq!(coalesced(fewer), coalesced(expected).saturating_sub(1));
        }

        #[test]
        fn a_datagram_is_read_as_it_was_written(envelope in some_envelope(), bytes in 0..3000u16) {
            let frame = written(&envelope, &Content::Udp(bytes));
            let received = read(&frame, &frame::parse(&frame)).expect("it is right");
            prop_assert!(matches!(received.arrival, Arrival::Udp(read) if read == bytes));
            prop_assert_eq!(received.ports, envelope.ports);
        }

        #[test]
        fn one_wrong_bit_is_seen(
            envelope in some_envelope(),
            segment in some_segment(),
            place in any::<prop::sample::Index>(),
            bit in 0..8,
        ) {
            let mut frame = written(&envelope, &Content::Tcp(&segment));
            let is_v4 = matches!(envelope.addresses, Addresses::V4(..));
            let from = envelope.link.bytes() + if is_v4 { 0 } else { 8 };
            let layout = frame::parse(&frame);
            let at = from + place.index(usize::from(layout.end_offset) - from);
            frame[at] ^= 1u8 << bit;
            let refused = read(&frame, &frame::parse(&frame)).is_err();
            prop_assert!(refused, "byte {at}");
        }

        #[test]
        fn any_bytes_are_read(frame in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&frame, &frame::parse(&frame));
        }
    }
}
