//! Which clients rest, and whom nobody answers.

use std::net::Ipv4Addr;

use allosaur_packet::MacAddress;

use crate::template::AddressRange;

/// Most addresses of each kind that are ignored.
pub const IGNORED_MAX: usize = 1000;

/// Who is not served and gets no resets: emulated clients of another program on the same link, or
/// devices that would mind.
#[derive(Clone, Debug, Default)]
pub struct Blocklist {
    /// In ascending order.
    macs: Vec<MacAddress>,
    /// In ascending order.
    ipv4: Vec<Ipv4Addr>,
}

impl Blocklist {
    /// Those who send from one of these addresses. The caller has kept the numbers within
    /// [`IGNORED_MAX`].
    pub fn new(
        macs: impl IntoIterator<Item = MacAddress>,
        ipv4: impl IntoIterator<Item = Ipv4Addr>,
    ) -> Blocklist {
        let mut macs: Vec<MacAddress> = macs.into_iter().collect();
        let mut ipv4: Vec<Ipv4Addr> = ipv4.into_iter().collect();
        macs.sort_unstable();
        ipv4.sort_unstable();
        Blocklist { macs, ipv4 }
    }

    /// Whether who sends from this MAC address is ignored.
    pub fn has_mac(&self, mac: MacAddress) -> bool {
        self.macs.binary_search(&mac).is_ok()
    }

    /// Whether who sends from this address is ignored.
    pub fn has_ipv4(&self, address: Ipv4Addr) -> bool {
        self.ipv4.binary_search(&address).is_ok()
    }
}

/// Clients that begin no flows: ranges in ascending order that neither meet nor touch.
#[derive(Clone, Debug, Default)]
pub(super) struct DisabledClients {
    ranges: Vec<AddressRange>,
}

impl DisabledClients {
    /// Lets clients rest, or no longer. A range whose last is before its first is empty.
    pub(super) fn set(&mut self, first: u32, last: u32, is_disabled: bool) {
        if last < first {
            return;
        }
        let before = |other: &AddressRange| other.last < first;
        let after = |other: &AddressRange| other.first > last;
        let mut ranges: Vec<AddressRange> = Vec::with_capacity(self.ranges.len() + 2);
        let middle = AddressRange { first, last };
        ranges.extend(self.ranges.iter().filter(|other| before(other)));
        let touched = self.ranges.iter();
        let touched: Vec<_> = touched
            .filter(|other| !before(other) && !after(other))
            .collect();
        // Of what is touched, the ends on both sides are left as they were.
        let left = touched.first().filter(|range| range.first < first);
        ranges.extend(left.map(|range| AddressRange {
            first: range.first,
            last: first - 1,
        }));
        if is_disabled {
            ranges.push(middle);
        }
        let right = touched.last().filter(|range| range.last > last);
        ranges.extend(right.map(|range| AddressRange {
            first: last + 1,
            last: range.last,
        }));
        ranges.extend(self.ranges.iter().filter(|other| after(other)));
        self.ranges = joined(ranges);
    }

    /// Whether a client is disabled.
    pub(super) fn has(&self, client: u32) -> bool {
        self.range_of(client).is_some()
    }

    /// The first client from `client` on, in `pool` and round it, that does not rest; `None` when
    /// all of them do.
    pub(super) fn next_awake(&self, client: u32, pool: AddressRange) -> Option<u32> {
        let awake = |client: u32| match self.range_of(client) {
            None => Some(client),
            // Ranges do not touch: who comes behind one is awake.
            Some(range) => range.last.checked_add(1),
        };
        let found = awake(client).filter(|client| pool.contains(*client));
        found.or_else(|| awake(pool.first).filter(|client| pool.contains(*client)))
    }

    /// The last of the clients in a row that rest with this one; `None` when it does not rest.
    pub(super) fn disabled_until(&self, client: u32) -> Option<u32> {
        self.range_of(client).map(|range| range.last)
    }

    fn range_of(&self, client: u32) -> Option<AddressRange> {
        if self.ranges.is_empty() {
            return None;
        }
        let after = self.ranges.partition_point(|range| range.first <= client);
        let range = self.ranges.get(after.checked_sub(1)?)?;
        range.contains(client).then_some(*range)
    }
}

/// The same ranges, those that touch as one.
fn joined(ranges: Vec<AddressRange>) -> Vec<AddressRange> {
    let mut joined: Vec<AddressRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.last.checked_add(1) == Some(range.first) => last.last = range.last,
            _ => joined.push(range),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn resting_clients_are_a_set(
            steps in prop::collection::vec((0u8..=255, 0u8..=255, any::<bool>()), 0..30),
            offset in prop::sample::select(vec![0_u32, 1 << 20, u32::MAX - 255]),
            pool in (0u8..=255, 0u8..=255),
        ) {
            let mut disabled = DisabledClients::default();
            let mut naive = [false; 256];
            for (first, last, rests) in steps {
                disabled.set(offset + u32::from(first), offset + u32::from(last), rests);
                for client in first..=last {
                    naive[usize::from(client)] = rests;
                }
            }
            let (first, last) = (pool.0.min(pool.1), pool.0.max(pool.1));
            let range = AddressRange {
                first: offset + u32::from(first),
                last: offset + u32::from(last),
            };
            for client in 0..=255 {
                let rests = naive[usize::from(client)];
                prop_assert_eq!(disabled.has(offset + u32::from(client)), rests);
                if !(first..=last).contains(&client) {
                    continue;
                }
                let mut round = (client..=last).chain(first..client);
                let next = round.find(|client| !naive[usize::from(*client)]);
                let next = next.map(|client| offset + u32::from(client));
                prop_assert_eq!(disabled.next_awake(offset + u32::from(client), range), next);
            }
            for two in disabled.ranges.windows(2) {
                prop_assert!(two[0].last + 1 < two[1].first);
            }
        }
    }
}
