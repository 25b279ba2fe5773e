//! Address spaces: what the addresses of a flow mean beside their last 32 bits. That is the network of
//! a tunnel, and of IPv6 the prefixes that the two addresses begin with. Whoever makes flows has few
//! of them and many hosts, so a flow's key has a number.

use std::collections::HashMap;
use std::net::Ipv6Addr;
use std::num::NonZeroU16;

/// Address spaces that are told apart at the same time.
pub const SPACES_MAX: usize = 65_534;

/// The number of an address space, see [`AddressSpaces`]. IPv4 without a tunnel has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpaceIndex(NonZeroU16);

impl SpaceIndex {
    /// In the place of a space that no flow has.
    pub const UNKNOWN: SpaceIndex = SpaceIndex(NonZeroU16::MAX);

    pub(super) fn of(place: usize) -> SpaceIndex {
        let number = NonZeroU16::new(place as u16 + 1);
        SpaceIndex(number.expect("there are less than 65535"))
    }

    /// From 1 on.
    #[inline]
    pub(super) fn number(self) -> u16 {
        self.0.get()
    }

    fn place(self) -> usize {
        usize::from(self.0.get()) - 1
    }
}

/// The first 96 bits of two IPv6 addresses, ours and the other; the rest is 0.
type Prefixes = [u128; 2];

/// What addresses mean beside their last 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressSpace {
    /// The network of a tunnel; 0 is none.
    network: u32,
    is_v6: bool,
    /// Zeros for IPv4.
    prefixes: Prefixes,
}

impl AddressSpace {
    /// That of IPv4 addresses in the network of a tunnel; `None` where there is no tunnel.
    #[inline]
    pub fn v4(network: u32) -> Option<AddressSpace> {
        (network != 0).then_some(AddressSpace {
            network,
            is_v6: false,
            prefixes: [0; 2],
        })
    }

    /// That of two IPv6 addresses, ours and the other, in the network of a tunnel; 0 is none.
    #[inline]
    pub fn v6(network: u32, local: Ipv6Addr, remote: Ipv6Addr) -> AddressSpace {
        let prefix = |address: Ipv6Addr| address.to_bits() & !u128::from(u32::MAX);
        AddressSpace {
            network,
            is_v6: true,
            prefixes: [prefix(local), prefix(remote)],
        }
    }

    /// Whether it is another, compared as a whole: those that are compared are nearly always the same.
    #[inline(always)]
    fn is_same(&self, other: &AddressSpace) -> bool {
        let prefixes =
            (self.prefixes[0] ^ other.prefixes[0]) | (self.prefixes[1] ^ other.prefixes[1]);
        let kind = (self.network ^ other.network) | u32::from(self.is_v6 ^ other.is_v6);
        prefixes | u128::from(kind) == 0
    }
}

/// One of them, and how many flows have it.
#[derive(Clone, Copy, Debug)]
struct Known {
    space: AddressSpace,
    users: u32,
}

/// The address spaces that flows have. Flows hold the number of theirs: who sends from many made up
/// prefixes or networks has no more of them than flows.
#[derive(Debug, Default)]
pub struct AddressSpaces {
    known: Vec<Known>,
    numbers: HashMap<AddressSpace, SpaceIndex>,
    /// Numbers without a flow.
    free: Vec<SpaceIndex>,
}

impl AddressSpaces {
    /// The number of a space; `None` when no flow has it.
    #[inline]
    pub fn find(&self, space: &AddressSpace) -> Option<SpaceIndex> {
        // Mostly there is one, or two where both ends are ours.
        let is_at = |place: usize| {
            let known = self.known.get(place);
            known.is_some_and(|known| known.space.is_same(space) && known.users > 0)
        };
        if is_at(0) {
            Some(SpaceIndex::of(0))
        } else if is_at(1) {
            Some(SpaceIndex::of(1))
        } else {
            self.numbers.get(space).copied()
        }
    }

