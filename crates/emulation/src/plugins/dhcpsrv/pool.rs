//! Addresses to lease: which are free, and which comes next.
//!
//! Fresh addresses go out in ascending order; one that was given back goes out before them. Only
//! addresses that were touched take memory, so a pool may be as large as it likes.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// So many addresses at most are remembered as given back, and so many as declined.
pub(super) const RETURNED_MAX: usize = 1 << 20;
pub(super) const DECLINED_MAX: usize = 1 << 16;

/// A range of addresses of one subnet.
#[derive(Debug)]
pub(super) struct Pool {
    subnet: u32,
    mask: u32,
    /// First and last address to lease; none when the first is behind the last.
    first: u32,
    last: u32,
    /// All fresh addresses are from here on; beyond the last there is none.
    fresh: u64,
    /// Addresses that were given back, by when.
    returned: BTreeMap<u64, u32>,
}

impl Pool {
    /// The addresses from `min` to `max` without those of the subnet itself and of its broadcast.
    pub(super) fn new(min: Ipv4Addr, max: Ipv4Addr, prefix: u8) -> Pool {
        let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
        let subnet = u32::from(min) & mask;
        let first = u32::from(min).max(subnet.saturating_add(1));
        let last = u32::from(max).min((subnet | !mask).saturating_sub(1));
        Pool {
            subnet,
            mask,
            first,
            last,
            fresh: u64::from(first),
            returned: BTreeMap::new(),
        }
    }

    /// The mask of its subnet.
    pub(super) fn mask(&self) -> Ipv4Addr {
        self.mask.into()
    }

    /// Whether an address is of its subnet.
    pub(super) fn is_subnet_of(&self, address: Ipv4Addr) -> bool {
        u32::from(address) & self.mask == self.subnet
    }

    fn has(&self, address: u32) -> bool {
        (self.first..=self.last).contains(&address)
    }
}

/// Why an address is not fresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AddressUse {
    Leased,
    /// It was given back to a pool; its key there.
    Returned(u64),
    Excluded,
}

/// All pools of a server.
#[derive(Debug)]
pub(super) struct Pools {
    pools: Vec<Pool>,
    taken: BTreeMap<u32, AddressUse>,
    /// The key of the address that was given back last.
    newest: u64,
    returned: usize,
    declined: usize,
}

impl Pools {
    /// Pools without some addresses.
    pub(super) fn new(pools: Vec<Pool>, excluded: &[Ipv4Addr]) -> Pools {
        let excluded = excluded.iter().map(|&address| u32::from(address));
        Pools {
            pools,
            taken: excluded
                .map(|address| (address, AddressUse::Excluded))
                .collect(),
            newest: 0,
            returned: 0,
            declined: 0,
        }
    }

    /// The pool of the subnet that an address is of.
    pub(super) fn of_subnet(&self, address: Ipv4Addr) -> Option<usize> {
        self.pools
            .iter()
            .position(|pool| pool.is_subnet_of(address))
    }

    /// The mask of a pool's subnet.
    pub(super) fn mask(&self, pool: usize) -> Ipv4Addr {
        self.pools[pool].mask()
    }

    /// Takes an address out of a pool, the wanted one if it is free. `own` is never given out.
    pub(super) fn take(
        &mut self,
        pool: usize,
        wanted: Option<Ipv4Addr>,
        own: Ipv4Addr,
    ) -> Option<Ipv4Addr> {
        let wanted = wanted
            .map(u32::from)
            .filter(|&address| self.is_free(pool, address, own));
        let address = match wanted {
            Some(address) => address,
            None => self.next(pool, own)?,
        };
        if let Some(AddressUse::Returned(key)) = self.taken.insert(address, AddressUse::Leased) {
            self.pools[pool].returned.remove(&key);
            self.returned -= 1;
        }
        Some(address.into())
    }

    fn is_free(&self, pool: usize, address: u32, own: Ipv4Addr) -> bool {
        let pool = &self.pools[pool];
        let is_free = match self.taken.get(&address) {
            None => true,
            Some(AddressUse::Returned(key)) => pool.returned.get(key) == Some(&address),
            Some(_) => false,
        };
        is_free && pool.has(address) && address != u32::from(own)
    }

    fn next(&mut self, pool: usize, own: Ipv4Addr) -> Option<u32> {
        let pool = &mut self.pools[pool];
        let returned = pool.returned.values().rev();
        if let Some(&address) = returned
            .into_iter()
            .find(|&&address| address != u32::from(own))
        {
            return Some(address);
        }
        while pool.fresh <= u64::from(pool.last) {
            let address = pool.fresh as u32;
            pool.fresh += 1;
            if !self.taken.contains_key(&address) && address != u32::from(own) {
                return Some(address);
            }
        }
        None
    }

    /// Gives an address back; it is the next to go out.
    pub(super) fn give_back(&mut self, pool: usize, address: Ipv4Addr) {
        let address = u32::from(address);
        let pool = &mut self.pools[pool];
        // One that was asked for by name may be made fresh again, so that who asks for one after
        // the other cannot fill the memory.
        if self.returned >= RETURNED_MAX && u64::from(address) >= pool.fresh {
            self.taken.remove(&address);
            return;
        }
        self.newest += 1;
        self.taken
            .insert(address, AddressUse::Returned(self.newest));
        pool.returned.insert(self.newest, address);
        self.returned += 1;
    }

