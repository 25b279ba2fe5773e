//! What is there on this machine: its interfaces.
//!
//! What lives here: looking. What does not: which of them suit (`settings::begin`).

use std::path::Path;

use nix::ifaddrs::getifaddrs;

use crate::settings::begin::Interface;

/// Where the kernel shows interfaces.
const INTERFACES: &str = "/sys/class/net";
/// Where the kernel shows its routes for IPv4.
const ROUTES: &str = "/proc/net/route";
/// Where the kernel shows its routes for IPv6.
const ROUTES_IPV6: &str = "/proc/net/ipv6_route";
/// The kind of a loopback interface (`ARPHRD_LOOPBACK`).
const LOOPBACK: &str = "772";

/// The interfaces of this machine by name, without loopback.
pub fn interfaces() -> Vec<Interface> {
    let Ok(entries) = std::fs::read_dir(INTERFACES) else {
        return Vec::new();
    };
    let found = entries.filter_map(|entry| interface(&entry.ok()?.path()));
    let mut interfaces: Vec<Interface> = found.collect();
    let routed = routed(&text(ROUTES), &text(ROUTES_IPV6));
    let addressed = with_addresses();
    for interface in &mut interfaces {
        interface.has_default_route = routed.contains(&interface.name);
        interface.has_address = addressed.contains(&interface.name);
    }
    interfaces.sort_by(|a, b| a.name.cmp(&b.name));
    interfaces
}

fn text(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn interface(folder: &Path) -> Option<Interface> {
    let name = folder.file_name()?.to_str()?.to_owned();
    let file = |name: &str| text(folder.join(name)).trim().to_owned();
    // Some entries (bonding_masters) are no interfaces.
    let kind = file("type");
    if kind.is_empty() || kind == LOOPBACK {
        return None;
    }
    let driver = std::fs::read_link(folder.join("device/driver")).ok();
    let driver = driver.and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
    let flags = u32::from_str_radix(file("flags").trim_start_matches("0x"), 16).unwrap_or(0);
    Some(Interface {
        name,
        driver,
        speed_mbps: file("speed").parse().ok(),
        is_up: flags & 1 == 1,
        ..Interface::default()
    })
}

/// Interfaces with a default route.
fn routed(ipv4: &str, ipv6: &str) -> Vec<String> {
    let ipv4 = ipv4.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_default = words.get(1) == Some(&"00000000") && words.get(7) == Some(&"00000000");
        is_default.then(|| words[0].to_owned())
    });
    let ipv6 = ipv6.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_default = words.first()?.bytes().all(|c| c == b'0') && words.get(1) == Some(&"00");
        is_default.then(|| words.last().copied().unwrap_or_default().to_owned())
    });
    ipv4.chain(ipv6).collect()
}

/// Interfaces with an address that somebody gave them.
fn with_addresses() -> Vec<String> {
    let Ok(addresses) = getifaddrs() else {
        return Vec::new();
    };
    let is_given = |address: &nix::sys::socket::SockaddrStorage| {
        let is_link_local =
            |ipv6: &nix::sys::socket::SockaddrIn6| ipv6.ip().is_unicast_link_local();
        address.as_sockaddr_in().is_some()
            || address
                .as_sockaddr_in6()
                .is_some_and(|ipv6| !is_link_local(ipv6))
    };
    let given = addresses.filter(|one| one.address.as_ref().is_some_and(is_given));
    given.map(|one| one.interface_name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_routes_are_those_to_everywhere() {
        let ipv4 = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n\
                    eth0 00000000 0102000A 0003 0 0 0 00000000 0 0 0\n\
                    eth1 0000000A 00000000 0001 0 0 0 00FFFFFF 0 0 0\n";
        let zeros = "0".repeat(32);
        let ipv6 = format!(
            "{zeros} 00 {zeros} 00 fe800000000000000000000000000001 0 0 0 0 eth2\n\
             fe80{:028} 40 {zeros} 00 {zeros} 0 0 0 0 eth3\n",
            0
        );
        assert_eq!(routed(ipv4, &ipv6), ["eth0", "eth2"]);
        assert_eq!(routed("", ""), Vec::<String>::new());
    }

    #[test]
    fn loopback_is_no_port() {
        assert!(interfaces().iter().all(|interface| interface.name != "lo"));
    }
}
