//! The receive queue of an AF_PACKET port: frames as they were on the wire.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use allosaur_packet::link::{ethernet, vlan};
use libc::tpacket2_hdr;

use super::arrival::Arrivals;
use super::gso::GsoFrame;
use super::offloads::{OFFLOAD_BYTES, Offloads, Tag, tag_of};
use super::ring::{HEADER_BYTES, Place, Ring};
use super::socket::PacketSocket;
use crate::RxQueue;
use crate::memory::FRAME_BYTES_MAX;
use crate::time::TimeSource;

/// How often the kernel is asked what it dropped, and what is wrong.
const STATISTICS_NS: u64 = 100_000_000;
/// What a frame of many segments has at most: 64 KiB of IP, and what stands in front.
const GSO_BYTES_MAX: usize = (64 << 10) + 256;

/// The receive queue of an AF_PACKET port.
#[derive(Debug)]
pub struct AfPacketRx {
    socket: PacketSocket,
    ring: Ring,
    next: Place,
    lost_packets: u64,
    statistics_at_ns: u64,
    gso: GsoMemory,
    arrivals: Arrivals,
    /// Of who receives, where frames are told to have arrived by it; else they do when they are read.
    clock: Option<Arc<dyn TimeSource>>,
}

/// Memory for frames that are too long for the ring, and for what they are cut into.
#[derive(Debug)]
struct GsoMemory {
    whole: Box<[u8]>,
    segment: Vec<u8>,
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
            gso: GsoMemory {
                whole: vec![0; OFFLOAD_BYTES + GSO_BYTES_MAX].into(),
                segment: Vec::with_capacity(GSO_BYTES_MAX),
            },
            arrivals: Arrivals::default(),
            clock: None,
        }
    }

    /// Frames that arrived and are lost: the ring was full, or a frame was longer than the MTU and
    /// could not be cut. Up to 0.1 s old.
    pub fn lost_packets(&self) -> u64 {
        self.lost_packets
    }

    /// Lets in what arrives, see [`PacketSocket::block`].
    pub(super) fn admit(&self) -> io::Result<()> {
        self.socket.admit()
    }

    /// By which clock frames arrive: that of the times that [`receive`](RxQueue::receive) is given.
    pub(crate) fn set_clock(&mut self, clock: Arc<dyn TimeSource>) {
        self.clock = Some(clock);
    }

    /// Whether it tells when the kernel got a frame, not when it was read.
    pub(crate) fn knows_arrivals(&self) -> bool {
        self.clock.is_some()
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

    /// Hands on what stands at the next place. Returns how many frames that are, or `None` when
    /// there is nothing.
    fn receive_next(&mut self, each: &mut impl FnMut(u64, &[u8])) -> Option<usize> {
        let (header, area) = self.ring.own(self.next, is_ours)?;
        // When the kernel put it there, not when we come to it.
        let at = self.arrivals.at(header.tp_sec, header.tp_nsec);
        let each = &mut |frame: &[u8]| each(at, frame);
        let tag = tag_of(&header);
        let received = if header.tp_status & libc::TP_STATUS_COPY != 0 {
            let got = self.socket.receive(&mut self.gso.whole);
            let bytes = got.ok().and_then(|bytes| self.gso.whole.get(..bytes));
            bytes.and_then(|bytes| {
                let (offloads, frame) = bytes.split_first_chunk()?;
                let offloads = Offloads::read(*offloads);
                cut(frame, &offloads, tag, &mut self.gso.segment, each)
            })
        } else {
            restore(&header, area, tag).and_then(|(offloads, frame)| {
                if offloads.is_gso() {
                    return cut(frame, &offloads, tag, &mut self.gso.segment, each);
                }
                each(frame);
                Some(1)
            })
        };
        if received.is_none() {
            self.lost_packets += 1;
        }
        self.ring.give(self.next, libc::TP_STATUS_KERNEL);
        self.next = self.ring.next(self.next);
        Some(received.unwrap_or(0))
    }
}

