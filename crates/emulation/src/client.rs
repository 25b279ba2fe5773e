//! The clients of a namespace, found by number, MAC and IP address.

use std::net::{Ipv4Addr, Ipv6Addr};

use allosaur_packet::{MacAddress, prefetch_whole};

use crate::address_hash::AddressMap;
use crate::memory;
use crate::slab::Slab;

/// A client, as its namespace numbers it. The number of a removed one is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub(crate) u32);

impl ClientId {
    /// Not behind any client.
    pub(crate) const FIRST: ClientId = ClientId(0);
}

/// One emulated host. Unspecified addresses (all zeros) are not there.
///
/// Fields are for reading; [`Context`](crate::plugin::Context) has the setters, which tell the other
/// plugins.
///
/// What each received frame needs comes first: of a million clients it is not in the caches, and the
/// fewer lines are waited for the better.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Client {
    /// Its plugins, a bit each.
    pub(crate) plugins: u32,
    /// Its MAC address.
    pub mac: MacAddress,
    /// Whether `given_mac_ipv4` is the gateway's, so that it is not asked for.
    pub is_forced_ipv4: bool,
    /// The same for IPv6.
    pub is_forced_ipv6: bool,
    /// Its IPv4 address.
    pub ipv4: Ipv4Addr,
    /// Its default gateway for IPv4.
    pub gateway_ipv4: Ipv4Addr,
    /// The longest IPv4 packet it sends.
    pub mtu_ipv4: u16,
    /// The gateway's MAC address for IPv4, forced or resolved.
    pub gateway_mac_ipv4: Option<MacAddress>,
    /// The gateway's MAC address for IPv6, forced or resolved.
    pub gateway_mac_ipv6: Option<MacAddress>,
    /// Its static IPv6 address.
    pub ipv6: Ipv6Addr,
    /// Its default gateway for IPv6, when it is not learnt.
    pub gateway_ipv6: Ipv6Addr,
    /// The IPv6 address that DHCPv6 gave it.
    pub dhcp_ipv6: Ipv6Addr,
    /// The gateway's MAC address for IPv4 that the user gave.
    pub given_mac_ipv4: MacAddress,
    /// The same for IPv6.
    pub given_mac_ipv6: MacAddress,
}

impl Client {
    /// A client without addresses.
    pub fn new(mac: MacAddress) -> Client {
        Client {
            mac,
            ipv4: Ipv4Addr::UNSPECIFIED,
            gateway_ipv4: Ipv4Addr::UNSPECIFIED,
            mtu_ipv4: 1500,
            ipv6: Ipv6Addr::UNSPECIFIED,
            gateway_ipv6: Ipv6Addr::UNSPECIFIED,
            dhcp_ipv6: Ipv6Addr::UNSPECIFIED,
            given_mac_ipv4: MacAddress::ZERO,
            given_mac_ipv6: MacAddress::ZERO,
            is_forced_ipv4: false,
            is_forced_ipv6: false,
            gateway_mac_ipv4: None,
            gateway_mac_ipv6: None,
            plugins: 0,
        }
    }

    /// The gateway's MAC address for IPv4 if the user forced it; it is not asked for then.
    pub fn forced_mac_ipv4(&self) -> Option<MacAddress> {
        self.is_forced_ipv4.then_some(self.given_mac_ipv4)
    }

    /// The same for IPv6.
    pub fn forced_mac_ipv6(&self) -> Option<MacAddress> {
        self.is_forced_ipv6.then_some(self.given_mac_ipv6)
    }

    /// Its IPv6 address with the EUI-64 of its MAC address behind a prefix of 64 bits.
    pub fn eui64(&self, prefix: Ipv6Addr) -> Ipv6Addr {
        let [a, b, c, d, e, f] = self.mac.octets();
        let mut octets = prefix.octets();
        octets[8..].copy_from_slice(&[a ^ 2, b, c, 0xff, 0xfe, d, e, f]);
        Ipv6Addr::from(octets)
    }

    /// Its link-local IPv6 address.
    pub fn link_local(&self) -> Ipv6Addr {
        self.eui64(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0))
    }
}

/// All clients of a namespace, in the order in which they were added.
#[derive(Debug, Default)]
pub struct Clients {
    items: Slab<Client>,
    by_mac: AddressMap<MacAddress>,
    by_ipv4: AddressMap<Ipv4Addr>,
    by_ipv6: AddressMap<Ipv6Addr>,
    /// Changes with every client that comes or goes.
    pub(crate) epoch: u64,
}

impl Clients {
    /// The client of a number.
    #[inline]
    pub fn get(&self, id: ClientId) -> Option<&Client> {
        self.items.get(id.0)
    }

    /// Asks the cache for a client.
    #[inline]
    pub(crate) fn prefetch(&self, id: ClientId) {
        self.items.prefetch(id.0);
    }

    /// The client with a MAC address.
    #[inline]
    pub fn by_mac(&self, mac: MacAddress) -> Option<ClientId> {
        self.by_mac.get(&mac).copied().map(ClientId)
    }

    /// The client with an IPv4 address.
    #[inline]
    pub fn by_ipv4(&self, address: Ipv4Addr) -> Option<ClientId> {
        self.by_ipv4.get(&address).copied().map(ClientId)
    }

    /// The client with a static or DHCPv6 address.
    #[inline]
    pub fn by_ipv6(&self, address: Ipv6Addr) -> Option<ClientId> {
        self.by_ipv6.get(&address).copied().map(ClientId)
    }

