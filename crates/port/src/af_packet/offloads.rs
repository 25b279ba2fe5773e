//! What is left to hardware of a frame, and what the kernel took out of one.

use allosaur_packet::link::vlan;
use allosaur_packet::network::checksum;
use allosaur_packet::network::ip_protocol::IpProtocol;
use libc::tpacket2_hdr;

/// Bytes of the header of offloads.
pub(super) const OFFLOAD_BYTES: usize = 10;
/// The type of a tag when the kernel does not say.
const TPID_DEFAULT: u16 = 0x8100;
/// In the flags: the checksum is not computed.
const NEEDS_CHECKSUM: u8 = 1;
/// In the kind: the sender takes part in congestion notification.
const WITH_ECN: u8 = 0x80;

/// A VLAN tag as it stands in a frame.
pub(super) type Tag = [u8; vlan::HEADER_BYTES];

/// What is left to hardware of a received frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Offloads {
    pub(super) flags: u8,
    /// The kind of segments (`gso_type`), or 0.
    pub(super) kind: u8,
    /// How long the segments are (`gso_size`).
    pub(super) segment_bytes: usize,
    /// What the checksum covers begins here.
    pub(super) checksum_start: usize,
    /// Where in that it is written.
    pub(super) checksum_offset: usize,
}

impl Offloads {
    /// Reads the header; its words are in the order of the machine.
    pub(super) fn read(bytes: [u8; OFFLOAD_BYTES]) -> Offloads {
        let word = |at: usize| usize::from(u16::from_ne_bytes([bytes[at], bytes[at + 1]]));
        Offloads {
            flags: bytes[0],
            kind: bytes[1],
            segment_bytes: word(4),
            checksum_start: word(6),
            checksum_offset: word(8),
        }
    }

    /// Writes the header of a frame that is sent as it is. `hdr_len` is the length of the frame: the
    /// kernel copies this much.
    #[inline]
    pub(super) fn write_plain(header: &mut [u8], len: usize) {
        header.fill(0);
        header[2..4].copy_from_slice(&(len as u16).to_ne_bytes());
    }

    /// Whether the frame is of many segments.
    pub(super) fn is_gso(&self) -> bool {
        self.kind != 0
    }

    /// The protocol of a frame of many segments, when it is one that is known.
    pub(super) fn segment_protocol(&self) -> Option<IpProtocol> {
        match self.kind & !WITH_ECN {
            1 | 4 => Some(IpProtocol::TCP),
            5 => Some(IpProtocol::UDP),
            _ => None,
        }
    }

    /// Computes a checksum that was not. Its field holds the sum over the pseudo header until then.
    pub(super) fn complete_checksum(&self, frame: &mut [u8]) {
        if self.flags & NEEDS_CHECKSUM == 0 {
            return;
        }
        let Some(covered) = frame.get_mut(self.checksum_start..) else {
            return;
        };
        // UDP knows no zero, and to the others both zeros are the same (RFC 768).
        let sum = checksum::for_udp(checksum::checksum(covered));
        let field = self.checksum_offset..self.checksum_offset + 2;
        if let Some(field) = covered.get_mut(field) {
            field.copy_from_slice(&sum.to_be_bytes());
        }
    }
}

/// The VLAN tag that the kernel took out of a frame.
pub(super) fn tag_of(header: &tpacket2_hdr) -> Option<Tag> {
    tag_in(header.tp_status, header.tp_vlan_tpid, header.tp_vlan_tci)
}

/// The same, of what the kernel tells of a frame: its status, and the two words of the tag.
pub(super) fn tag_in(status: u32, tpid: u16, tci: u16) -> Option<Tag> {
    if status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let tpid = match status & libc::TP_STATUS_VLAN_TPID_VALID {
        0 => TPID_DEFAULT,
        _ => tpid,
    };
    let [a, b] = tpid.to_be_bytes();
    let [c, d] = tci.to_be_bytes();
    Some([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(bytes: u8) -> Vec<u8> {
        (0..bytes).collect()
    }

    #[test]
    fn the_header_is_read_as_the_kernel_writes_it() {
        let mut bytes = [0; OFFLOAD_BYTES];
        Offloads::write_plain(&mut bytes, 1514);
        assert_eq!(Offloads::read(bytes), Offloads::default());
        assert_eq!(bytes[2..4], 1514u16.to_ne_bytes());
        (bytes[0], bytes[1]) = (1, 0x84);
        for (at, word) in [(4, 1448u16), (6, 54), (8, 16)] {
            bytes[at..at + 2].copy_from_slice(&word.to_ne_bytes());
        }
        let read = Offloads::read(bytes);
        assert_eq!(read.segment_protocol(), Some(IpProtocol::TCP));
        assert!(read.is_gso());
        assert_eq!(
            (
                read.segment_bytes,
                read.checksum_start,
                read.checksum_offset
            ),
            (1448, 54, 16)
        );
    }

    #[test]
    fn a_checksum_that_was_left_to_the_hardware_is_computed() {
        let mut frame = numbered(60);
        let pseudo_header = 0x1234u16;
        frame[40..42].copy_from_slice(&pseudo_header.to_be_bytes());
        let before = frame.clone();
        let offloads = Offloads {
            flags: NEEDS_CHECKSUM,
            checksum_start: 34,
            checksum_offset: 6,
            ..Offloads::default()
        };
        offloads.complete_checksum(&mut frame);
        assert_eq!((&frame[..40], &frame[42..]), (&before[..40], &before[42..]));
        // With the sum in its place, all of it and the pseudo header sum up to zero.
        let covered = [&frame[34..], &pseudo_header.to_be_bytes()].concat();
        assert_eq!(checksum::checksum(&covered), 0);
    }

    #[test]
    fn a_checksum_beyond_the_frame_is_no_harm() {
        for (start, offset) in [(59, 0), (60, 0), (61, 0), (0xffff, 0xffff), (34, 25)] {
            let mut frame = numbered(60);
            let offloads = Offloads {
                flags: NEEDS_CHECKSUM,
                checksum_start: start,
                checksum_offset: offset,
                ..Offloads::default()
            };
            offloads.complete_checksum(&mut frame);
            assert_eq!(frame, numbered(60));
        }
    }
}
