//! Ethernet and VLAN tags of the frames of a host.

use allosaur_packet::MacAddress;
use allosaur_packet::builder::LinkHeader;
use allosaur_packet::link::ethernet::{self, EtherType, EthernetView};
use allosaur_packet::link::vlan::{self, VlanView};

/// A frame with the tags of the host.
pub(super) struct Arrival<'a> {
    /// Where it went.
    pub(super) destination: MacAddress,
    /// Where it came from.
    pub(super) source: MacAddress,
    /// The tags as they are, with their types in front of them.
    pub(super) tags: &'a [u8],
    /// What is behind the tags.
    pub(super) ether_type: EtherType,
    /// The bytes behind the tags, with any padding.
    pub(super) payload: &'a [u8],
}

impl<'a> Arrival<'a> {
    /// Reads a frame; `None` when it is cut off or is not in `vlans`. Priorities do not matter,
    /// and either kind of tag may stand for each VLAN.
    #[inline]
    pub(super) fn read(frame: &'a [u8], vlans: &[u16]) -> Option<Arrival<'a>> {
        let ethernet = EthernetView::new_checked(frame).ok()?;
        let mut ether_type = ethernet.ether_type();
        let mut at = ethernet::HEADER_BYTES;
        for &identifier in vlans {
            let tag = VlanView::new_checked(&frame[at..]).ok()?;
            if !ether_type.is_vlan() || tag.identifier() != identifier {
                return None;
            }
            ether_type = tag.ether_type();
            at += vlan::HEADER_BYTES;
        }
        Some(Arrival {
            destination: ethernet.destination(),
            source: ethernet.source(),
            tags: &frame
                [ethernet::TYPE_OFFSET..ethernet::TYPE_OFFSET + vlan::HEADER_BYTES * vlans.len()],
            ether_type,
            payload: &frame[at..],
        })
    }

    /// The link header of an answer to where it came from.
    pub(super) fn reply(&self, own: MacAddress) -> LinkHeader<'a> {
        LinkHeader {
            destination: self.source,
            source: own,
            tags: self.tags,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_tags_of_the_host_are_taken_off() {
        let mut frame = vec![2; 12];
        frame.extend([0x88, 0xa8, 0xe0, 100, 0x81, 0, 0, 200, 8, 6, 0xaa]);
        let arrival = Arrival::read(&frame, &[100, 200]).expect("its tags");
        assert_eq!(
            (arrival.ether_type, arrival.payload),
            (EtherType::ARP, &[0xaa][..])
        );
        assert_eq!(arrival.tags, [0x88, 0xa8, 0xe0, 100, 0x81, 0, 0, 200]);
        for other in [&[100, 201][..], &[200, 100], &[100, 200, 300]] {
            assert!(Arrival::read(&frame, other).is_none(), "{other:?}");
        }
        // With fewer tags than the frame has, the rest is no protocol that a host knows.
        for fewer in [&[][..], &[100]] {
            let arrival = Arrival::read(&frame, fewer).expect("a prefix of its tags");
            assert!(arrival.ether_type.is_vlan());
        }
    }
}
