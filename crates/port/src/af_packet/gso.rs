//! Frames of many segments (GSO), cut as they would be on a wire.
//!
//! Linux hands TCP data to a device in pieces of up to 64 KB and leaves the cutting to it (GSO);
//! veth, bridges and taps pass the pieces on uncut. It also joins what a card receives (GRO).

use allosaur_packet::link::{ethernet, vlan};
use allosaur_packet::network::checksum::{Sum, pseudo_header_v4, pseudo_header_v6};
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv4::Ipv4View;
use allosaur_packet::network::ipv6::Ipv6View;
use allosaur_packet::transport::tcp::{TcpFlags, TcpView};
use allosaur_packet::transport::udp::{self, UdpView};

use super::offloads::{Offloads, Tag};
use crate::memory::FRAME_BYTES_MAX;

/// What stands in place of a frame's type in front of a tag: 802.1Q and 802.1ad.
const TAG_TYPES: [[u8; 2]; 2] = [[0x81, 0x00], [0x88, 0xa8]];

/// A frame of many segments, and how it is to be cut.
#[derive(Debug)]
pub(super) struct GsoFrame<'a> {
    frame: &'a [u8],
    /// The VLAN tag that the kernel took out.
    tag: Option<Tag>,
    network: usize,
    transport: usize,
    payload: usize,
    protocol: IpProtocol,
    segment_bytes: usize,
}

impl<'a> GsoFrame<'a> {
    /// `None` when it is not of a kind that can be cut here.
    pub(super) fn new(
        frame: &'a [u8],
        offloads: &Offloads,
        tag: Option<Tag>,
    ) -> Option<GsoFrame<'a>> {
        let network = network_offset(frame)?;
        let transport = offloads.checksum_start;
        let header = frame.get(transport..)?;
        let protocol = offloads.segment_protocol()?;
        let header_bytes = match protocol {
            IpProtocol::TCP => TcpView::new_checked(header).ok()?.header_bytes(),
            _ => udp::HEADER_BYTES,
        };
        let network_header = frame.get(network..transport)?;
        match network_header.first()? >> 4 {
            4 => drop(Ipv4View::new_checked(&frame[network..]).ok()?),
            6 => drop(Ipv6View::new_checked(&frame[network..]).ok()?),
            _ => return None,
        }
        let payload = transport + header_bytes;
        let segment_bytes_max = (FRAME_BYTES_MAX - vlan::HEADER_BYTES).checked_sub(payload)?;
        let has_segments = (1..=segment_bytes_max).contains(&offloads.segment_bytes);
        let can_be_cut = payload < frame.len() && has_segments;
        can_be_cut.then_some(GsoFrame {
            frame,
            tag,
            network,
            transport,
            payload,
            protocol,
            segment_bytes: offloads.segment_bytes,
        })
    }

    /// Hands each frame to `each`; it is written to `buffer`. Returns how many there are.
    pub(super) fn cut(&self, buffer: &mut Vec<u8>, mut each: impl FnMut(&[u8])) -> usize {
        let segments = self.frame[self.payload..].chunks(self.segment_bytes);
        let count = segments.len();
        for (number, segment) in segments.enumerate() {
            buffer.clear();
            buffer.extend_from_slice(&self.frame[..ethernet::TYPE_OFFSET]);
            buffer.extend(self.tag.iter().flatten());
            buffer.extend_from_slice(&self.frame[ethernet::TYPE_OFFSET..self.payload]);
            buffer.extend_from_slice(segment);
            let shift = self.tag.map_or(0, |tag| tag.len());
            let packet = &mut buffer[self.network + shift..];
            self.complete(packet, number, number + 1 == count);
            each(buffer);
        }
        count
    }

    /// Writes what is different in each segment into its headers.
    fn complete(&self, packet: &mut [u8], number: usize, is_last: bool) {
        let transport = self.transport - self.network;
        let segment_bytes = packet.len() - transport;
        let pseudo_header = if packet[0] >> 4 == 4 {
            let bytes = packet.len() as u16;
            let mut view = Ipv4View::new_unchecked(&mut *packet);
            view.set_total_bytes(bytes);
            view.set_identification(view.identification().wrapping_add(number as u16));
            view.fill_checksum();
            let (source, destination) = (view.source(), view.destination());
            pseudo_header_v4(source, destination, self.protocol, segment_bytes as u16)
        } else {
            let bytes = packet.len() - allosaur_packet::network::ipv6::HEADER_BYTES;
            let mut view = Ipv6View::new_unchecked(&mut *packet);
            view.set_payload_bytes(bytes as u16);
            let (source, destination) = (view.source(), view.destination());
            pseudo_header_v6(source, destination, self.protocol, segment_bytes as u32)
        };
        let segment = &mut packet[transport..];
        match self.protocol {
            IpProtocol::TCP => self.complete_tcp(segment, pseudo_header, number, is_last),
            _ => complete_udp(segment, pseudo_header),
        }
    }

    fn complete_tcp(&self, segment: &mut [u8], pseudo_header: Sum, number: usize, is_last: bool) {
        let mut view = TcpView::new_unchecked(segment);
        let offset = (number * self.segment_bytes) as u32;
        view.set_sequence(view.sequence().wrapping_add(offset));
        let mut flags = view.flags().0;
        if !is_last {
            flags &= !(TcpFlags::FIN | TcpFlags::PSH).0;
        }
        if number > 0 {
            // RFC 3168 section 6.1.2: the sender says so once.
            flags &= !TcpFlags::CWR.0;
        }
        view.set_flags(TcpFlags(flags));
        view.fill_checksum(pseudo_header);
    }
}