    /// The client whose MAC address an IPv6 address ends with, as an EUI-64 (RFC 4291 appendix A). The
    /// address need not be its own.
    #[inline]
    pub fn by_eui64(&self, address: Ipv6Addr) -> Option<ClientId> {
        let [.., a, b, c, 0xff, 0xfe, d, e, f] = address.octets() else {
            return None;
        };
        self.by_mac(MacAddress([a ^ 2, b, c, d, e, f]))
    }

    /// All of them, in the order in which they were added.
    pub fn ids(&self) -> impl Iterator<Item = ClientId> {
        self.items.indices().map(ClientId)
    }

    /// The first that is there.
    pub fn first(&self) -> Option<ClientId> {
        self.items.first().map(ClientId)
    }

    /// The one behind another.
    pub fn next(&self, id: ClientId) -> Option<ClientId> {
        self.items.next(id.0).map(ClientId)
    }

    /// How many slots there are for clients, in use or not.
    pub(crate) fn slots(&self) -> u32 {
        self.items.slots()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of clients and of the tables of their addresses.
    pub(crate) fn table_bytes(&self) -> usize {
        let addresses = memory::table(&self.by_mac)
            + memory::table(&self.by_ipv4)
            + memory::table(&self.by_ipv6);
        self.items.table_bytes() + addresses
    }

    pub(crate) fn get_mut(&mut self, id: ClientId) -> Option<&mut Client> {
        self.items.get_mut(id.0)
    }

    pub(crate) fn generation(&self, id: ClientId) -> u32 {
        self.items.generation(id.0)
    }

    /// Adds a client whose addresses nobody has.
    pub(crate) fn insert(&mut self, client: Client) -> ClientId {
        let (mac, ipv4, ipv6) = (client.mac, client.ipv4, client.ipv6);
        let index = self.items.insert(client);
        self.by_mac.insert(mac, index);
        if !ipv4.is_unspecified() {
            self.by_ipv4.insert(ipv4, index);
        }
        if !ipv6.is_unspecified() {
            self.by_ipv6.insert(ipv6, index);
        }
        self.epoch += 1;
        ClientId(index)
    }

    pub(crate) fn remove(&mut self, id: ClientId) -> Option<Client> {
        let client = self.items.remove(id.0)?;
        self.by_mac.remove(&client.mac);
        self.forget_ipv4(client.ipv4, id);
        self.forget_ipv6(client.ipv6, id);
        self.forget_ipv6(client.dhcp_ipv6, id);
        self.epoch += 1;
        Some(client)
    }

    pub(crate) fn index_ipv4(&mut self, old: Ipv4Addr, new: Ipv4Addr, id: ClientId) {
        self.forget_ipv4(old, id);
        if !new.is_unspecified() {
            self.by_ipv4.insert(new, id.0);
        }
    }

    pub(crate) fn index_ipv6(&mut self, old: Ipv6Addr, new: Ipv6Addr, id: ClientId) {
        self.forget_ipv6(old, id);
        if !new.is_unspecified() {
            self.by_ipv6.insert(new, id.0);
        }
    }

    fn forget_ipv4(&mut self, address: Ipv4Addr, id: ClientId) {
        if self.by_ipv4(address) == Some(id) {
            self.by_ipv4.remove(&address);
        }
    }

    fn forget_ipv6(&mut self, address: Ipv6Addr, id: ClientId) {
        if self.by_ipv6(address) == Some(id) {
            self.by_ipv6.remove(&address);
        }
    }
}

/// What a plugin keeps of each client that has it.
#[derive(Debug)]
pub struct ClientMap<T> {
    items: Vec<Option<T>>,
}

impl<T> Default for ClientMap<T> {
    fn default() -> Self {
        ClientMap { items: Vec::new() }
    }
}

impl<T> ClientMap<T> {
    /// The state of a client.
    #[inline]
    pub fn get(&self, id: ClientId) -> Option<&T> {
        self.items.get(id.0 as usize)?.as_ref()
    }

    /// The state of a client, to write.
    #[inline]
    pub fn get_mut(&mut self, id: ClientId) -> Option<&mut T> {
        self.items.get_mut(id.0 as usize)?.as_mut()
    }

    /// Asks the cache for the state of a client.
    #[inline]
    pub(crate) fn prefetch(&self, id: ClientId) {
        if let Some(item) = self.items.get(id.0 as usize) {
            prefetch_whole(item);
        }
    }

    /// Sets the state of a client; returns what was there.
    pub fn insert(&mut self, id: ClientId, item: T) -> Option<T> {
        let index = id.0 as usize;
        if index >= self.items.len() {
            self.items.resize_with(index + 1, || None);
        }
        self.items[index].replace(item)
    }

    /// Takes the state of a client.
    pub fn remove(&mut self, id: ClientId) -> Option<T> {
        self.items.get_mut(id.0 as usize)?.take()
    }

    /// Bytes of the places of all clients.
    pub(crate) fn table_bytes(&self) -> usize {
        memory::list::<Option<T>>(self.items.len())
    }

    /// Whether there may be any from a number on.
    pub fn has_behind(&self, first: ClientId) -> bool {
        self.items.len() > first.0 as usize
    }

    /// All of them, by number.
    pub fn iter(&self) -> impl Iterator<Item = (ClientId, &T)> {
        let items = (0..).zip(&self.items);
        items.filter_map(|(index, item)| Some((ClientId(index), item.as_ref()?)))
    }
}

impl<T> ClientMap<Box<T>> {
    /// Bytes of the places of all clients, and of what they hold.
    pub(crate) fn boxed_bytes(&self) -> usize {
        let held = self.items.iter().flatten().count();
        self.table_bytes() + held * memory::block(size_of::<T>())
    }
}
