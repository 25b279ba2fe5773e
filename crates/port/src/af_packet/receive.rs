//! The receive queue of an AF_PACKET port: frames as they were on the wire.
//!
//! What lives here: reading the ring, and putting back what kernel and device took out of frames:
//! VLAN tags, and checksums that a sender on the same machine left to the hardware. What does not:
//! the memory of the ring (`ring`).

use std::os::fd::{AsFd, BorrowedFd};

use allosaur_packet::checksum;
use libc::tpacket2_hdr;

use super::interface::VLAN_TAG_BYTES;
use super::ring::{HEADER_BYTES, Place, Ring};
use super::socket::PacketSocket;
use super::transmit::OFFLOAD_BYTES;
use crate::RxQueue;

/// How often the kernel is asked what it dropped, and what is wrong.
const STATISTICS_NS: u64 = 100_000_000;
/// Bytes of both MAC addresses; a tag stands behind them.
const MACS_BYTES: usize = 12;
/// The type of a tag when the kernel does not say.
const TPID_DEFAULT: u16 = 0x8100;
/// In the flags of the header of offloads: the checksum is not computed.
const NEEDS_CHECKSUM: u8 = 1;

/// The receive queue of an AF_PACKET port.
#[derive(Debug)]
pub struct AfPacketRx {
    socket: PacketSocket,
    ring: Ring,
    next: Place,
    lost_packets: u64,
    statistics_at_ns: u64,
}

impl AfPacketRx {
    /// A queue over the ring of a socket that is bound.
    pub(super) fn new(socket: PacketSocket, ring: Ring) -> AfPacketRx {
        AfPacketRx {
            socket,
            ring,
            next: Place::default(),
            lost_packets: 0,
            statistics_at_ns: 0,
        }
    }

    /// Frames that arrived and are lost: the ring was full, or a frame longer than the interface's
    /// MTU did not fit (the kernel joins frames of TCP on some interfaces). Up to 0.1 s old.
    pub fn lost_packets(&self) -> u64 {
        self.lost_packets
    }

    fn ask_kernel(&mut self, now_ns: u64) {
        if now_ns >= self.statistics_at_ns {
            self.statistics_at_ns = now_ns + STATISTICS_NS;
            // It cannot fail while the socket is open; if it does, the next time tells.
            self.lost_packets += self.socket.take_dropped().unwrap_or(0);
            // The interface went down. When it comes up, the socket receives again.
            drop(self.socket.take_error());
        }
    }
}

impl RxQueue for AfPacketRx {
    fn receive(&mut self, now_ns: u64, budget: usize, mut each: impl FnMut(u64, &[u8])) -> usize {
        self.ask_kernel(now_ns);
        let mut taken = 0;
        for _ in 0..budget {
            let ours = |status| status & libc::TP_STATUS_USER != 0;
            let Some((header, area)) = self.ring.own(self.next, ours) else {
                break;
            };
            match restore(&header, area) {
                Some(frame) => {
                    each(now_ns, frame);
                    taken += 1;
                }
                None => self.lost_packets += 1,
            }
            self.ring.give(self.next, libc::TP_STATUS_KERNEL);
            self.next = self.ring.next(self.next);
        }
        taken
    }
}

impl AsFd for AfPacketRx {
    /// Becomes readable when a frame has arrived.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The frame as it was on the wire, in the bytes behind its header; `None` when it is not whole.
fn restore<'a>(header: &tpacket2_hdr, area: &'a mut [u8]) -> Option<&'a [u8]> {
    if header.tp_snaplen < header.tp_len {
        return None;
    }
    let start = usize::from(header.tp_mac).checked_sub(HEADER_BYTES)?;
    let end = start + header.tp_snaplen as usize;
    let offloads: [u8; OFFLOAD_BYTES] = area
        .get(start.checked_sub(OFFLOAD_BYTES)?..start)?
        .try_into()
        .ok()?;
    complete_checksum(offloads, area.get_mut(start..end)?);
    if header.tp_status & libc::TP_STATUS_VLAN_VALID == 0 || end - start < MACS_BYTES {
        return Some(&area[start..end]);
    }
    // The header of offloads has made room in front of the frame.
    let tagged = start - VLAN_TAG_BYTES;
    area.copy_within(start..start + MACS_BYTES, tagged);
    let tpid = match header.tp_status & libc::TP_STATUS_VLAN_TPID_VALID {
        0 => TPID_DEFAULT,
        _ => header.tp_vlan_tpid,
    };
    let tag = &mut area[tagged + MACS_BYTES..start + MACS_BYTES];
    tag[..2].copy_from_slice(&tpid.to_be_bytes());
    tag[2..].copy_from_slice(&header.tp_vlan_tci.to_be_bytes());
    Some(&area[tagged..end])
}

