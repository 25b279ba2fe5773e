//! Where the frames of flows go: few places for many flows, so flows hold a number.

use std::collections::HashMap;
use std::num::NonZeroU32;

use allosaur_packet::MacAddress;

use super::wire::{self, Encapsulation};
use crate::flow::FlowKey;

/// Where the frames of a flow go.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LinkAddresses {
    /// Our MAC address.
    pub own: MacAddress,
    /// The other end's, or its gateway's.
    pub peer: MacAddress,
    /// What stands between them and the IP packet.
    pub encapsulation: Encapsulation,
}

/// Bytes of a segment for which a port has room: what its headers leave of the longest frame.
pub(super) fn segment_bytes_max(
    key: &FlowKey,
    link: &LinkAddresses,
    frame_bytes_max: usize,
) -> u16 {
    let headers = wire::header_bytes(key.prefixes.is_some(), &link.encapsulation);
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

/// One of them, and how many flows have it.
#[derive(Debug)]
struct Known {
    link: LinkAddresses,
    users: u32,
}

/// The addresses that flows have.
#[derive(Debug, Default)]
pub struct Links {
    known: Vec<Known>,
    numbers: HashMap<LinkAddresses, u32>,
    /// Numbers without a flow.
    free: Vec<u32>,
    /// The two numbers that were asked for last, the newer first: where clients and servers take
    /// turns, it is mostly one of these. They are kept when no flow has them any more, as the next
    /// one will.
    recent: [Option<u32>; 2],
}

impl Links {
    /// The number of these addresses for one more flow. Give it back by `release`.
    pub(super) fn hold(&mut self, link: LinkAddresses) -> LinkIndex {
        let is_it = |number: &u32| self.known[*number as usize].link == link;
        let number = match self.recent {
            [Some(newer), _] if is_it(&newer) => newer,
            [newer, Some(older)] if is_it(&older) => {
                self.recent = [Some(older), newer];
                older
            }
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
    fn find_or_add(&mut self, link: LinkAddresses) -> u32 {
        if let Some(number) = self.numbers.get(&link) {
            return *number;
        }
        let known = Known {
            link: link.clone(),
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

    /// The addresses of a flow.
    #[inline]
    pub(super) fn at(&self, index: LinkIndex) -> &LinkAddresses {
        &self.known[index.place()].link
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
        let held = [2, 3, 2, 3, 3].map(|last| links.hold(link(last)));
        assert_eq!(held, [0, 1, 0, 1, 1].map(LinkIndex::of));
        assert_eq!(links.at(held[1]), &link(3));
        links.release(held[0]);
        assert_eq!(links.in_use(), 2);
        links.release(held[2]);
        assert_eq!((links.in_use(), links.hold(link(9))), (1, LinkIndex::of(0)));
        assert_eq!(links.hold(link(2)), LinkIndex::of(2));
    }
}
