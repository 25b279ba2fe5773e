//! Commands about ports: state, attributes and ownership.

use allosaur_api::commands::ports::{
    Acquire, Enabled, Link, PortAttributes, PortStatus, PortStatusParams, SetPortAttribute, port_id,
};
use allosaur_api::events::Event;
use allosaur_api::{Error, Fields};
use serde_json::{Map, Value, json};

use super::captures::ask;
use super::port::{ALL_PROFILES, Owner, Port, Profile};
use super::service::receive_features;
use super::{Control, Reply, View, owns_a_port, reply};
use crate::observe::{Answer, PortState, Request, ServiceMode};

/// Attributes that exist, and that no port of this version can change.
const FIXED_ATTRIBUTES: [&str; 4] = ["link_status", "led_status", "flow_ctrl_mode", "vxlan_fs"];

impl Control {
    pub(super) fn port_status(&self, fields: &Fields<'_>, view: &View<'_>) -> Reply {
        let params = PortStatusParams::parse(fields)?;
        let port = self.port(params.port)?;
        let watched = match ask(view, Request::PortState(params.port))? {
            Answer::Port(state) => state,
            _ => PortState::default(),
        };
        let owner = port.owner.as_ref();
        let ids = port
            .profiles
            .values()
            .filter_map(|p| p.streams.keys().next_back());
        reply(&PortStatus {
            owner: owner.map(|owner| owner.user.clone()).unwrap_or_default(),
            state: port.state().name(),
            state_profile: profile_states(port, params.profile.as_deref())?,
            service: port.service == ServiceMode::On,
            service_filtered: matches!(port.service, ServiceMode::Filtered(_)),
            profile_count: port.profiles.len(),
            max_stream_id: ids.copied().max().unwrap_or(0),
            attr: attributes(port),
            rx_info: receive_features(&watched, port.layers.has_ipv4()),
        })
    }

    pub(super) fn owner(&self, fields: &Fields<'_>) -> Reply {
        let owner = &self.port(port_id(fields)?)?.owner;
        let user = owner.as_ref().map_or("<FREE>", |owner| &owner.user);
        Ok(json!({"owner": user}))
    }

    pub(super) fn set_port_attribute(&mut self, fields: &Fields<'_>, view: &View<'_>) -> Reply {
        let params = SetPortAttribute::parse(fields)?;
        let port = self.port_mut(params.port)?;
        let before = (port.promiscuous, port.multicast);
        if let Some(name) = params.others.first() {
            return Err(Error::execution(attribute_problem(name)));
        }
        port.promiscuous = params.promiscuous.unwrap_or(port.promiscuous);
        port.multicast = params.multicast.unwrap_or(port.multicast);
        if before != (port.promiscuous, port.multicast) {
            let event = attributes_changed(params.port, port);
            self.queue_event(event, view.now_ns);
        }
        Ok(json!({}))
    }

    pub(super) fn acquire(&mut self, fields: &Fields<'_>, view: &View<'_>) -> Reply {
        let params = Acquire::parse(fields)?;
        let owner = self.port(params.port)?.owner.clone();
        if let (Some(owner), false) = (&owner, params.force) {
            check_same_session(owner, &params)?;
            return Ok(json!(owner.handler));
        }
        let ports = &self.ports;
        let owns = |id| owns_a_port(ports, id);
        self.sessions.touch(params.session, view.now_ns, owns)?;
        let handler = self.secrets.draw();
        self.port_mut(params.port)?.owner = Some(Owner {
            user: params.user.clone(),
            session: params.session,
            handler: handler.clone(),
        });
        let event = Event::PortAcquired {
            port: params.port,
            who: params.user,
            session: params.session,
            force: owner.is_some(),
        };
        self.queue_event(event, view.now_ns);
        Ok(json!(handler))
    }

    pub(super) fn release(&mut self, fields: &Fields<'_>, view: &View<'_>) -> Reply {
        let id = port_id(fields)?;
        if let Some(owner) = self.port_mut(id)?.owner.take() {
            let event = Event::PortReleased {
                port: id,
                who: owner.user,
                session: owner.session,
            };
            self.queue_event(event, view.now_ns);
        }
        Ok(json!({}))
    }
}

fn profile_states(port: &Port, profile: Option<&str>) -> Result<Option<Value>, Error> {
    let state = |profile: &Profile| json!(profile.state().name());
    Ok(match profile {
        None => None,
        Some(ALL_PROFILES) => {
            let states = port.profiles.iter();
            let states: Map<_, _> = states.map(|(name, p)| (name.clone(), state(p))).collect();
            Some(Value::Object(states))
        }
        Some(name) => Some(state(port.profile(name)?)),
    })
}

fn attributes(port: &Port) -> PortAttributes {
    let config = &port.config;
    PortAttributes {
        promiscuous: Enabled {
            enabled: port.promiscuous,
        },
        multicast: Enabled {
            enabled: port.multicast,
        },
        link: Link { up: true },
        speed: config.line_rate_bps / 1e9,
        rx_filter_mode: "all",
        vxlan_fs: Vec::new(),
        fc: json!({"mode": -1}),
        vlan: port.layers.vlan(),
        layer_cfg: port.layers.layer_cfg(config.hw_mac),
    }
}

/// What sessions hear of a change: all attributes that are the port's own.
fn attributes_changed(id: u8, port: &Port) -> Event {
    let mut attributes = json!(attributes(port));
    if let Value::Object(map) = &mut attributes {
        map.remove("layer_cfg");
        map.remove("vlan");
    }
    let port = id;
    Event::PortAttributesChanged { port, attributes }
}

fn attribute_problem(name: &str) -> String {
    if FIXED_ATTRIBUTES.contains(&name) {
        format!("Error applying {name}: operation is not supported for this NIC.")
    } else {
        format!("unknown attribute type: '{name:.64}'")
    }
}

fn check_same_session(owner: &Owner, params: &Acquire) -> Result<(), Error> {
    let user = &owner.user;
    if *user != params.user {
        return Err(Error::execution(format!(
            "port is already taken by '{user}'"
        )));
    }
    if owner.session != params.session {
        return Err(Error::execution(format!(
            "port is already owned by another session of '{user}'"
        )));
    }
    Ok(())
}
