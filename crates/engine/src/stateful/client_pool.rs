//! Whom the clients of one template on one core are drawn from: addresses in a row, or hosts.

use std::sync::Arc;

use super::filters::DisabledClients;
use crate::template::{
    AddressRange, AddressSequence, Distribution, HostTable, PoolHost, PoolShare, PoolSpec, Side,
};

/// Clients drawn one after another before those that rest are passed in one step.
const CLIENT_TRIES: u32 = 4;

/// A client that was drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Drawn {
    /// Its address; of IPv6, the last 32 bits.
    pub(super) address: u32,
    /// The place of the host that it is, in the table of its pool.
    pub(super) host: Option<u32>,
}

/// The clients of a core.
#[derive(Debug)]
pub(super) enum ClientPool {
    /// Addresses in a row.
    Range(AddressSequence),
    /// Hosts, drawn by their place.
    Hosts {
        table: Arc<HostTable>,
        places: AddressSequence,
    },
}

impl ClientPool {
    /// Hosts of a table: the part that a core has of it. Where there are fewer hosts than cores,
    /// cores share some.
    pub(super) fn of_hosts(
        table: Arc<HostTable>,
        share: PoolShare,
        distribution: Distribution,
        seed: u32,
    ) -> ClientPool {
        let last = table.hosts().len() as u32 - 1;
        let all = PoolSpec::new(Side::Client, 0, last);
        let places = AddressSequence::new(AddressRange::of(&all, share), distribution, seed);
        ClientPool::Hosts { table, places }
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.sequence().range().count()
    }

    /// The place of a client among those of this core.
    pub(super) fn place_of(&self, client: Drawn) -> usize {
        let number = client.host.unwrap_or(client.address);
        number.wrapping_sub(self.sequence().range().first) as usize
    }

    /// The next one that does not rest; `None` when all of them do.
    pub(super) fn draw(&mut self, disabled: &DisabledClients) -> Option<Drawn> {
        for _ in 0..CLIENT_TRIES {
            let drawn = self.next_drawn();
            if !disabled.has(drawn.address) {
                return Some(drawn);
            }
        }
        // Many rest: the next one that does not, and from there on.
        let drawn = self.next_drawn();
        let (next, number) = match self {
            ClientPool::Range(sequence) => {
                let address = disabled.next_awake(drawn.address, sequence.range())?;
                let host = None;
                (Drawn { address, host }, address)
            }
            ClientPool::Hosts { table, places } => {
                let place = awake_host(table, places.range(), drawn.host?, disabled)?;
                (drawn_host(table, place), place)
            }
        };
        self.sequence_mut().go_on_after(number);
        Some(next)
    }

    /// What is known of a host that was drawn here.
    pub(super) fn host(&self, place: u32) -> Option<(&HostTable, &PoolHost)> {
        match self {
            ClientPool::Range(_) => None,
            ClientPool::Hosts { table, .. } => Some((table, table.hosts().get(place as usize)?)),
        }
    }

    /// The table of its hosts, where it has some.
    pub(super) fn table(&self) -> Option<&HostTable> {
        match self {
            ClientPool::Range(_) => None,
            ClientPool::Hosts { table, .. } => Some(table),
        }
    }

    fn next_drawn(&mut self) -> Drawn {
        match self {
            ClientPool::Range(sequence) => Drawn {
                address: sequence.next_address(),
                host: None,
            },
            ClientPool::Hosts { table, places } => drawn_host(table, places.next_address()),
        }
    }

    fn sequence(&self) -> &AddressSequence {
        match self {
            ClientPool::Range(sequence) => sequence,
            ClientPool::Hosts { places, .. } => places,
        }
    }

    fn sequence_mut(&mut self) -> &mut AddressSequence {
        match self {
            ClientPool::Range(sequence) => sequence,
            ClientPool::Hosts { places, .. } => places,
        }
    }
}

fn drawn_host(table: &HostTable, place: u32) -> Drawn {
    Drawn {
        address: table.hosts()[place as usize].address,
        host: Some(place),
    }
}

/// The first host from a place on, among those of a core and round it, that does not rest.
fn awake_host(
    table: &HostTable,
    part: AddressRange,
    place: u32,
    disabled: &DisabledClients,
) -> Option<u32> {
    let hosts = table.hosts();
    let in_part = |mut place: u32| {
        while part.contains(place) {
            let address = hosts[place as usize].address;
            let Some(last) = disabled.disabled_until(address) else {
                return Some(place);
            };
            // The hosts are in the order of their addresses: all of the range are passed at once.
            place = hosts.partition_point(|host| host.address <= last) as u32;
        }
        None
    };
    in_part(place).or_else(|| in_part(part.first))
}

#[cfg(test)]
mod tests {
    use allosaur_packet::MacAddress;

    use super::*;

    fn pool(addresses: &[u32], share: PoolShare) -> ClientPool {
        let host = |address: &u32| PoolHost {
            address: *address,
            prefix: [0; 12],
            mac: MacAddress([2, 0, 0, 0, 0, *address as u8]),
            gateway: MacAddress([2, 0, 0, 0, 1, 0]),
        };
        let hosts = addresses.iter().map(host).collect();
        let table = Arc::new(HostTable::new(0, vec![], false, hosts));
        ClientPool::of_hosts(table, share, Distribution::Sequence, 1)
    }

    fn draw(pool: &mut ClientPool, disabled: &DisabledClients, times: usize) -> Vec<u32> {
        let drawn = (0..times).filter_map(|_| pool.draw(disabled));
        drawn.map(|drawn| drawn.address).collect()
    }

    #[test]
    fn hosts_take_turns_however_far_apart_they_are() {
        let mut pool = pool(&[90, 5, 70_000], PoolShare::ONLY);
        let drawn = draw(&mut pool, &DisabledClients::default(), 4);
        assert_eq!(drawn, [5, 90, 70_000, 5]);
        let drawn = pool
            .draw(&DisabledClients::default())
            .expect("one is awake");
        let (_, host) = pool.host(drawn.host.expect("it is a host")).expect("known");
        assert_eq!((host.address, host.mac.octets()[5]), (90, 90));
        assert_eq!(pool.place_of(drawn), 1);
    }

    #[test]
    fn cores_have_parts_of_the_table() {
        let share = |rank| PoolShare {
            rank,
            cores: 2,
            ..PoolShare::ONLY
        };
        let awake = DisabledClients::default();
        let addresses = [10, 20, 30, 40, 50];
        let parts = [0, 1].map(|rank| draw(&mut pool(&addresses, share(rank)), &awake, 3));
        assert_eq!(parts, [vec![10, 20, 10], vec![30, 40, 50]]);
        // With fewer hosts than cores, some have the same.
        let parts = [0, 1].map(|rank| draw(&mut pool(&[7], share(rank)), &awake, 1));
        assert_eq!(parts, [vec![7], vec![7]]);
    }

    #[test]
    fn hosts_that_rest_are_passed() {
        let addresses: Vec<u32> = (0..100).map(|n| n * 10).collect();
        let mut pool = pool(&addresses, PoolShare::ONLY);
        let mut disabled = DisabledClients::default();
        disabled.set(0, 500, true);
        disabled.set(520, 980, true);
        assert_eq!(draw(&mut pool, &disabled, 4), [510, 990, 510, 990]);
        disabled.set(0, 1000, true);
        assert_eq!(pool.draw(&disabled), None);
    }
}
