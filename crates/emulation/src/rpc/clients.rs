//! Methods about clients.

use std::net::Ipv6Addr;

use allosaur_api::Error;
use allosaur_engine::time::Nanos;
use allosaur_packet::MacAddress;
use serde_json::{Value, json};

use super::call::{self, NewClient};
use super::internal;
use crate::client::{Client, ClientId};
use crate::emulation::{Emulation, Entry, names, plugin_id};
use crate::iter;
use crate::namespace::Namespace;
use crate::params::{Params, failed_check};

impl Emulation {
    /// Adds clients; those before one that cannot be added stay. One whose plugin cannot be made
    /// stays without it.
    pub(super) fn ctx_client_add(
        &mut self,
        now: Nanos,
        params: &Value,
        clients: Option<Vec<NewClient>>,
    ) -> Result<Value, Error> {
        let index = self.namespace_of(params)?;
        let clients = match clients {
            Some(clients) => clients,
            None => call::clients(params)?
                .ok_or_else(|| failed_check("CClientCmds", "Clients", "required"))?,
        };
        // Most requests name plugins, so the defaults are copied only where they do not.
        let is_default = clients.iter().any(|client| client.plugins.is_none());
        let entry = self.namespaces.get(index).expect("it was found");
        let defaults = entry.client_defaults.as_ref().filter(|_| is_default);
        let defaults = defaults.cloned().unwrap_or_default();
        for NewClient { client, plugins } in clients {
            self.check_client(index, &client)?;
            let plugins = plugins.as_deref().unwrap_or(&defaults);
            self.add_client(now, index, client, plugins)
                .map_err(internal)?;
        }
        Ok(Value::Bool(true))
    }

    /// Whether a client can be added: nobody has its addresses.
    fn check_client(&self, index: u32, client: &Client) -> Result<(), Error> {
        let entry = self.namespaces.get(index).expect("it was found");
        let clients = &entry.namespace.clients;
        let Client {
            mac, ipv4, ipv6, ..
        } = client;
        let taken = |what: &str, address: &dyn std::fmt::Display| {
            Error::execution(format!(
                " client with the same {what} {address} already exist"
            ))
        };
        if *mac == MacAddress::ZERO {
            let text = " Adding client with invalid zero MAC (zero)";
            return Err(Error::execution(text));
        }
        if clients.by_mac(*mac).is_some() {
            return Err(taken("MAC", mac));
        }
        if !ipv4.is_unspecified() && clients.by_ipv4(*ipv4).is_some() {
            return Err(taken("IPv4", &numbers(&ipv4.octets())));
        }
        if !ipv6.is_unspecified() && clients.by_ipv6(*ipv6).is_some() {
            return Err(taken("IPv6", &numbers(&ipv6.octets())));
        }
        Ok(())
    }

    /// Removes clients; those before one that is not there are gone.
    pub(super) fn ctx_client_remove(
        &mut self,
        now: Nanos,
        params: &Value,
        macs: Option<Vec<MacAddress>>,
    ) -> Result<Value, Error> {
        let index = self.namespace_of(params)?;
        let macs = match macs {
            Some(macs) => macs,
            None => needed_macs(params)?,
        };
        for mac in macs {
            let entry = self.namespaces.get(index).expect("it was found");
            let client = entry.namespace.clients.by_mac(mac);
            let client = client.ok_or_else(|| Error::execution("client does exits "))?;
            self.remove_client(now, index, client);
        }
        Ok(Value::Bool(true))
    }

    pub(super) fn ctx_client_get_info(&mut self, params: &Value) -> Result<Value, Error> {
        let index = self.namespace_of(params)?;
        let entry = self.namespaces.get(index).expect("it was found");
        let infos = needed_macs(params)?.into_iter().map(|mac| {
            let clients = &entry.namespace.clients;
            let client = clients.by_mac(mac).and_then(|id| clients.get(id));
            let info = client.map(|client| info(entry, client));
            info.ok_or_else(|| Error::execution(format!("client with mac: {mac} doesn't exists")))
        });
        infos.collect::<Result<Vec<_>, _>>().map(Value::Array)
    }

    pub(super) fn ctx_client_iter(&mut self, params: &Value) -> Result<Value, Error> {
        let index = self.namespace_of(params)?;
        let entry = self.namespaces.get_mut(index).expect("it was found");
        let clients = &entry.namespace.clients;
        iter::page(
            &mut entry.cursor,
            params,
            "ApiClientIterParams",
            clients.epoch,
            clients.first(),
            |id: ClientId| {
                let mac = clients.get(id).map(|client| client.mac.octets());
                (json!(mac), clients.next(id))
            },
        )
    }

