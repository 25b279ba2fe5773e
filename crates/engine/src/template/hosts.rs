//! Pools whose addresses are those of hosts: each with a MAC address and a gateway of its own.
//!
//! A profile names their network ([`PoolSpec::hosts`](super::PoolSpec::hosts)); who they are is known
//! only when it starts ([`CompiledProfile::with_hosts`](super::CompiledProfile::with_hosts)).

use std::net::IpAddr;

use allosaur_packet::MacAddress;

use crate::transmit::PortIndex;

/// A VLAN tag of a network: its type and the number of the VLAN. Number 0 is no tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HostTag {
    /// The type in front of it, such as 0x8100.
    pub tpid: u16,
    /// The number of the VLAN, 1 to 4095.
    pub vlan: u16,
}

/// Where the hosts of a pool are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HostNetwork {
    /// The port, as the user numbers it: it may be one that is not there.
    pub port: u16,
    /// The tags of their frames, outer first.
    pub tags: [HostTag; 2],
    /// How many must be ready for a start, at least 1.
    pub hosts_min: u32,
}

/// The first 96 bits of an IPv6 address; zeros for IPv4.
pub type HostPrefix = [u8; 12];

/// A host of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolHost {
    /// The last 32 bits of its address.
    pub address: u32,
    /// What stands before them.
    pub prefix: HostPrefix,
    /// Its MAC address.
    pub mac: MacAddress,
    /// That of its gateway.
    pub gateway: MacAddress,
}

impl PoolHost {
    /// A host by its address.
    pub fn new(address: IpAddr, mac: MacAddress, gateway: MacAddress) -> PoolHost {
        let (prefix, address) = match address {
            IpAddr::V4(address) => (HostPrefix::default(), address.to_bits()),
            IpAddr::V6(address) => {
                let octets = address.octets();
                let prefix = std::array::from_fn(|place| octets[place]);
                (prefix, address.to_bits() as u32)
            }
        };
        PoolHost {
            address,
            prefix,
            mac,
            gateway,
        }
    }
}

/// The hosts of a pool, which all threads share: in the order of the last 32 bits of their
/// addresses, and of their prefixes where those are the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostTable {
    port: PortIndex,
    /// The tag control information of their frames, outer first: none, one or two.
    tags: Vec<u16>,
    is_ipv6: bool,
    hosts: Vec<PoolHost>,
}

impl HostTable {
    /// The hosts of a network, with addresses of one family.
    ///
    /// # Panics
    /// When there is none, or there are more tags than two: the caller has refused that.
    pub fn new(
        port: PortIndex,
        tags: Vec<u16>,
        is_ipv6: bool,
        mut hosts: Vec<PoolHost>,
    ) -> HostTable {
        assert!(!hosts.is_empty(), "a pool has a host");
        assert!(tags.len() <= 2, "a frame has two tags at most");
        hosts.sort_unstable_by_key(|host| (host.address, host.prefix));
        HostTable {
            port,
            tags,
            is_ipv6,
            hosts,
        }
    }

    /// The port that they are behind.
    pub fn port(&self) -> PortIndex {
        self.port
    }

    /// The tag control information of their frames, outer first: none, one or two.
    pub fn tags(&self) -> &[u16] {
        &self.tags
    }

    /// Whether their addresses are IPv6.
    pub fn is_ipv6(&self) -> bool {
        self.is_ipv6
    }

    /// All of them.
    pub fn hosts(&self) -> &[PoolHost] {
        &self.hosts
    }

    /// Whether a host has these last 32 bits of an address.
    pub fn has_address(&self, address: u32) -> bool {
        let key = |host: &PoolHost| host.address;
        self.hosts.binary_search_by_key(&address, key).is_ok()
    }

    /// The place of the host with an address.
    pub fn find(&self, address: u32, prefix: HostPrefix) -> Option<u32> {
        let key = |host: &PoolHost| (host.address, host.prefix);
        let found = self.hosts.binary_search_by_key(&(address, prefix), key);
        found.ok().map(|place| place as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_found_by_their_whole_addresses() {
        let mac = |last| MacAddress([2, 0, 0, 0, 0, last]);
        let host = |text: &str, last| {
            let address = text.parse().expect("an address");
            PoolHost::new(address, mac(last), mac(9))
        };
        let hosts = vec![
            host("2001:db8:2::1:7", 1),
            host("2001:db8:1::1:9", 2),
            host("2001:db8:1::1:7", 3),
        ];
        let table = HostTable::new(0, vec![], true, hosts);
        let find = |text: &str| {
            let wanted = host(text, 0);
            let place = table.find(wanted.address, wanted.prefix)?;
            Some(table.hosts()[place as usize].mac)
        };
        assert_eq!(find("2001:db8:1::1:7"), Some(mac(3)));
        assert_eq!(find("2001:db8:2::1:7"), Some(mac(1)));
        assert_eq!(find("2001:db8:1::1:9"), Some(mac(2)));
        assert_eq!(find("2001:db8:2::1:9"), None);
        let four = PoolHost::new("10.1.2.3".parse().expect("an address"), mac(1), mac(2));
        assert_eq!((four.address, four.prefix), (0x0a01_0203, [0; 12]));
    }
}