    /// Keeps an address back for ever, as somebody else has it; when too many are, it is only given back.
    pub(super) fn exclude(&mut self, pool: usize, address: Ipv4Addr) {
        if self.declined == DECLINED_MAX {
            self.give_back(pool, address);
            return;
        }
        self.declined += 1;
        self.taken.insert(u32::from(address), AddressUse::Excluded);
    }

    /// How many addresses take memory.
    #[cfg(test)]
    pub(super) fn touched(&self) -> usize {
        self.taken.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    const OWN: Ipv4Addr = Ipv4Addr::new(16, 0, 0, 3);

    fn address(last: u8) -> Ipv4Addr {
        Ipv4Addr::new(16, 0, 0, last)
    }

    fn pools(prefix: u8) -> Pools {
        let pool = Pool::new(address(0), address(255), prefix);
        Pools::new(vec![pool], &[address(1)])
    }

    #[test]
    fn addresses_go_out_in_order_without_those_that_are_nobodys() {
        let mut pools = pools(24);
        let taken: Vec<_> = std::iter::from_fn(|| pools.take(0, None, OWN)).collect();
        // Not the subnet, the excluded one, the server's own and the broadcast.
        let expected: Vec<_> = (2..255).filter(|&last| last != 3).map(address).collect();
        assert_eq!(taken, expected);
        pools.give_back(0, address(9));
        pools.give_back(0, address(7));
        assert_eq!(pools.take(0, None, OWN), Some(address(7)));
        assert_eq!(pools.take(0, Some(address(9)), OWN), Some(address(9)));
        assert_eq!(pools.take(0, None, OWN), None);
    }

    #[test]
    fn a_wanted_address_is_given_when_it_is_free() {
        let mut pools = pools(24);
        for wanted in [1, 3, 0, 255] {
            let given = pools.take(0, Some(address(wanted)), OWN).unwrap();
            assert_ne!(given, address(wanted));
        }
        assert_eq!(pools.take(0, Some(address(100)), OWN), Some(address(100)));
        assert_ne!(pools.take(0, Some(address(100)), OWN), Some(address(100)));
        assert_eq!(
            pools.take(0, Some(Ipv4Addr::new(1, 1, 1, 1)), OWN),
            Some(address(8))
        );
        pools.exclude(0, address(100));
        assert_ne!(pools.take(0, Some(address(100)), OWN), Some(address(100)));
    }

    #[test]
    fn declined_addresses_beyond_the_limit_go_out_again() {
        let pool = Pool::new(
            Ipv4Addr::new(10, 0, 0, 0),
            Ipv4Addr::new(10, 255, 255, 255),
            8,
        );
        let mut pools = Pools::new(vec![pool], &[]);
        for _ in 0..DECLINED_MAX {
            let address = pools.take(0, None, OWN).unwrap();
            pools.exclude(0, address);
        }
        for _ in 0..1000 {
            let address = pools.take(0, None, OWN).unwrap();
            pools.exclude(0, address);
        }
        assert_eq!(pools.touched(), DECLINED_MAX + 1);
    }

    #[test]
    fn the_smallest_and_the_largest_pools_are_pools() {
        let mut small = Pools::new(vec![Pool::new(address(0), address(1), 31)], &[]);
        assert_eq!(small.take(0, None, OWN), None);
        let empty = Pool::new(address(9), address(8), 24);
        assert_eq!(Pools::new(vec![empty], &[]).take(0, None, OWN), None);
        let (min, max) = (Ipv4Addr::new(128, 0, 0, 0), Ipv4Addr::BROADCAST);
        let mut large = Pools::new(vec![Pool::new(min, max, 1)], &[]);
        assert_eq!(large.take(0, None, OWN), Some(Ipv4Addr::new(128, 0, 0, 1)));
        let last = Ipv4Addr::new(255, 255, 255, 254);
        assert_eq!(large.take(0, Some(last), OWN), Some(last));
    }

    #[test]
    fn who_asks_for_one_address_after_the_other_fills_no_memory() {
        let pool = Pool::new(
            Ipv4Addr::new(10, 0, 0, 0),
            Ipv4Addr::new(10, 255, 255, 255),
            8,
        );
        let mut pools = Pools::new(vec![pool], &[]);
        pools.returned = RETURNED_MAX;
        for last in 0..1000u32 {
            let wanted = Ipv4Addr::from(0x0a80_0000 + last);
            assert_eq!(pools.take(0, Some(wanted), OWN), Some(wanted));
            pools.give_back(0, wanted);
        }
        assert_eq!(pools.touched(), 0);
    }

    proptest! {
        #[test]
        fn nobody_gets_an_address_that_somebody_has(
            steps in prop::collection::vec((0u8..4, any::<u8>()), 0..400),
        ) {
            let mut pools = pools(26);
            let (mut held, mut excluded) = (Vec::new(), HashSet::new());
            for (what, number) in steps {
                let at = usize::from(number);
                match what {
                    0 | 1 => {
                        let wanted = (what == 0).then(|| address(number));
                        if let Some(given) = pools.take(0, wanted, OWN) {
                            prop_assert!(!held.contains(&given) && !excluded.contains(&given));
                            prop_assert!(given > address(1) && given < address(63) && given != OWN);
                            held.push(given);
                        } else {
                            prop_assert_eq!(held.len() + excluded.len(), 60);
                        }
                    }
                    _ if held.is_empty() => {}
                    2 => pools.give_back(0, held.swap_remove(at % held.len())),
                    _ => {
                        let address = held.swap_remove(at % held.len());
                        excluded.insert(address);
                        pools.exclude(0, address);
                    }
                }
                prop_assert!(pools.touched() <= 64);
            }
        }
    }
}
