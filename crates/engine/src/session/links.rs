//! Where the frames of flows go: few places for many flows, so flows hold a number. What stands in front
//! of their packets is written once for all of them.

use std::collections::HashMap;
use std::num::NonZeroU32;

use allosaur_packet::MacAddress;
use allosaur_packet::link::ethernet::EtherType;

use super::wire;
use crate::encapsulation::{Encapsulation, LinkPrefix};
use crate::flow::FlowKey;

/// Where the frames of a flow go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkAddresses {
    /// Our MAC address.
    pub own: MacAddress,
    /// The other end's, or its gateway's.
    pub peer: MacAddress,
    /// What stands between them and the IP packet.
    pub encapsulation: Encapsulation,
}

impl LinkAddresses {
    /// What stands in front of packets of this version.
    pub fn prefix(&self, is_v6: bool) -> LinkPrefix {
        let packet = if is_v6 {
            EtherType::IPV6
        } else {
            EtherType::IPV4
        };
        LinkPrefix::new(self.peer, self.own, &self.encapsulation, packet)
    }
}

/// Bytes of a segment for which a port has room: what its headers leave of the longest frame.
#[inline]
pub(super) fn segment_bytes_max(key: &FlowKey, prefix: &LinkPrefix, frame_bytes_max: usize) -> u16 {
    let headers = wire::header_bytes(key.scope.is_v6(), prefix);
    frame_bytes_max.saturating_sub(headers).clamp(1, 0xffff) as u16
}

/// The number of a flow's addresses, plus one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LinkIndex(NonZeroU32);

impl LinkIndex {
    fn of(place: usize) -> LinkIndex {
        let number = NonZeroU32::new(place as u32 + 1);
        LinkIndex(number.expect("there are less than 2^32"))
    }

    fn place(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// Addresses, and whether the packets are of IPv6.
type LinkKey = (LinkAddresses, bool);

/// One of them, and how many flows have it.
#[derive(Debug)]
struct Known {
    prefix: LinkPrefix,
    link: LinkKey,
    users: u32,
}

/// The addresses that flows have.
#[derive(Debug, Default)]
pub struct Links {
    known: Vec<Known>,
    numbers: HashMap<LinkKey, u32>,
    /// Numbers without a flow.
    free: Vec<u32>,
    /// The two numbers that were looked up last, the newer first: where clients and servers take
    /// turns, it is mostly one of these. They are kept when no flow has them any more, as the next
    /// one will.
    recent: [Option<u32>; 2],
}

impl Links {
    /// The number of these addresses for one more flow, of this version. Give it back by `release`.
    pub(super) fn hold(&mut self, addresses: LinkAddresses, is_v6: bool) -> LinkIndex {
        let link = (addresses, is_v6);
        // Their MAC addresses tell most from others.
        let is_it = |number: &u32| {
            let known = &self.known[*number as usize].link;
            let is_near = (known.0.own, known.0.peer) == (addresses.own, addresses.peer);
            let is_plain = |link: &LinkAddresses| link.encapsulation == Encapsulation::Ethernet;
            is_near
                && known.1 == is_v6
                && match is_plain(&addresses) {
                    true => is_plain(&known.0),
                    false => known.0.encapsulation == addresses.encapsulation,
                }
        };
        let number = match self.recent {
            [Some(newer), _] if is_it(&newer) => newer,
            [_, Some(older)] if is_it(&older) => older,
            [newer, older] => {
                self.recent = [None, newer];
                if let Some(older) = older {
                    self.forget_unused(older);
                }
                let number = self.find_or_add(link);
                self.recent[0] = Some(number);
                number
            }
        };
        self.known[number as usize].users += 1;
        LinkIndex::of(number as usize)
    }

    #[cold]
    fn find_or_add(&mut self, link: LinkKey) -> u32 {
        if let Some(number) = self.numbers.get(&link) {
            return *number;
        }
        let known = Known {
            prefix: link.0.prefix(link.1),
            link,
            users: 0,
        };
        let number = match self.free.pop() {
            Some(number) => {
                self.known[number as usize] = known;
                number
            }
            None => {
                self.known.push(known);
                self.known.len() as u32 - 1
            }
        };
        self.numbers.insert(link, number);
        number
    }

    /// What stands in front of the packets of a flow.
    #[inline]
    pub(super) fn at(&self, index: LinkIndex) -> &LinkPrefix {
        &self.known[index.place()].prefix
    }

    /// A flow that held a number is over.
    pub(super) fn release(&mut self, index: LinkIndex) {
        let known = &mut self.known[index.place()];
        known.users -= 1;
        if known.users == 0 {
            self.forget_unused(index.0.get() - 1);
        }
    }

    /// Forgets addresses that no flow has, and that were not asked for last.
    #[inline]
    fn forget_unused(&mut self, number: u32) {
        let known = &self.known[number as usize];
        if known.users == 0 && !self.recent.contains(&Some(number)) {
            self.numbers.remove(&known.link);
            self.free.push(number);
        }
    }

    /// How many flows have.
    pub fn in_use(&self) -> usize {
        let recent = self.recent.iter().flatten();
        let unused = recent.filter(|number| self.known[**number as usize].users == 0);
        self.numbers.len() - unused.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_share_addresses_and_the_last_takes_them_along() {
        let link = |last| LinkAddresses {
            own: MacAddress([2, 0, 0, 0, 0, 1]),
            peer: MacAddress([2, 0, 0, 0, 0, last]),
            encapsulation: Encapsulation::Ethernet,
        };
        let mut links = Links::default();
        let held = [2, 3, 2, 3, 3].map(|last| links.hold(link(last), false));
        assert_eq!(held, [0, 1, 0, 1, 1].map(LinkIndex::of));
        assert_eq!(
            links.at(held[1]).ethernet(),
            link(3).prefix(false).ethernet()
        );
        links.release(held[0]);
        assert_eq!(links.in_use(), 2);
        links.release(held[2]);
        let ninth = links.hold(link(9), false);
        assert_eq!((links.in_use(), ninth), (2, LinkIndex::of(0)));
        assert_eq!(links.hold(link(2), false), LinkIndex::of(2));
        assert_eq!(
            links.hold(link(2), true),
            LinkIndex::of(3),
            "of another version"
        );
    }
}
