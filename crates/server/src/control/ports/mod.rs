//! Commands about ports: state, attributes and ownership.

mod addresses;
pub(super) mod layers;
mod lease;
pub(super) mod modes;
pub(super) mod owner;
pub(super) mod port;

use std::collections::BTreeSet;

use allosaur_api::commands::ports::{
    Acquire, Enabled, FlowControl, Handler, Link, MtuChange, PortAttributes, PortOwnerName,
    PortParams, PortStatus, PortStatusParams, ProfileStates, SetPortAttribute,
};
use allosaur_api::events::Event;
use allosaur_api::limits::VXLAN_PORTS_MAX;
use allosaur_api::{Empty, Error, Fields, PortMethod};
use allosaur_engine::flow_stats::{self, VxlanPorts};
use allosaur_engine::time::Nanos;

use crate::control::capture::service::receive_features;
use crate::control::ports::owner::{Lease, Owner};
use crate::control::ports::port::{ALL_PROFILES, Port, Profile};
use crate::control::worker_command::PortMode;
use crate::control::{Action, Control, LinkOwner, Reply, View, reply};
use crate::rx_taps::{MacFilter, PortAnswer, PortRequest, PortState, Reception, ServiceMode};

/// Attributes that exist, and that no port of this version can change; the link of an interface
/// is changed by the system.
const FIXED_ATTRIBUTES: [&str; 3] = ["link_status", "led_status", "flow_ctrl_mode"];

/// As many ports of VXLAN as the RPC lets in, the engine takes.
const _: () = assert!(VXLAN_PORTS_MAX <= flow_stats::VXLAN_PORTS_MAX);

impl Control {
    /// One arm for each command of the domain.
    pub(super) fn call_ports(
        &mut self,
        method: PortMethod,
        fields: &Fields<'_>,
        view: &View<'_>,
    ) -> Reply {
        match method {
            PortMethod::PortStatus => self.port_status(fields),
            PortMethod::Owner => self.owner(fields),
            PortMethod::SetPortAttribute => self.set_port_attribute(fields, view),
            PortMethod::Acquire => self.acquire(fields, view),
            PortMethod::Release => self.release(fields, view),
            PortMethod::SetL2 => self.set_l2(fields),
            PortMethod::SetL3 => self.set_l3(fields),
            PortMethod::ConfigureIpv6 => self.configure_ipv6(fields),
            PortMethod::SetVlan => self.set_vlan(fields),
            PortMethod::PortStats => self.port_stats(fields, view),
            PortMethod::PortXstatsNames => self.port_xstats_names(fields, view),
            PortMethod::PortXstatsValues => self.port_xstats_values(fields, view),
        }
    }

    pub(super) fn port_status(&mut self, fields: &Fields<'_>) -> Reply {
        let params: PortStatusParams = fields.read()?;
        let port = self.port(params.port)?;
        profile_states(port, params.profile.as_deref())?;
        let mode = self.request_mode(fields);
        self.ask(
            PortRequest::State(params.port),
            move |control, answer, _| {
                let watched = match answer {
                    Some(PortAnswer::State(state)) => state,
                    _ => PortState::default(),
                };
                control.watched_port_status(&params, mode, &watched)
            },
        )
    }

    fn watched_port_status(
        &self,
        params: &PortStatusParams,
        mode: PortMode,
        watched: &PortState,
    ) -> Reply {
        let port = self.port(params.port)?;
        let owner = port.owner.as_ref();
        let ids = port
            .profiles
            .values()
            .filter_map(|p| p.streams.keys().next_back());
        reply(&PortStatus {
            owner: owner.map(|owner| owner.user.clone()).unwrap_or_default(),
            state: match self.port_state(port) {
                // TRex's stateless client takes the states of flows for errors of the server.
                state if state.starts_with("ASTF") && mode == PortMode::Stateless => "TX",
                state => state,
            },
            state_profile: profile_states(port, params.profile.as_deref())?,
            service: port.service == ServiceMode::On,
            service_filtered: matches!(port.service, ServiceMode::Filtered(_)),
            profile_count: port.profiles.len(),
            max_stream_id: ids.copied().max().unwrap_or(0),
            attr: attributes(port),
            rx_info: receive_features(watched, port.layers.has_ipv4()),
        })
    }