fn complete_udp(segment: &mut [u8], pseudo_header: Sum) {
    let bytes = segment.len() as u16;
    let mut view = UdpView::new_unchecked(segment);
    view.set_length_bytes(bytes);
    view.fill_checksum(pseudo_header);
}

/// Where the IP header begins, behind the VLAN tags that are left in the frame.
fn network_offset(frame: &[u8]) -> Option<usize> {
    let mut offset = ethernet::HEADER_BYTES;
    while TAG_TYPES.contains(frame.get(offset - 2..offset)?.try_into().ok()?) {
        offset += vlan::HEADER_BYTES;
    }
    Some(offset)
}

#[cfg(test)]
mod tests {
    use allosaur_packet::frame::{Health, parse};

    use super::*;

    const TAG: [u8; 4] = [0x81, 0, 0, 7];

    /// A frame as the kernel hands it to a device: lengths and checksums are those of the whole, or nothing.
    fn whole(version: u8, tags: usize, protocol: IpProtocol, payload: usize) -> (Vec<u8>, usize) {
        let mut frame = vec![2; ethernet::TYPE_OFFSET];
        for _ in 0..tags {
            frame.extend(TAG);
        }
        let mut network = match version {
            4 => vec![0; 24],
            _ => vec![0; 40],
        };
        let ether_type: [u8; 2] = if version == 4 { [8, 0] } else { [0x86, 0xdd] };
        frame.extend(ether_type);
        if version == 4 {
            // With an option, that does nothing.
            (network[0], network[8], network[9]) = (0x46, 64, protocol.0);
            network[4..6].copy_from_slice(&0xfffeu16.to_be_bytes());
            network[20..24].fill(1);
        } else {
            (network[0], network[6], network[7]) = (0x60, protocol.0, 64);
        }
        frame.extend(network);
        let transport = frame.len();
        let mut header = vec![0; if protocol == IpProtocol::TCP { 32 } else { 8 }];
        if protocol == IpProtocol::TCP {
            header[4..8].copy_from_slice(&(u32::MAX - 1000).to_be_bytes());
            // Twelve bytes of options; CWR, ACK, PSH and FIN.
            (header[12], header[13]) = (0x80, 0x99);
            header[20..32].fill(1);
        }
        frame.extend(header);
        frame.extend((0..payload).map(|n| n as u8));
        (frame, transport)
    }

    fn cut(frame: &[u8], offloads: &Offloads, tag: Option<[u8; 4]>) -> Option<Vec<Vec<u8>>> {
        let whole = GsoFrame::new(frame, offloads, tag)?;
        let mut frames = Vec::new();
        let count = whole.cut(&mut Vec::new(), |frame| frames.push(frame.to_vec()));
        assert_eq!(count, frames.len());
        Some(frames)
    }

