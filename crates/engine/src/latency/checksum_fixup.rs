//! The checksum that covers a trailer: a packet whose latency is measured stays one that routers,
//! NATs and firewalls take for whole.

use allosaur_packet::frame::{Layout, Transport};
use allosaur_packet::network::checksum::{self, Sum};

use super::trailer::{TRAILER_BYTES, Trailer};

/// A checksum of TCP, UDP or ICMP, and what it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChecksumFixup {
    /// Where the transport header starts, and where what is covered ends: padding follows.
    from: usize,
    to: usize,
    /// Where the checksum is.
    at: usize,
    /// In UDP, zero is "no checksum".
    is_udp: bool,
}

impl ChecksumFixup {
    /// That of a packet which starts at `offset` of the frame and has this layout.
    pub fn of(layout: &Layout, offset: usize) -> Option<ChecksumFixup> {
        let from = offset + usize::from(layout.transport_offset);
        let field = match layout.transport {
            Transport::Tcp => 16,
            Transport::Udp => 6,
            Transport::Icmpv4 | Transport::Icmpv6 => 2,
            Transport::None => return None,
        };
        Some(ChecksumFixup {
            from,
            to: offset + usize::from(layout.end_offset),
            at: from + field,
            is_udp: layout.transport == Transport::Udp,
        })
    }

    /// Whether the packet has such a checksum.
    pub fn is_used_in(&self, packet: &[u8]) -> bool {
        self.field(packet)
            .is_some_and(|sum| !self.is_udp || sum != 0)
    }

    /// Writes a trailer over the end of a packet that is long enough for one. The checksum changes
    /// as its bytes do (RFC 1624): one that was right is right, and one that was wrong on purpose
    /// is wrong.
    #[inline]
    pub fn write(&self, trailer: Trailer, packet: &mut [u8]) {
        let start = packet.len() - TRAILER_BYTES;
        let end = self.to.min(packet.len());
        let covered = start.max(self.from)..end.max(start.max(self.from));
        let Some(old) = self.field(packet).filter(|sum| !self.is_udp || *sum != 0) else {
            trailer.write(packet);
            return;
        };
        // Where the trailer starts at an odd byte of what is covered, all bytes change sides.
        let is_odd = (covered.start - self.from) % 2 == 1;
        let sum = |packet: &[u8]| {
            let sum = Sum::of(&packet[covered.clone()]);
            match is_odd {
                true => Sum::default().and_u16(sum.folded().swap_bytes()),
                false => sum,
            }
        };
        let before = sum(packet);
        trailer.write(packet);
        let after = sum(packet);
        let new = checksum::update(old, before, after);
        let new = if self.is_udp {
            checksum::for_udp(new)
        } else {
            new
        };
        // A trailer that lies over the checksum itself has replaced it.
        if self.at + 2 <= start {
            packet[self.at..self.at + 2].copy_from_slice(&new.to_be_bytes());
        }
    }

    fn field(&self, packet: &[u8]) -> Option<u16> {
        let bytes = packet.get(self.at..self.at + 2)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    }
}

#[cfg(test)]
mod tests {
    use allosaur_packet::frame;

    use super::*;

    const TRAILER: Trailer = Trailer {
        run: 3,
        group: 77,
        sequence: 0x0102_0304,
        sent_ns: 0x1122_3344_5566_7788,
    };

    /// Ethernet, IPv4 and UDP, with so many bytes of data and of padding, and a right checksum.
    fn packet(data: usize, padding: usize) -> Vec<u8> {
        let mut packet = vec![2; 12];
        packet.extend([8, 0, 0x45, 0]);
        packet.extend((28 + data as u16).to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 2, 10, 0, 1, 2]);
        packet.extend([0x30, 0x39, 0, 80]);
        packet.extend((8 + data as u16).to_be_bytes());
        packet.extend([0, 0]);
        packet.extend((0..data).map(|n| n as u8));
        let sum = checksum::for_udp(whole(&packet).checksum());
        packet[40..42].copy_from_slice(&sum.to_be_bytes());
        packet.extend(vec![0xee; padding]);
        packet
    }

    /// The sum over all that the checksum covers.
    fn whole(packet: &[u8]) -> Sum {
        let length = u16::from_be_bytes([packet[38], packet[39]]);
        let udp = &packet[34..34 + usize::from(length)];
        Sum::of(&packet[26..34])
            .and_u16(17)
            .and_u16(length)
            .and(udp)
    }

    fn fixup(packet: &[u8]) -> ChecksumFixup {
        ChecksumFixup::of(&frame::parse(packet), 0).expect("it is UDP")
    }

    #[test]
    fn a_right_checksum_stays_right_at_even_and_odd_places_and_beside_padding() {
        for data in 16..40 {
            for padding in 0..20 {
                let mut packet = packet(data, padding);
                let fixup = fixup(&packet);
                assert!(fixup.is_used_in(&packet));
                for sequence in [0, 1, 0xffff_ffff] {
                    let trailer = Trailer {
                        sequence,
                        ..TRAILER
                    };
                    fixup.write(trailer, &mut packet);
                    assert_eq!(Trailer::parse(&packet), Some(trailer));
                    assert_eq!(whole(&packet).checksum(), 0, "{data} and {padding} bytes");
                }
            }
        }
    }

    #[test]
    fn a_checksum_that_computes_to_zero_is_all_ones() {
        let mut packet = packet(20, 0);
        let fixup = fixup(&packet);
        fixup.write(TRAILER, &mut packet);
        // The data begins with what makes the sum all ones.
        let checksum = u16::from_be_bytes([packet[40], packet[41]]);
        let before = u16::from_be_bytes([packet[42], packet[43]]);
        let made = Sum::default().and_u16(before).and_u16(checksum).folded();
        packet[42..44].copy_from_slice(&made.to_be_bytes());
        packet[40..42].copy_from_slice(&[0xff, 0xff]);
        assert_eq!(whole(&packet).checksum(), 0);
        fixup.write(TRAILER, &mut packet);
        assert_eq!(packet[40..42], [0xff, 0xff]);
    }

    #[test]
    fn no_checksum_stays_none_and_a_wrong_one_wrong() {
        let mut none = packet(20, 0);
        none[40..42].fill(0);
        let fixup = fixup(&none);
        assert!(!fixup.is_used_in(&none));
        fixup.write(TRAILER, &mut none);
        assert_eq!(none[40..42], [0, 0]);

        let mut wrong = packet(20, 0);
        wrong[41] ^= 0x10;
        fixup.write(TRAILER, &mut wrong);
        assert_ne!(whole(&wrong).checksum(), 0);
    }

    #[test]
    fn a_packet_that_was_cut_is_covered_to_its_end() {
        // What the field engine does: another length of the frame, and the checksum made anew.
        let whole_packet = packet(60, 0);
        let fixup = fixup(&whole_packet);
        let mut cut = packet(31, 0);
        fixup.write(TRAILER, &mut cut);
        assert_eq!(whole(&cut).checksum(), 0);
        let mut shortest = vec![0; TRAILER_BYTES];
        fixup.write(TRAILER, &mut shortest);
        assert_eq!(Trailer::parse(&shortest), Some(TRAILER));
    }

    #[test]
    fn what_has_no_such_checksum_has_no_cover() {
        let mut packet = packet(20, 0);
        packet[23] = 47;
        assert_eq!(ChecksumFixup::of(&frame::parse(&packet), 0), None);
    }
}
