//! Methods about clients.

use std::net::Ipv6Addr;

use allosaur_api::json_schema::JsonSchema;
use allosaur_api::{Empty, Error};
use allosaur_engine::time::Nanos;
use allosaur_packet::MacAddress;
use serde::{Deserialize, Serialize};

use super::address_conflict::check_client;
use super::call::{self, ClientFields, NewClient};
use super::internal;
use super::namespaces::{Defaults, SetDefaults};
use crate::client::{Client, ClientId};
use crate::emulation::{Emulation, Entry, names, plugin_id};
use crate::iter::{self, Page, PageParams};
use crate::namespace::Namespace;
use crate::read::{Done, Ipv4, Ipv6, Listed, Mac, failed_check};
use crate::target::MacParams;

/// Clients to add.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct AddClients {
    /// The clients.
    #[schemars(required)]
    clients: Option<Listed<ClientFields>>,
}

/// What `ctx_client_get_info` says of a client.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ClientInfo {
    /// Its MAC address.
    mac: Mac,
    /// Its IPv4 address.
    ipv4: Ipv4,
    /// Its gateway for IPv4.
    ipv4_dg: Ipv4,
    /// The longest IPv4 packet that it sends, in bytes.
    ipv4_mtu: u16,
    /// Its link-local IPv6 address.
    ipv6_local: Ipv6,
    /// The address that it made of the router's prefix.
    ipv6_slaac: Ipv6,
    /// Its static IPv6 address.
    ipv6: Ipv6,
    /// Its gateway for IPv6.
    dg_ipv6: Ipv6,
    /// Its address by DHCPv6.
    dhcp_ipv6: Ipv6,
    /// Whether its gateway for IPv4 has the MAC address `ipv4_force_mac`, and is not asked for it.
    ipv4_force_dg: bool,
    /// That MAC address.
    ipv4_force_mac: Mac,
    /// The same for IPv6.
    ipv6_force_dg: bool,
    /// The same for IPv6.
    ipv6_force_mac: Mac,
    /// What it knows of its gateway for IPv4, where it asks for it.
    dgw: Option<GatewayInfo>,
    /// The same for IPv6.
    ipv6_dgw: Option<GatewayInfo>,
    /// What it knows of the router of IPv6, where it has the plugin `ipv6`.
    ipv6_router: Option<RouterInfo>,
    /// Its plugins.
    plug_names: Vec<&'static str>,
}

/// What a client knows of a gateway.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct GatewayInfo {
    /// Whether its MAC address is known.
    resolve: bool,
    /// Its MAC address.
    rmac: Mac,
}

/// What clients know of a router.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RouterInfo {
    /// The longest packet of the link, in bytes.
    mtu: u16,
    /// Its MAC address.
    dgmac: Mac,
    /// The prefix of addresses.
    prefix: Ipv6,
    /// The prefix's length, in bits.
    prefix_len: u8,
    /// Its address.
    ipv6: Ipv6,
}

impl Emulation {
    pub(super) fn ctx_client_add(
        &mut self,
        now: Nanos,
        index: u32,
        params: AddClients,
    ) -> Result<Done, Error> {
        let clients = params.clients;
        let clients = clients.ok_or_else(|| failed_check("CClientCmds", "Clients", "required"))?;
        self.add_clients(now, index, call::new_clients(clients))
    }

    /// Adds clients; those before one that cannot be added stay. One whose plugin cannot be made
    /// stays without it.
    pub(super) fn add_clients(
        &mut self,
        now: Nanos,
        index: u32,
        clients: Vec<NewClient>,
    ) -> Result<Done, Error> {
        // Most requests name plugins, so the defaults are copied only where they do not.
        let is_default = clients.iter().any(|client| client.plugins.is_none());
        let entry = self.namespaces.get(index).expect("it was found");
        let defaults = entry.client_defaults.as_ref().filter(|_| is_default);
        let defaults = defaults.cloned().unwrap_or_default();
        for NewClient { client, plugins } in clients {
            let entry = self.namespaces.get(index).expect("it was found");
            check_client(&entry.namespace.clients, &client)?;
            let plugins = plugins.as_deref().unwrap_or(&defaults);
            self.add_client(now, index, client, plugins)
                .map_err(internal)?;
        }
        Ok(Done)
    }

    pub(super) fn ctx_client_remove(
        &mut self,
        now: Nanos,
        index: u32,
        params: MacParams,
    ) -> Result<Done, Error> {
        self.remove_clients(now, index, params.macs()?)
    }

    /// Removes clients; those before one that is not there are gone.
    pub(super) fn remove_clients(
        &mut self,
        now: Nanos,
        index: u32,
        macs: Vec<MacAddress>,
    ) -> Result<Done, Error> {
        for mac in macs {
            let entry = self.namespaces.get(index).expect("it was found");
            let client = entry.namespace.clients.by_mac(mac);
            let client = client.ok_or_else(|| Error::execution("client does exits "))?;
            self.remove_client(now, index, client);
        }
        Ok(Done)
    }