/// Computes a checksum that the sender left to the hardware. Its field holds the sum over the
/// pseudo header until then.
fn complete_checksum(offloads: [u8; OFFLOAD_BYTES], frame: &mut [u8]) {
    if offloads[0] & NEEDS_CHECKSUM == 0 {
        return;
    }
    let word = |at: usize| usize::from(u16::from_ne_bytes([offloads[at], offloads[at + 1]]));
    let (start, offset) = (word(6), word(8));
    let Some(covered) = frame.get_mut(start..) else {
        return;
    };
    let sum = checksum::checksum(covered);
    if let Some(field) = covered.get_mut(offset..offset + 2) {
        // UDP knows no zero, and to the others both zeros are the same (RFC 768).
        let sum = if sum == 0 { 0xffff } else { sum };
        field.copy_from_slice(&sum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A place in the ring with a frame as the kernel leaves it there.
    fn area(offloads: [u8; OFFLOAD_BYTES], frame: &[u8]) -> (tpacket2_hdr, Vec<u8>) {
        const START: usize = 76;
        let mut area = vec![0xee; START - HEADER_BYTES - OFFLOAD_BYTES];
        area.extend(offloads);
        area.extend(frame);
        area.extend([0xee; 20]);
        let header = tpacket2_hdr {
            tp_status: libc::TP_STATUS_USER,
            tp_len: frame.len() as u32,
            tp_snaplen: frame.len() as u32,
            tp_mac: START as u16,
            tp_net: START as u16 + 14,
            tp_sec: 0,
            tp_nsec: 0,
            tp_vlan_tci: 0,
            tp_vlan_tpid: 0,
            tp_padding: [0; 4],
        };
        (header, area)
    }

    fn numbered(bytes: u8) -> Vec<u8> {
        (0..bytes).collect()
    }

    #[test]
    fn a_plain_frame_is_left_alone() {
        let frame = numbered(60);
        let (header, mut area) = area([0; OFFLOAD_BYTES], &frame);
        assert_eq!(restore(&header, &mut area), Some(&frame[..]));
    }

    #[test]
    fn a_vlan_tag_is_put_back() {
        for (valid, tpid) in [(libc::TP_STATUS_VLAN_TPID_VALID, 0x88a8), (0, 0x8100)] {
            let frame = numbered(60);
            let (mut header, mut area) = area([0; OFFLOAD_BYTES], &frame);
            header.tp_status |= libc::TP_STATUS_VLAN_VALID | valid;
            (header.tp_vlan_tci, header.tp_vlan_tpid) = (0x6123, 0x88a8);
            let restored = restore(&header, &mut area).expect("a whole frame");
            assert_eq!(restored[..12], frame[..12]);
            assert_eq!(restored[12..14], u16::to_be_bytes(tpid));
            assert_eq!(restored[14..16], [0x61, 0x23]);
            assert_eq!(restored[16..], frame[12..]);
        }
    }

    #[test]
    fn a_checksum_that_was_left_to_the_hardware_is_computed() {
        let mut frame = numbered(60);
        let pseudo_header = 0x1234u16;
        frame[40..42].copy_from_slice(&pseudo_header.to_be_bytes());
        let mut offloads = [0; OFFLOAD_BYTES];
        offloads[0] = NEEDS_CHECKSUM;
        offloads[6..8].copy_from_slice(&34u16.to_ne_bytes());
        offloads[8..10].copy_from_slice(&6u16.to_ne_bytes());
        let (header, mut area) = area(offloads, &frame);
        let restored = restore(&header, &mut area).expect("a whole frame").to_vec();
        let without_field = |frame: &[u8]| [&frame[..40], &frame[42..]].concat();
        assert_eq!(without_field(&restored), without_field(&frame));
        // With the sum in its place, all of it and the pseudo header sum up to zero.
        let covered = [&restored[34..], &pseudo_header.to_be_bytes()].concat();
        assert_eq!(checksum::checksum(&covered), 0);
    }

    #[test]
    fn a_checksum_beyond_the_frame_is_no_harm() {
        for (start, offset) in [(59u16, 0u16), (60, 0), (61, 0), (0xffff, 0xffff), (34, 25)] {
            let frame = numbered(60);
            let mut offloads = [0; OFFLOAD_BYTES];
            offloads[0] = NEEDS_CHECKSUM;
            offloads[6..8].copy_from_slice(&start.to_ne_bytes());
            offloads[8..10].copy_from_slice(&offset.to_ne_bytes());
            let (header, mut area) = area(offloads, &frame);
            assert_eq!(restore(&header, &mut area), Some(&frame[..]));
        }
    }

    #[test]
    fn a_frame_that_was_cut_is_none() {
        let (mut header, mut area) = area([0; OFFLOAD_BYTES], &numbered(60));
        header.tp_len = 61;
        assert_eq!(restore(&header, &mut area), None);
    }
}