    pub(super) fn owner(&self, fields: &Fields<'_>) -> Reply {
        let PortParams { port } = fields.read()?;
        let owner = &self.port(port)?.owner;
        let user = owner.as_ref().map_or("<FREE>", |owner| &owner.user);
        reply(&PortOwnerName {
            owner: user.to_owned(),
        })
    }

    pub(super) fn set_port_attribute(&mut self, fields: &Fields<'_>, view: &View<'_>) -> Reply {
        let params = SetPortAttribute::parse(fields)?;
        let port = self.port(params.port)?;
        if let Some(name) = params.others.first() {
            return Err(Error::execution(attribute_problem(name)));
        }
        if params.link_up.is_some() && port.config.link == LinkOwner::System {
            return Err(Error::execution(attribute_problem("link_status")));
        }
        let mut reception = port.reception;
        reception.link_up = params.link_up.unwrap_or(reception.link_up);
        if let Some(ports) = &params.vxlan_ports {
            reception.vxlan =
                VxlanPorts::with(ports).expect("the RPC lets in no more than there is room for");
        }
        let before = (port.promiscuous, port.multicast);
        let promiscuous = params.promiscuous.unwrap_or(port.promiscuous);
        let multicast = params.multicast.unwrap_or(port.multicast);
        if port.is_stateful() {
            let takes_all = promiscuous || self.config.has_emulation;
            reception.mac_filter = MacFilter::new(port.config.hw_mac, takes_all, multicast);
        }
        let mut changed = self.set_reception(params.port, reception)?;
        let port = self.port_mut(params.port)?;
        (port.promiscuous, port.multicast) = (promiscuous, multicast);
        if before != (promiscuous, multicast) {
            changed.insert(params.port);
            self.actions.push_back(Action::SetReceive {
                port: params.port,
                promiscuous,
                multicast,
            });
        }
        for id in changed {
            let event = attributes_changed(id, self.port(id)?);
            self.queue_event(event, view.now_ns);
        }
        reply(&Empty {})
    }

    /// Lets a port with flows take its own frames only, as long as it is not promiscuous; before the
    /// first request.
    pub fn begin_mac_filter(&mut self, id: u8, promiscuous: bool) -> Result<(), Error> {
        if promiscuous {
            let port = self.port_mut(id)?;
            port.promiscuous = true;
            let multicast = port.multicast;
            self.actions.push_back(Action::SetReceive {
                port: id,
                promiscuous,
                multicast,
            });
        }
        self.port(id)?;
        self.filter_macs(id);
        Ok(())
    }

    /// Has a port with flows take its own frames only, as long as it is not promiscuous and has no
    /// emulated clients, and any other port all.
    pub(super) fn filter_macs(&mut self, id: u8) {
        let port = &self.ports[usize::from(id)];
        let mut reception = port.reception;
        let takes_all = port.promiscuous || self.config.has_emulation;
        reception.mac_filter = match port.is_stateful() {
            true => MacFilter::new(port.config.hw_mac, takes_all, port.multicast),
            false => MacFilter::Any,
        };
        let set = self.set_reception(id, reception);
        set.expect("the port is there");
    }

    /// The system tells how the link of a port is, and `cause`, why it is down. Sessions hear of it
    /// when it has changed; returns whether it has.
    pub fn handle_link(&mut self, id: u8, is_up: bool, cause: &'static str, now_ns: Nanos) -> bool {
        let Some(port) = self.ports.get_mut(usize::from(id)) else {
            return false;
        };
        let is_same = port.reception.link_up == is_up && port.link_cause == cause;
        if port.config.link != LinkOwner::System || is_same {
            return false;
        }
        port.reception.link_up = is_up;
        port.link_cause = cause;
        let event = attributes_changed(id, port);
        self.queue_event(event, now_ns);
        true
    }

    /// The MTU of a port's interface is another than at the start, or the same again. Returns whether
    /// that is news.
    pub fn handle_mtu(&mut self, id: u8, change: Option<MtuChange>, now_ns: Nanos) -> bool {
        let port = self.ports.get_mut(usize::from(id));
        let Some(port) = port.filter(|port| port.mtu_change != change) else {
            return false;
        };
        port.mtu_change = change;
        let event = attributes_changed(id, port);
        self.queue_event(event, now_ns);
        true
    }

