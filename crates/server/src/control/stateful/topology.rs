//! The topology of clients: taken, checked, given to data threads, and shown.

use std::collections::HashMap;
use std::sync::Arc;

use allosaur_api::commands::stateful::profiles::{Fragment, FragmentReply};
use allosaur_api::commands::stateful::topology::{
    Gateway, LoadedTopology, Topology as Given, TopologyAsLoaded, VirtualInterface,
};
use allosaur_api::limits::{TOPOLOGY_BYTES_MAX, TOPOLOGY_ENTRIES_MAX};
use allosaur_api::{Error, Fields};
use allosaur_engine::encapsulation::{Encapsulation, Tunnel};
use allosaur_engine::stateful::StatefulCommand;
use allosaur_engine::stateful::topology::{
    Interface as Link, RANGES_MAX, Route, Topology as Routes,
};
use allosaur_packet::MacAddress;
use serde_json::Value;

use super::loaded_topology::Topology;
use super::state::Stateful;
use super::upload::{Text, finish, not_begun};
use crate::control::core::Core;
use crate::control::reply::{Reply, reply};
use crate::control::upload::Upload;

/// As many gateways as the RPC lets in, the engine takes.
const _: () = assert!(TOPOLOGY_ENTRIES_MAX <= RANGES_MAX);

impl Stateful {
    pub(super) fn topology(&self) -> Reply {
        let field = |name: &str| self.topology.value.as_ref()?.get(name);
        reply(&LoadedTopology {
            topo_data: TopologyAsLoaded {
                vifs: field("vifs"),
                gws: field("gws"),
            },
        })
    }

    pub(super) fn topology_fragment(&mut self, control: &mut Core, fields: &Fields<'_>) -> Reply {
        let fragment = Fragment::parse(fields)?;
        self.check_at_rest("topo_fragment")?;
        let topology = &mut self.topology;
        let before = match fragment.is_first {
            true => 0,
            false => topology.upload.as_ref().ok_or_else(not_begun)?.bytes(),
        };
        if before + fragment.text.len() > TOPOLOGY_BYTES_MAX {
            topology.upload = None;
            return Err(Error::execution(format!(
                "the topology has more than {TOPOLOGY_BYTES_MAX} bytes of JSON, which is the most: \
                 use larger ranges of clients"
            )));
        }
        if fragment.is_first {
            let loaded = topology.text.as_ref().map(|text| text.md5.as_str());
            if !fragment.is_last && loaded.is_some() && loaded == fragment.md5 {
                return reply(&FragmentReply {
                    matches_loaded: true,
                });
            }
            topology.upload = Some(Upload::begin(fragment.text, fragment.md5));
        } else {
            topology
                .upload
                .as_mut()
                .ok_or_else(not_begun)?
                .add(fragment.text);
        }
        if fragment.is_last {
            let upload = topology.upload.take().ok_or_else(not_begun)?;
            self.load_topology(control, finish(upload)?)?;
        }
        Ok(Value::Null)
    }

    pub(super) fn clear_topology(&mut self, control: &mut Core) -> Reply {
        self.check_at_rest("topo_clear")?;
        self.topology = Topology::default();
        self.send_topology(control);
        Ok(Value::Null)
    }

    fn load_topology(&mut self, control: &mut Core, text: Text) -> Result<(), Error> {
        let value: Value = serde_json::from_str(&text.text)
            .map_err(|error| Error::execution(format!("the topology is not JSON: {error}")))?;
        let given = Given::parse(&value)?;
        let routes = self.checked_routes(control, &given)?;
        self.topology = Topology {
            upload: None,
            text: Some(text),
            value: Some(value),
            routes: Arc::new(routes),
        };
        self.send_topology(control);
        Ok(())
    }

    fn routes(&self, control: &Core, given: &Given) -> Result<Vec<Route>, Error> {
        let counts = [
            ("vifs", given.interfaces.len()),
            ("gws", given.gateways.len()),
        ];
        if let Some((name, count)) = counts.iter().find(|(_, n)| *n > TOPOLOGY_ENTRIES_MAX) {
            return Err(Error::execution(format!(
                "topology: {name} has {count} entries, the most is {TOPOLOGY_ENTRIES_MAX}"
            )));
        }
        let mut links = HashMap::new();
        for (i, interface) in given.interfaces.iter().enumerate() {
            self.check_client_port(control, &format!("vifs[{i}]"), interface.port)?;
            let key = (interface.port, interface.number);
            if links.insert(key, link(control, i, interface)?).is_some() {
                return Err(Error::execution(format!(
                    "topology: vifs[{i}] is interface {}.{} once more: number them differently",
                    key.0, key.1
                )));
            }
        }
        let gateways = given.gateways.iter().enumerate();
        let routes = gateways.map(|(i, gateway)| {
            self.check_client_port(control, &format!("gws[{i}]"), gateway.port)?;
            route(i, gateway, &links)
        });
        routes.collect()
    }