    /// The same for one more flow, also when it is the first; `None` when there are
    /// [`SPACES_MAX`]. Give it back by [`release`](AddressSpaces::release).
    pub fn hold(&mut self, space: &AddressSpace) -> Option<SpaceIndex> {
        if let Some(number) = self.find(space) {
            self.known[number.place()].users += 1;
            return Some(number);
        }
        let known = Known {
            space: *space,
            users: 1,
        };
        let number = match self.free.pop() {
            Some(number) => {
                self.known[number.place()] = known;
                number
            }
            None if self.known.len() == SPACES_MAX => return None,
            None => {
                self.known.push(known);
                SpaceIndex::of(self.known.len() - 1)
            }
        };
        self.numbers.insert(*space, number);
        Some(number)
    }

    /// A flow that held a number is over.
    pub fn release(&mut self, number: SpaceIndex) {
        let known = &mut self.known[number.place()];
        known.users -= 1;
        if known.users == 0 {
            self.numbers.remove(&known.space);
            self.free.push(number);
        }
    }

    /// Spaces that flows have.
    pub fn in_use(&self) -> usize {
        self.numbers.len()
    }

    /// The addresses of a flow of IPv6: ours, and the other; `None` when it is of IPv4, or the space is
    /// unknown.
    #[inline]
    pub fn addresses(
        &self,
        number: SpaceIndex,
        local: u32,
        remote: u32,
    ) -> Option<(Ipv6Addr, Ipv6Addr)> {
        let space = &self.known.get(number.place())?.space;
        let [ours, others] = space.prefixes;
        if !space.is_v6 {
            return None;
        }
        let joined = |prefix: u128, host: u32| Ipv6Addr::from_bits(prefix | u128::from(host));
        Some((joined(ours, local), joined(others, remote)))
    }
}

/// The last 32 bits of an address, by which hosts are told apart.
#[inline]
pub fn host_of(address: Ipv6Addr) -> u32 {
    address.to_bits() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_back_from_their_spaces() {
        let address = |text: &str| text.parse::<Ipv6Addr>().expect("an address");
        let (ours, others) = (address("2001:db8::1:2"), address("fe80::9:8:7"));
        let (one, two) = (
            AddressSpace::v6(0, ours, others),
            AddressSpace::v6(0, others, ours),
        );
        let mut spaces = AddressSpaces::default();
        assert_eq!(spaces.find(&one), None);
        assert_eq!(spaces.hold(&one), Some(SpaceIndex::of(0)));
        assert_eq!(spaces.hold(&two), Some(SpaceIndex::of(1)));
        assert_eq!(spaces.find(&one), Some(SpaceIndex::of(0)));
        let hosts = (host_of(ours), host_of(others));
        assert_eq!(
            spaces.addresses(SpaceIndex::of(0), hosts.0, hosts.1),
            Some((ours, others))
        );
        assert_eq!(spaces.addresses(SpaceIndex::of(2), 0, 0), None);
    }

    #[test]
    fn the_networks_of_tunnels_are_spaces() {
        assert_eq!(AddressSpace::v4(0), None);
        let of = |network| AddressSpace::v4(network).expect("it is a tunnel's");
        let mut spaces = AddressSpaces::default();
        let held = [1, u32::MAX, 1].map(|network| spaces.hold(&of(network)));
        assert_eq!(held, [0, 1, 0].map(|place| Some(SpaceIndex::of(place))));
        assert_eq!(spaces.addresses(SpaceIndex::of(0), 1, 2), None, "of IPv4");
        let local = Ipv6Addr::LOCALHOST;
        assert_eq!(spaces.find(&AddressSpace::v6(1, local, local)), None);
    }

    #[test]
    fn spaces_without_flows_make_room() {
        let space = |number: u32| AddressSpace::v4(number + 1).expect("it is a tunnel's");
        let mut spaces = AddressSpaces::default();
        for number in 0..SPACES_MAX {
            let held = spaces.hold(&space(number as u32));
            assert_eq!(held, Some(SpaceIndex::of(number)));
        }
        let new = space(1 << 20);
        assert_eq!(spaces.hold(&new), None, "full");
        assert_eq!(spaces.hold(&space(0)), Some(SpaceIndex::of(0)));
        spaces.release(SpaceIndex::of(0));
        assert_eq!(spaces.hold(&new), None);
        spaces.release(SpaceIndex::of(0));
        assert_eq!(spaces.find(&space(0)), None);
        assert_eq!(spaces.hold(&new), Some(SpaceIndex::of(0)));
        assert_eq!(spaces.in_use(), SPACES_MAX);
    }
}