    /// Tells the receive thread how a port shall receive from now on, and its peer, which has the
    /// same link. Gives the ports for which something has changed.
    fn set_reception(&mut self, id: u8, reception: Reception) -> Result<BTreeSet<u8>, Error> {
        let mut changed = BTreeSet::new();
        let peer = match self.port(id)?.config.link {
            LinkOwner::Server { peer } => peer,
            LinkOwner::System => None,
        };
        for port in [Some(id), peer].into_iter().flatten() {
            let Some(found) = self.ports.get_mut(usize::from(port)) else {
                continue;
            };
            let mut wanted = found.reception;
            wanted.link_up = reception.link_up;
            if port == id {
                wanted.vxlan = reception.vxlan;
                wanted.mac_filter = reception.mac_filter;
            }
            let before = found.reception;
            if wanted != before {
                found.reception = wanted;
                let reception = wanted;
                self.tell(PortRequest::SetReception { port, reception });
                // The filter is no attribute: it follows from two, which the caller looks at.
                if (wanted.link_up, wanted.vxlan) != (before.link_up, before.vxlan) {
                    changed.insert(port);
                }
            }
        }
        Ok(changed)
    }

    pub(super) fn acquire(&mut self, fields: &Fields<'_>, view: &View<'_>) -> Reply {
        let params: Acquire = fields.read()?;
        let was_taken = self.port(params.port)?.owner.is_some();
        self.leave_stateful_mode(&params, view)?;
        let owner = self.port(params.port)?.owner.clone();
        let lease = params.lease_s.map(Lease::new);
        if let (Some(owner), false) = (&owner, params.force) {
            check_same_session(owner, &params)?;
            self.port_mut(params.port)?.owner = Some(Owner {
                lease,
                ..owner.clone()
            });
            return reply(&Handler(owner.handler.clone()));
        }
        self.touch_session(params.session, fields, view)?;
        let handler = self.secrets.draw();
        self.port_mut(params.port)?.owner = Some(Owner {
            user: params.user.clone(),
            session: params.session,
            handler: handler.clone(),
            lease,
        });
        let event = Event::PortAcquired {
            port: params.port,
            who: params.user,
            session: params.session,
            force: was_taken,
        };
        self.queue_event(event, view.now_ns);
        reply(&Handler(handler))
    }

    pub(super) fn release(&mut self, fields: &Fields<'_>, view: &View<'_>) -> Reply {
        let PortParams { port: id } = fields.read()?;
        if let Some(owner) = self.port_mut(id)?.owner.take() {
            let event = Event::PortReleased {
                port: id,
                who: owner.user,
                session: owner.session,
            };
            self.queue_event(event, view.now_ns);
        }
        reply(&Empty {})
    }
}

fn profile_states(port: &Port, profile: Option<&str>) -> Result<Option<ProfileStates>, Error> {
    let state = |profile: &Profile| profile.state().name();
    Ok(match profile {
        None => None,
        Some(ALL_PROFILES) => {
            let states = port.profiles.iter();
            let states = states.map(|(name, p)| (name.clone(), state(p)));
            Some(ProfileStates::All(states.collect()))
        }
        Some(name) => Some(ProfileStates::One(state(port.profile(name)?))),
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
        link: Link {
            up: port.reception.link_up,
            cause: port.link_cause,
            mtu: port.mtu_change,
        },
        speed: config.line_rate_bps / 1e9,
        rx_filter_mode: "all",
        vxlan_fs: port.reception.vxlan.others().to_vec(),
        fc: FlowControl { mode: -1 },
        vlan: Some(port.layers.vlan()),
        layer_cfg: Some(port.layers.layer_cfg(config.hw_mac)),
    }
}

/// What sessions hear when a port has found its gateway: all attributes, with the addresses. A
/// client that connected before would otherwise take the port for unresolved until it asks.
pub(super) fn layers_changed(id: u8, port: &Port) -> Event {
    let attributes = Box::new(attributes(port));
    let port = id;
    Event::PortAttributesChanged { port, attributes }
}

/// What sessions hear of a change: all attributes that are the port's own.
fn attributes_changed(id: u8, port: &Port) -> Event {
    let attributes = Box::new(PortAttributes {
        layer_cfg: None,
        vlan: None,
        ..attributes(port)
    });
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