impl RxQueue for AfPacketRx {
    /// A frame of many segments may take what is handed on past the budget.
    fn receive(&mut self, now_ns: u64, budget: usize, mut each: impl FnMut(u64, &[u8])) -> usize {
        self.ask_kernel(now_ns);
        if !is_ours(self.ring.status(self.next)) {
            self.arrivals.note_empty(now_ns);
            return 0;
        }
        match &self.clock {
            Some(clock) => self.arrivals.measure(&**clock),
            None => self.arrivals.note_unknown(now_ns),
        }
        let mut taken = 0;
        for _ in 0..budget {
            match self.receive_next(&mut each) {
                Some(frames) => taken += frames,
                None => break,
            }
            if taken >= budget {
                break;
            }
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

/// Whether the kernel has put a frame into a place of the ring.
fn is_ours(status: u32) -> bool {
    status & libc::TP_STATUS_USER != 0
}

/// Cuts a frame of many segments; `None` when that cannot be done.
fn cut(
    frame: &[u8],
    offloads: &Offloads,
    tag: Option<Tag>,
    segment: &mut Vec<u8>,
    each: &mut impl FnMut(&[u8]),
) -> Option<usize> {
    Some(GsoFrame::new(frame, offloads, tag)?.cut(segment, each))
}

/// The frame in the bytes behind its header; `None` when it is not whole. One of a single segment
/// is as it was on the wire.
fn restore<'a>(
    header: &tpacket2_hdr,
    area: &'a mut [u8],
    tag: Option<Tag>,
) -> Option<(Offloads, &'a [u8])> {
    let longest = FRAME_BYTES_MAX - vlan::HEADER_BYTES;
    if header.tp_snaplen < header.tp_len || header.tp_len as usize > longest {
        return None;
    }
    let start = usize::from(header.tp_mac).checked_sub(HEADER_BYTES)?;
    let end = start + header.tp_snaplen as usize;
    let offloads = area.get(start.checked_sub(OFFLOAD_BYTES)?..start)?;
    let offloads = Offloads::read(offloads.try_into().ok()?);
    if offloads.is_gso() {
        return Some((offloads, area.get(start..end)?));
    }
    offloads.complete_checksum(area.get_mut(start..end)?);
    let Some(tag) = tag.filter(|_| end - start >= ethernet::TYPE_OFFSET) else {
        return Some((offloads, &area[start..end]));
    };
    // The header of offloads has made room in front of the frame.
    let tagged = start - vlan::HEADER_BYTES;
    area.copy_within(start..start + ethernet::TYPE_OFFSET, tagged);
    area[tagged + ethernet::TYPE_OFFSET..start + ethernet::TYPE_OFFSET].copy_from_slice(&tag);
    Some((offloads, &area[tagged..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A place in the ring with a frame as the kernel leaves it there.
    fn area(frame: &[u8]) -> (tpacket2_hdr, Vec<u8>) {
        const START: usize = 76;
        let mut area = vec![0xee; START - HEADER_BYTES - OFFLOAD_BYTES];
        area.extend([0; OFFLOAD_BYTES]);
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

    fn restored(header: &tpacket2_hdr, area: &mut [u8]) -> Option<Vec<u8>> {
        let (_, frame) = restore(header, area, tag_of(header))?;
        Some(frame.to_vec())
    }

    fn numbered(bytes: u8) -> Vec<u8> {
        (0..bytes).collect()
    }

    #[test]
    fn a_plain_frame_is_left_alone() {
        let (header, mut area) = area(&numbered(60));
        assert_eq!(restored(&header, &mut area), Some(numbered(60)));
    }

    #[test]
    fn a_vlan_tag_is_put_back() {
        for (valid, tpid) in [(libc::TP_STATUS_VLAN_TPID_VALID, 0x88a8), (0, 0x8100)] {
            let frame = numbered(60);
            let (mut header, mut area) = area(&frame);
            header.tp_status |= libc::TP_STATUS_VLAN_VALID | valid;
            (header.tp_vlan_tci, header.tp_vlan_tpid) = (0x6123, 0x88a8);
            let restored = restored(&header, &mut area).expect("a whole frame");
            assert_eq!(restored[..12], frame[..12]);
            assert_eq!(restored[12..14], u16::to_be_bytes(tpid));
            assert_eq!(restored[14..16], [0x61, 0x23]);
            assert_eq!(restored[16..], frame[12..]);
        }
    }

    #[test]
    fn a_frame_that_was_cut_off_is_none() {
        let (mut header, mut area) = area(&numbered(60));
        header.tp_len = 61;
        assert_eq!(restored(&header, &mut area), None);
    }

    #[test]
    fn a_header_that_makes_no_sense_is_none() {
        for (mac, snaplen) in [(0, 60), (31, 60), (41, 60), (76, 5000), (u16::MAX, 60)] {
            let (mut header, mut area) = area(&numbered(60));
            (header.tp_mac, header.tp_snaplen, header.tp_len) = (mac, snaplen, snaplen);
            assert_eq!(restored(&header, &mut area), None, "{mac} {snaplen}");
        }
    }
}
