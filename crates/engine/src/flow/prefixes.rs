//! Pairs of IPv6 prefixes: addresses are told apart by their last 32 bits and by the number of the
//! pair that they begin with. Whoever makes flows has few prefixes and many hosts.

use std::collections::HashMap;
use std::net::Ipv6Addr;
use std::num::NonZeroU16;

/// Pairs of IPv6 prefixes that are told apart.
pub const PREFIXES_MAX: usize = 4095;

/// The number of a pair of IPv6 prefixes, see [`Prefixes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PrefixIndex(NonZeroU16);

impl PrefixIndex {
    /// In the place of a pair that no flow has.
    pub const UNKNOWN: PrefixIndex = PrefixIndex(NonZeroU16::MAX);

    pub(super) fn of(place: usize) -> PrefixIndex {
        let number = NonZeroU16::new(place as u16 + 1);
        PrefixIndex(number.expect("there are less than 65535"))
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

/// The first 96 bits of two addresses: ours, and the other.
type Pair = ([u8; 12], [u8; 12]);

/// One of them, and how many flows have it.
#[derive(Clone, Copy, Debug)]
struct Known {
    pair: Pair,
    users: u32,
}

/// The pairs of IPv6 prefixes that flows have. Flows hold the number of theirs: who sends from many
/// made up prefixes has no more of them than flows.
#[derive(Debug, Default)]
pub struct Prefixes {
    known: Vec<Known>,
    numbers: HashMap<Pair, PrefixIndex>,
    /// Numbers without a flow.
    free: Vec<PrefixIndex>,
}

impl Prefixes {
    /// The number of the pair that these addresses begin with; `None` when no flow has it.
    pub fn find(&self, local: Ipv6Addr, remote: Ipv6Addr) -> Option<PrefixIndex> {
        let pair = (split(local).0, split(remote).0);
        // Mostly there is one.
        let first = self.known.first().filter(|known| known.users > 0);
        if first.is_some_and(|known| known.pair == pair) {
            return Some(PrefixIndex::of(0));
        }
        self.numbers.get(&pair).copied()
    }

    /// The same for one more flow, also when it is the first; `None` when there are
    /// [`PREFIXES_MAX`]. Give it back by [`release`](Prefixes::release).
    pub fn hold(&mut self, local: Ipv6Addr, remote: Ipv6Addr) -> Option<PrefixIndex> {
        if let Some(number) = self.find(local, remote) {
            self.known[number.place()].users += 1;
            return Some(number);
        }
        let pair = (split(local).0, split(remote).0);
        let known = Known { pair, users: 1 };
        let number = match self.free.pop() {
            Some(number) => {
                self.known[number.place()] = known;
                number
            }
            None if self.known.len() == PREFIXES_MAX => return None,
            None => {
                self.known.push(known);
                PrefixIndex::of(self.known.len() - 1)
            }
        };
        self.numbers.insert(pair, number);
        Some(number)
    }

    /// A flow that held a number is over.
    pub fn release(&mut self, number: PrefixIndex) {
        let known = &mut self.known[number.place()];
        known.users -= 1;
        if known.users == 0 {
            self.numbers.remove(&known.pair);
            self.free.push(number);
        }
    }

    /// Pairs that flows have.
    pub fn in_use(&self) -> usize {
        self.numbers.len()
    }

    /// The addresses of a flow: ours, and the other; `None` when the pair is unknown.
    pub fn addresses(
        &self,
        number: PrefixIndex,
        local: u32,
        remote: u32,
    ) -> Option<(Ipv6Addr, Ipv6Addr)> {
        let (ours, others) = self.known.get(number.place())?.pair;
        Some((joined(ours, local), joined(others, remote)))
    }
}

/// The last 32 bits of an address, by which hosts are told apart.
pub fn host_of(address: Ipv6Addr) -> u32 {
    split(address).1
}

fn split(address: Ipv6Addr) -> ([u8; 12], u32) {
    let bits = address.to_bits();
    let bytes = address.octets();
    let prefix = std::array::from_fn(|place| bytes[place]);
    (prefix, bits as u32)
}

fn joined(prefix: [u8; 12], host: u32) -> Ipv6Addr {
    let mut bytes = [0; 16];
    bytes[..12].copy_from_slice(&prefix);
    bytes[12..].copy_from_slice(&host.to_be_bytes());
    Ipv6Addr::from(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_back_from_their_prefixes() {
        let address = |text: &str| text.parse::<Ipv6Addr>().expect("an address");
        let (ours, others) = (address("2001:db8::1:2"), address("fe80::9:8:7"));
        let mut prefixes = Prefixes::default();
        assert_eq!(prefixes.find(ours, others), None);
        assert_eq!(prefixes.hold(ours, others), Some(PrefixIndex::of(0)));
        assert_eq!(prefixes.hold(others, ours), Some(PrefixIndex::of(1)));
        assert_eq!(prefixes.find(ours, others), Some(PrefixIndex::of(0)));
        let hosts = (host_of(ours), host_of(others));
        assert_eq!(
            prefixes.addresses(PrefixIndex::of(0), hosts.0, hosts.1),
            Some((ours, others))
        );
        assert_eq!(prefixes.addresses(PrefixIndex::of(2), 0, 0), None);
    }

    #[test]
    fn prefixes_without_flows_make_room() {
        let address = |number: u128| Ipv6Addr::from(number << 32);
        let mut prefixes = Prefixes::default();
        for number in 0..PREFIXES_MAX {
            let held = prefixes.hold(address(number as u128), address(7));
            assert_eq!(held, Some(PrefixIndex::of(number)));
        }
        assert_eq!(prefixes.hold(address(1 << 20), address(7)), None, "full");
        assert_eq!(
            prefixes.hold(address(0), address(7)),
            Some(PrefixIndex::of(0))
        );
        prefixes.release(PrefixIndex::of(0));
        assert_eq!(prefixes.hold(address(1 << 20), address(7)), None);
        prefixes.release(PrefixIndex::of(0));
        assert_eq!(prefixes.find(address(0), address(7)), None);
        assert_eq!(
            prefixes.hold(address(1 << 20), address(7)),
            Some(PrefixIndex::of(0))
        );
        assert_eq!(prefixes.in_use(), PREFIXES_MAX);
    }
}