    /// Why the topology does not fit the addresses that ports have now.
    pub(super) fn check_topology(&self, control: &Core) -> Result<(), String> {
        let routes = self.routes_now(control);
        routes.map(|_| ()).map_err(|error| error.to_string())
    }

    /// Ports have other addresses than when the topology was loaded. What does not fit them is refused when
    /// traffic starts.
    pub(super) fn renew_topology(&mut self, control: &mut Core) {
        if let Ok(Some(routes)) = self.routes_now(control) {
            self.topology.routes = Arc::new(routes);
            self.send_topology(control);
        }
    }

    /// What data threads should have, where it depends on the addresses of ports: with tunnels.
    fn routes_now(&self, control: &Core) -> Result<Option<Routes>, Error> {
        let Some(value) = &self.topology.value else {
            return Ok(None);
        };
        let given = Given::parse(value)?;
        match given.interfaces.iter().any(|one| one.vxlan.is_some()) {
            true => self.checked_routes(control, &given).map(Some),
            false => Ok(None),
        }
    }

    fn checked_routes(&self, control: &Core, given: &Given) -> Result<Routes, Error> {
        let routes = Routes::new(&self.routes(control, given)?);
        routes.map_err(|error| Error::execution(format!("topology: gws: {error}")))
    }

    fn check_client_port(&self, control: &Core, place: &str, port: u8) -> Result<(), Error> {
        let clients = self.client_ports(control);
        if clients.contains(&port) {
            return Ok(());
        }
        Err(Error::execution(format!(
            "topology: {place}.trex_port is {port}, which has no clients: those that have are \
             {clients:?}"
        )))
    }

    fn check_at_rest(&self, command: &str) -> Result<(), Error> {
        let mut profiles = self.profiles.iter();
        match profiles.find(|(_, profile)| profile.is_busy()) {
            None => Ok(()),
            Some((name, _)) => Err(Error::execution(format!(
                "command '{command}' cannot be executed while profile_id {name} runs: stop it first"
            ))),
        }
    }

    /// Tells all data threads where the frames of clients go.
    pub(super) fn send_topology(&mut self, control: &mut Core) {
        let routes = Arc::clone(&self.topology.routes);
        control.command_all_flows(|| StatefulCommand::SetTopology(Arc::clone(&routes)));
    }
}

fn link(control: &Core, i: usize, interface: &VirtualInterface) -> Result<Link, Error> {
    let Some(given) = &interface.vxlan else {
        return Ok(Link {
            mac: MacAddress(interface.mac),
            encapsulation: interface.vlan.into(),
        });
    };
    let port = control.port(interface.port)?;
    let tunnel = port
        .layers
        .tunnel_of_clients(given, interface.mac, interface.vlan);
    let tunnel = tunnel
        .map_err(|problem| Error::execution(format!("topology: vifs[{i}].vxlan {problem}")))?;
    Ok(Link {
        mac: MacAddress(port.config.hw_mac),
        encapsulation: tunnel.into(),
    })
}

fn route(i: usize, gateway: &Gateway, links: &HashMap<(u8, u32), Link>) -> Result<Route, Error> {
    let key = (gateway.port, gateway.interface);
    let mut interface = links.get(&key).cloned();
    let mut peer = Some(MacAddress(gateway.mac));
    if let Some(Link {
        encapsulation: Encapsulation::Tunnel(Tunnel::Vxlan(tunnel)),
        ..
    }) = &mut interface
    {
        // The gateway is within the tunnel; outside frames go where those of the port go.
        tunnel.peer = MacAddress(gateway.mac);
        peer = None;
    }
    if interface.is_none() && gateway.interface != 0 {
        return Err(Error::execution(format!(
            "topology: gws[{i}].sub_if is {}, and vifs has no interface {}.{}: add it, or give 0 \
             for the port itself",
            key.1, key.0, key.1
        )));
    }
    Ok(Route {
        port: gateway.port,
        first: gateway.first.into(),
        last: gateway.last.into(),
        interface,
        gateway: peer,
    })
}
