//! Checksums that a sender on the same machine left to hardware that there is not.
//!
//! Linux writes the sum over the pseudo header into the field and leaves the rest to the device;
//! veth, bridges and taps pass that on. An XDP program is not told, but the field tells: it holds just
//! that sum. A right checksum that happens to be the same number stays right when it is computed again.

use allosaur_packet::link::{ethernet, vlan};
use allosaur_packet::network::checksum::{
    Sum, checksum, for_udp, pseudo_header_v4, pseudo_header_v6,
};
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv4::Ipv4View;
use allosaur_packet::network::ipv6::{self, Ipv6View};

const TAG_TYPES: [[u8; 2]; 2] = [[0x81, 0x00], [0x88, 0xa8]];

/// Computes the checksum of TCP or UDP, if it was left out.
#[inline]
pub(super) fn complete(frame: &mut [u8]) {
    // What is not such a frame has nothing to compute.
    let _: Option<()> = try_complete(frame);
}

fn try_complete(frame: &mut [u8]) -> Option<()> {
    let mut network = ethernet::HEADER_BYTES;
    let mut kind: [u8; 2] = frame.get(12..14)?.try_into().ok()?;
    while TAG_TYPES.contains(&kind) {
        network += vlan::HEADER_BYTES;
        kind = frame.get(network - 2..network)?.try_into().ok()?;
    }
    let packet = frame.get_mut(network..)?;
    match kind {
        [0x08, 0x00] => {
            let view = Ipv4View::new_checked(&*packet).ok()?;
            if view.more_fragments() || view.fragment_offset_bytes() > 0 {
                return None;
            }
            let (start, end) = (view.header_bytes(), usize::from(view.total_bytes()));
            let bytes = end.checked_sub(start)?;
            let (source, destination, protocol) =
                (view.source(), view.destination(), view.protocol());
            let sum = pseudo_header_v4(source, destination, protocol, bytes as u16);
            complete_segment(packet.get_mut(start..end)?, protocol, sum)
        }
        [0x86, 0xdd] => {
            let view = Ipv6View::new_checked(&*packet).ok()?;
            let bytes = usize::from(view.payload_bytes());
            let protocol = view.next_header();
            let sum = pseudo_header_v6(view.source(), view.destination(), protocol, bytes as u32);
            let end = ipv6::HEADER_BYTES + bytes;
            complete_segment(packet.get_mut(ipv6::HEADER_BYTES..end)?, protocol, sum)
        }
        _ => None,
    }
}

fn complete_segment(segment: &mut [u8], protocol: IpProtocol, pseudo_header: Sum) -> Option<()> {
    let offset = match protocol {
        IpProtocol::TCP => 16,
        IpProtocol::UDP => 6,
        _ => return None,
    };
    let field: [u8; 2] = segment.get(offset..offset + 2)?.try_into().ok()?;
    if u16::from_be_bytes(field) == pseudo_header.folded() {
        // The field holds the pseudo header's part of the sum.
        let sum = for_udp(checksum(segment));
        segment[offset..offset + 2].copy_from_slice(&sum.to_be_bytes());
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of UDP or TCP whose checksum field holds `field`, or what Linux leaves there.
    fn frame(tags: usize, is_v6: bool, protocol: u8, field: Option<u16>) -> Vec<u8> {
        let mut frame = vec![0; 12];
        for _ in 0..tags {
            frame.extend([0x81, 0, 0, 5]);
        }
        let segment_bytes: u16 = 45;
        let mut segment: Vec<u8> = (7..7 + segment_bytes as u8).collect();
        let sum = if is_v6 {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 45, protocol, 64]);
            let (from, to): ([u8; 16], [u8; 16]) = ([0xfd; 16], [0xfc; 16]);
            frame.extend(from.iter().chain(&to));
            pseudo_header_v6(from.into(), to.into(), IpProtocol(protocol), 45)
        } else {
            frame.extend([0x08, 0, 0x45, 0, 0, 65, 0, 0, 0x40, 0, 64, protocol, 0, 0]);
            let (from, to): ([u8; 4], [u8; 4]) = ([10, 0, 0, 1], [10, 0, 0, 2]);
            frame.extend(from.iter().chain(&to));
            pseudo_header_v4(from.into(), to.into(), IpProtocol(protocol), 45)
        };
        let offset = if protocol == 6 { 16 } else { 6 };
        let field = field.unwrap_or(sum.folded());
        segment[offset..offset + 2].copy_from_slice(&field.to_be_bytes());
        frame.extend(segment);
        // Padding is not covered.
        frame.extend([0xee; 3]);
        frame
    }

    /// What all of the segment and its pseudo header sum up to: 0 is right.
    fn check(frame: &[u8], is_v6: bool, protocol: u8) -> u16 {
        let segment = &frame[frame.len() - 48..frame.len() - 3];
        let addresses = if is_v6 { 32 } else { 8 };
        let addresses = &frame[frame.len() - 48 - addresses..frame.len() - 48];
        let pseudo_header = Sum::of(addresses).and_u16(45).and_u16(protocol.into());
        pseudo_header.and_sum(Sum::of(segment)).checksum()
    }

    #[test]
    fn what_was_left_out_is_computed() {
        for (tags, is_v6, protocol) in [(0, false, 17), (1, false, 6), (2, true, 17), (0, true, 6)]
        {
            let mut partial = frame(tags, is_v6, protocol, None);
            assert_ne!(check(&partial, is_v6, protocol), 0);
            complete(&mut partial);
            assert_eq!(
                check(&partial, is_v6, protocol),
                0,
                "{tags} {is_v6} {protocol}"
            );
            let whole = partial.clone();
            complete(&mut partial);
            assert_eq!(partial, whole);
        }
    }

    #[test]
    fn other_checksums_are_left_alone() {
        for (is_v6, protocol) in [(false, 17), (true, 6), (false, 1)] {
            let wrong = frame(0, is_v6, protocol, Some(0x1234));
            let mut received = wrong.clone();
            complete(&mut received);
            assert_eq!(received, wrong);
        }
    }

    #[test]
    fn fragments_and_stumps_are_left_alone() {
        let whole = frame(1, false, 17, None);
        let mut fragment = whole.clone();
        fragment[18 + 6] = 0x20;
        let before = fragment.clone();
        complete(&mut fragment);
        assert_eq!(fragment, before);
        for len in 0..whole.len() - 3 {
            let mut truncated = whole[..len].to_vec();
            complete(&mut truncated);
            assert_eq!(truncated, whole[..len], "{len}");
        }
    }
}