    pub(super) fn ctx_client_set_def_plugins(&mut self, params: &Value) -> Result<Value, Error> {
        let plugins = Params::new(params).plugins("def_plugs")?.cloned();
        let index = self.namespace_of(params)?;
        let entry = self.namespaces.get_mut(index).expect("it was found");
        entry.client_defaults = plugins;
        Ok(Value::Bool(true))
    }

    pub(super) fn ctx_client_get_def_plugins(&mut self, params: &Value) -> Result<Value, Error> {
        let index = self.namespace_of(params)?;
        let entry = self.namespaces.get(index).expect("it was found");
        Ok(json!({"def_plugs": entry.client_defaults}))
    }
}

/// Bytes as the reference's errors have them.
fn numbers(bytes: &[u8]) -> String {
    let bytes: Vec<String> = bytes.iter().map(u8::to_string).collect();
    format!("[{}]", bytes.join(" "))
}

/// The list of MAC addresses, which must be there.
fn needed_macs(params: &Value) -> Result<Vec<MacAddress>, Error> {
    call::macs(params)?.ok_or_else(|| failed_check("RpcCmdMacs", "MACKeys", "required"))
}

/// What `ctx_client_get_info` says of a client.
fn info(entry: &Entry, client: &Client) -> Value {
    let namespace = &entry.namespace;
    let has = |name| plugin_id(name).is_ok_and(|id| client.plugins & 1 << id.0 != 0);
    // What asks for the gateway is there only where the gateway is asked for.
    let seeks_ipv4 = has("arp")
        && !client.is_forced_ipv4
        && !client.ipv4.is_unspecified()
        && !client.gateway_ipv4.is_unspecified();
    let seeks_ipv6 = has("ipv6") && !client.is_forced_ipv6 && !client.gateway_ipv6.is_unspecified();
    let gateway = |seeks: bool, mac: Option<MacAddress>| {
        seeks.then(|| json!({"resolve": mac.is_some(), "rmac": mac.unwrap_or_default().octets()}))
    };
    json!({
        "mac": client.mac.octets(),
        "ipv4": client.ipv4.octets(),
        "ipv4_dg": client.gateway_ipv4.octets(),
        "ipv4_mtu": client.mtu_ipv4,
        "ipv6_local": client.link_local().octets(),
        "ipv6_slaac": slaac(namespace, client).octets(),
        "ipv6": client.ipv6.octets(),
        "dg_ipv6": client.gateway_ipv6.octets(),
        "dhcp_ipv6": client.dhcp_ipv6.octets(),
        "ipv4_force_dg": client.is_forced_ipv4,
        "ipv4_force_mac": client.given_mac_ipv4.octets(),
        "ipv6_force_dg": client.is_forced_ipv6,
        "ipv6_force_mac": client.given_mac_ipv6.octets(),
        "dgw": gateway(seeks_ipv4, client.gateway_mac_ipv4),
        "ipv6_dgw": gateway(seeks_ipv6, client.gateway_mac_ipv6),
        "ipv6_router": has("ipv6").then(|| router(namespace)),
        "plug_names": names(client.plugins),
    })
}

/// The address that a client made of the router's prefix, if there is one.
fn slaac(namespace: &Namespace, client: &Client) -> Ipv6Addr {
    let prefix = namespace.router.and_then(|router| router.prefix);
    let prefix = prefix.filter(|&(_, length)| length == 64);
    prefix.map_or(Ipv6Addr::UNSPECIFIED, |(prefix, _)| client.eui64(prefix))
}

fn router(namespace: &Namespace) -> Value {
    let router = namespace.router;
    let prefix = router.and_then(|router| router.prefix);
    let (prefix, length) = prefix.unwrap_or((Ipv6Addr::UNSPECIFIED, 0));
    let mac = router.and_then(|router| router.mac).unwrap_or_default();
    let address = router.map_or(Ipv6Addr::UNSPECIFIED, |router| router.address);
    json!({
        "mtu": router.map_or(0, |router| router.mtu),
        "dgmac": mac.octets(),
        "prefix": prefix.octets(),
        "prefix_len": length,
        "ipv6": address.octets(),
    })
}