    fn offloads(kind: u8, transport: usize) -> Offloads {
        Offloads {
            flags: 1,
            kind,
            segment_bytes: 1000,
            checksum_start: transport,
            checksum_offset: allosaur_packet::transport::tcp::CHECKSUM_OFFSET,
        }
    }

    fn pseudo_header(frame: &[u8], network: usize, transport: usize, protocol: IpProtocol) -> Sum {
        let bytes = frame.len() - transport;
        let packet = &frame[network..];
        if packet[0] >> 4 == 4 {
            let view = Ipv4View::new_unchecked(packet);
            assert!(view.has_right_checksum());
            pseudo_header_v4(view.source(), view.destination(), protocol, bytes as u16)
        } else {
            let view = Ipv6View::new_unchecked(packet);
            pseudo_header_v6(view.source(), view.destination(), protocol, bytes as u32)
        }
    }

    #[test]
    fn tcp_is_cut_into_segments_that_follow_each_other() {
        for (version, kind) in [(4, 1), (4, 0x81), (6, 4)] {
            for (tags, tag) in [(0, None), (1, None), (0, Some(TAG)), (1, Some(TAG))] {
                let (frame, transport) = whole(version, tags, IpProtocol::TCP, 2500);
                let cut = cut(&frame, &offloads(kind, transport), tag).expect("it can be cut");
                assert_eq!(cut.len(), 3);
                let shift = tag.map_or(0, |tag| tag.len());
                let mut data: Vec<u8> = Vec::new();
                for (number, segment) in cut.iter().enumerate() {
                    let layout = parse(segment);
                    assert_eq!(layout.health, Health::Whole, "{layout:?}");
                    assert_eq!(usize::from(layout.end_offset), segment.len());
                    let (network, transport) = (14 + 4 * tags + shift, transport + shift);
                    let sum = pseudo_header(segment, network, transport, IpProtocol::TCP);
                    let view = TcpView::new_unchecked(&segment[transport..]);
                    assert!(view.has_right_checksum(sum));
                    let expected = (u32::MAX - 1000).wrapping_add(1000 * number as u32);
                    assert_eq!(view.sequence(), expected);
                    assert_eq!(view.flags().0, [0x90, 0x10, 0x19][number]);
                    data.extend(view.payload());
                }
                assert_eq!(data, frame[frame.len() - 2500..]);
            }
        }
    }

    #[test]
    fn udp_is_cut_into_datagrams() {
        for version in [4, 6] {
            let (frame, transport) = whole(version, 0, IpProtocol::UDP, 1999);
            let cut = cut(&frame, &offloads(5, transport), None).expect("it can be cut");
            assert_eq!(cut.len(), 2);
            for (segment, bytes) in cut.iter().zip([1000, 999]) {
                let sum = pseudo_header(segment, 14, transport, IpProtocol::UDP);
                let view = UdpView::new_unchecked(&segment[transport..]);
                assert!(view.has_right_checksum(sum));
                assert_eq!(usize::from(view.length_bytes()), 8 + bytes);
            }
        }
    }

    #[test]
    fn what_cannot_be_cut_is_none() {
        let (frame, transport) = whole(4, 0, IpProtocol::TCP, 2500);
        let good = offloads(1, transport);
        assert!(cut(&frame, &good, None).is_some());
        for kind in [0, 2, 3, 77] {
            assert_eq!(cut(&frame, &offloads(kind, transport), None), None);
        }
        for bytes in 0..=transport + 32 {
            assert_eq!(cut(&frame[..bytes], &good, None), None, "{bytes} bytes");
        }
        for checksum_start in [0, 13, 14, 33, 5000] {
            let odd = offloads(1, checksum_start);
            assert_eq!(cut(&frame, &odd, None), None, "{checksum_start}");
        }
        for segment_bytes in [0, 9200, 0xffff] {
            let odd = Offloads {
                segment_bytes,
                ..good
            };
            assert_eq!(cut(&frame, &odd, None), None, "{segment_bytes}");
        }
    }
}