    pub(super) fn ctx_client_get_info(
        &mut self,
        _: Nanos,
        index: u32,
        params: MacParams,
    ) -> Result<Vec<ClientInfo>, Error> {
        let entry = self.namespaces.get(index).expect("it was found");
        let infos = params.macs()?.into_iter().map(|mac| {
            let clients = &entry.namespace.clients;
            let client = clients.by_mac(mac).and_then(|id| clients.get(id));
            let info = client.map(|client| info(entry, client));
            info.ok_or_else(|| Error::execution(format!("client with mac: {mac} doesn't exists")))
        });
        infos.collect()
    }

    pub(super) fn ctx_client_iter(
        &mut self,
        _: Nanos,
        index: u32,
        params: PageParams,
    ) -> Result<Page<Mac>, Error> {
        let entry = self.namespaces.get_mut(index).expect("it was found");
        let clients = &entry.namespace.clients;
        iter::page(
            &mut entry.cursor,
            params,
            "ApiClientIterParams",
            clients.epoch,
            clients.first(),
            |id: ClientId| {
                let mac = clients.get(id).map(|client| client.mac);
                (Mac(mac.unwrap_or_default()), clients.next(id))
            },
        )
    }

    pub(super) fn ctx_client_set_def_plugins(
        &mut self,
        _: Nanos,
        index: u32,
        params: SetDefaults,
    ) -> Result<Done, Error> {
        let entry = self.namespaces.get_mut(index).expect("it was found");
        entry.client_defaults = params.plugins();
        Ok(Done)
    }

    pub(super) fn ctx_client_get_def_plugins(
        &mut self,
        _: Nanos,
        index: u32,
        _: Empty,
    ) -> Result<Defaults, Error> {
        let entry = self.namespaces.get(index).expect("it was found");
        let def_plugs = entry.client_defaults.clone();
        Ok(Defaults { def_plugs })
    }
}

/// What `ctx_client_get_info` says of a client.
fn info(entry: &Entry, client: &Client) -> ClientInfo {
    let namespace = &entry.namespace;
    let has = |name| plugin_id(name).is_ok_and(|id| client.plugins & 1 << id.0 != 0);
    // What asks for the gateway is there only where the gateway is asked for.
    let seeks_ipv4 = has("arp")
        && !client.is_forced_ipv4
        && !client.ipv4.is_unspecified()
        && !client.gateway_ipv4.is_unspecified();
    let seeks_ipv6 = has("ipv6") && !client.is_forced_ipv6 && !client.gateway_ipv6.is_unspecified();
    let gateway = |seeks: bool, mac: Option<MacAddress>| {
        seeks.then(|| GatewayInfo {
            resolve: mac.is_some(),
            rmac: Mac(mac.unwrap_or_default()),
        })
    };
    ClientInfo {
        mac: Mac(client.mac),
        ipv4: Ipv4(client.ipv4),
        ipv4_dg: Ipv4(client.gateway_ipv4),
        ipv4_mtu: client.mtu_ipv4,
        ipv6_local: Ipv6(client.link_local()),
        ipv6_slaac: Ipv6(slaac(namespace, client)),
        ipv6: Ipv6(client.ipv6),
        dg_ipv6: Ipv6(client.gateway_ipv6),
        dhcp_ipv6: Ipv6(client.dhcp_ipv6),
        ipv4_force_dg: client.is_forced_ipv4,
        ipv4_force_mac: Mac(client.given_mac_ipv4),
        ipv6_force_dg: client.is_forced_ipv6,
        ipv6_force_mac: Mac(client.given_mac_ipv6),
        dgw: gateway(seeks_ipv4, client.gateway_mac_ipv4),
        ipv6_dgw: gateway(seeks_ipv6, client.gateway_mac_ipv6),
        ipv6_router: has("ipv6").then(|| router(namespace)),
        plug_names: names(client.plugins),
    }
}

/// The address that a client made of the router's prefix, if there is one.
fn slaac(namespace: &Namespace, client: &Client) -> Ipv6Addr {
    let prefix = namespace.router.and_then(|router| router.prefix);
    let prefix = prefix.filter(|&(_, length)| length == 64);
    prefix.map_or(Ipv6Addr::UNSPECIFIED, |(prefix, _)| client.eui64(prefix))
}

fn router(namespace: &Namespace) -> RouterInfo {
    let router = namespace.router;
    let prefix = router.and_then(|router| router.prefix);
    let (prefix, length) = prefix.unwrap_or((Ipv6Addr::UNSPECIFIED, 0));
    RouterInfo {
        mtu: router.map_or(0, |router| router.mtu),
        dgmac: Mac(router.and_then(|router| router.mac).unwrap_or_default()),
        prefix: Ipv6(prefix),
        prefix_len: length,
        ipv6: Ipv6(router.map_or(Ipv6Addr::UNSPECIFIED, |router| router.address)),
    }
}
