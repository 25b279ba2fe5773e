//! By which interface packets of this machine leave it: the kernel's main tables of routes, as
//! `/proc` shows them.

use std::net::IpAddr;

use super::tree::Tree;

/// A route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Route {
    /// The addresses that take it: IPv4 addresses stand in the first bits.
    network: u128,
    is_ipv6: bool,
    prefix_bits: u32,
    pub(super) interface: String,
}

impl Route {
    /// Whether it leads to everywhere.
    pub(super) fn is_default(&self) -> bool {
        self.prefix_bits == 0
    }

    fn contains(&self, to: IpAddr) -> bool {
        let mask = u128::MAX.checked_shl(128 - self.prefix_bits).unwrap_or(0);
        self.is_ipv6 == to.is_ipv6() && (bits(to) ^ self.network) & mask == 0
    }
}

/// An address as a number; the bits of IPv4 come first.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)) << 96,
        IpAddr::V6(address) => u128::from(address),
    }
}

/// All routes, as `/proc/net/route` and `/proc/net/ipv6_route` show them.
pub(super) fn all(tree: Tree<'_>) -> Vec<Route> {
    let (ipv4, ipv6) = (
        tree.text("proc/net/route"),
        tree.text("proc/net/ipv6_route"),
    );
    let ipv4 = ipv4.lines().filter_map(route_ipv4);
    ipv4.chain(ipv6.lines().filter_map(route_ipv6)).collect()
}

/// The interface by which packets to an address leave.
pub(super) fn lookup(routes: &[Route], to: IpAddr) -> Option<&str> {
    let leading = routes.iter().filter(|route| route.contains(to));
    let best = leading.max_by_key(|route| route.prefix_bits)?;
    Some(&best.interface)
}

fn route_ipv4(line: &str) -> Option<Route> {
    let words: Vec<&str> = line.split_whitespace().collect();
    // The bytes stand as in memory, read as a number of this machine.
    let number = |word: &str| {
        Some(u32::from_be_bytes(
            u32::from_str_radix(word, 16).ok()?.to_ne_bytes(),
        ))
    };
    let [network, mask] = [words.get(1)?, words.get(7)?].map(|word| number(word));
    Some(Route {
        network: u128::from(network?) << 96,
        is_ipv6: false,
        prefix_bits: mask?.count_ones(),
        interface: words[0].to_owned(),
    })
}

fn route_ipv6(line: &str) -> Option<Route> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let hex = |at: usize| u128::from_str_radix(words.get(at)?, 16).ok();
    Some(Route {
        network: hex(0)?,
        is_ipv6: true,
        prefix_bits: hex(1)?.min(128) as u32,
        interface: words.get(9)?.to_string(),
    })
}
