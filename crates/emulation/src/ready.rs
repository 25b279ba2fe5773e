//! Which clients of a namespace are ready to send through their gateway, for traffic that others
//! make in their names.

use std::collections::BTreeMap;
use std::net::IpAddr;

use allosaur_packet::MacAddress;

use crate::client::{Client, ClientId};
use crate::datagrams::{gateway_of, source_of};
use crate::emulation::{Emulation, Entry, ids, plugin_id};
use crate::namespace::NamespaceKey;

/// A client that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyClient {
    /// The address that it sends from: leased, given, or made of the router's prefix.
    pub address: IpAddr,
    /// Its MAC address.
    pub mac: MacAddress,
    /// That of its gateway.
    pub gateway: MacAddress,
}

/// Clients of a namespace, as they are now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadyClients {
    /// Those that are ready, in the order in which they were added.
    pub ready: Vec<ReadyClient>,
    /// The others: how many wait for what, by the name of what is missing.
    pub waiting: BTreeMap<&'static str, usize>,
}

impl ReadyClients {
    /// Adds those of the same namespace on another shard.
    pub fn add(&mut self, other: ReadyClients) {
        self.ready.extend(other.ready);
        for (missing, count) in other.waiting {
            *self.waiting.entry(missing).or_default() += count;
        }
    }
}

impl Emulation {
    /// The clients of a namespace that could send IPv4 or IPv6 packets through their gateway now:
    /// each has an address, knows the gateway's MAC address, and no plugin of it keeps it from
    /// sending ([`Plugin::missing`](crate::plugin::Plugin::missing)). `None` when there is no such
    /// namespace.
    pub fn ready_clients(&self, key: &NamespaceKey, is_ipv6: bool) -> Option<ReadyClients> {
        let entry = self.namespaces.get(*self.by_key.get(key)?)?;
        let clients = &entry.namespace.clients;
        let mut found = ReadyClients::default();
        for id in clients.ids() {
            let Some(client) = clients.get(id) else {
                continue;
            };
            match ready(entry, id, client, is_ipv6) {
                Ok(client) => found.ready.push(client),
                Err(missing) => *found.waiting.entry(missing).or_default() += 1,
            }
        }
        Some(found)
    }
}

/// Whether a client could send IPv4 or IPv6 packets through its gateway now.
pub(crate) fn is_ready(entry: &Entry, id: ClientId) -> bool {
    let client = entry.namespace.clients.get(id);
    let is_ready = |client, is_ipv6| ready(entry, id, client, is_ipv6).is_ok();
    client.is_some_and(|client| is_ready(client, false) || is_ready(client, true))
}

/// A client if it is ready, else what is missing.
fn ready(
    entry: &Entry,
    id: ClientId,
    client: &Client,
    is_ipv6: bool,
) -> Result<ReadyClient, &'static str> {
    let plugins = ids(client.plugins).filter_map(|plugin| entry.plugins.get(plugin));
    if let Some(missing) = plugins.filter_map(|p| p.missing(id, is_ipv6)).next() {
        return Err(missing);
    }
    let no_address = if is_ipv6 {
        "an IPv6 address"
    } else {
        "an IPv4 address"
    };
    let address = source_of(&entry.namespace, client, is_ipv6).ok_or(no_address)?;
    let is_given = [client.dhcp_ipv6, client.ipv6].map(IpAddr::V6);
    if is_ipv6 && !is_given.contains(&address) && !has(client, "ipv6") {
        // It would not answer who asks for an address that it made itself.
        return Err("the plugin ipv6");
    }
    let gateway = gateway_of(&entry.namespace, client, is_ipv6);
    Ok(ReadyClient {
        address,
        mac: client.mac,
        gateway: gateway.ok_or("the MAC address of the gateway")?,
    })
}

fn has(client: &Client, plugin: &str) -> bool {
    plugin_id(plugin).is_ok_and(|id| client.plugins & 1 << id.0 != 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::test_net::Net;

    const KEY: NamespaceKey = NamespaceKey {
        port: 1,
        tags: [crate::namespace::Tag { tpid: 0, vlan: 0 }; 2],
    };

    fn mac(last: u8) -> MacAddress {
        MacAddress([2, 0, 0, 0, 0, last])
    }

    fn forced(address: [u8; 4]) -> serde_json::Value {
        json!({"ipv4": address, "ipv4_dg": [10, 0, 0, 254], "ipv4_force_dg": true,
               "ipv4_force_mac": mac(0xfe).octets()})
    }

    #[test]
    fn who_lacks_something_waits_for_it_by_name() {
        let mut net = Net::new(&[], &[]);
        let plugins = [
            (forced([10, 0, 0, 1]), json!({"arp": {}})),
            (json!({}), json!({"dhcp": {}})),
            (
                forced([10, 0, 0, 3]),
                json!({"dot1x": {"user": "a", "password": "b"}}),
            ),
            (
                forced([10, 0, 0, 4]),
                json!({"ppp": {"user": "a", "password": "b"}}),
            ),
            (
                json!({"ipv4": [10, 0, 0, 5], "ipv4_dg": [10, 0, 0, 254]}),
                json!({"arp": {}}),
            ),
            (json!({}), json!({"arp": {}})),
        ];
        for ((fields, plugins), last) in plugins.into_iter().zip(1..) {
            net.add(mac(last), fields, plugins).expect("it is new");
        }
        let found = net.emulation.ready_clients(&KEY, false).expect("there");
        let only = ReadyClient {
            address: "10.0.0.1".parse().expect("an address"),
            mac: mac(1),
            gateway: mac(0xfe),
        };
        assert_eq!(found.ready, [only]);
        let waiting = [
            ("a DHCP lease", 1),
            ("a login by 802.1X", 1),
            ("a way that is not PPPoE", 1),
            ("an IPv4 address", 1),
            ("the MAC address of the gateway", 1),
        ];
        assert_eq!(found.waiting, BTreeMap::from(waiting));
        let other = NamespaceKey { port: 2, ..KEY };
        assert_eq!(net.emulation.ready_clients(&other, false), None);
    }

    #[test]
    fn of_ipv6_a_lease_comes_before_an_address_that_was_given() {
        let mut net = Net::new(&[], &[]);
        let given = json!({"ipv6": [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
                           "ipv6_force_dg": true, "ipv6_force_mac": mac(0xfe).octets()});
        net.add(mac(1), given.clone(), json!({"ipv6": {}}))
            .expect("it is new");
        let mut leased = given;
        leased["ipv6"][15] = json!(2);
        net.add(mac(2), leased, json!({"ipv6": {}, "dhcpv6": {}}))
            .expect("it is new");
        let found = net.emulation.ready_clients(&KEY, true).expect("there");
        let only = ReadyClient {
            address: "2001:db8::1".parse().expect("an address"),
            mac: mac(1),
            gateway: mac(0xfe),
        };
        assert_eq!(found.ready, [only]);
        assert_eq!(found.waiting, BTreeMap::from([("a DHCPv6 lease", 1)]));
        let found = net.emulation.ready_clients(&KEY, false).expect("there");
        assert_eq!(found.waiting, BTreeMap::from([("an IPv4 address", 2)]));
    }
}
